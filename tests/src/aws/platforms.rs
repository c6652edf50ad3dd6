//! The fake platforms as HTTP servers, for programs that have an address of theirs in their configuration:
//! `{address}/telegram`, `{address}/slack`, and callbacks of the webhook source `name` at `{address}/webhook/{name}`.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use turnlock_channels::http::{PlatformHttp, PlatformRequest};
use turnlock_domain::event::Channel;
use turnlock_replay::fakes::FakePlatforms;

/// How long a platform that never answers keeps a caller waiting; longer than any caller of ours waits.
const NEVER: Duration = Duration::from_secs(60);

/// Serves `platforms` for as long as `servers` lives; the address, as `http://host:port`.
pub async fn serve(platforms: Arc<FakePlatforms>, servers: &mut JoinSet<()>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(platforms);
    servers.spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

async fn answer(State(platforms): State<Arc<FakePlatforms>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let mut path = parts.uri.path().trim_start_matches('/').split('/');
    let (channel, account) = match (path.next(), path.next()) {
        (Some("telegram"), _) => (Channel::Telegram, "main"),
        (Some("slack"), _) => (Channel::Slack, "main"),
        (Some("webhook"), Some(name)) => (Channel::Webhook, name),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let request = PlatformRequest {
        channel,
        account: account.to_owned(),
        method: String::new(),
        url: parts.uri.to_string(),
        headers: parts.headers.clone(),
        body,
    };
    match platforms.send(request, NEVER).await {
        Ok(answer) => {
            let status = StatusCode::from_u16(answer.status).unwrap();
            (status, answer.headers, answer.body).into_response()
        }
        // The answer is lost: nobody waits for it any more.
        Err(_) => StatusCode::GATEWAY_TIMEOUT.into_response(),
    }
}
