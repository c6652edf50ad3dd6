//! Pairing: an operator gets a code, and the first person who sends it to the bot may talk to it from then on.
//!
//! A code is random (60 bits), waits for [`VALID`], is used once and stored as a digest. A code that is wrong, used or too
//! late is what any other message of a stranger is, so nobody learns that there was one.
//!
//! Only who is on no list is looked for, with one read. Who was found is remembered for [`REMEMBERED`]: for so long a
//! process may let somebody in who was removed meanwhile.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use turnlock_domain::event::{Channel, ContentType, InboundEvent};
use turnlock_domain::ids::digest;
use turnlock_domain::time::Millis;
use turnlock_store::pairing::{Offered, Redeemed};
use turnlock_store::{Store, StoreError};

/// How long a code waits for its sender.
pub const VALID: Duration = Duration::from_secs(15 * 60);
/// How long a process takes somebody for paired without asking again.
pub const REMEMBERED: Duration = Duration::from_secs(60);
/// How many people a process remembers.
const MOST_REMEMBERED: usize = 1000;
/// No letter or digit that is easily taken for another one; 32 of them, so that five random bits are one.
const ALPHABET: &[u8; 32] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
/// The symbols of a code.
const SYMBOLS: usize = 12;
/// A code is read in groups of so many symbols.
const GROUP: usize = 4;
/// The longest text that may be a code: with the command before it, and generous spaces.
const LONGEST: usize = 100;
/// What a Telegram link puts before the code.
const START: &str = "/start";

/// A code. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Code(String);

impl Code {
    /// The code that these random bytes are.
    #[must_use]
    pub fn from_random(random: [u8; SYMBOLS]) -> Self {
        Self(random.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect())
    }

    /// The code that a message is, if it may be one: whatever its case, with spaces and dashes anywhere.
    fn of(event: &InboundEvent) -> Option<Self> {
        let [block] = event.content.as_slice() else { return None };
        if block.kind != ContentType::Text || block.text.len() > LONGEST {
            return None;
        }
        let text = block.text.trim();
        let symbols = match text.split_once(char::is_whitespace) {
            Some((first, rest)) if is_start(first) => rest,
            Some(_) | None => text,
        };
        let is_filling = |c: char| c.is_whitespace() || c == '-' || c == '−' || ('‐'..='―').contains(&c);
        let code: String = symbols.chars().filter(|c| !is_filling(*c)).map(|c| c.to_ascii_uppercase()).collect();
        let is_code = code.len() == SYMBOLS && code.bytes().all(|symbol| ALPHABET.contains(&symbol));
        is_code.then_some(Self(code))
    }

    /// What is stored of it.
    fn digest(&self) -> String {
        digest(self.0.as_bytes())
    }
}

/// The code as it is shown and typed: in groups.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, symbol) in self.0.chars().enumerate() {
            if place > 0 && place % GROUP == 0 {
                f.write_str("-")?;
            }
            write!(f, "{symbol}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code([REDACTED])")
    }
}

/// `/start`, also with a bot's name behind it.
fn is_start(word: &str) -> bool {
    word.split('@').next().is_some_and(|command| command.eq_ignore_ascii_case(START))
}

/// Lets `code` wait for whoever sends it first to the account, from `now` on.
///
/// # Errors
/// [`StoreError`]; offering it again is harmless.
pub async fn offer(
    store: &Store,
    channel: Channel,
    account: &str,
    code: &Code,
    now: Millis,
) -> Result<Offered, StoreError> {
    store.offer_pairing(channel, account, &code.digest(), now + VALID).await
}

/// How somebody stands to an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nobody let them in.
    Stranger,
    /// They may talk to it.
    Allowed,
    /// They may from now on: this message was the code.
    SentCode,
}

/// Who was found paired lately. Clones are one and the same.
#[derive(Clone, Default)]
pub struct Pairings(Arc<Mutex<BTreeMap<Person, Known>>>);

