//! Every key format of the table, and nothing else makes keys. Parts are session keys and event ids, which are
//! percent-encoded already and hold no `#`. Key attributes are never empty.
//!
//! | item | `pk` | `sk` |
//! |---|---|---|
//! | session head | `S#<session>` | `HEAD` |
//! | turn | `S#<session>` | `T#<generation>#<first message>` |
//! | part of a turn above 300 KB | `S#<session>` | `part#<event>#<fence>#<n>` |
//! | journal step, result | `S#<session>` | `J#<event>#<step>`, `J#<event>#<step>#R#<call>` |
//! | start of a call that was approved | `S#<session>` | `J#<event>#<step>#S#<call>` |
//! | piece of a result that was too long to be shown | `S#<session>` | `X#<call's key>#<n>` |
//! | event marker | `E#<event>` | `MARKER` |
//! | admission of an API event | `E#<event>` | `ADMISSION` |
//! | gateway event | `E#<event>` | `GATEWAY` |
//! | album | `E#<event>` | `ALBUM` |
//! | delivery ledger | `L#<outbound event>` | `LEDGER` |
//! | chat of the ledger | `C#<chat>` | `CHAT` |
//! | pairings of an account | `A#<channel>:<account>` | `PAIRING` |
//! | memory scope head, fact, episode | `M#<scope>` | `HEAD`, `F#<key>`, `P#<session>#<generation>#<from>` |
//! | approval | `APPROVALS` | `<closes at><random>` |
//! | open approval | `OPEN` | `<closes at><random>` |
//! | rate bucket | `R#<session>` | `BUCKET` |
//! | what a day has cost | `D#<date>#<shard>` | `SPENT` |
//! | claim of a job | `K#<job>` | `CLAIM` |
//! | dead item, its place in the list | `E#<event>`, `DEAD` | `DEAD`, `<time>#<event>` |

use turnlock_domain::event::Channel;
use turnlock_domain::ids::EventId;
use turnlock_domain::session::{SessionKey, encode_part};
use turnlock_domain::time::Millis;

/// The partition key's attribute.
pub const PK: &str = "pk";
/// The sort key's attribute.
pub const SK: &str = "sk";
/// The TTL attribute, in seconds: garbage collection only.
pub const TTL: &str = "expires_at";

/// An item's key.
pub type Key = (String, String);

/// The session head.
#[must_use]
pub fn head(session: &SessionKey) -> Key {
    (session_partition(session), "HEAD".to_owned())
}

/// The partition of everything that belongs to a session.
#[must_use]
pub fn session_partition(session: &SessionKey) -> String {
    format!("S#{session}")
}

/// The turn whose first message is `first`.
#[must_use]
pub fn turn(session: &SessionKey, generation: u32, first: u64) -> Key {
    (session_partition(session), format!("T#{generation:06}#{first:010}"))
}

/// What sorts after every turn of `generation`.
#[must_use]
pub fn after_turns(generation: u32) -> String {
    format!("T#{generation:06}#~")
}

/// Piece `n` of a large turn, written before the transaction that seals it.
#[must_use]
pub fn turn_part(session: &SessionKey, event: &EventId, fence: u64, n: usize) -> Key {
    (session_partition(session), format!("part#{event}#{fence}#{n:03}"))
}

/// What every journal item of `event` begins with.
#[must_use]
pub fn journal_prefix(event: &EventId) -> String {
    format!("J#{event}#")
}

/// A journal step.
#[must_use]
pub fn journal_step(session: &SessionKey, event: &EventId, step: u32) -> Key {
    (session_partition(session), format!("J#{event}#{step:04}"))
}

/// The slot of one call's result.
#[must_use]
pub fn journal_result(session: &SessionKey, event: &EventId, step: u32, call: u32) -> Key {
    (session_partition(session), format!("J#{event}#{step:04}#R#{call:03}"))
}

