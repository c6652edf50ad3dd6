//! Payloads as a broken or hostile sender writes them: flipped bits, removed and swapped values, cut bodies. Test code.

use proptest::prelude::*;
use serde_json::{Value, json};
use turnlock_domain::envelope::Command;

use crate::ingress::{Normalised, Refusal};

/// What is planted in every mutated body, to see whether an error quotes it.
const CANARY: &str = "canary-of-the-body";

/// One way to break a body; the numbers pick the place.
#[derive(Debug, Clone)]
pub(crate) enum Mutation {
    Flip(Vec<(usize, u8)>),
    Cut(usize),
    Remove(Vec<usize>),
    Swap(Vec<(usize, usize)>),
}

pub(crate) fn strategy() -> impl Strategy<Value = Mutation> {
    let place = 0..10_000_usize;
    prop_oneof![
        proptest::collection::vec((place.clone(), 0..8_u8), 1..5).prop_map(Mutation::Flip),
        place.clone().prop_map(Mutation::Cut),
        proptest::collection::vec(place.clone(), 1..4).prop_map(Mutation::Remove),
        proptest::collection::vec((place.clone(), place), 1..5).prop_map(Mutation::Swap),
    ]
}

impl Mutation {
    /// The broken `body`. What is no JSON (a form) can only be flipped and cut.
    pub(crate) fn apply(&self, body: &[u8]) -> Vec<u8> {
        let mut bytes = body.to_vec();
        let mut document: Value = serde_json::from_slice(body).unwrap_or_default();
        match self {
            Self::Flip(flips) => {
                for (at, bit) in flips {
                    let len = bytes.len();
                    bytes[at % len] ^= 1 << bit;
                }
                return bytes;
            }
            Self::Cut(at) => {
                bytes.truncate(at % bytes.len());
                return bytes;
            }
            _ if document.is_null() => return bytes,
            Self::Remove(places) => {
                for place in places {
                    if let Some((parent, key)) = parent_of(&mut document, *place) {
                        parent.as_object_mut().unwrap().remove(&key);
                    }
                }
            }
            Self::Swap(swaps) => {
                for (place, with) in swaps {
                    if let Some((parent, key)) = parent_of(&mut document, *place) {
                        parent[key] = odd_value(*with);
                    }
                }
            }
        }
        document.to_string().into_bytes()
    }
}

/// The object and key that the `place`-th value of the document stands under.
fn parent_of(document: &mut Value, place: usize) -> Option<(&mut Value, String)> {
    let mut pointers = Vec::new();
    collect(document, String::new(), &mut pointers);
    let (pointer, key) = pointers.get(place % pointers.len().max(1))?.clone();
    Some((document.pointer_mut(&pointer)?, key))
}

fn collect(value: &Value, pointer: String, pointers: &mut Vec<(String, String)>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                pointers.push((pointer.clone(), key.clone()));
                collect(value, format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")), pointers);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                collect(value, format!("{pointer}/{at}"), pointers);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn odd_value(which: usize) -> Value {
    let odd = [
        json!(null),
        json!(true),
        json!(-1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(1.5e300),
        json!(""),
        json!("\u{200b}"),
        json!(CANARY),
        json!([]),
        json!([CANARY, { "_x": 1 }]),
        json!({}),
        json!({ "id": CANARY, "_drop": true }),
        json!("é".repeat(5000)),
    ];
    odd[which % odd.len()].clone()
}

/// Whatever a normaliser returned, it quotes nothing and keeps what every event must have.
pub(crate) fn check(body: &[u8], result: Result<Normalised, Refusal>) {
    match result {
        Err(refusal) => {
            let shown = format!("{refusal} {refusal:?}");
            assert!(!shown.contains(CANARY), "{shown}");
            assert!((400..=413).contains(&refusal.status()), "{shown}");
        }
        Ok(Normalised::Event(arrival)) => {
            let empty = arrival.event.content.is_empty() && arrival.command != Some(Command::Tap);
            assert!(!empty, "an event without content: {}", String::from_utf8_lossy(body));
            assert!(!arrival.event.event_id.as_str().is_empty() && !arrival.event.chat_id.is_empty());
            assert!(arrival.event.metadata.keys().all(|key| !key.starts_with('_')));
        }
        Ok(Normalised::Unreadable { arrival, .. }) => assert!(arrival.event.content.is_empty()),
        Ok(Normalised::AlbumPart(part)) => assert!(!part.arrival.event.content.is_empty()),
        Ok(Normalised::Ignored { .. } | Normalised::Chat { .. } | Normalised::Answer(_)) => {}
    }
}
