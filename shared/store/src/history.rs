//! Turn items: a session's history, one item a turn, never rewritten. A turn above [`PART_BYTES`] is cut into parts that
//! are written first and sealed by the turn item that lists their number.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use serde::{Deserialize, Serialize};
use turnlock_domain::boundary::{self, TurnSpan};
use turnlock_domain::commit::Draft;
use turnlock_domain::ids::EventId;
use turnlock_domain::message::Message;
use turnlock_domain::session::SessionKey;
use turnlock_domain::time::Millis;
use turnlock_domain::turn::{ModelCall, Outcome, Usage};

use crate::error::StoreError;
use crate::item::{from_item, json_fault, n, s, text, to_item};
use crate::request::Item;
use crate::{LAYOUT, Store, keys};

/// The most bytes of messages that one item holds; DynamoDB's limit is 400 KB with names and keys.
pub const PART_BYTES: usize = 300 * 1024;
/// The most parts of a turn.
const MAX_PARTS: usize = 64;
/// The most turns that one read of the history returns: the newest.
pub const MAX_TURNS: i32 = 200;

/// A committed turn as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTurn {
    /// The event that caused it.
    pub event_id: EventId,
    /// The index of its first message.
    pub first: u64,
    /// Its messages.
    pub messages: Vec<Message>,
    /// How it ended.
    pub outcome: Outcome,
    /// What its calls of models used together.
    pub usage: Usage,
    /// Those calls, in order; none of a turn that an earlier version committed.
    pub calls: Vec<ModelCall>,
    /// When it was committed.
    pub at: Millis,
}

#[derive(Serialize, Deserialize)]
struct TurnItem {
    layout: u32,
    event_id: EventId,
    fence: u64,
    first: u64,
    /// JSON: compact, and written and read in one go. Empty where `parts` says how many parts hold it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    messages: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    parts: usize,
    outcome: Outcome,
    #[serde(default)]
    usage: Usage,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<ModelCall>,
    at: Millis,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Store {
    /// The turns of `generation` from message `from` on, oldest first: at most the newest [`MAX_TURNS`], and at most
    /// 1 MB.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn history(
        &self,
        session: &SessionKey,
        generation: u32,
        from: u64,
    ) -> Result<Vec<StoredTurn>, StoreError> {
        let request = self.turns_from(session, generation, from).scan_index_forward(false).limit(MAX_TURNS);
        let mut turns = self.open_turns(session, request).await?;
        turns.reverse();
        Ok(turns)
    }

