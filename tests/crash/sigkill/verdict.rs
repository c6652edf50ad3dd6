//! What must be true after all kills, and what was measured on the way. Problems are gathered, so that one failure shows
//! all of them.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use turnlock_app::deliver::OUTBOUND_QUEUE;
use turnlock_app::journal_line;
use turnlock_clock::Clock;
use turnlock_config::Config;
use turnlock_domain::session::encode_part;
use turnlock_embedded::EmbeddedDynamoDb;
use turnlock_host::queues;
use turnlock_queue::local::{LocalQueues, Location};
use turnlock_store::Store;
use turnlock_store::ledger::{Ledger, LedgerState};

use super::host::{Place, Ready};
use super::load::{Kind, Person, Said, World, reply};
use super::outside::{Outside, Shown};
use super::{WITHIN, until};

/// The name of the table in the process's file.
const TABLE: &str = "turnlock";
/// The most problems that are listed.
const LISTED: usize = 30;

/// What is known about the story so far.
#[derive(Default)]
pub(super) struct Verdict {
    /// For every start how long its first health check took; `None` = it was killed before.
    pub(super) lives: Vec<Option<Duration>>,
    problems: Vec<String>,
    settled: Duration,
    slowest_probe: Duration,
    shown_twice: usize,
    uncertain: usize,
    silent: usize,
    previewed: usize,
    left_over: usize,
    consolidated: usize,
}

impl Verdict {
    fn problem(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }

    /// Every accepted event is `done`, with its reply, and soon: nobody waits until the lease of a dead process ends.
    pub(super) async fn everything_is_answered(&mut self, world: &World, ready: &Ready, people: &[Person]) {
        for said in people.iter().flat_map(|person| &person.said) {
            let path = format!("/v1/events/{}", encode_part(said.event.as_str()));
            let left = WITHIN.saturating_sub(ready.at.elapsed());
            let done = async || world.get(&path, &ready.token).await.filter(|event| event["status"] == "done");
            match until(left, done).await {
                Some(event) if event["message"]["text"] == reply(&said.text) => {}
                Some(event) => self.problem(format!("`{}` ended as {event}", said.text)),
                None => self.problem(format!("`{}` was not done {WITHIN:?} after the last start", said.text)),
            }
        }
        self.settled = ready.at.elapsed();
        if self.settled > WITHIN {
            self.problem(format!("the last answer came {:.0?} after the last start", self.settled));
        }
    }

    /// One more message in each session is answered; a lock that is held would keep it for a minute.
    pub(super) async fn no_lock_is_held(&mut self, world: &World, people: &mut [Person]) {
        let times = join_all(people.iter_mut().map(|person| person.probe(world))).await;
        for (person, time) in people.iter().zip(times) {
            match time {
                Some(time) => self.slowest_probe = self.slowest_probe.max(time),
                None => self.problem(format!("{} was not answered any more", person.session())),
            }
        }
    }

    /// No queue holds anything, neither an event nor a job.
    pub(super) async fn nothing_is_left_to_do(&mut self, place: &Place) {
        let location = Location::File(place.data("queues.db"));
        let settings = queues::settings(&Config::default());
        let queues = LocalQueues::open(&location, Clock::system(), settings).expect("the queues can be read");
        let held = || -> Vec<String> {
            let messages = queues.all().flat_map(|queue| {
                let held = queue.contents().expect("the queues can be read");
                held.into_iter().map(|message| format!("in {}: {message:?}", queue.settings().name))
            });
            messages.collect()
        };
        until(WITHIN, async || held().is_empty().then_some(())).await;
        self.problems.extend(held().into_iter().map(|message| format!("left to do {message}")));
    }

    /// Every session holds its accepted messages and their replies: all, once, in order.
    pub(super) async fn transcripts(&mut self, world: &World, ready: &Ready, people: &[Person]) {
        for person in people {
            let messages = transcript(world, ready, person).await;
            self.transcript(person, &messages);
        }
    }

    fn transcript(&mut self, person: &Person, messages: &[Value]) {
        let turns: Vec<&[Value]> = messages.chunk_by(|a, b| a["event_id"] == b["event_id"]).collect();
        let session = person.session();
        let events: Vec<&str> = turns.iter().filter_map(|turn| turn[0]["event_id"].as_str()).collect();
        let accepted: Vec<&str> = person.said.iter().map(|said| said.event.as_str()).collect();
        if events != accepted {
            self.problem(format!("{session} has the turns {events:?}, accepted were {accepted:?}"));
            return;
        }
        let in_order = (0_u64..).zip(messages).all(|(index, message)| message["index"] == index);
        if !in_order {
            self.problem(format!("{session}: the messages are not numbered one after the other"));
        }
        for (said, turn) in person.said.iter().zip(turns) {
            if let Err(wrong) = is_turn(said, turn) {
                self.problem(format!("{session}, `{}`: {wrong}: {}", said.text, Value::from(turn)));
            }
        }
    }

