//! What is wrong with a conversation, message by message. It reads and never stops at the first problem.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use super::names::{file_name, is_name};
use crate::message::{Block, Media, Message, Reasoning, Role};
use crate::text;

/// Why a provider would refuse a conversation. Its words name a place and quote nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The first message is not the user's.
    #[error("the first message is not the user's")]
    FirstNotUser,
    /// Nothing is asked: the last message is the model's, or there is none.
    #[error("the last message is not the user's")]
    LastNotUser,
    /// Two messages of the same role follow each other.
    #[error("message {message} has the role of the one before")]
    RolesDoNotAlternate {
        /// The second of the two.
        message: usize,
    },
    /// A message has no blocks.
    #[error("message {message} is empty")]
    EmptyMessage {
        /// The message.
        message: usize,
    },
    /// A text, or reasoning without a signature, has nothing to see.
    #[error("message {message} has a blank block")]
    BlankBlock {
        /// The message.
        message: usize,
    },
    /// A text has characters that no boundary lets pass.
    #[error("message {message} has characters that are not allowed")]
    UncleanText {
        /// The message.
        message: usize,
    },
    /// A tool result has no content.
    #[error("message {message} has a tool result without content")]
    EmptyResult {
        /// The message.
        message: usize,
    },
    /// A message of the model ends in its reasoning.
    #[error("message {message} ends in reasoning")]
    EndsInReasoning {
        /// The message.
        message: usize,
    },
    /// A block that this version does not know.
    #[error("message {message} has an unknown block")]
    UnknownBlock {
        /// The message.
        message: usize,
    },
    /// A picture or file in a message of the model.
    #[error("message {message} is the model's and has media")]
    MediaInAssistant {
        /// The message.
        message: usize,
    },
    /// A block that this role, or a tool result, cannot have.
    #[error("message {message} has a block in a place that is not its own")]
    MisplacedBlock {
        /// The message.
        message: usize,
    },
    /// A tool use that the next message does not answer.
    #[error("message {message} has a tool use without a result in the next message")]
    UnansweredUse {
        /// The message with the tool use.
        message: usize,
    },
    /// A result that answers no tool use of the message before, or answers one again.
    #[error("message {message} has a result for no tool use of the message before")]
    OrphanResult {
        /// The message.
        message: usize,
    },
    /// A result behind something else.
    #[error("message {message} has a result behind other blocks")]
    ResultsNotFirst {
        /// The message.
        message: usize,
    },
    /// Two tool uses have the same id.
    #[error("message {message} has a tool use with the id of an earlier one")]
    DuplicateUseId {
        /// The message of the later one.
        message: usize,
    },
    /// The id of a tool use is not `[a-zA-Z0-9_-]{1,64}`.
    #[error("message {message} has a tool use with an id of the wrong shape")]
    BadUseId {
        /// The message.
        message: usize,
    },
    /// The name of a tool is not `[a-zA-Z0-9_-]{1,64}`.
    #[error("message {message} has a tool use with a name of the wrong shape")]
    BadToolName {
        /// The message.
        message: usize,
    },
    /// The arguments of a tool use are not a JSON object.
    #[error("message {message} has a tool use whose arguments are not an object")]
    BadInput {
        /// The message.
        message: usize,
    },
    /// A file has no name, or one with characters that a provider refuses.
    #[error("message {message} has a file without a name of the right shape")]
    BadFileName {
        /// The message.
        message: usize,
    },
    /// Two files have the same name, upper and lower case being one.
    #[error("message {message} has a file with the name of an earlier one")]
    DuplicateFileName {
        /// The message of the later one.
        message: usize,
    },
}

/// What is wrong with `messages` as a conversation. It may end with either role, and a history without messages is valid:
/// a request is checked by [`check_request`].
#[must_use]
pub fn check(messages: &[Message]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut ids = HashSet::new();
    let mut files = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| &messages[before]);
        check_role(index, message, before, &mut problems);
        for block in &message.content {
            check_block(index, message.role, block, &mut problems);
        }
        check_files(index, &message.content, &mut files, &mut problems);
        check_uses(index, message, messages.get(index + 1), &mut ids, &mut problems);
        check_results(index, message, before, &mut problems);
    }
    problems
}

/// What is wrong with `messages` as a request to a model: it must end with the user, or the results of tools.
#[must_use]
pub fn check_request(messages: &[Message]) -> Vec<Problem> {
    let mut problems = check(messages);
    if messages.last().is_none_or(|message| message.role != Role::User) {
        problems.push(Problem::LastNotUser);
    }
    problems
}

fn check_role(index: usize, message: &Message, before: Option<&Message>, problems: &mut Vec<Problem>) {
    match before {
        None if message.role != Role::User => problems.push(Problem::FirstNotUser),
        Some(before) if before.role == message.role => problems.push(Problem::RolesDoNotAlternate { message: index }),
        None | Some(_) => {}
    }
    match message.content.last() {
        None => problems.push(Problem::EmptyMessage { message: index }),
        Some(Block::Reasoning(_)) => problems.push(Problem::EndsInReasoning { message: index }),
        Some(_) => {}
    }
}

