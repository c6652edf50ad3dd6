//! `POST /operator/pairings`: what `turnlock pair` asks a running host. The operator's alone, by the token in the data
//! directory.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::to_value;
use turnlock_domain::event::Channel;

use super::{Front, read, refusal};
use crate::pair::{Account, Asked, answer};

/// The way here.
pub(crate) const PATH: &str = "/operator/pairings";

/// A question.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Question {
    /// The account's channel.
    pub(crate) channel: Channel,
    /// Its name there.
    pub(crate) account: String,
    /// What is asked about it.
    pub(crate) asked: Asked,
}

/// Answers the operator, and nobody else.
pub(super) async fn pairings(State(front): State<Arc<Front>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if !front.is_operator(&parts.headers) {
        return refusal(StatusCode::UNAUTHORIZED, "unauthorized", "this is for the operator of this host");
    }
    let body = match read(&parts.headers, body).await {
        Ok(body) => body,
        Err((status, word, sentence)) => return refusal(status, word, sentence),
    };
    let Ok(Question { channel, account, asked }) = serde_json::from_slice(&body) else {
        return refusal(StatusCode::BAD_REQUEST, "invalid", "this is no question of this version");
    };
    match answer(front.host.store(), &Account { channel, name: account }, &asked).await.map(to_value) {
        Ok(Ok(pairings)) => super::json(&pairings),
        Ok(Err(_)) | Err(_) => refusal(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "the table did not answer"),
    }
}
