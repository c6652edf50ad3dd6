//! Under which name we are reached, and from which pages: a web page elsewhere must not reach a host on loopback, neither
//! by a name that it points at 127.0.0.1 (DNS rebinding) nor by a request across sites.
//!
//! A request without a page behind it (a platform, `curl`) has no `Origin` and needs no more than the right name. Fails
//! closed: a name that is absent or cannot be read is a wrong one.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;

use super::{Front, refusal};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
/// The names of a machine for itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Why a request is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// It is for another name.
    Host,
    /// It comes from another site's page.
    Page,
}

/// The names under which we are reached.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    names: BTreeSet<String>,
}

impl Guard {
    /// Loopback's names, and `others` (`bot.example.org`; a port in it is passed over).
    pub(crate) fn new<'n>(others: impl IntoIterator<Item = &'n str>) -> Self {
        let names = LOOPBACK.into_iter().chain(others).map(|name| host_name(name).to_ascii_lowercase());
        Self { names: names.collect() }
    }

    fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Foreign> {
        let named = uri.authority().map(|authority| authority.as_str()).or_else(|| text(headers, &header::HOST));
        let host = named.ok_or(Foreign::Host)?.to_ascii_lowercase();
        if headers.get_all(header::HOST).iter().count() > 1 || !self.names.contains(host_name(&host)) {
            return Err(Foreign::Host);
        }
        // Behind a tunnel the page's scheme is not ours, so names and ports are compared.
        let is_own =
            |origin: &str| origin.split_once("://").is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(&host));
        if headers.contains_key(header::ORIGIN) {
            return if text(headers, &header::ORIGIN).is_some_and(is_own) { Ok(()) } else { Err(Foreign::Page) };
        }
        let from_elsewhere = matches!(text(headers, &FETCH_SITE), Some("cross-site" | "same-site"));
        // Following a link to the page is fine: the page that holds the link reads nothing of it.
        let is_visit = text(headers, &FETCH_MODE) == Some("navigate") && uri.path() == "/";
        if from_elsewhere && !is_visit { Err(Foreign::Page) } else { Ok(()) }
    }
}

/// Lets a request through, or says in a sentence why not.
pub(super) async fn check(State(front): State<Arc<Front>>, request: Request, next: Next) -> Response {
    let Err(foreign) = front.guard.check(request.uri(), request.headers()) else { return next.run(request).await };
    let (word, sentence) = match foreign {
        Foreign::Host => (
            "foreign_host",
            "this host is not known by that name; names besides localhost stand in server.hosts in turnlock.toml",
        ),
        Foreign::Page => ("foreign_page", "requests from another site's page are refused"),
    };
    tracing::warn!(target: "turnlock::http", reason = word, path = request.uri().path(), "a request was refused");
    refusal(StatusCode::FORBIDDEN, word, sentence)
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// `name:port` without the port; an IPv6 address keeps its brackets.
fn host_name(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn check(path: &str, headers: &[(&'static str, &'static str)]) -> Result<(), Foreign> {
        let headers =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        Guard::new(["bot.example.org:443"]).check(&path.parse().unwrap(), &headers.collect())
    }

    #[test]
    fn our_own_names_with_any_port_are_known() {
        for host in ["localhost", "LOCALHOST:8787", "127.0.0.1:1", "[::1]:8787", "[::1]", "bot.example.org"] {
            assert_eq!(check("/v1/messages", &[("host", host)]), Ok(()), "{host}");
        }
    }

    #[test]
    fn other_names_are_refused() {
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8787", "", "::1", "127.0.0.2"] {
            assert_eq!(check("/", &[("host", host)]), Err(Foreign::Host), "{host}");
        }
        assert_eq!(check("/", &[]), Err(Foreign::Host));
        assert_eq!(check("/", &[("host", "localhost"), ("host", "evil.example")]), Err(Foreign::Host));
    }

    #[test]
    fn only_our_own_page_may_call() {
        let host = ("host", "localhost:8787");
        assert_eq!(check("/v1/messages", &[host, ("origin", "http://localhost:8787")]), Ok(()));
        assert_eq!(
            check("/v1/messages", &[("host", "bot.example.org"), ("origin", "https://bot.example.org")]),
            Ok(())
        );
        for origin in ["http://localhost:3000", "https://evil.example", "null", "http://127.0.0.1:8787"] {
            assert_eq!(check("/v1/messages", &[host, ("origin", origin)]), Err(Foreign::Page), "{origin}");
        }
    }

    #[test]
    fn other_sites_may_link_to_the_page_and_no_more() {
        let from_elsewhere = [("host", "localhost"), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        assert_eq!(check("/", &from_elsewhere), Ok(()));
        assert_eq!(check("/demo/chats", &from_elsewhere), Err(Foreign::Page));
        let embedded = [("host", "localhost"), ("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")];
        assert_eq!(check("/", &embedded), Err(Foreign::Page));
        assert_eq!(check("/v1/events/e", &[("host", "localhost"), ("sec-fetch-site", "same-origin")]), Ok(()));
    }
}