fn check_block(message: usize, role: Role, block: &Block, problems: &mut Vec<Problem>) {
    match block {
        Block::Text { text } => check_text(message, text, problems),
        Block::Image(_) | Block::File(_) => {
            if role == Role::Assistant {
                problems.push(Problem::MediaInAssistant { message });
            }
        }
        Block::ToolUse { id, name, input } => {
            let rules = [
                (role == Role::Assistant, Problem::MisplacedBlock { message }),
                (is_name(id), Problem::BadUseId { message }),
                (is_name(name), Problem::BadToolName { message }),
                (matches!(input, Value::Object(_)), Problem::BadInput { message }),
            ];
            problems.extend(rules.into_iter().filter(|(kept, _)| !kept).map(|(_, problem)| problem));
        }
        Block::ToolResult { content, .. } => {
            if role == Role::Assistant {
                problems.push(Problem::MisplacedBlock { message });
            }
            check_result_content(message, content, problems);
        }
        Block::Reasoning(reasoning) => {
            if role == Role::User {
                problems.push(Problem::MisplacedBlock { message });
            }
            if is_empty(reasoning) {
                problems.push(Problem::BlankBlock { message });
            }
        }
        Block::Unknown => problems.push(Problem::UnknownBlock { message }),
    }
}

fn check_text(message: usize, text: &str, problems: &mut Vec<Problem>) {
    if text::is_blank(text) {
        problems.push(Problem::BlankBlock { message });
    }
    if matches!(text::clean(text), Cow::Owned(_)) {
        problems.push(Problem::UncleanText { message });
    }
}

/// Each file, in a result or beside it, has a name of its own.
fn check_files(message: usize, content: &[Block], files: &mut HashSet<String>, problems: &mut Vec<Problem>) {
    for block in content {
        match block {
            Block::File(media) if media.name.as_ref().is_none_or(|name| file_name(name) != *name) => {
                problems.push(Problem::BadFileName { message });
            }
            Block::File(Media { name: Some(name), .. }) if !files.insert(name.to_ascii_lowercase()) => {
                problems.push(Problem::DuplicateFileName { message });
            }
            Block::ToolResult { content, .. } => check_files(message, content, files, problems),
            _ => {}
        }
    }
}

fn check_result_content(message: usize, content: &[Block], problems: &mut Vec<Problem>) {
    if content.is_empty() {
        problems.push(Problem::EmptyResult { message });
    }
    for block in content {
        match block {
            Block::Text { text } => check_text(message, text, problems),
            Block::Image(_) | Block::File(_) => {}
            Block::ToolUse { .. } | Block::ToolResult { .. } | Block::Reasoning(_) => {
                problems.push(Problem::MisplacedBlock { message });
            }
            Block::Unknown => problems.push(Problem::UnknownBlock { message }),
        }
    }
}

/// Each tool use has an id of its own and its result in the next message.
fn check_uses<'a>(
    index: usize,
    message: &'a Message,
    next: Option<&Message>,
    ids: &mut HashSet<&'a str>,
    problems: &mut Vec<Problem>,
) {
    let answered: HashSet<&str> = next.into_iter().flat_map(results).collect();
    for id in uses(message) {
        if !ids.insert(id) {
            problems.push(Problem::DuplicateUseId { message: index });
        }
        if !answered.contains(id) {
            problems.push(Problem::UnansweredUse { message: index });
        }
    }
}

/// Each result answers a tool use of the message before, once, and nothing else stands before it.
fn check_results(index: usize, message: &Message, before: Option<&Message>, problems: &mut Vec<Problem>) {
    let mut open: HashSet<&str> = before.into_iter().flat_map(uses).collect();
    problems.extend(results(message).filter(|id| !open.remove(id)).map(|_| Problem::OrphanResult { message: index }));
    let is_result = |block: &&Block| matches!(block, Block::ToolResult { .. });
    if message.content.iter().skip_while(is_result).any(|block| is_result(&block)) {
        problems.push(Problem::ResultsNotFirst { message: index });
    }
}

fn uses(message: &Message) -> impl Iterator<Item = &str> {
    message.content.iter().filter_map(|block| match block {
        Block::ToolUse { id, .. } => Some(id.as_str()),
        _ => None,
    })
}

fn results(message: &Message) -> impl Iterator<Item = &str> {
    message.content.iter().filter_map(|block| match block {
        Block::ToolResult { tool_use_id, .. } => Some(tool_use_id.as_str()),
        _ => None,
    })
}

/// Whether reasoning holds nothing. A signature alone is something: the provider wants it back.
pub(super) fn is_empty(reasoning: &Reasoning) -> bool {
    reasoning.signature.is_none() && reasoning.redacted.is_none() && text::is_blank(&reasoning.text)
}
