//! The HTTP routes of one process, as values: whoever serves them (axum, a replay) hands in a request and gets an answer.

use futures_util::stream::BoxStream;
use turnlock_app::api::ApiResponse;
use turnlock_app::ingress::not_found;
use turnlock_channels::{IngressRequest, IngressResponse};

use crate::Host;

/// An answer.
pub enum Response {
    /// A whole one.
    Full(IngressResponse),
    /// Server-sent events, as they come.
    Events(BoxStream<'static, bytes::Bytes>),
}

impl Host {
    /// Answers one request: `/telegram/{bot}`, `/slack/{app}`, `/webhook/{source}`, `/v1/…`, `/healthz`.
    pub async fn answer(&self, request: IngressRequest) -> Response {
        let path = request.path.clone();
        let mut parts = path.trim_start_matches('/').splitn(2, '/');
        let full = match (parts.next().unwrap_or_default(), parts.next()) {
            ("telegram", Some(account)) => self.ingress.telegram(account, request).await,
            ("slack", Some(account)) => self.ingress.slack(account, request).await,
            ("webhook", Some(account)) => self.ingress.webhook(account, request).await,
            ("healthz", None) | ("v1", Some(_)) => return self.api.route(request).await.into(),
            _ => not_found(),
        };
        Response::Full(full)
    }

    /// Answers one request of the operator, whom the caller has recognised: the API without a key, on the terminal's
    /// channel.
    pub async fn answer_operator(&self, request: IngressRequest) -> Response {
        self.api.route_as_operator(request).await.into()
    }
}

impl From<ApiResponse> for Response {
    fn from(response: ApiResponse) -> Self {
        match response {
            ApiResponse::Full(response) => Self::Full(response),
            ApiResponse::Events(events) => Self::Events(events),
        }
    }
}
