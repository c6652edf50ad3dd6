//! Tool results that were too long to be shown whole: kept under the key of their call, so that the model can read on
//! where it was cut.
//!
//! A result is written in pieces, its first one last: it names how many there are, so a result of which a piece is missing
//! is none. A call that is repeated with its key (it has one only if repeating it is harmless) writes its result over the
//! one before, as whoever repeats it shows the new one.

use turnlock_domain::session::SessionKey;

use crate::error::StoreError;
use crate::item::{n, s, text};
use crate::request::Item;
use crate::write::{live, number};
use crate::{LAYOUT, MARKER_LIFETIME, Store, keys};

/// The most bytes of a piece; DynamoDB's limit is 400 KB with names and keys.
const PIECE_BYTES: usize = 256 * 1024;
/// The most pieces of a result.
const MAX_PIECES: usize = 4;
/// The most bytes that are kept of a result.
pub const KEPT_BYTES: usize = PIECE_BYTES * MAX_PIECES;

/// A result that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptResult {
    /// Its text, or as much of it as is kept.
    pub text: String,
    /// How many characters the whole result has.
    pub characters: usize,
}

impl Store {
    /// Keeps the first [`KEPT_BYTES`] of a result of `session` under the `key` of its call, for as long as the call's journal
    /// lives.
    ///
    /// # Errors
    /// [`StoreError`]; keeping it again is harmless.
    pub async fn keep_result(&self, session: &SessionKey, key: &str, result: &str) -> Result<(), StoreError> {
        let ttl = self.clock().now_ms().ttl(MARKER_LIFETIME);
        let pieces = pieces(result);
        for (index, piece) in pieces.iter().enumerate().rev() {
            let (pk, sk) = keys::result(session, key, index);
            let mut item = Item::from([
                (keys::PK.to_owned(), s(pk)),
                (keys::SK.to_owned(), s(sk)),
                (keys::TTL.to_owned(), n(ttl.0)),
                ("text".to_owned(), s(*piece)),
                ("layout".to_owned(), n(LAYOUT)),
            ]);
            if index == 0 {
                item.insert("pieces".to_owned(), n(pieces.len()));
                item.insert("characters".to_owned(), n(result.chars().count()));
            }
            self.put(self.put_item(item)).await?;
        }
        Ok(())
    }

    /// The result that `session` kept under `key`; `None` if it kept none, or its lifetime is over.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn kept_result(&self, session: &SessionKey, key: &str) -> Result<Option<KeptResult>, StoreError> {
        let Some(first) = self.result_piece(session, key, 0).await? else { return Ok(None) };
        let Some(pieces) = number::<usize>(&first, "pieces") else { return Ok(None) };
        let mut kept = text(&first, "text").unwrap_or_default().to_owned();
        for index in 1..pieces.min(MAX_PIECES) {
            let Some(piece) = self.result_piece(session, key, index).await? else { return Ok(None) };
            kept.push_str(text(&piece, "text").unwrap_or_default());
        }
        let characters = number(&first, "characters").unwrap_or_else(|| kept.chars().count());
        Ok(Some(KeptResult { text: kept, characters }))
    }

    async fn result_piece(&self, session: &SessionKey, key: &str, index: usize) -> Result<Option<Item>, StoreError> {
        let (pk, sk) = keys::result(session, key, index);
        Ok(live(self.get(self.get_item(pk, sk)).await?, self.clock().now_ms()))
    }
}

/// The first [`KEPT_BYTES`] of `result`, cut between characters.
fn pieces(result: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = result;
    while pieces.len() < MAX_PIECES && (!rest.is_empty() || pieces.is_empty()) {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_fall_between_characters_and_end() {
        let long = format!("a{}", "日本".repeat(KEPT_BYTES / 4));
        let pieces = pieces(&long);
        assert_eq!(pieces.len(), MAX_PIECES);
        assert!(pieces.iter().all(|piece| (PIECE_BYTES - 3..=PIECE_BYTES).contains(&piece.len())));
        assert!(long.starts_with(&pieces.concat()));
        assert_eq!((super::pieces(""), super::pieces("ab")), (vec![""], vec!["ab"]));
    }
}
