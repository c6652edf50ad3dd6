//! `read_result`: the model reads on in a result that was too long to be shown whole. Only a conversation's own results
//! can be read.

use schemars::JsonSchema;
use serde::Deserialize;
use turnlock_domain::text::{clean, cut};
use turnlock_store::Store;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::output::{RESULT_MAX, ToolOutput};
use crate::tool::{Risk, Tool};

/// The name by which the sentence about a cut calls it.
pub(crate) const NAME: &str = "read_result";
/// The longest name of a result: the key of a call.
const RESULT_NAME_MAX: usize = 200;

/// Reads on in a result.
pub(crate) struct ReadResult {
    store: Store,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// The result, as the sentence that says it was cut names it.
    result: String,
    /// How many of its characters to pass over: where to read on.
    #[serde(default)]
    from: usize,
}

impl ReadResult {
    pub(crate) fn new(store: Store) -> Self {
        Self { store }
    }
}

impl Tool for ReadResult {
    type Input = Input;

    const NAME: &'static str = NAME;
    const DESCRIPTION: &'static str = "Reads on in the result of an earlier call that was cut because it was too long. \
                                       The sentence that says so names the result and the place.";
    const RISK: Risk = Risk::Read;
    const KEYED: bool = true;
    const FOREIGN: bool = true;

    async fn run(&self, input: Input, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let Input { result, from } = input;
        let kept = if result.len() > RESULT_NAME_MAX || result.is_empty() {
            None
        } else {
            self.store.kept_result(&context.session, &result).await?
        };
        let Some(kept) = kept else {
            let result = clean(cut(&result, RESULT_NAME_MAX)).into_owned();
            return Err(ToolError::ForModel(format!(
                "There is no result `{result}` to read on in. Take its name from the sentence that says that a result of \
                 this conversation was cut; results are kept for 35 days."
            )));
        };
        let rest: &str = kept.text.char_indices().nth(from).map_or("", |(at, _)| &kept.text[at..]);
        if rest.is_empty() {
            let end = kept.text.chars().count();
            return Err(ToolError::ForModel(format!("Nothing of the result stands behind its character {end}.")));
        }
        let shown = cut(rest, RESULT_MAX);
        let (end, total) = (from + shown.chars().count(), kept.characters);
        let note = if shown.len() < rest.len() {
            format!("Read on with {NAME}, result \"{result}\", from {end}.")
        } else if end < total {
            "The rest was too long to be kept.".to_owned()
        } else {
            "This is its end.".to_owned()
        };
        Ok(ToolOutput::text(shown).with_note(format!("[Characters {from} to {end} of {total} are shown. {note}]")))
    }
}
