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

#[cfg(test)]
mod tests {
    use super::*;

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
