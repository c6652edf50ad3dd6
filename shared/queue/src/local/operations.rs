//! What each operation does to the file, given the time: no clock, no waiting, no waking here. Every function runs inside
//! a transaction of its caller.
//!
//! The invariant behind all of them: a lane's row exists exactly while it has messages, `head` is the first of them, and
//! `blocked_until` is the latest end of visibility among them, or NULL once [`release`] has seen it pass.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{OptionalExtension, Row, Transaction, named_params, params};
use turnlock_domain::time::Millis;

use crate::{DEDUPLICATION_WINDOW, NewMessage, Receipt, Record};

/// The id of a queue in the file.
pub(super) type QueueId = i64;

/// What became of a message that was offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offered {
    Accepted,
    Duplicate,
    Full,
}

/// Where messages go that were received too often.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeadLetters {
    pub(super) queue: QueueId,
    pub(super) after: u32,
}

/// What one receive found.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) records: Vec<Record>,
    /// How many messages were set aside on the way.
    pub(super) dead: usize,
}

/// A message that its receipt still holds.
struct HeldMessage {
    sequence: i64,
    lane: String,
}

pub(super) fn queue_id(transaction: &Transaction<'_>, name: &str) -> rusqlite::Result<QueueId> {
    transaction.prepare_cached("INSERT OR IGNORE INTO queues (name) VALUES (?1)")?.execute([name])?;
    transaction.prepare_cached("SELECT id FROM queues WHERE name = ?1")?.query_row([name], |row| row.get(0))
}

