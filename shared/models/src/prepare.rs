//! The one way by which a request becomes valid and fits: every provider passes its request through
//! [`ModelRequest::prepared`], and its answer through [`Prepared::answering`].
//!
//! A request is never refused here. What a provider would refuse is mended: the conversation by
//! `turnlock_domain::conversation`, names by aliases, foreign reasoning by leaving it out. Size is cut for turns only: a
//! job must know that the model saw all of what it was shown, so it chooses what it shows, and one that shows too much
//! fails with [`crate::ModelError::ContextFull`].

mod answers;
mod estimate;
mod size;

use std::collections::BTreeMap;

use futures_util::{Stream, StreamExt};
use turnlock_domain::conversation::{alias, check_request, repair};
use turnlock_domain::message::{Block, Media, Message, Role};
use turnlock_domain::text;

use crate::error::ModelError;
use crate::event::ModelEvent;
use crate::model::{Capabilities, ModelStream};
use crate::request::{ModelRequest, Purpose, ToolSpec};

use answers::Answers;

/// The longest description of a tool that is sent, in bytes (OpenAI's limit; Bedrock has none).
const DESCRIPTION_MAX: usize = 1024;

/// The longest name of a file that stands in its place, in characters.
const PLACEHOLDER_NAME_MAX: usize = 80;

/// What is asked where nobody asks anything, because nothing of the last message can be seen.
const NOTHING_SAID: &str = "(an empty message)";

/// What the model says between the results of its tools and what a person says, where both cannot be one message.
const RESULTS_SEEN: &str = "(I have the results.)";

/// A request that may leave: a valid conversation, provider-safe names, no more than the model takes.
#[derive(Debug, Clone)]
pub struct Prepared {
    request: ModelRequest,
    names: ToolNames,
}

/// Aliases of tools, back to their registered names.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolNames(BTreeMap<String, String>);

impl ModelRequest {
    /// An estimate of the tokens of this request before it is cut for a model; it errs towards too many.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        u64::try_from(size::whole(self)).unwrap_or(u64::MAX)
    }

    /// This request as `model` can take it. `max_tokens` is what one of its answers may have at the most, in tokens, if
    /// that is configured: room is kept for as many, or for as many as the request says if those are fewer.
    #[must_use]
    pub fn prepared(&self, model: &str, capabilities: &Capabilities, max_tokens: Option<u32>) -> Prepared {
        let mut request = self.clone();
        request.max_tokens = [self.max_tokens, max_tokens].into_iter().flatten().min();
        request.system = text::clean(&self.system).into_owned();
        if text::is_blank(&request.system) {
            request.system.clear();
        }
        without_useless_reasoning(&mut request.messages, model);
        if !capabilities.images {
            for_each_block(&mut request.messages, &mut image_as_text);
        }
        if !capabilities.documents {
            for_each_block(&mut request.messages, &mut document_as_text);
        }
        if !capabilities.tools {
            request.tools.clear();
        }
        if request.purpose == Purpose::Turn {
            size::cut(&mut request, capabilities);
        }
        let names = ToolNames::alias_all(&mut request);
        let repaired = repair(&request.messages);
        if !repaired.changes.is_empty() {
            tracing::debug!(
                session.id = %request.session, changes = repaired.changes.len(),
                "a conversation was mended before it was sent"
            );
        }
        request.messages = repaired.messages;
        if request.messages.last().is_none_or(|message| message.role != Role::User) {
            request.messages.push(Message::user(NOTHING_SAID));
        }
        if request.tools.is_empty() {
            // A provider refuses calls in the history of a request that offers no tools.
            for_each_block(&mut request.messages, &mut tool_block_as_text);
        }
        if capabilities.results_alone {
            request.messages = request.messages.into_iter().flat_map(with_results_alone).collect();
        }
        Prepared { request, names }
    }
}

impl Prepared {
    /// The request to send.
    #[must_use]
    pub fn request(&self) -> &ModelRequest {
        &self.request
    }

    /// What the validity checker still says of it: nothing, or there is a bug to be found.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        check_request(&self.request.messages).iter().map(ToString::to_string).collect()
    }

    /// The provider's raw answer as callers see it: registered tool names, and call ids that are valid and unlike every
    /// other in the conversation.
    pub fn answering(self, raw: impl Stream<Item = Result<ModelEvent, ModelError>> + Send + 'static) -> ModelStream {
        let mut answers = Answers::new(self.request.messages, self.names);
        Box::pin(raw.map(move |item| item.map(|event| answers.translate(event))))
    }
}

impl ToolNames {
    /// The registered name behind `name`; a name that the model made up stays as it is.
    pub(crate) fn registered(&self, name: &str) -> String {
        self.0.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }

