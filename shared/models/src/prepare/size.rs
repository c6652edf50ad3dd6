//! What a turn leaves out when a conversation is too large, in this order:
//!
//! 1. of every tool result what is beyond [`RESULT_MAX`];
//! 2. the tool results of earlier turns, the oldest first: a sentence stands in their place;
//! 3. whole turns, the oldest first;
//! 4. of the turn at hand the tool results but those of its last step, the oldest first;
//! 5. the rest of the last step's results, each to the same length.
//!
//! The last thing a person said stays in any case. What is left out is left out of this request's view only. Sizes are
//! estimates that err towards too many tokens ([`super::estimate`]).

use turnlock_domain::message::{Block, Media, Message, Role};

use super::estimate::tokens;
use super::placeholder;
use crate::model::Capabilities;
use crate::request::ModelRequest;

/// The most text of one tool result that a model is shown, in bytes.
const RESULT_MAX: usize = 64 * 1024;
/// The least that is left of one when nothing else helps.
const RESULT_MIN: usize = 1024;
/// What an image weighs, in tokens: the most that a current model makes of one.
const IMAGE: usize = 4_800;
/// How many bytes of a document that is no text make a token, and the most that one document counts for. A guess: pages are
/// read as text and as pictures, and nobody counts them here.
const DOCUMENT_BYTES_PER_TOKEN: usize = 4;
const DOCUMENT_MAX: usize = 100_000;
/// What stands around a block, a message and a tool on the wire.
const FRAME: usize = 8;
/// What a provider tells a model of its own about how tools are called.
const TOOL_INSTRUCTIONS: usize = 500;
/// Which part of a window is kept for an answer of unknown length.
const ANSWER_SHARE: usize = 8;

/// Into how many steps a budget is divided: what old turns lose is a whole number of them, so that many turns in a row leave
/// out the same, and a provider finds the beginning of the last one in its cache.
const STEPS: usize = 8;

/// What stands in the place of a tool result that is left out. It must not make a model call the tool again.
const LEFT_OUT: &str = "(the call was answered; its result is left out here, to save room)";

pub(super) fn cut(request: &mut ModelRequest, capabilities: &Capabilities) {
    each_result(&mut request.messages, |content| content.iter_mut().for_each(|block| cut_result(block, RESULT_MAX)));
    let Some(budget) = budget(request, capabilities) else { return };
    let mut conversation = Conversation::weighed(std::mem::take(&mut request.messages), budget);
    conversation.fit();
    if conversation.left_out > 0 || conversation.pruned > 0 {
        tracing::info!(
            session.id = %request.session, messages = conversation.left_out, results = conversation.pruned,
            "what is oldest does not fit into the model's context"
        );
    }
    request.messages = conversation.messages;
}

/// Shortens `text` to at most `max` bytes, at a character's boundary.
pub(super) fn cut_text(text: &mut String, max: usize) {
    text.truncate(text.floor_char_boundary(max));
}

fn cut_result(block: &mut Block, max: usize) {
    if let Block::Text { text } = block
        && text.len() > max
    {
        let whole = text.len();
        cut_text(text, max);
        text.push_str(&format!("\n[cut here: {} of {whole} bytes left out]", whole - text.len()));
    }
}

/// The tokens that are left for the conversation; `None` = no limit is known.
fn budget(request: &ModelRequest, capabilities: &Capabilities) -> Option<usize> {
    let around = tokens(&request.system) + request.tools.iter().map(tool).sum::<usize>();
    let around = around + if request.tools.is_empty() { 0 } else { TOOL_INSTRUCTIONS };
    let whole = match capabilities.context_tokens.map(saturated) {
        Some(window) => {
            let answer = request.max_tokens.map_or(window / ANSWER_SHARE, saturated);
            window - answer.min(window / 2)
        }
        None if request.tighter => around + request.messages.iter().map(message).sum::<usize>(),
        None => return None,
    };
    let whole = if request.tighter { whole / 2 } else { whole };
    Some(whole.saturating_sub(around))
}

/// The tokens of a whole request, as it is before it is cut.
pub(super) fn whole(request: &ModelRequest) -> usize {
    let tools = request.tools.iter().map(tool).sum::<usize>();
    tokens(&request.system) + tools + request.messages.iter().map(message).sum::<usize>()
}

