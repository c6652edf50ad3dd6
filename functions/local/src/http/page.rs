//! The page: three files in the binary. It loads nothing from elsewhere, runs no inline script and may be shown in no
//! other page; its script puts text into the page as text alone.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) async fn index() -> Response {
    file(include_str!("../page/index.html"), "text/html; charset=utf-8")
}

pub(super) async fn style() -> Response {
    file(include_str!("../page/page.css"), "text/css; charset=utf-8")
}

pub(super) async fn script() -> Response {
    file(include_str!("../page/page.js"), "text/javascript; charset=utf-8")
}

fn file(text: &'static str, kind: &'static str) -> Response {
    let mut response = super::private(Response::new(Body::from(text)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
