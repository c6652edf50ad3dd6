//! The outside worlds: a folder each, with verify (who may come in), inbound (their words to ours), outbound (ours to
//! theirs) and client (the requests).
//!
//! What is here: signatures, identities, parsing, normalising, splitting, and what each platform's answer means.
//! What is not: queues, the store, authorisation of senders, rates, sentences shown to people, retries. A channel
//! fails in two ways only: a [`Refusal`] on the way in, a [`SendError`] on the way out; both are typed by what the
//! caller must do.
//!
//! | module | holds |
//! |---|---|
//! | [`ingress`] | the request, the answer and the results that all channels share |
//! | [`telegram`], [`slack`], [`webhook`], [`gateway`], [`cli`], [`cron`] | a channel each |
//! | [`outbound`] | the configured clients by channel and account, in one exhaustive match |
//! | [`files`] | what a reference to a file stands for, read when it is used |
//! | `markdown` | what a model writes, as text with styles, and that text in parts that fit |
//! | [`http`] | the one trait that clients share, and its `reqwest` implementation |
//! | [`command`] | what a person can tell the runtime itself, as typed text |

pub mod cli;
pub mod command;
pub mod cron;
pub mod files;
pub mod gateway;
pub mod http;
pub mod ingress;
mod json;
mod markdown;
#[cfg(test)]
mod mutation;
pub mod outbound;
mod quote;
mod secret;
pub mod slack;
pub mod telegram;
pub mod webhook;

pub use ingress::{AlbumPart, Arrival, ChatNews, IngressRequest, IngressResponse, Normalised, Refusal};
pub use outbound::{Handler, Outbound, SendError};

/// Which messages of a chat with several people are for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Groups {
    /// Those that name us, answer us or are a command for us.
    #[default]
    Mention,
    /// All.
    Always,
    /// None.
    Never,
}
