//! What the page shows of the demo: the chats of the stand-in platforms and the recent events. The demo listens on
//! loopback alone, so these answer whoever is on this machine; with a configuration file they are not there.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Value, json};
use turnlock_domain::event::Channel;
use turnlock_replay::fakes::FakePlatforms;

use super::Front;
use crate::journal::Journal;

/// What the page shows of the demo.
#[derive(Clone)]
pub(crate) struct Demo {
    /// The stand-in platforms.
    pub(crate) platforms: Arc<FakePlatforms>,
    /// The recent events.
    pub(crate) journal: Journal,
}

impl Demo {
    /// Tells the stand-in platforms what was sent in their name: a reply can only go to a message, a thread, a chat that
    /// is there.
    pub(super) fn note(&self, path: &str, body: &[u8]) {
        let Some(account) = path.strip_prefix("/telegram/") else { return };
        if let Ok(update) = serde_json::from_slice(body) {
            self.platforms.note(Channel::Telegram, account, &update);
        }
    }
}

/// What people would see in their chats.
pub(super) async fn chats(State(front): State<Arc<Front>>) -> Response {
    let chats = front.demo.as_ref().and_then(|demo| serde_json::to_value(demo.platforms.chats()).ok());
    super::json(&json!({ "chats": chats.unwrap_or(Value::Null) }))
}

/// The events after `?after=`.
pub(super) async fn events(State(front): State<Arc<Front>>, request: Request) -> Response {
    let after = request.uri().query().and_then(|query| query.strip_prefix("after=")?.parse().ok()).unwrap_or(0);
    super::json(&front.demo.as_ref().map_or(Value::Null, |demo| demo.journal.since(after)))
}