/// Channel, account, sender.
type Person = (&'static str, String, String);

#[derive(Clone)]
struct Known {
    until: Millis,
    code: String,
}

impl Pairings {
    /// How the sender of `event` stands to its account; the code that waits lets them in.
    ///
    /// # Errors
    /// [`StoreError`]; asking again with the same event comes to the same.
    pub(crate) async fn standing(
        &self,
        store: &Store,
        event: &InboundEvent,
        now: Millis,
    ) -> Result<Standing, StoreError> {
        let (channel, account, sender) = (event.channel, event.account.as_str(), event.sender_id.as_str());
        if sender.is_empty() {
            return Ok(Standing::Stranger);
        }
        let code = Code::of(event).map(|code| code.digest());
        let person = (channel.as_str(), account.to_owned(), sender.to_owned());
        if let Some(known) = self.known(&person, now) {
            return Ok(with_code(&known.code, code.as_deref()));
        }
        let pairing = store.pairing(channel, account).await?;
        if let Some(paired) = pairing.paired.get(sender) {
            self.remember(person, &paired.code, now);
            return Ok(with_code(&paired.code, code.as_deref()));
        }
        let Some(code) = code.filter(|code| pairing.waits_for(code, now)) else { return Ok(Standing::Stranger) };
        Ok(match store.redeem_pairing(channel, account, sender, &code, now).await? {
            Redeemed::Paired => Standing::SentCode,
            Redeemed::Refused => Standing::Stranger,
        })
    }

    fn known(&self, person: &Person, now: Millis) -> Option<Known> {
        let remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.get(person).filter(|known| known.until > now).cloned()
    }

    fn remember(&self, person: Person, code: &str, now: Millis) {
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= MOST_REMEMBERED {
            remembered.retain(|_, known| known.until > now);
        }
        if remembered.len() < MOST_REMEMBERED {
            remembered.insert(person, Known { until: now + REMEMBERED, code: code.to_owned() });
        }
    }
}

/// Somebody who is paired and sends the very code again: the platform delivered it twice, or they did.
fn with_code(theirs: &str, sent: Option<&str>) -> Standing {
    if sent == Some(theirs) { Standing::SentCode } else { Standing::Allowed }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn code(text: &str) -> Option<String> {
        let event = json!({ "event_id": "e", "channel": "telegram", "chat_id": "5",
            "timestamp": "2026-01-05T09:00:00Z", "content": [{ "type": "text", "text": text }] });
        Code::of(&serde_json::from_value(event).unwrap()).map(|code| code.0)
    }

    #[test]
    fn a_code_is_shown_in_groups_and_never_in_a_log() {
        let code = Code::from_random([0, 1, 2, 3, 4, 5, 6, 7, 31, 32, 255, 254]);
        assert_eq!(code.to_string(), "2345-6789-Z2ZY");
        assert_eq!(format!("{code:?}"), "Code([REDACTED])");
    }

    #[test]
    fn a_code_is_recognised_however_it_is_typed() {
        for text in [
            "2345-6789-Z2ZY",
            "23456789Z2ZY",
            " 2345 6789\nz2zy ",
            "2345–6789—z2zy",
            "/start 2345-6789-Z2ZY",
            "/START@echo_bot 23456789z2zy",
        ] {
            assert_eq!(code(text).as_deref(), Some("23456789Z2ZY"), "{text:?}");
        }
        for text in [
            "",
            "/start",
            "2345-6789-Z2Z",
            "2345-6789-Z2ZYY",
            "my code is 2345-6789-Z2ZY",
            "/stop 2345-6789-Z2ZY",
            "2345-6789-Z2Z0",
            "2345-6789-Z2Zü",
            &format!("{}23456789Z2ZY", " ".repeat(200)),
        ] {
            assert_eq!(code(text), None, "{text:?}");
        }
    }

    #[test]
    fn so_many_are_remembered_and_for_so_long() {
        let pairings = Pairings::default();
        let person = |id: usize| ("telegram", "main".to_owned(), id.to_string());
        for id in 0..=MOST_REMEMBERED {
            pairings.remember(person(id), "d", Millis(0));
        }
        assert!(pairings.known(&person(0), Millis(59_999)).is_some());
        assert!(pairings.known(&person(MOST_REMEMBERED), Millis(0)).is_none());
        assert!(pairings.known(&person(0), Millis(60_000)).is_none());
        pairings.remember(person(MOST_REMEMBERED), "d", Millis(60_000));
        assert!(pairings.known(&person(MOST_REMEMBERED), Millis(60_000)).is_some(), "who was long ago makes room");
    }
}
