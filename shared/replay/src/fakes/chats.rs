//! The chats as their readers see them: what our accounts posted, edited and deleted, never what people wrote.
//!
//! Bounded: the oldest message of a chat goes when it holds [`MAX_MESSAGES`], the chat that was quiet for longest when
//! there are [`MAX_CHATS`]. Nothing here knows a platform's rules.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;
use serde_json::Value;
use turnlock_domain::event::Channel;

/// How many messages and actions of a chat are kept.
pub const MAX_MESSAGES: usize = 1_000;

/// How many chats are kept.
pub const MAX_CHATS: usize = 1_000;

/// A chat of one of our accounts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChatId {
    /// Whose platform it is on.
    pub channel: Channel,
    /// Our account.
    pub account: String,
    /// The platform's id; `team/channel` in another workspace, `connection/chat` in somebody's own account.
    pub chat: String,
}

impl ChatId {
    /// The name of the chat, or of a thread in it, in the output.
    #[must_use]
    pub fn key(&self, thread: Option<&str>) -> String {
        let key = format!("{}:{}:{}", self.channel.as_str(), self.account, self.chat);
        thread.map_or(key.clone(), |thread| format!("{key}:{thread}"))
    }
}

/// What a person can press.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Button {
    /// What it says.
    pub label: String,
    /// What the platform sends us when it is pressed.
    pub data: String,
    /// Slack's name for the action; empty elsewhere.
    pub action: String,
    /// Slack's name for the block it stands in; empty elsewhere.
    pub block: String,
}

/// A message of ours.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The platform's id: a number on Telegram, a text elsewhere.
    pub id: Value,
    /// The thread it stands in.
    pub thread: Option<String>,
    /// The text as a reader sees it.
    pub text: String,
    /// The parse mode, entities or blocks as they were sent.
    pub markup: Option<Value>,
    /// What can be pressed.
    pub buttons: Vec<Button>,
    /// How often it was edited.
    pub edits: u32,
    /// The message that it answers.
    pub reply_to: Option<Value>,
    /// Whether it was deleted.
    pub deleted: bool,
    /// What an edit is compared with, and what a platform gives back of it: text, formatting and keyboard as sent.
    pub(super) content: Value,
}

/// A message as the output shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShownMessage {
    /// The platform's id.
    pub id: Value,
    /// The text as a reader sees it.
    pub text: String,
    /// The parse mode, entities or blocks as they were sent.
    pub markup: Option<Value>,
    /// The labels of its buttons.
    pub buttons: Vec<String>,
    /// How often it was edited.
    pub edits: u32,
    /// The message that it answers.
    pub reply_to: Option<Value>,
    /// Whether it was deleted.
    pub deleted: bool,
}

/// A chat, or a thread of it, as the output shows it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ShownChat {
    /// What we posted there, in order of time.
    pub messages: Vec<ShownMessage>,
    /// What the chat showed beside messages: `typing`, a status.
    pub actions: Vec<String>,
}

impl From<&Message> for ShownMessage {
    fn from(message: &Message) -> Self {
        Self {
            id: message.id.clone(),
            text: message.text.clone(),
            markup: message.markup.clone(),
            buttons: message.buttons.iter().map(|button| button.label.clone()).collect(),
            edits: message.edits,
            reply_to: message.reply_to.clone(),
            deleted: message.deleted,
        }
    }
}

/// What is known of one chat.
#[derive(Debug, Default)]
pub(super) struct Chat {
    messages: VecDeque<Message>,
    actions: VecDeque<(Option<String>, String)>,
    /// The ids of other people's messages, as far as we were told of them.
    seen: BTreeSet<i64>,
    /// The threads that exist there, as far as we were told of them.
    pub(super) threads: BTreeSet<String>,
    /// The platform's word for its kind, once a message from there told.
    pub(super) kind: Option<String>,
    used: u64,
}

impl Chat {
    pub(super) fn messages(&self) -> impl DoubleEndedIterator<Item = &Message> {
        self.messages.iter()
    }

    pub(super) fn push(&mut self, message: Message) {
        bounded(&mut self.messages, message);
    }

    pub(super) fn act(&mut self, thread: Option<String>, action: String) {
        bounded(&mut self.actions, (thread, action));
    }

    pub(super) fn find(&mut self, id: &Value) -> Option<&mut Message> {
        self.messages.iter_mut().find(|message| message.id == *id)
    }

    /// Another person's message.
    pub(super) fn see(&mut self, id: i64) {
        self.seen.insert(id);
        if self.seen.len() > MAX_MESSAGES {
            self.seen.pop_first();
        }
    }