fn saturated(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn tool(tool: &crate::request::ToolSpec) -> usize {
    FRAME + tokens(&tool.name) + tokens(&tool.description) + tokens(&tool.schema.to_string())
}

/// Messages and what they weigh, on their way to fit.
struct Conversation {
    messages: Vec<Message>,
    weight: usize,
    budget: usize,
    left_out: usize,
    pruned: usize,
}

impl Conversation {
    fn weighed(messages: Vec<Message>, budget: usize) -> Self {
        let weight = messages.iter().map(message).sum();
        Self { messages, weight, budget, left_out: 0, pruned: 0 }
    }

    fn fit(&mut self) {
        let turns: Vec<usize> = (0..self.messages.len()).filter(|index| self.begins_turn(*index)).collect();
        let at_hand = turns.last().copied().unwrap_or(0);
        let (budget, step) = (self.budget, (self.budget / STEPS).max(1));
        let excess = self.weight.saturating_sub(budget);
        self.budget = self.weight.saturating_sub(excess.div_ceil(step) * step);
        self.prune(0, at_hand);
        self.leave_out_turns(&turns);
        self.budget = budget;
        let last = self.messages.len().saturating_sub(1);
        // Where the conversation ends with something else, e.g. a person's word, the last step is the one before.
        let last = (0..=last).rev().find(|index| self.brings_results(*index)).unwrap_or(0);
        self.prune(0, last);
        self.cut_last_results(last);
    }

    fn fits(&self) -> bool {
        self.weight <= self.budget
    }

    /// Replaces the results in the messages `from..to`, the oldest first, until all fits.
    fn prune(&mut self, from: usize, to: usize) {
        for message in from..to {
            for block in 0..self.messages[message].content.len() {
                if self.fits() {
                    return;
                }
                self.prune_block(message, block);
            }
        }
    }

    fn prune_block(&mut self, message: usize, block: usize) {
        let Block::ToolResult { content, .. } = &mut self.messages[message].content[block] else { return };
        let (before, after) = (content.iter().map(weight).sum::<usize>(), weight(&Block::text(LEFT_OUT)));
        if before > after {
            *content = vec![Block::text(LEFT_OUT)];
            self.weight = self.weight + after - before;
            self.pruned += 1;
        }
    }

    /// Leaves out the oldest turns until the rest fits; the last turn stays.
    fn leave_out_turns(&mut self, turns: &[usize]) {
        let mut kept = 0;
        for next in turns.iter().copied().filter(|index| *index > 0) {
            if self.fits() {
                break;
            }
            self.weight -= self.messages[kept..next].iter().map(message).sum::<usize>();
            kept = next;
        }
        self.messages.drain(..kept);
        self.left_out = kept;
    }

    /// Cuts the results of the last step to halves of halves until all fits.
    fn cut_last_results(&mut self, last: usize) {
        let Some(whole) = self.messages.get(last).cloned() else { return };
        let others = self.weight - message(&whole);
        let mut max = RESULT_MAX;
        while self.weight > self.budget && max > RESULT_MIN {
            max /= 2;
            let mut results = [whole.clone()];
            each_result(&mut results, |content| content.iter_mut().for_each(|block| cut_result(block, max)));
            self.weight = others + results.iter().map(message).sum::<usize>();
            self.messages.splice(last..=last, results);
        }
    }

    /// Whether a turn begins at this message: a person speaks, and not into a turn that is under way.
    fn begins_turn(&self, index: usize) -> bool {
        let before = index.checked_sub(1).map(|before| self.messages[before].role);
        self.messages[index].role == Role::User && before != Some(Role::User) && !self.brings_results(index)
    }

    fn brings_results(&self, index: usize) -> bool {
        let content = self.messages.get(index).map(|message| message.content.as_slice()).unwrap_or_default();
        content.iter().any(|block| matches!(block, Block::ToolResult { .. }))
    }
}

/// Visits the content of every tool result.
fn each_result(messages: &mut [Message], mut visit: impl FnMut(&mut Vec<Block>)) {
    for block in messages.iter_mut().flat_map(|message| &mut message.content) {
        if let Block::ToolResult { content, .. } = block {
            visit(content);
        }
    }
}

fn message(message: &Message) -> usize {
    FRAME + message.content.iter().map(weight).sum::<usize>()
}

fn weight(block: &Block) -> usize {
    FRAME
        + match block {
            Block::Text { text } => tokens(text),
            Block::Image(media) if is_inline(media) => IMAGE,
            Block::File(media) if is_inline(media) => document(media),
            Block::Image(media) => tokens(&placeholder("image", media)),
            Block::File(media) => tokens(&placeholder("file", media)),
            Block::ToolUse { id, name, input } => tokens(id) + tokens(name) + tokens(&input.to_string()),
            Block::ToolResult { tool_use_id, content, .. } => {
                tokens(tool_use_id) + content.iter().map(weight).sum::<usize>()
            }
            // What is encrypted or signed holds reasoning that is longer than its text.
            Block::Reasoning(reasoning) => {
                let opaque = [&reasoning.signature, &reasoning.redacted].into_iter().flatten().map(String::len);
                tokens(&reasoning.text) + opaque.sum::<usize>() / 3
            }
            Block::Unknown => 0,
        }
}

fn is_inline(media: &Media) -> bool {
    media.url.starts_with("data:")
}

/// Base64 of text is a third longer than the text, which is at most a token a byte.
fn document(media: &Media) -> usize {
    if media.url.starts_with("data:text/") {
        media.url.len()
    } else {
        (media.url.len() / DOCUMENT_BYTES_PER_TOKEN).min(DOCUMENT_MAX)
    }
}

#[cfg(test)]
mod tests;