    /// What the dead process left in its table: heads without a lock, and a ledger that agrees with every chat.
    pub(super) async fn stored(&mut self, place: &Place, outside: &Outside, people: &[Person]) {
        let database = EmbeddedDynamoDb::file(&place.data("store.db")).expect("the store can be read");
        let store = Store::embedded(database.http_client(), TABLE, Clock::system(), 0);
        for person in people {
            self.head(&store, person).await;
            let Some(chat) = person.chat() else { continue };
            let shown = outside.chat(chat);
            self.chat(person, &shown);
            for said in &person.said {
                match store.ledger(&said.event.caused("final")).await.unwrap() {
                    Some(ledger) => self.delivery(said, &ledger, &shown),
                    None => self.problem(format!("`{}` has no ledger", said.text)),
                }
            }
        }
        let dead = store.dead_items(LISTED).await.unwrap();
        // What two processes died over is kept for the operator; whether it may be is for its ledger to say.
        let is_death = |reason: &str| ["worker_lost", "uncertain"].contains(&reason);
        let dead = dead.iter().filter(|dead| dead.queue != OUTBOUND_QUEUE || !is_death(&dead.reason));
        self.problems.extend(dead.map(|dead| format!("given up: {dead:?}")));
        self.problems.extend(outside.problems());
        let log = place.log();
        let kept = |line: &str| line.contains(journal_line::DEAD) && line.contains(OUTBOUND_QUEUE);
        let bad = log.lines().filter(|line| line.contains(" ERROR ") && !kept(line) || line.contains("panicked"));
        self.problems.extend(bad.map(|line| format!("logged: {line}")));
    }

    async fn head(&mut self, store: &Store, person: &Person) {
        let session = person.session();
        let Some(head) = store.head(&session).await.unwrap() else {
            return self.problem(format!("{session} has no head"));
        };
        if head.owner.is_some() || head.lease_until.is_some() || head.unfinished.is_some() {
            self.problem(format!("{session} is locked: {head:?}"));
        }
        let messages: u64 = person.said.iter().map(messages_of).sum();
        if head.message_count != messages || head.boundary > messages {
            self.problem(format!("{session} has {messages} messages: {head:?}"));
        }
        self.consolidated += usize::from(head.boundary > 0);
    }

    /// A chat shows the replies in the order of their messages, and nothing else but beginnings of them.
    fn chat(&mut self, person: &Person, shown: &[Shown]) {
        let replies: Vec<String> = person.said.iter().map(|said| reply(&said.text)).collect();
        // Which beginnings may stand is for the ledger to say.
        let is_rest = |text: &str| replies.iter().any(|reply| is_preview(text, reply));
        let mut texts: Vec<&str> =
            shown.iter().map(|shown| shown.text.as_str()).filter(|text| !is_rest(text)).collect();
        texts.dedup();
        let seen: BTreeSet<&str> = texts.iter().copied().collect();
        // Whether one may be missing is for the ledger to say.
        let expected: Vec<&str> = replies.iter().map(String::as_str).filter(|reply| seen.contains(reply)).collect();
        if texts != expected {
            self.problem(format!("{} shows {texts:?}", person.session()));
        }
    }

    /// One showing of a final, in the message of its preview where there was one. A second only where its process died
    /// before it can have noted the first, and the ledger says so; none only where two processes died over it, and the
    /// ledger says that nobody knows. A preview is left only where its process died before it can have noted it, and the
    /// ledger says that, too.
    fn delivery(&mut self, said: &Said, ledger: &Ledger, chat: &[Shown]) {
        let reply = reply(&said.text);
        let showings: Vec<&Shown> = chat.iter().filter(|shown| shown.text == reply).collect();
        let [part] = ledger.parts() else { return self.problem(format!("`{}` has parts: {ledger:?}", said.text)) };
        let state = part.state();
        let known = part.message_ids().iter().all(|id| showings.iter().any(|shown| shown.id == *id));
        // Whatever a process sends to a chat after it, it has noted what came before.
        let last_of_its_process =
            |shown: &Shown| chat.iter().rfind(|other| other.start == shown.start).is_some_and(|last| last == shown);
        let is_right = match showings[..] {
            // An edit is repeated without a second message, and without a doubt.
            [one] if state == LedgerState::Sent => !part.resent() || one.edited,
            [first, second] if first.start == second.start || !last_of_its_process(first) => false,
            [_] => state == LedgerState::Uncertain && (part.resent() || part.stray()),
            [] | [_, _] => state == LedgerState::Uncertain && part.resent(),
            _ => false,
        };
        let rests: Vec<&Shown> = chat.iter().filter(|shown| is_preview(&shown.text, &reply)).collect();
        let may_be_left = match rests[..] {
            [] => true,
            [rest] => state == LedgerState::Uncertain && last_of_its_process(rest),
            _ => false,
        };
        if !(is_right && known && may_be_left) {
            let shown = (showings, &rests);
            self.problem(format!("`{}` was shown as {shown:?}, its ledger: {ledger:?}", said.text));
            return;
        }
        self.previewed += usize::from(showings.iter().any(|shown| shown.edited));
        self.left_over += rests.len();
        self.shown_twice += usize::from(showings.len() > 1);
        self.silent += usize::from(showings.is_empty());
        self.uncertain += usize::from(state == LedgerState::Uncertain);
    }