    /// The oldest turns of `generation` from message `from` on, at most `limit`: what a consolidation takes in.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn oldest_turns(
        &self,
        session: &SessionKey,
        generation: u32,
        from: u64,
        limit: i32,
    ) -> Result<Vec<StoredTurn>, StoreError> {
        self.open_turns(session, self.turns_from(session, generation, from).limit(limit)).await
    }

    fn turns_from(&self, session: &SessionKey, generation: u32, from: u64) -> QueryFluentBuilder {
        self.query()
            .key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to")
            .expression_attribute_values(":pk", s(keys::session_partition(session)))
            .expression_attribute_values(":from", s(keys::turn(session, generation, from).1))
            .expression_attribute_values(":to", s(keys::after_turns(generation)))
    }

    async fn open_turns(
        &self,
        session: &SessionKey,
        request: QueryFluentBuilder,
    ) -> Result<Vec<StoredTurn>, StoreError> {
        let mut turns = Vec::new();
        for item in self.query_page(request).await? {
            turns.push(self.open_turn(session, item).await?);
        }
        Ok(turns)
    }

    /// The turn whose first message is `first`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn turn(
        &self,
        session: &SessionKey,
        generation: u32,
        first: u64,
    ) -> Result<Option<StoredTurn>, StoreError> {
        let (pk, sk) = keys::turn(session, generation, first);
        match self.get(self.get_item(pk, sk)).await? {
            Some(item) => self.open_turn(session, item).await.map(Some),
            None => Ok(None),
        }
    }

    async fn open_turn(&self, session: &SessionKey, item: Item) -> Result<StoredTurn, StoreError> {
        let turn: TurnItem = from_item("turn", item)?;
        let json = if turn.parts == 0 { turn.messages } else { self.parts(session, &turn).await? };
        let messages = serde_json::from_str(&json)
            .map_err(|error| StoreError::corrupt("turn", &turn.event_id, json_fault(&error)))?;
        let TurnItem { event_id, first, outcome, usage, calls, at, .. } = turn;
        Ok(StoredTurn { event_id, first, messages, outcome, usage, calls, at })
    }

    async fn parts(&self, session: &SessionKey, turn: &TurnItem) -> Result<String, StoreError> {
        let mut json = String::new();
        for index in 0..turn.parts.min(MAX_PARTS) {
            let (pk, sk) = keys::turn_part(session, &turn.event_id, turn.fence, index);
            let item = self.get(self.get_item(pk, sk)).await?;
            let part = item.as_ref().and_then(|item| text(item, "json"));
            json.push_str(part.ok_or_else(|| StoreError::corrupt("turn", &turn.event_id, "a part is missing"))?);
        }
        Ok(json)
    }

    /// The item of a draft's turn, its parts written already; `None` for a turn without messages.
    pub(crate) async fn seal_turn(&self, draft: &Draft, fence: u64) -> Result<Option<Item>, StoreError> {
        if draft.messages.is_empty() {
            return Ok(None);
        }
        let corrupt = |what: &dyn std::fmt::Display| StoreError::corrupt("turn", &draft.event_id, what);
        let json = serde_json::to_string(&draft.messages).map_err(|error| corrupt(&json_fault(&error)))?;
        let pieces = if json.len() > PART_BYTES { pieces(&json) } else { Vec::new() };
        if pieces.len() > MAX_PARTS {
            return Err(corrupt(&"it is larger than a turn can be"));
        }
        for (index, piece) in pieces.iter().enumerate() {
            let (pk, sk) = keys::turn_part(&draft.session, &draft.event_id, fence, index);
            let item = Item::from([
                (keys::PK.to_owned(), s(pk)),
                (keys::SK.to_owned(), s(sk)),
                ("json".to_owned(), s(*piece)),
                ("layout".to_owned(), n(LAYOUT)),
            ]);
            self.put(self.put_item(item)).await?;
        }
        let item = TurnItem {
            layout: LAYOUT,
            event_id: draft.event_id.clone(),
            fence,
            first: draft.first,
            parts: pieces.len(),
            messages: if pieces.is_empty() { json } else { String::new() },
            outcome: draft.outcome.clone(),
            usage: draft.usage,
            calls: draft.calls.clone(),
            at: draft.at,
        };
        to_item("turn", keys::turn(&draft.session, draft.generation, draft.first), &item, None).map(Some)
    }

    /// Items whose attribute meets `filter` (with `:sk`), at most `limit`: for the operator and the replay, never on a
    /// hot path.
    pub(crate) async fn scan(&self, filter: &str, sk: &str, limit: usize) -> Result<Vec<Item>, StoreError> {
        let mut items = Vec::new();
        let mut start = None;
        loop {
            let output = self
                .client
                .scan()
                .table_name(&*self.table)
                .consistent_read(true)
                .filter_expression(filter)
                .expression_attribute_values(":sk", s(sk))
                .set_exclusive_start_key(start)
                .send()
                .await
                .map_err(|error| StoreError::Unavailable { operation: "Scan", source: error.into() })?;
            items.extend(output.items.unwrap_or_default());
            start = output.last_evaluated_key;
            if start.is_none() || items.len() >= limit {
                items.truncate(limit);
                return Ok(items);
            }
        }
    }

    /// Puts a session into the store as it is, even if it is broken: for replays and tests.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn seed_session(
        &self,
        session: &SessionKey,
        generation: u32,
        last_consolidated: u64,
        messages: &[Message],
    ) -> Result<(), StoreError> {
        let now = self.clock().now_ms();
        let count = messages.len() as u64;
        let mut spans = boundary::turn_spans(0, messages);
        // A last turn that waits for an answer or a result is no complete one, and yet a part of what is put in.
        let end = spans.last().map_or(0, |span| span.end());
        if end < count {
            spans.push(TurnSpan { first: end, messages: count - end });
        }
        for span in spans {
            let range =
                usize::try_from(span.first).unwrap_or(0)..usize::try_from(span.first + span.messages).unwrap_or(0);
            let draft = Draft {
                event_id: EventId::from_stored(format!("seed.{session}.{}", span.first)),
                session: session.clone(),
                generation,
                fence: 0,
                first: span.first,
                messages: messages.get(range).unwrap_or_default().to_vec(),
                outcome: Outcome::Replied,
                usage: Usage::default(),
                calls: Vec::new(),
                owed: Vec::new(),
                merged: Vec::new(),
                at: now,
            };
            if let Some(item) = self.seal_turn(&draft, 0).await? {
                self.put(self.put_item(item)).await?;
            }
        }
        let head = crate::sessions::Head {
            layout: LAYOUT,
            generation,
            boundary: last_consolidated,
            message_count: count,
            ..Default::default()
        };
        let item = to_item("session head", keys::head(session), &head, None)?;
        self.put(self.put_item(item)).await.map(|_| ())
    }
}

/// `json` in pieces of at most [`PART_BYTES`], cut between characters.
fn pieces(json: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = json;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PART_BYTES));
        pieces.push(piece);
        rest = after;
    }
    pieces
}