    /// Aliases every name in `request`, so that the history and the list of tools agree.
    fn alias_all(request: &mut ModelRequest) -> Self {
        let mut names = Self::default();
        let mut tools: Vec<ToolSpec> = Vec::with_capacity(request.tools.len());
        for mut tool in std::mem::take(&mut request.tools) {
            names.alias(&mut tool.name);
            size::cut_text(&mut tool.description, DESCRIPTION_MAX);
            // A second tool of one name makes the whole request invalid.
            if !tools.iter().any(|kept| kept.name == tool.name) {
                tools.push(tool);
            }
        }
        request.tools = tools;
        if let Some(name) = &mut request.force_tool {
            names.alias(name);
        }
        request.force_tool.take_if(|name| !request.tools.iter().any(|tool| tool.name == *name));
        for_each_block(&mut request.messages, &mut |block| {
            if let Block::ToolUse { name, .. } = block {
                names.alias(name);
            }
        });
        names
    }

    fn alias(&mut self, name: &mut String) {
        let registered = std::mem::take(name);
        *name = alias(&registered);
        self.0.entry(name.clone()).or_insert(registered);
    }
}

/// A visible word in the place of media that the model is not sent: never its reference, which may lead to the file. The
/// name is somebody's text: it stays within the brackets.
#[must_use]
pub fn placeholder(kind: &str, media: &Media) -> String {
    let name = text::clean(media.name.as_deref().unwrap_or_default());
    let name: String = name.chars().map(within_brackets).collect();
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let name = text::cut(&name, PLACEHOLDER_NAME_MAX).trim_end();
    if text::is_blank(name) { format!("[{kind}]") } else { format!("[{kind}: {name}]") }
}

fn within_brackets(c: char) -> char {
    match c {
        '[' => '(',
        ']' => ')',
        // The separators of lines and paragraphs are no control characters.
        c if c.is_control() || c.is_whitespace() => ' ',
        c => c,
    }
}

/// Reasoning is signed by the model that made it: another refuses it. What names no maker is taken for this model's. What
/// nobody signed is of use as long as its turn lasts.
fn without_useless_reasoning(messages: &mut [Message], model: &str) {
    let at_hand = messages.iter().rposition(begins_turn).unwrap_or(0);
    for (index, message) in messages.iter_mut().enumerate() {
        message.content.retain(|block| match block {
            Block::Reasoning(reasoning) => {
                let is_its_own = reasoning.model.as_deref().is_none_or(|maker| maker == model);
                is_its_own && (reasoning.is_sealed() || index > at_hand)
            }
            _ => true,
        });
    }
}

/// Whether a person speaks, and not beside results: that is in the middle of a turn.
fn begins_turn(message: &Message) -> bool {
    message.role == Role::User && !message.content.iter().any(|block| matches!(block, Block::ToolResult { .. }))
}

fn image_as_text(block: &mut Block) {
    if let Block::Image(media) = block {
        *block = Block::text(placeholder("image", media));
    }
}

/// Only a document whose data is there could be read; what is a reference gets its placeholder on every wire.
fn document_as_text(block: &mut Block) {
    if let Block::File(media) = block
        && media.url.starts_with("data:")
    {
        *block = Block::text(placeholder("file", media));
    }
}

/// A message that brings results, and the message of what else stands in it.
fn with_results_alone(message: Message) -> Vec<Message> {
    let (results, others): (Vec<Block>, Vec<Block>) =
        message.content.into_iter().partition(|block| matches!(block, Block::ToolResult { .. }));
    if results.is_empty() || others.is_empty() {
        return vec![Message::new(message.role, [results, others].concat())];
    }
    let (role, seen) = (message.role, Message::assistant(RESULTS_SEEN));
    vec![Message::new(role, results), seen, Message::new(role, others)]
}

fn tool_block_as_text(block: &mut Block) {
    let text = match block {
        Block::ToolUse { name, input, .. } => format!("[called the tool {name} with {input}]"),
        Block::ToolResult { content, .. } => format!("[the tool answered: {}]", plain_text(content)),
        _ => return,
    };
    *block = Block::text(text::clean(&text));
}

/// The text of blocks, media as placeholders.
pub(crate) fn plain_text(content: &[Block]) -> String {
    let texts: Vec<String> = content
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } => Some(text.clone()),
            Block::Image(media) => Some(placeholder("image", media)),
            Block::File(media) => Some(placeholder("file", media)),
            Block::ToolUse { .. } | Block::ToolResult { .. } | Block::Reasoning(_) | Block::Unknown => None,
        })
        .collect();
    texts.join("\n")
}

/// Visits every block, those inside tool results too.
fn for_each_block(messages: &mut [Message], visit: &mut impl FnMut(&mut Block)) {
    for block in messages.iter_mut().flat_map(|message| &mut message.content) {
        if let Block::ToolResult { content, .. } = block {
            content.iter_mut().for_each(&mut *visit);
        }
        visit(block);
    }
}

#[cfg(test)]
mod tests;