/// Puts a message in, unless its deduplication id is known or `capacity` messages wait.
pub(super) fn offer(
    transaction: &Transaction<'_>,
    queue: QueueId,
    message: &NewMessage,
    fifo: bool,
    capacity: usize,
    now: Millis,
) -> rusqlite::Result<Offered> {
    // A standard queue has no deduplication ids: `NewMessage::check` has seen to it.
    let identity = message.group.as_deref().zip(message.deduplication_id.as_deref()).filter(|_| fifo);
    if let Some((group, id)) = identity
        && is_known(transaction, queue, group, id, now)?
    {
        return Ok(Offered::Duplicate);
    }
    if is_full(transaction, queue, capacity, now)? {
        return Ok(Offered::Full);
    }
    if let Some((group, id)) = identity {
        transaction
            .prepare_cached("INSERT INTO deduplication (queue, lane, id, expires_at) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![queue, group, id, (now + DEDUPLICATION_WINDOW).0])?;
    }
    let lane = insert(transaction, queue, message, fifo, now)?;
    refresh_lane(transaction, queue, &lane, now)?;
    Ok(Offered::Accepted)
}

fn is_known(
    transaction: &Transaction<'_>,
    queue: QueueId,
    lane: &str,
    id: &str,
    now: Millis,
) -> rusqlite::Result<bool> {
    transaction.prepare_cached("DELETE FROM deduplication WHERE expires_at <= ?1")?.execute([now.0])?;
    transaction
        .prepare_cached("SELECT 1 FROM deduplication WHERE queue = ?1 AND lane = ?2 AND id = ?3")?
        .exists(params![queue, lane, id])
}

fn is_full(transaction: &Transaction<'_>, queue: QueueId, capacity: usize, now: Millis) -> rusqlite::Result<bool> {
    let capacity = u64::try_from(capacity).unwrap_or(u64::MAX);
    // All messages are at least those that wait: the second count is needed only near the limit.
    Ok(held(transaction, queue)? >= capacity && waiting(transaction, queue, now)? >= capacity)
}

/// Returns the lane that the new message stands in.
fn insert(
    transaction: &Transaction<'_>,
    queue: QueueId,
    message: &NewMessage,
    fifo: bool,
    now: Millis,
) -> rusqlite::Result<String> {
    let attributes = serde_json::to_string(&message.attributes).map_err(unreadable)?;
    let hidden_until = (!message.delay.is_zero()).then(|| (now + message.delay).0);
    let group_lane = message.group.as_deref().filter(|_| fifo);
    transaction
        .prepare_cached(
            "INSERT INTO messages (queue, lane, group_id, body, attributes, sent_at, hidden_until)
             VALUES (:queue, :lane, :group, :body, :attributes, :sent_at, :hidden_until)",
        )?
        .execute(named_params! {
            ":queue": queue,
            ":lane": group_lane.unwrap_or_default(),
            ":group": message.group,
            ":body": message.body,
            ":attributes": attributes,
            ":sent_at": now.0,
            ":hidden_until": hidden_until,
        })?;
    if let Some(lane) = group_lane {
        return Ok(lane.to_owned());
    }
    let sequence = transaction.last_insert_rowid();
    let lane = format!("#{sequence}");
    transaction
        .prepare_cached("UPDATE messages SET lane = ?2 WHERE sequence = ?1")?
        .execute(params![sequence, lane])?;
    Ok(lane)
}

/// Receives up to `max` messages: lanes in the order of their first messages, each lane's messages in order.
pub(super) fn receive(
    transaction: &Transaction<'_>,
    queue: QueueId,
    max: usize,
    visibility: Duration,
    dead_letters: Option<DeadLetters>,
    now: Millis,
) -> rusqlite::Result<Received> {
    release(transaction, queue, now)?;
    let mut received = Received::default();
    while received.records.len() < max {
        let Some(lane) = next_lane(transaction, queue)? else { break };
        // Each round hides messages of this lane or sets them aside, so the loop ends.
        for message in lane_start(transaction, queue, &lane, max - received.records.len())? {
            let (sequence, mut record) = message;
            match dead_letters {
                Some(dead) if record.receive_count >= dead.after => {
                    set_aside(transaction, sequence, &lane, dead.queue, now)?;
                    received.dead += 1;
                }
                Some(_) | None => {
                    record.receive_count += 1;
                    record.receipt = receipt(sequence, record.receive_count);
                    hide(transaction, sequence, record.receive_count, now + visibility)?;
                    received.records.push(record);
                }
            }
        }
        refresh_lane(transaction, queue, &lane, now)?;
    }
    Ok(received)
}

/// Unblocks the lanes whose time has come.
fn release(transaction: &Transaction<'_>, queue: QueueId, now: Millis) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached("UPDATE lanes SET blocked_until = NULL WHERE queue = ?1 AND blocked_until <= ?2")?
        .execute(params![queue, now.0])
}

fn next_lane(transaction: &Transaction<'_>, queue: QueueId) -> rusqlite::Result<Option<String>> {
    transaction
        .prepare_cached("SELECT lane FROM lanes WHERE queue = ?1 AND blocked_until IS NULL ORDER BY head LIMIT 1")?
        .query_row([queue], |row| row.get(0))
        .optional()
}

fn lane_start(
    transaction: &Transaction<'_>,
    queue: QueueId,
    lane: &str,
    limit: usize,
) -> rusqlite::Result<Vec<(i64, Record)>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = transaction.prepare_cached(
        "SELECT sequence, group_id, body, attributes, sent_at, receive_count, hidden_until
         FROM messages WHERE queue = ?1 AND lane = ?2 ORDER BY sequence LIMIT ?3",
    )?;
    statement.query_map(params![queue, lane, limit], message_of)?.collect()
}

fn hide(transaction: &Transaction<'_>, sequence: i64, receive_count: u32, until: Millis) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached("UPDATE messages SET receive_count = ?2, hidden_until = ?3 WHERE sequence = ?1")?
        .execute(params![sequence, receive_count, until.0])
}

/// As in SQS, the message keeps its id, the time it was sent at and its receive count.
fn set_aside(
    transaction: &Transaction<'_>,
    sequence: i64,
    lane: &str,
    dead_letter: QueueId,
    now: Millis,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("UPDATE messages SET queue = ?2, hidden_until = NULL WHERE sequence = ?1")?
        .execute(params![sequence, dead_letter])?;
    refresh_lane(transaction, dead_letter, lane, now)
}