    /// Whether somebody's message has this number, ours included.
    pub(super) fn has(&self, id: i64) -> bool {
        let ours = |message: &Message| message.id.as_i64() == Some(id) && !message.deleted;
        self.seen.contains(&id) || self.messages.iter().any(ours)
    }

    pub(super) fn sees(&self, id: i64) -> bool {
        self.seen.contains(&id)
    }

    /// A number that no message of the chat has had yet.
    pub(super) fn next_number(&self, first: i64) -> i64 {
        let ours = self.messages.iter().filter_map(|message| message.id.as_i64()).max();
        let theirs = self.seen.last().copied();
        ours.max(theirs).map_or(first, |last| last.saturating_add(1).max(first))
    }
}

fn bounded<Item>(queue: &mut VecDeque<Item>, item: Item) {
    if queue.len() == MAX_MESSAGES {
        queue.pop_front();
    }
    queue.push_back(item);
}

/// All chats.
#[derive(Debug, Default)]
pub(super) struct Chats {
    chats: BTreeMap<ChatId, Chat>,
    uses: u64,
}

impl Chats {
    pub(super) fn get(&self, id: &ChatId) -> Option<&Chat> {
        self.chats.get(id)
    }

    /// The chat, made if it is not there.
    pub(super) fn open(&mut self, id: &ChatId) -> &mut Chat {
        self.uses += 1;
        if !self.chats.contains_key(id) && self.chats.len() >= MAX_CHATS {
            let quiet = self.chats.iter().min_by_key(|(_, chat)| chat.used).map(|(id, _)| id.clone());
            quiet.map(|quiet| self.chats.remove(&quiet));
        }
        let chat = self.chats.entry(id.clone()).or_default();
        chat.used = self.uses;
        chat
    }

    /// All chats and threads in which there is anything of ours, by name.
    pub(super) fn shown(&self) -> BTreeMap<String, ShownChat> {
        let mut shown: BTreeMap<String, ShownChat> = BTreeMap::new();
        for (id, chat) in &self.chats {
            for message in &chat.messages {
                shown.entry(id.key(message.thread.as_deref())).or_default().messages.push(message.into());
            }
            for (thread, action) in &chat.actions {
                shown.entry(id.key(thread.as_deref())).or_default().actions.push(action.clone());
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chat(chat: &str) -> ChatId {
        ChatId { channel: Channel::Telegram, account: "main".into(), chat: chat.into() }
    }

    fn message(id: i64, thread: Option<&str>) -> Message {
        Message {
            id: json!(id),
            thread: thread.map(str::to_owned),
            text: format!("text {id}"),
            markup: None,
            buttons: vec![],
            edits: 0,
            reply_to: None,
            deleted: false,
            content: Value::Null,
        }
    }

    #[test]
    fn threads_are_shown_as_chats_of_their_own() {
        let mut chats = Chats::default();
        let group = chats.open(&chat("-100"));
        group.push(message(1, None));
        group.push(message(2, Some("5")));
        group.act(Some("5".into()), "typing".into());
        let shown = chats.shown();
        assert_eq!(shown.keys().collect::<Vec<_>>(), ["telegram:main:-100", "telegram:main:-100:5"]);
        assert_eq!(shown["telegram:main:-100:5"].actions, ["typing"]);
        assert_eq!(shown["telegram:main:-100:5"].messages[0].text, "text 2");
    }

    #[test]
    fn the_oldest_messages_and_the_quietest_chats_go() {
        let mut chats = Chats::default();
        for id in 0..i64::try_from(MAX_MESSAGES).unwrap() + 1 {
            chats.open(&chat("first")).push(message(id, None));
        }
        assert_eq!(chats.shown()["telegram:main:first"].messages.len(), MAX_MESSAGES);
        for n in 0..MAX_CHATS - 1 {
            chats.open(&chat(&format!("other {n}")));
        }
        chats.open(&chat("first"));
        chats.open(&chat("one more"));
        assert!(chats.get(&chat("first")).is_some());
        assert!(chats.get(&chat("other 0")).is_none());
    }

    #[test]
    fn numbers_go_on_after_everybodys() {
        let mut chats = Chats::default();
        let chat = chats.open(&chat("1"));
        assert_eq!(chat.next_number(1000), 1000);
        chat.see(7);
        assert_eq!(chat.next_number(1000), 1000);
        chat.push(message(1000, None));
        chat.see(1001);
        assert_eq!(chat.next_number(1000), 1002);
        assert!(chat.has(7) && chat.has(1000) && !chat.has(8));
    }
}