/// The sign that a call which a person allowed was started.
#[must_use]
pub fn journal_started(session: &SessionKey, event: &EventId, step: u32, call: u32) -> Key {
    (session_partition(session), format!("J#{event}#{step:04}#S#{call:03}"))
}

/// The partition of approvals.
pub const APPROVALS: &str = "APPROVALS";

/// The partition of what lists the open ones, by the time until which they are: few, and small.
pub const OPEN: &str = "OPEN";

/// An open approval's place in the list.
#[must_use]
pub fn open_approval(id: &str) -> Key {
    (OPEN.to_owned(), id.to_owned())
}

/// An approval.
#[must_use]
pub fn approval(id: &str) -> Key {
    (APPROVALS.to_owned(), id.to_owned())
}

/// Piece `n` of a tool result, by the key of its call.
#[must_use]
pub fn result(session: &SessionKey, call: &str, n: usize) -> Key {
    (session_partition(session), format!("X#{call}#{n:03}"))
}

/// The sign that an event is committed.
#[must_use]
pub fn marker(event: &EventId) -> Key {
    (format!("E#{event}"), "MARKER".to_owned())
}

/// An API event between acceptance and commit.
#[must_use]
pub fn admission(event: &EventId) -> Key {
    (format!("E#{event}"), "ADMISSION".to_owned())
}

/// What API clients read of an event.
#[must_use]
pub fn gateway(event: &EventId) -> Key {
    (format!("E#{event}"), "GATEWAY".to_owned())
}

/// The parts of an album.
#[must_use]
pub fn album(event: &EventId) -> Key {
    (format!("E#{event}"), "ALBUM".to_owned())
}

/// The ledger of an outbound event.
#[must_use]
pub fn ledger(outbound: &str) -> Key {
    (format!("L#{outbound}"), "LEDGER".to_owned())
}

/// What delivery knows of a chat.
#[must_use]
pub fn chat(chat: &str) -> Key {
    (format!("C#{chat}"), "CHAT".to_owned())
}

/// Who may talk to an account by a pairing, and the code that waits.
#[must_use]
pub fn pairing(channel: Channel, account: &str) -> Key {
    (format!("A#{}:{}", channel.as_str(), encode_part(account)), "PAIRING".to_owned())
}

/// The head of a memory scope.
#[must_use]
pub fn scope_head(scope: &str) -> Key {
    (scope_partition(scope), "HEAD".to_owned())
}

/// The partition of a memory scope.
#[must_use]
pub fn scope_partition(scope: &str) -> String {
    format!("M#{scope}")
}

/// A remembered fact.
#[must_use]
pub fn fact(scope: &str, key: &str) -> Key {
    (scope_partition(scope), format!("F#{key}"))
}

/// A remembered stretch of conversation.
#[must_use]
pub fn episode(scope: &str, session: &SessionKey, generation: u32, from: u64) -> Key {
    (scope_partition(scope), format!("P#{session}#{generation:06}#{from:010}"))
}

/// The rate bucket of a session.
#[must_use]
pub fn bucket(session: &SessionKey) -> Key {
    (format!("R#{session}"), "BUCKET".to_owned())
}

/// The claim of a job that is not kept on a session head.
#[must_use]
pub fn job_claim(job: &str) -> Key {
    (format!("K#{job}"), "CLAIM".to_owned())
}

/// What is known of an event that was given up.
#[must_use]
pub fn dead_event(event: &EventId) -> Key {
    (format!("E#{event}"), "DEAD".to_owned())
}

/// The partition of the list of dead items.
pub const DEAD: &str = "DEAD";

/// A dead item's place in the list; newest last.
#[must_use]
pub fn dead(at: Millis, event: &EventId) -> Key {
    (DEAD.to_owned(), format!("{:015}#{event}", at.0.max(0)))
}

/// One of the items that count what a day has cost, by its date in UTC.
#[must_use]
pub fn spent(date: &str, shard: u64) -> Key {
    (format!("D#{date}#{shard}"), "SPENT".to_owned())
}