/// Hides a held message until `now + visibility`, or gives it back; false when the receipt has ended.
pub(super) fn set_visibility(
    transaction: &Transaction<'_>,
    queue: QueueId,
    receipt: &Receipt,
    visibility: Duration,
    now: Millis,
) -> rusqlite::Result<bool> {
    let Some(message) = message_held_by(transaction, queue, receipt, now)? else { return Ok(false) };
    let until = Some(now + visibility).filter(|until| *until > now).map(|until| until.0);
    transaction
        .prepare_cached("UPDATE messages SET hidden_until = ?2 WHERE sequence = ?1")?
        .execute(params![message.sequence, until])?;
    refresh_lane(transaction, queue, &message.lane, now)?;
    Ok(true)
}

/// Deletes a held message; false when the receipt has ended.
pub(super) fn delete(
    transaction: &Transaction<'_>,
    queue: QueueId,
    receipt: &Receipt,
    now: Millis,
) -> rusqlite::Result<bool> {
    let Some(message) = message_held_by(transaction, queue, receipt, now)? else { return Ok(false) };
    transaction.prepare_cached("DELETE FROM messages WHERE sequence = ?1")?.execute([message.sequence])?;
    refresh_lane(transaction, queue, &message.lane, now)?;
    Ok(true)
}

/// Ends every receipt of every queue; returns how many there were. Delays go on.
pub(super) fn end_receipts(transaction: &Transaction<'_>, now: Millis) -> rusqlite::Result<usize> {
    let hidden = "hidden_until IS NOT NULL AND receive_count > 0";
    let mut statement = transaction
        .prepare(&format!("SELECT DISTINCT queue, lane FROM messages WHERE {hidden} ORDER BY queue, lane"))?;
    let lanes: Vec<(QueueId, String)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    let ended = transaction
        .execute(&format!("UPDATE messages SET hidden_until = NULL WHERE {hidden} AND hidden_until > ?1"), [now.0])?;
    for (queue, lane) in lanes {
        refresh_lane(transaction, queue, &lane, now)?;
    }
    Ok(ended)
}

/// When the next message can be received; `now` or earlier: at once.
pub(super) fn next_due(transaction: &Transaction<'_>, queue: QueueId, now: Millis) -> rusqlite::Result<Option<Millis>> {
    if next_lane(transaction, queue)?.is_some() {
        return Ok(Some(now));
    }
    transaction
        .prepare_cached("SELECT MIN(blocked_until) FROM lanes WHERE queue = ?1 AND blocked_until IS NOT NULL")?
        .query_row([queue], |row| Ok(row.get::<_, Option<i64>>(0)?.map(Millis)))
}

/// How many messages are in flight.
pub(super) fn in_flight(transaction: &Transaction<'_>, queue: QueueId, now: Millis) -> rusqlite::Result<u64> {
    transaction
        .prepare_cached("SELECT COUNT(*) FROM messages WHERE queue = ?1 AND hidden_until > ?2 AND receive_count > 0")?
        .query_row(params![queue, now.0], |row| row.get(0))
}

/// How many messages wait: all that are not in flight, delayed ones too.
pub(super) fn waiting(transaction: &Transaction<'_>, queue: QueueId, now: Millis) -> rusqlite::Result<u64> {
    Ok(held(transaction, queue)?.saturating_sub(in_flight(transaction, queue, now)?))
}

fn held(transaction: &Transaction<'_>, queue: QueueId) -> rusqlite::Result<u64> {
    transaction.prepare_cached("SELECT held FROM queues WHERE id = ?1")?.query_row([queue], |row| row.get(0))
}

/// Every message of a queue in the order it was sent, with the end of its invisibility.
pub(super) fn contents(
    transaction: &Transaction<'_>,
    queue: QueueId,
) -> rusqlite::Result<Vec<(Record, Option<Millis>)>> {
    let mut statement = transaction.prepare_cached(
        "SELECT sequence, group_id, body, attributes, sent_at, receive_count, hidden_until
         FROM messages WHERE queue = ?1 ORDER BY sequence",
    )?;
    let rows = statement.query_map([queue], |row| {
        let (_, record) = message_of(row)?;
        Ok((record, row.get::<_, Option<i64>>("hidden_until")?.map(Millis)))
    })?;
    rows.collect()
}

