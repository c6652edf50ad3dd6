//! Tools of a team's own: functions on AWS, HTTP endpoints and commands that the configuration names. Each is called by
//! its own name, with its own schema; none needs a line of code here.
//!
//! All are asked in the same way, so that one can stand in for another. What they get is one JSON object, of which fields
//! may be added and none is ever changed:
//!
//! ```json
//! {
//!   "schema": 1,
//!   "tool": "orders",
//!   "input": { "customer": "4711" },
//!   "context": {
//!     "session": "telegram:1000001",
//!     "event_id": "telegram:1:1003",
//!     "key": "telegram:1:1003:1:0",
//!     "time": "2026-01-05T09:00:00Z"
//!   }
//! }
//! ```
//!
//! `key` names the call: a tool that is configured as `keyed` may get the same call again after a crash, with the same key,
//! and must then not do it twice. The answer is text, or JSON: of a JSON string the model reads the text, of anything else
//! the JSON. It is somebody else's text and marked as data. How each of them says that it failed stands with it.

mod command;
mod endpoint;
#[cfg(feature = "lambda")]
mod function;
#[cfg(test)]
mod tests;

use serde::Serialize;
use serde_json::Value;

pub use command::Command;
pub use endpoint::Endpoint;
#[cfg(feature = "lambda")]
pub use function::Function;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::output::{ToolOutput, data};

/// The most bytes that are read of an answer: as many as can be kept of a result.
const ANSWER_MAX: usize = turnlock_store::results::KEPT_BYTES;
/// The most characters of what a tool says about its failure.
const FAILURE_MAX: usize = 2_000;

#[derive(Serialize)]
struct Request<'r> {
    schema: u32,
    tool: &'r str,
    input: &'r Value,
    context: RequestContext<'r>,
}

#[derive(Serialize)]
struct RequestContext<'r> {
    session: &'r str,
    event_id: &'r str,
    key: &'r str,
    time: String,
}

/// What a tool called `name` is asked.
fn request(name: &str, input: &Value, context: &ToolContext) -> Result<Vec<u8>, ToolError> {
    let request = Request {
        schema: 1,
        tool: name,
        input,
        context: RequestContext {
            session: &context.session.to_string(),
            event_id: context.event_id.as_str(),
            key: &context.key,
            time: context.now.to_string(),
        },
    };
    serde_json::to_vec(&request).map_err(|error| ToolError::Failed(error.into()))
}

/// What the model reads of an answer; `is_cut` = there was more of it.
fn answer(body: &[u8], is_cut: bool) -> ToolOutput {
    let text = match serde_json::from_slice::<Value>(body) {
        Ok(Value::String(text)) => text,
        Ok(Value::Null) => String::new(),
        // What writes lines ends its last one, too.
        _ => String::from_utf8_lossy(body).trim_end_matches(['\n', '\r']).to_owned(),
    };
    let output = ToolOutput::text(text);
    if is_cut { output.with_note("[The answer was too long: its end is missing.]") } else { output }
}

/// What the model reads where a tool says itself that it failed: `how`, and what it said.
fn failure(name: &str, how: &str, said: &str) -> ToolError {
    let said = said.trim();
    if said.is_empty() {
        return ToolError::ForModel(format!("The tool `{name}` {how}."));
    }
    ToolError::ForModel(format!("The tool `{name}` {how} and says:\n{}", data(name, said, FAILURE_MAX)))
}
