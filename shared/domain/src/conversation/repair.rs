//! Any stored history made into a valid conversation. Nothing is invented but three short visible texts, and a result that
//! exists is never replaced by one that says that the tool did not run: a model that believes that runs it again.
//!
//! The messages are taken apart into blocks, each block is mended or dropped, each tool use is paired with its result, and
//! the blocks are put together again with the results where they belong.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value};

use super::check::{check, is_empty};
use super::names::{alias, file_name, free_file_name, fresh_id, is_name};
use crate::message::{Block, Message, Role};
use crate::text;

/// The result of a call whose own result is nowhere.
const NOT_EXECUTED: &str = "not executed: interrupted";
/// The content of a result that has none.
const NO_OUTPUT: &str = "(no output)";
/// What a model said that ended in its reasoning.
const NO_TEXT: &str = "(no text)";
/// The first message of a history that begins with the model's.
const BEGINNING: &str = "(earlier messages are not shown)";

/// A valid conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Repaired {
    /// Its messages.
    pub messages: Vec<Message>,
    /// What had to be changed, for the log; empty exactly if the history was valid.
    pub changes: Vec<Change>,
}

/// One thing that was changed. The index is that of the message in the history as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Change {
    /// A message that had nothing to begin with, or nothing left, is gone.
    #[error("message {0} was empty and is left out")]
    MessageDropped(usize),
    /// A block with nothing to see is gone.
    #[error("a blank block of message {0} is left out")]
    BlankDropped(usize),
    /// A block that this version does not know is gone.
    #[error("an unknown block of message {0} is left out")]
    UnknownDropped(usize),
    /// A block in a place that is not its own is gone.
    #[error("a misplaced block of message {0} is left out")]
    MisplacedDropped(usize),
    /// A result that answers no tool use is gone.
    #[error("a result in message {0} answers nothing and is left out")]
    OrphanDropped(usize),
    /// A result was put behind its tool use, before other blocks.
    #[error("a result in message {0} is put where it belongs")]
    ResultMoved(usize),
    /// A tool use that nothing answers got an error as its result.
    #[error("a tool use in message {0} got a result that says that it was interrupted")]
    ResultAdded(usize),
    /// The message was joined to one of the same role.
    #[error("message {0} is joined to another of its role")]
    Merged(usize),
    /// Visible text stands where something has to.
    #[error("message {0} got a text that says that there is none")]
    FillerAdded(usize),
    /// Characters that no boundary lets pass were removed.
    #[error("a text of message {0} is cleaned")]
    TextCleaned(usize),
    /// A tool use and its result got another id.
    #[error("a tool use of message {0} got another id")]
    IdReplaced(usize),
    /// A tool use got its tool's alias.
    #[error("a tool use of message {0} got its tool's alias")]
    NameReplaced(usize),
    /// Arguments that are no object were put into one.
    #[error("the arguments of a tool use of message {0} are put into an object")]
    InputWrapped(usize),
    /// A file got another name.
    #[error("a file of message {0} got another name")]
    FileRenamed(usize),
}

/// A block on its way from one message to another.
struct Item {
    role: Role,
    block: Block,
    /// The message it came from.
    message: usize,
    /// The number of its run: blocks of one role in a row.
    run: usize,
}

/// The valid conversation that is closest to `messages`.
#[must_use]
pub fn repair(messages: &[Message]) -> Repaired {
    if check(messages).is_empty() {
        return Repaired { messages: messages.to_vec(), changes: Vec::new() };
    }
    let mut changes = Vec::new();
    let mut items = take_apart(messages, &mut changes);
    let pairs = pair(&items);
    rename_calls(&mut items, &pairs, &mut changes);
    let mut items = put_results_in_place(items, &pairs, &mut changes);
    name_files(&mut items, &mut changes);
    let mut repaired = group(items, messages, &mut changes);
    if repaired.first().is_some_and(|message| message.role == Role::Assistant) {
        repaired.insert(0, Message::user(BEGINNING));
        changes.push(Change::FillerAdded(0));
    }
    Repaired { messages: repaired, changes }
}

/// The blocks that can stay, each mended by itself.
fn take_apart(messages: &[Message], changes: &mut Vec<Change>) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        for block in &message.content {
            // Whoever carries it: a result is told to the model, so it is the user's.
            let role = if matches!(block, Block::ToolResult { .. }) { Role::User } else { message.role };
            if let Some(block) = mend(block, role, index, changes) {
                let run = items.last().map_or(0, |last| last.run + usize::from(last.role != role));
                items.push(Item { role, block, message: index, run });
            }
        }
    }
    items
}

