//! What a turn leaves out when a conversation is too large: the rest of an oversized tool result, then whole turns from
//! the oldest on. The turn at hand stays whole.

use turnlock_domain::message::{Block, Message, Role};

use crate::model::Capabilities;
use crate::request::ModelRequest;

/// The most text of one tool result that a model is shown, in bytes.
const RESULT_MAX: usize = 64 * 1024;
/// Bytes per token: low, so that the estimate errs towards too many tokens in most languages.
const BYTES_PER_TOKEN: usize = 3;
/// What media weighs, in bytes of text: about 1,500 tokens, a large image.
const MEDIA_WEIGHT: usize = 4_500;

pub(super) fn cut(request: &mut ModelRequest, capabilities: &Capabilities) {
    for block in request.messages.iter_mut().flat_map(|message| &mut message.content) {
        if let Block::ToolResult { content, .. } = block {
            content.iter_mut().for_each(cut_result);
        }
    }
    if let Some(budget) = budget(request, capabilities) {
        let from = first_kept(&request.messages, budget);
        if from > 0 {
            tracing::info!(
                session.id = %request.session, left_out = from,
                "the oldest messages do not fit into the model's context"
            );
            request.messages.drain(..from);
        }
    }
}

/// Shortens `text` to at most `max` bytes, at a character's boundary.
pub(super) fn cut_text(text: &mut String, max: usize) {
    text.truncate(text.floor_char_boundary(max));
}

fn cut_result(block: &mut Block) {
    if let Block::Text { text } = block
        && text.len() > RESULT_MAX
    {
        let whole = text.len();
        cut_text(text, RESULT_MAX);
        text.push_str(&format!("\n[cut here: {} of {whole} bytes left out]", whole - text.len()));
    }
}

/// The bytes that are left for the conversation.
fn budget(request: &ModelRequest, capabilities: &Capabilities) -> Option<usize> {
    let tokens = capabilities.context_tokens?.saturating_sub(request.max_tokens.unwrap_or(0));
    let tools: usize =
        request.tools.iter().map(|tool| tool.name.len() + tool.description.len() + tool.schema.to_string().len()).sum();
    let bytes = usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN);
    Some(bytes.saturating_sub(request.system.len() + tools))
}

/// The first message of the longest tail that fits and begins a turn; the last turn in any case.
fn first_kept(messages: &[Message], budget: usize) -> usize {
    let mut used = 0_usize;
    let mut kept = None;
    for (index, message) in messages.iter().enumerate().rev() {
        used = used.saturating_add(message.content.iter().map(weight).sum());
        if used > budget && kept.is_some() {
            break;
        }
        if begins_turn(message) {
            kept = Some(index);
        }
    }
    kept.unwrap_or(0)
}

/// Whether a person speaks here: a message that brings results belongs to the turn before it.
fn begins_turn(message: &Message) -> bool {
    message.role == Role::User && !message.content.iter().any(|block| matches!(block, Block::ToolResult { .. }))
}

fn weight(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        Block::Image(_) | Block::File(_) => MEDIA_WEIGHT,
        Block::ToolUse { name, input, .. } => name.len() + input.to_string().len(),
        Block::ToolResult { content, .. } => content.iter().map(weight).sum(),
        Block::Reasoning(reasoning) => reasoning.text.len(),
        Block::Unknown => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_turns_go_first_and_the_last_turn_stays() {
        let messages: Vec<Message> = (0..3)
            .flat_map(|n| [Message::user(format!("{n}{}", "x".repeat(99))), Message::assistant("y".repeat(100))])
            .collect();
        for (budget, want) in [(600, 0), (599, 2), (400, 2), (399, 4), (200, 4), (10, 4)] {
            assert_eq!(first_kept(&messages, budget), want, "{budget}");
        }
    }

    #[test]
    fn a_turn_is_not_cut_between_a_call_and_its_result() {
        let result = Block::ToolResult { tool_use_id: "t".into(), content: vec![Block::text("z")], is_error: false };
        let messages = [Message::user("a"), Message::assistant("b"), Message::new(Role::User, vec![result])];
        assert_eq!(first_kept(&messages, 1), 0);
    }

    #[test]
    fn an_oversized_result_says_that_it_was_cut() {
        let mut block = Block::text("é".repeat(RESULT_MAX));
        cut_result(&mut block);
        let Block::Text { text } = block else { panic!("text") };
        assert!(text.ends_with("\n[cut here: 65536 of 131072 bytes left out]"), "{}", &text[text.len() - 60..]);
    }
}
