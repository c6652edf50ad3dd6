//! Model providers behind one trait, [`Model`].
//!
//! A caller hands over a [`ModelRequest`] as it has it and reads [`ModelEvent`]s. Every provider passes the request
//! through [`ModelRequest::prepared`] first and its answer through [`Prepared::answering`], so that what leaves is valid
//! and what comes back carries registered tool names and valid call ids, whoever asks: a turn or a job.
//!
//! Not here: retries (the caller's policy, on what [`ModelError`] tells), the hiding of thinking tags in text
//! (`turnlock_domain::thinking`), running tools, resolving media references. A request for an image carries it as a
//! `data:` URL or is sent a placeholder.
//!
//! | module | holds |
//! |---|---|
//! | [`model`] | the trait and what a model can do |
//! | [`request`] | what is asked |
//! | [`prepare`] | the one way by which a request becomes valid and fits |
//! | [`event`] | what streams back |
//! | [`assemble`] | events collected into an answer |
//! | [`error`] | how a call fails, and whether trying again helps |
//! | [`router`] | the configured models in order, their prices, their rests |
//! | [`wire`] | the JSON of each provider |
//! | [`transcript`] | how a job shows a conversation to a model |
//! | `bedrock` | Amazon Bedrock, with the feature of that name |
//! | [`openai`] | any OpenAI-compatible endpoint |
//! | [`scripted`] | a model that plays scripts, and the stand-in of the first run |

pub mod assemble;
#[cfg(feature = "bedrock")]
pub mod bedrock;
pub mod error;
pub mod event;
pub mod model;
pub mod openai;
pub mod prepare;
pub mod request;
pub mod router;
pub mod scripted;
pub mod transcript;
pub mod wire;

pub use assemble::{Answer, Assembler, BadCall, ToolCall};
#[cfg(feature = "bedrock")]
pub use bedrock::{Bedrock, BedrockSettings, Guardrail, Thinking};
pub use error::ModelError;
pub use event::{ModelEvent, StopReason};
pub use model::{Capabilities, Model, ModelStream, Timeouts, answer};
pub use openai::{OpenAi, OpenAiSettings};
pub use prepare::Prepared;
pub use request::{ModelRequest, Purpose, ToolSpec};
pub use router::{Price, Route, Router};
pub use scripted::{RecordedRequest, ScriptLine, Scripted};
pub use wire::Wire;
