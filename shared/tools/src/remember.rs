//! `remember`: the model keeps a fact in the memory of its chat, with the turn as evidence. A fact of the same key is
//! replaced, so a repeated call changes nothing. Text of thinking tags is taken out: reasoning is no memory.

use schemars::JsonSchema;
use serde::Deserialize;
use turnlock_domain::text::{clean, is_blank};
use turnlock_domain::thinking::strip;
use turnlock_domain::time::Millis;
use turnlock_store::Store;
use turnlock_store::memory::{Evidence, Fact, MAX_FACT_CHARS, Unmemorable};

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::tool::{Risk, Tool};

/// Keeps facts.
pub(crate) struct Remember {
    store: Store,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// A short name for the fact, such as `name-of-the-cat`. A fact that has this name already is replaced.
    key: String,
    /// The fact, as one sentence that can be understood alone.
    #[serde(alias = "value")]
    text: String,
}

impl Remember {
    pub(crate) fn new(store: Store) -> Self {
        Self { store }
    }
}

impl Tool for Remember {
    type Input = Input;

    const NAME: &'static str = "remember";
    const DESCRIPTION: &'static str = "Keeps a fact about the user or this chat in long-term memory, for later \
                                       conversations. Use it when you are asked to remember something, or told \
                                       something that will still matter later.";
    const RISK: Risk = Risk::Write;
    const KEYED: bool = true;

    async fn run(&self, input: Input, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let text = strip(&clean(&input.text), false);
        if is_blank(&text) {
            return Err(ToolError::for_model("There is nothing to remember: `text` is empty."));
        }
        if text.chars().count() > MAX_FACT_CHARS {
            return Err(ToolError::for_model(format!(
                "`text` is longer than {MAX_FACT_CHARS} characters. Shorten it, or remember it as several facts."
            )));
        }
        let fact = fact(&clean(&input.key), &text, &context).map_err(|error| ToolError::Failed(error.into()))?;
        self.store.remember(&context.scope, std::slice::from_ref(&fact), &context.key).await?;
        Ok(ToolOutput::text(format!("Remembered as `{}`.", fact.key())))
    }
}

fn fact(key: &str, text: &str, context: &ToolContext) -> Result<Fact, Unmemorable> {
    let evidence = Evidence::new(
        context.session.clone(),
        context.generation,
        context.message..context.message.saturating_add(1),
        vec![context.event_id.clone()],
        &context.model,
        Millis::from(context.now),
    )?;
    Fact::new(key, text, evidence)
}
