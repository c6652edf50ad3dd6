//! The way back: what a provider answers, in the words of the caller.

use std::collections::BTreeSet;

use turnlock_domain::conversation::is_name;
use turnlock_domain::ids::digest;
use turnlock_domain::message::{Block, Message};

use super::ToolNames;
use crate::event::ModelEvent;

/// Translates the events of one answer.
pub(super) struct Answers {
    messages: Vec<Message>,
    names: ToolNames,
    taken: BTreeSet<String>,
}

impl Answers {
    pub(super) fn new(messages: Vec<Message>, names: ToolNames) -> Self {
        let taken = messages
            .iter()
            .flat_map(|message| &message.content)
            .filter_map(|block| match block {
                Block::ToolUse { id, .. } => Some(id.clone()),
                _ => None,
            })
            .collect();
        Self { messages, names, taken }
    }

    pub(super) fn translate(&mut self, event: ModelEvent) -> ModelEvent {
        match event {
            ModelEvent::ToolStart { index, id, name } => {
                let id = if is_name(&id) && !self.taken.contains(&id) { id } else { self.minted(index) };
                self.taken.insert(id.clone());
                ModelEvent::ToolStart { index, id, name: self.names.registered(&name) }
            }
            event @ (ModelEvent::Text(_)
            | ModelEvent::Reasoning(_)
            | ModelEvent::Signature(_)
            | ModelEvent::Redacted(_)
            | ModelEvent::ToolInput { .. }
            | ModelEvent::Stop { .. }) => event,
        }
    }

    /// An id from the conversation and the call's place: the same when the same question is asked again, another in
    /// every later one. Servers that number their calls anew in each answer would otherwise repeat ids.
    fn minted(&self, index: u32) -> String {
        let conversation = serde_json::to_vec(&self.messages).unwrap_or_default();
        let seed = &digest(&conversation)[..16];
        (index..).map(|index| format!("call_{seed}_{index}")).find(|id| !self.taken.contains(id)).unwrap_or_default()
    }
}
