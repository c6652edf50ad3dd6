//! The HTTP API's messages: `POST /v1/messages` with a bearer key. Not here: answers, waiting for a reply, streams;
//! those read the store's items. Its own words are strict: an unknown field is an error that says what is allowed.

mod inbound;
mod verify;

pub use inbound::{ApiMessage, IDEMPOTENCY_HEADER, MAX_BODY, normalise, receive};
pub use verify::verify;