fn mend(block: &Block, role: Role, message: usize, changes: &mut Vec<Change>) -> Option<Block> {
    let (mended, change) = match block {
        Block::Text { text } => return mend_text(text, message, changes),
        Block::Image(_) | Block::File(_) if role == Role::User => (Some(block.clone()), None),
        Block::ToolUse { id, name, input } if role == Role::Assistant => {
            (Some(mend_use(id, name, input, message, changes)), None)
        }
        Block::ToolResult { tool_use_id, content, is_error } => {
            let content = mend_result(content, message, changes);
            (Some(Block::ToolResult { tool_use_id: tool_use_id.clone(), content, is_error: *is_error }), None)
        }
        Block::Reasoning(reasoning) if role == Role::Assistant && is_empty(reasoning) => {
            (None, Some(Change::BlankDropped(message)))
        }
        Block::Reasoning(_) if role == Role::Assistant => (Some(block.clone()), None),
        Block::Image(_) | Block::File(_) | Block::ToolUse { .. } | Block::Reasoning(_) => {
            (None, Some(Change::MisplacedDropped(message)))
        }
        Block::Unknown => (None, Some(Change::UnknownDropped(message))),
    };
    changes.extend(change);
    mended
}

fn mend_text(text: &str, message: usize, changes: &mut Vec<Change>) -> Option<Block> {
    let clean = text::clean(text);
    if text::is_blank(&clean) {
        changes.push(Change::BlankDropped(message));
        return None;
    }
    if let Cow::Owned(_) = clean {
        changes.push(Change::TextCleaned(message));
    }
    Some(Block::text(clean))
}

fn mend_use(id: &str, name: &str, input: &Value, message: usize, changes: &mut Vec<Change>) -> Block {
    if !is_name(name) {
        changes.push(Change::NameReplaced(message));
    }
    let input = match input {
        Value::Object(_) => input.clone(),
        other => {
            changes.push(Change::InputWrapped(message));
            let inner = (!other.is_null()).then(|| ("input".to_owned(), other.clone()));
            Value::Object(inner.into_iter().collect::<Map<_, _>>())
        }
    };
    Block::ToolUse { id: id.to_owned(), name: alias(name), input }
}

fn mend_result(content: &[Block], message: usize, changes: &mut Vec<Change>) -> Vec<Block> {
    let mut mended = Vec::new();
    for block in content {
        match block {
            Block::ToolUse { .. } | Block::ToolResult { .. } | Block::Reasoning(_) => {
                changes.push(Change::MisplacedDropped(message));
            }
            Block::Text { .. } | Block::Image(_) | Block::File(_) | Block::Unknown => {
                mended.extend(mend(block, Role::User, message, changes));
            }
        }
    }
    if mended.is_empty() {
        changes.push(Change::FillerAdded(message));
        mended.push(Block::text(NO_OUTPUT));
    }
    mended
}

/// For each tool use (by the index of its item) the item of its result: the first one behind it that has its id and that
/// no other use of the same run or a later use of that id takes. Some providers use the same id in every turn.
fn pair(items: &[Item]) -> HashMap<usize, usize> {
    let mut pairs = HashMap::new();
    let mut open: HashMap<&str, (usize, VecDeque<usize>)> = HashMap::new();
    for (index, item) in items.iter().enumerate() {
        match &item.block {
            Block::ToolUse { id, .. } => {
                let (run, uses) = open.entry(id).or_default();
                if *run != item.run {
                    uses.clear();
                }
                *run = item.run;
                uses.push_back(index);
            }
            Block::ToolResult { tool_use_id, .. } => {
                if let Some(index_of_use) = open.get_mut(tool_use_id.as_str()).and_then(|(_, uses)| uses.pop_front()) {
                    pairs.insert(index_of_use, index);
                }
            }
            Block::Text { .. } | Block::Image(_) | Block::File(_) | Block::Reasoning(_) | Block::Unknown => {}
        }
    }
    pairs
}

/// Gives every call an id of its own and of the right shape, on both sides of the pair. An id that can stay stays.
fn rename_calls(items: &mut [Item], pairs: &HashMap<usize, usize>, changes: &mut Vec<Change>) {
    let mut taken: HashSet<String> = items.iter().filter_map(use_id).filter(|id| is_name(id)).cloned().collect();
    let mut seen = HashSet::new();
    for index in 0..items.len() {
        let Some(id) = use_id(&items[index]).cloned() else { continue };
        if is_name(&id) && seen.insert(id.clone()) {
            continue;
        }
        let fresh = fresh_id(&id, &taken);
        taken.insert(fresh.clone());
        changes.push(Change::IdReplaced(items[index].message));
        for side in [Some(index), pairs.get(&index).copied()].into_iter().flatten() {
            if let Block::ToolUse { id, .. } | Block::ToolResult { tool_use_id: id, .. } = &mut items[side].block {
                id.clone_from(&fresh);
            }
        }
    }
}

