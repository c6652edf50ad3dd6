//! The HTTP routes of one process, as values: whoever serves them (axum, a replay) hands in a request and gets an answer.

use futures_util::stream::BoxStream;
use turnlock_app::api::ApiResponse;
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
        if request.path == "/healthz" || request.path.starts_with("/v1/") {
            return self.api.route(request).await.into();
        }
        Response::Full(self.ingress.route(request).await)
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
