//! The JSON that each provider's wire carries, from a request that is prepared. Pure functions: the provider that sends
//! a request and the replay that shows it use the same one.

mod bedrock;
mod openai;

use serde::Deserialize;
use serde_json::{Value, json};
use turnlock_domain::message::Media;

use crate::request::ModelRequest;

pub use bedrock::bedrock;
pub(crate) use openai::REASONING;
pub use openai::openai;

/// A rendering of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// Ours.
    #[default]
    Neutral,
    /// Bedrock Converse.
    Bedrock,
    /// OpenAI chat completions.
    Openai,
}

impl Wire {
    /// `request` as this wire carries it; `model` is the name that stands in a wire that names one.
    #[must_use]
    pub fn render(self, model: &str, request: &ModelRequest) -> Value {
        match self {
            Self::Neutral => neutral(request),
            Self::Bedrock => bedrock(request),
            Self::Openai => openai(model, request),
        }
    }
}

/// `request` in our own words: `{system, messages, tools}`, and `max_tokens` and `force_tool` where they are set.
#[must_use]
pub fn neutral(request: &ModelRequest) -> Value {
    let mut wire = json!({ "system": request.system, "messages": request.messages, "tools": request.tools });
    if let Some(max_tokens) = request.max_tokens {
        wire["max_tokens"] = json!(max_tokens);
    }
    if let Some(name) = &request.force_tool {
        wire["force_tool"] = json!(name);
    }
    wire
}

/// The media type and base64 data of media that travels inside its reference; a reference that only its channel can
/// resolve has none.
fn inline_data(media: &Media) -> Option<(&str, &str)> {
    let (head, data) = media.url.strip_prefix("data:")?.split_once(',')?;
    let mime_type = head.strip_suffix(";base64")?;
    Some((mime_type, data))
}