fn use_id(item: &Item) -> Option<&String> {
    match &item.block {
        Block::ToolUse { id, .. } => Some(id),
        _ => None,
    }
}

/// The items with the results of each run of the model right behind it; results of nothing are gone.
fn put_results_in_place(items: Vec<Item>, pairs: &HashMap<usize, usize>, changes: &mut Vec<Change>) -> Vec<Item> {
    let uses: HashMap<usize, usize> = pairs.iter().map(|(call, result)| (*result, *call)).collect();
    let runs: Vec<usize> = items.iter().map(|item| item.run).collect();
    // The results by the run that they answer.
    let mut answers: HashMap<usize, Vec<Item>> = HashMap::new();
    let mut rest: Vec<Item> = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        if !matches!(item.block, Block::ToolResult { .. }) {
            if let Some(missing) = missing_result(index, &item, pairs, changes) {
                answers.entry(item.run).or_default().push(missing);
            }
            rest.push(item);
        } else if let Some(call) = uses.get(&index) {
            let behind_others = rest.last().is_some_and(|last| last.run == item.run);
            if item.run != runs[*call] + 1 || behind_others {
                changes.push(Change::ResultMoved(item.message));
            }
            answers.entry(runs[*call]).or_default().push(item);
        } else {
            changes.push(Change::OrphanDropped(item.message));
        }
    }
    let mut placed = Vec::new();
    for item in rest {
        place_answers_before(item.run, &mut answers, &mut placed);
        placed.push(item);
    }
    place_answers_before(usize::MAX, &mut answers, &mut placed);
    placed
}

/// The synthetic result of the tool use in `item`, if it is one that nothing answers.
fn missing_result(index: usize, item: &Item, pairs: &HashMap<usize, usize>, changes: &mut Vec<Change>) -> Option<Item> {
    let id = use_id(item).filter(|_| !pairs.contains_key(&index))?;
    changes.push(Change::ResultAdded(item.message));
    let content = vec![Block::text(NOT_EXECUTED)];
    let block = Block::ToolResult { tool_use_id: id.clone(), content, is_error: true };
    Some(Item { role: Role::User, block, message: item.message, run: item.run + 1 })
}

/// Adds the results of the run that was placed last, unless `run` goes on with it.
fn place_answers_before(run: usize, answers: &mut HashMap<usize, Vec<Item>>, placed: &mut Vec<Item>) {
    let Some(last) = placed.last().map(|item| item.run).filter(|last| *last != run) else { return };
    placed.extend(answers.remove(&last).unwrap_or_default());
}

/// Gives every file a name of its own, of the right shape.
fn name_files(items: &mut [Item], changes: &mut Vec<Change>) {
    let mut taken = HashSet::new();
    for Item { block, message, .. } in items {
        let blocks = match block {
            Block::ToolResult { content, .. } => content.as_mut_slice(),
            other => std::slice::from_mut(other),
        };
        for block in blocks {
            let Block::File(media) = block else { continue };
            let name = free_file_name(&file_name(media.name.as_deref().unwrap_or_default()), &taken);
            taken.insert(name.to_ascii_lowercase());
            if media.name.as_ref() != Some(&name) {
                changes.push(Change::FileRenamed(*message));
                media.name = Some(name);
            }
        }
    }
}

/// The messages that the items make; `before` are those that they came from.
fn group(items: Vec<Item>, before: &[Message], changes: &mut Vec<Change>) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    // For each new message, the one that its last block came from.
    let mut sources: Vec<usize> = Vec::new();
    let mut used: HashSet<usize> = HashSet::new();
    for Item { role, block, message, .. } in items {
        used.insert(message);
        match (messages.last_mut(), sources.last_mut()) {
            (Some(last), Some(source)) if last.role == role => {
                // A result that was made up comes from the message of its call.
                if *source != message && before[*source].role == before[message].role {
                    changes.push(Change::Merged(message));
                }
                *source = message;
                last.content.push(block);
            }
            _ => {
                messages.push(Message::new(role, vec![block]));
                sources.push(message);
            }
        }
    }
    for (message, source) in messages.iter_mut().zip(sources) {
        if let Some(Block::Reasoning(_)) = message.content.last() {
            message.content.push(Block::text(NO_TEXT));
            changes.push(Change::FillerAdded(source));
        }
    }
    changes.extend((0..before.len()).filter(|index| !used.contains(index)).map(Change::MessageDropped));
    messages
}

#[cfg(test)]
mod tests;