/// Restores the invariant of one lane after its messages changed.
fn refresh_lane(transaction: &Transaction<'_>, queue: QueueId, lane: &str, now: Millis) -> rusqlite::Result<()> {
    let head: Option<i64> = transaction
        .prepare_cached("SELECT MIN(sequence) FROM messages WHERE queue = ?1 AND lane = ?2")?
        .query_row(params![queue, lane], |row| row.get(0))?;
    let Some(head) = head else {
        transaction
            .prepare_cached("DELETE FROM lanes WHERE queue = ?1 AND lane = ?2")?
            .execute(params![queue, lane])?;
        return Ok(());
    };
    let hidden_until: Option<i64> = transaction
        .prepare_cached(
            "SELECT MAX(hidden_until) FROM messages WHERE queue = ?1 AND lane = ?2 AND hidden_until IS NOT NULL",
        )?
        .query_row(params![queue, lane], |row| row.get(0))?;
    transaction
        .prepare_cached(
            "INSERT INTO lanes (queue, lane, head, blocked_until) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (queue, lane) DO UPDATE SET head = excluded.head, blocked_until = excluded.blocked_until",
        )?
        .execute(params![queue, lane, head, hidden_until.filter(|until| *until > now.0)])?;
    Ok(())
}

fn message_held_by(
    transaction: &Transaction<'_>,
    queue: QueueId,
    receipt: &Receipt,
    now: Millis,
) -> rusqlite::Result<Option<HeldMessage>> {
    let Some((sequence, receive_count)) = parts_of(receipt) else { return Ok(None) };
    transaction
        .prepare_cached(
            "SELECT sequence, lane FROM messages
             WHERE sequence = ?1 AND queue = ?2 AND receive_count = ?3 AND hidden_until > ?4",
        )?
        .query_row(params![sequence, queue, receive_count, now.0], |row| {
            Ok(HeldMessage { sequence: row.get(0)?, lane: row.get(1)? })
        })
        .optional()
}

/// A receipt names the message and the receive: the same in every replay, and never the same twice.
fn receipt(sequence: i64, receive_count: u32) -> Receipt {
    Receipt(format!("{sequence}.{receive_count}"))
}

fn parts_of(receipt: &Receipt) -> Option<(i64, u32)> {
    let (sequence, receive_count) = receipt.0.split_once('.')?;
    let receive_count = receive_count.parse().ok().filter(|count| *count > 0)?;
    Some((sequence.parse().ok()?, receive_count))
}

fn message_of(row: &Row<'_>) -> rusqlite::Result<(i64, Record)> {
    let sequence: i64 = row.get("sequence")?;
    let receive_count: u32 = row.get("receive_count")?;
    let attributes: String = row.get("attributes")?;
    let attributes: BTreeMap<String, String> = serde_json::from_str(&attributes).map_err(unreadable)?;
    let record = Record {
        message_id: sequence.to_string(),
        receipt: receipt(sequence, receive_count),
        body: row.get("body")?,
        group: row.get("group_id")?,
        attributes,
        receive_count,
        sent_at: Millis(row.get("sent_at")?),
    };
    Ok((sequence, record))
}

fn unreadable(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    /// Every statement between `prepare_cached("` and the quote that ends it.
    fn statements() -> Vec<&'static str> {
        let code = include_str!("operations.rs").split("#[cfg(test)]").next().unwrap();
        let calls = code.split("prepare_cached(").skip(1);
        calls.map(|call| call.split('"').nth(1).unwrap()).collect()
    }

    /// With 100,000 messages waiting an operation looks at as many rows as with ten: every statement is a search by index,
    /// and only the inspection of a whole queue sorts.
    #[test]
    fn no_operation_scans_or_sorts_what_waits() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("schema.sql")).unwrap();
        let mut searches = 0;
        for sql in statements() {
            let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            // Raw, so that the parameters may stay unbound: the plan does not depend on them.
            let mut lines = plan.raw_query();
            while let Some(line) = lines.next().unwrap() {
                let line: String = line.get("detail").unwrap();
                let is_inspection = sql.ends_with("WHERE queue = ?1 ORDER BY sequence");
                assert!(line.starts_with("SEARCH") || (is_inspection && line.contains("ORDER BY")), "{sql}: {line}");
                searches += 1;
            }
        }
        assert!(searches >= 15, "the statements were found: {searches}");
    }
}