    /// Says what was measured, and fails if anything was wrong.
    pub(super) fn pronounce(self, seed: u64, took: Duration, people: &[Person]) {
        let Self {
            lives,
            problems,
            settled,
            slowest_probe,
            shown_twice,
            uncertain,
            silent,
            previewed,
            left_over,
            consolidated,
        } = self;
        let messages: usize = people.iter().map(|person| person.said.len()).sum();
        let listening: Vec<Duration> = lives.iter().flatten().copied().collect();
        let slowest_start = listening.iter().max().copied().unwrap_or_default();
        let early = lives.len() - listening.len();
        eprintln!(
            "{} starts, {early} of them killed before they listened; first health check after {slowest_start:.0?} at most\n\
             {messages} messages in {} sessions, of which {consolidated} were consolidated\n\
             replies shown twice: {shown_twice}; uncertain: {uncertain}, of which never shown: {silent}\n\
             replies that took the place of a preview: {previewed}; previews left over: {left_over}\n\
             all answered {settled:.0?} after the last start; one more message in each session within {slowest_probe:.0?}; \
             all took {took:.0?}",
            lives.len(),
            people.len(),
        );
        let count = problems.len();
        let listed = problems.into_iter().take(LISTED).collect::<Vec<_>>().join("\n");
        assert!(count == 0, "TURNLOCK_TEST_SEED={seed}: {count} problems\n{listed}");
    }
}

/// The messages of a session, oldest first.
async fn transcript(world: &World, ready: &Ready, person: &Person) -> Vec<Value> {
    let session = person.session();
    let session = encode_part(session.as_str());
    let mut messages = Vec::new();
    let mut before = String::new();
    loop {
        let path = format!("/v1/sessions/{session}/messages?limit=100{before}");
        let page = until(WITHIN, async || world.get(&path, &ready.token).await).await.expect("the page is answered");
        let mut earlier = page["messages"].as_array().cloned().unwrap_or_default();
        earlier.append(&mut messages);
        messages = earlier;
        match page["before"].as_u64() {
            Some(index) => before = format!("&before={index}"),
            None => return messages,
        }
    }
}

/// Whether `text` is what was shown of `reply` while it was written.
fn is_preview(text: &str, reply: &str) -> bool {
    text.len() < reply.len() && reply.starts_with(text)
}

fn messages_of(said: &Said) -> u64 {
    if Kind::of(&said.text) == Kind::Tool { 4 } else { 2 }
}

/// The user's text first, the reply last, a call and its result between them where a tool was asked for.
fn is_turn(said: &Said, turn: &[Value]) -> Result<(), &'static str> {
    if turn.len() as u64 != messages_of(said) {
        return Err("the turn has another length");
    }
    let alternate = ["user", "assistant"].into_iter().cycle();
    if !turn.iter().zip(alternate).all(|(message, role)| message["role"] == role) {
        return Err("the roles do not alternate");
    }
    let (first, last) = (&turn[0], &turn[turn.len() - 1]);
    if text(first) != said.text || text(last) != reply(&said.text) {
        return Err("it says something else");
    }
    let calls = |message: &Value, key: &str| -> Vec<Value> {
        let blocks = message["content"].as_array().cloned().unwrap_or_default();
        blocks.into_iter().map(|block| block[key].clone()).filter(|id| !id.is_null()).collect()
    };
    match turn {
        [_, call, result, _] if calls(call, "id") != calls(result, "tool_use_id") => Err("a call has no result"),
        _ => Ok(()),
    }
}

fn text(message: &Value) -> String {
    let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}
