//! Webhooks of any producer: four ways to prove who calls, any body in, and the reply as a signed `POST`.
//!
//! Nothing in a body is trusted: the source's own configuration says which session it belongs to, and what only our
//! own code may claim cannot be expressed in it.

mod client;
mod inbound;
mod outbound;
mod template;
mod verify;

use std::fmt;

use http::HeaderName;
use secrecy::SecretString;

pub use client::Client;
pub use inbound::{MAX_BODY, MAX_TEXT, normalise, receive};
pub use outbound::render;
pub use verify::{Proof, sign, sign_standard, verify};

pub use reqwest::Url;

/// How a source proves that a request is its own.
#[derive(Debug, Clone)]
pub enum Verify {
    /// Standard Webhooks: `webhook-id`, `webhook-timestamp` and `webhook-signature`.
    Standard {
        /// The key: base64 after `whsec_`.
        secret: SecretString,
    },
    /// HMAC-SHA256 of the body in hexadecimal, as GitHub does it.
    Hmac {
        /// The header that carries it.
        header: HeaderName,
        /// The key.
        secret: SecretString,
        /// What stands before the hexadecimal digits, e.g. `sha256=`; may be empty.
        prefix: String,
    },
    /// Slack's scheme.
    Slack {
        /// The signing secret.
        secret: SecretString,
    },
    /// A token in `Authorization: Bearer`.
    Bearer {
        /// The token.
        token: SecretString,
    },
}

/// One configured producer of webhooks.
#[derive(Clone)]
pub struct Source {
    /// Its name: the account, and the chat where `session` is not set.
    pub name: String,
    /// How it proves itself.
    pub verify: Verify,
    /// The text of the event, with `{placeholders}`.
    pub template: Option<String>,
    /// The chat of the event, with `{placeholders}`.
    pub session: Option<String>,
    /// Where replies go; often a secret itself, so `Debug` shows only its host.
    pub reply_to: Option<Url>,
    /// The headers that may hold the delivery's id, in order; see [`Source::default_id_headers`].
    pub id_headers: Vec<HeaderName>,
}

impl Source {
    /// `webhook-id` (Standard Webhooks), `x-github-delivery`, `idempotency-key`.
    #[must_use]
    pub fn default_id_headers() -> Vec<HeaderName> {
        ["webhook-id", "x-github-delivery", "idempotency-key"].map(HeaderName::from_static).to_vec()
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("name", &self.name)
            .field("verify", &self.verify)
            .field("template", &self.template)
            .field("session", &self.session)
            .field("reply_to", &self.reply_to.as_ref().and_then(Url::host_str))
            .field("id_headers", &self.id_headers)
            .finish()
    }
}
