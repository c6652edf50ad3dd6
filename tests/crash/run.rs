//! What a replay came to, and what must hold of it however it got there.

use serde_json::{Value, json};
use turnlock_domain::conversation;
use turnlock_domain::message::{Message, Role};
use turnlock_replay::script::Script;
use turnlock_replay::{FEATURES, PlayError, Played, play};

/// Plays lines.
pub(crate) fn played(title: &str, lines: &[Value], seed: u64) -> Played {
    try_played(title, lines, seed).unwrap()
}

/// Plays lines, of which one may not be playable at its moment.
pub(crate) fn try_played(title: &str, lines: &[Value], seed: u64) -> Result<Played, PlayError> {
    let source: Vec<String> = lines.iter().map(Value::to_string).collect();
    let script = Script::parse(title, &source.join("\n"), FEATURES).unwrap();
    play(&script, seed)
}

/// One replay, played to its end.
pub(crate) struct Run {
    /// What was played, for whoever has to look at it.
    pub(crate) title: String,
    pub(crate) output: Value,
    /// Whether a part of a final may show twice.
    pub(crate) may_double: bool,
}

impl Run {
    pub(crate) fn fail(&self, what: &str) -> ! {
        let shown = serde_json::to_string_pretty(&self.output).unwrap();
        panic!("{}: {what}\n{shown}", self.title)
    }

    pub(crate) fn check(&self, holds: bool, what: &str) {
        if !holds {
            self.fail(what);
        }
    }

    /// What stands at a JSON pointer; null if nothing does.
    pub(crate) fn at(&self, pointer: &str) -> Value {
        self.output.pointer(pointer).cloned().unwrap_or_default()
    }

    pub(crate) fn list(&self, pointer: &str) -> Vec<Value> {
        self.at(pointer).as_array().cloned().unwrap_or_default()
    }

    /// The texts that the chat shows, deleted ones excepted.
    pub(crate) fn shown(&self, chat: &str) -> Vec<String> {
        let messages = self.list(&format!("/chats/{chat}/messages"));
        let there = messages.iter().filter(|message| message["deleted"] != json!(true));
        there.map(|message| message["text"].as_str().unwrap_or_default().to_owned()).collect()
    }

    pub(crate) fn messages(&self, session: usize) -> Vec<Message> {
        serde_json::from_value(self.output["sessions"][session]["messages"].clone()).unwrap()
    }

    /// Nothing is in work, nobody waits for anything, and every conversation is one that a model takes.
    pub(crate) fn quiet(&self) {
        self.check(self.list("/unsettled").is_empty(), "something is still in work");
        for session in self.list("/sessions") {
            self.check(session["locked"] == json!(false), "a lock is held");
            self.check(session["unfinished"].is_null(), "an event is unfinished");
            self.check(session["steer"] == json!(0), "a text for a running turn is left");
            let messages: Vec<Message> = serde_json::from_value(session["messages"].clone()).unwrap();
            let problems = conversation::check(&messages);
            self.check(problems.is_empty(), &format!("the history is not valid: {problems:?}"));
        }
        for request in self.list("/model_requests") {
            self.check(request["problems"] == json!([]), "the model was asked an invalid question");
        }
    }

    /// What holds after every story: quiet, every event is committed, and what it owed is sent.
    pub(crate) fn settled(&self) {
        self.quiet();
        self.check(self.list("/dead").is_empty(), "something was given up");
        for event in self.list("/events") {
            self.check(event["outcome"] == json!("committed"), "an event is not committed");
        }
        for ledger in self.list("/ledger") {
            let state = ledger["state"].as_str().unwrap_or_default();
            self.check(state == "sent" || (self.may_double && state == "uncertain"), "a delivery is not sent");
        }
    }

    /// The text shows once; twice only where the platform's answer was lost and the ledger says so.
    pub(crate) fn shows_once(&self, chat: &str, text: &str) {
        let times = self.shown(chat).iter().filter(|shown| *shown == text).count();
        let uncertain = self.list("/ledger").iter().any(|ledger| ledger["state"] == json!("uncertain"));
        let allowed = times == 1 || (times == 2 && self.may_double && uncertain);
        self.check(allowed, &format!("`{text}` shows {times} times (uncertain: {uncertain})"));
    }

    /// How often a tool was started.
    pub(crate) fn starts(&self, tool: &str) -> usize {
        let runs = self.list("/tool_runs");
        runs.iter().filter(|run| run["name"] == json!(tool) && !run["input"].is_null()).count()
    }

    pub(crate) fn user_texts(&self, session: usize) -> Vec<String> {
        let messages = self.messages(session);
        let users = messages.iter().filter(|message| message.role == Role::User);
        users.map(Message::text).filter(|text| !text.is_empty()).collect()
    }
}
