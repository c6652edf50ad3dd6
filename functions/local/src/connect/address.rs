//! The public address of a deployment, as the operator gives it.

use axum::http::Uri;

use crate::failure::Misuse;

/// The address of `route` below `url`, which may name the route already.
pub(super) fn of_route(url: &str, route: &str) -> Result<Uri, Misuse> {
    let example = format!("an address like https://bot.example.org (the route {route} is added to it)");
    let problem = |what: &str| Misuse(format!("--url: {what}; give {example}"));
    let parsed: Uri = url.trim().parse().map_err(|_| problem("this is no address"))?;
    if parsed.scheme_str() != Some("https") {
        return Err(problem("platforms send to https alone, and a proxy or a tunnel ends TLS in front of this host"));
    }
    let authority = parsed.authority().filter(|authority| !authority.host().is_empty());
    let authority = authority.ok_or_else(|| problem("the host's name is missing"))?;
    if authority.as_str().contains('@') {
        return Err(problem("a user or password does not belong there"));
    }
    if parsed.query().is_some() || url.contains('#') {
        return Err(problem("what follows a ? or # does not belong there"));
    }
    let before = parsed.path().trim_end_matches('/');
    let before = before.strip_suffix(route).unwrap_or(before);
    format!("https://{authority}{before}{route}").parse().map_err(|_| problem("this is no address"))
}

/// Whether a platform's `text` is the address `url`: a host's name has no case, and 443 is the port without one.
pub(super) fn is_same(text: &str, url: &Uri) -> bool {
    let parts = |url: &Uri| {
        let host = url.host()?.to_ascii_lowercase();
        let path = url.path_and_query().map(|path| path.as_str().to_owned());
        Some((url.scheme_str()?.to_owned(), host, url.port_u16().unwrap_or(443), path))
    };
    text.parse().ok().and_then(|text| parts(&text)).is_some_and(|text| Some(text) == parts(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_same_however_it_is_written() {
        let url = of_route("https://Bot.Example.org", "/telegram/main").unwrap();
        let same = |text: &str| is_same(text, &url);
        for text in ["https://bot.example.org/telegram/main", "HTTPS://BOT.example.org:443/telegram/main"] {
            assert!(same(text), "{text}");
        }
        for text in [
            "https://bot.example.org/Telegram/main",
            "https://bot.example.org:8443/telegram/main",
            "http://bot.example.org/telegram/main",
            "https://bot.example.org/telegram/main?a=b",
            "https://bot.example.net/telegram/main",
            "/telegram/main",
            "",
        ] {
            assert!(!same(text), "{text}");
        }
    }

    #[test]
    fn the_route_is_added_once() {
        let route = "/telegram/main";
        for url in ["https://b.example", "https://b.example/", " https://b.example/telegram/main/ "] {
            assert_eq!(of_route(url, route).unwrap().to_string(), "https://b.example/telegram/main", "{url}");
        }
        let stage = of_route("https://b.example:8443/stage/", route).unwrap();
        assert_eq!(stage.to_string(), "https://b.example:8443/stage/telegram/main");
    }

    #[test]
    fn what_is_no_public_address_is_refused_with_an_example() {
        let table = [
            ("http://b.example", "https alone"),
            ("b.example", "https alone"),
            ("https://", "no address"),
            ("https://me:pw@b.example", "password"),
            ("https://b.example/?a=b", "? or #"),
            ("https://b.example/#a", "? or #"),
            ("https://b example", "no address"),
        ];
        for (url, reason) in table {
            let error = of_route(url, "/slack/main").unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("https://bot.example.org"), "{url}: {error}");
            assert!(!error.contains("pw@"), "{error}");
        }
    }
}
