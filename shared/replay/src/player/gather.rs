//! The output of a moment, read from the world: store, queues, fakes, model, log.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use turnlock_app::deliver::observers;
use turnlock_app::journal_line;
use turnlock_domain::ids::EventId;
use turnlock_domain::time::Millis;
use turnlock_domain::turn::{Failure, Outcome};
use turnlock_queue::local::MessageState;
use turnlock_store::{Store, StoreError};

use super::parked::Parked;
use super::process::World;
use super::record::{Accepted, Line};
use super::tools::Start;
use crate::output::{ApprovalRow, DeadRow, EventRow, JobRow, LogRow, Output, Seconds, ToolRun};

/// How many of each kind are read at the most.
const LIMIT: usize = 10_000;

/// Gathers what the world shows; deliveries and invocations are the player's.
pub(super) async fn gather(world: &World, start: Millis) -> Result<Output, StoreError> {
    let store = world.store();
    let lines = world.record.lines();
    let mut output = Output {
        chats: world.fakes.chats(),
        sessions: sessions(&store).await?,
        events: events(world, &store, &lines).await?,
        model_requests: world.model.requests(),
        tool_runs: Some(tool_runs(world, &lines, start)),
        approvals: Some(approvals(&store).await?),
        jobs: Some(jobs(&lines)),
        ledger: ledger(&store).await?,
        observed: Some(observed(&lines, start)),
        dead: dead(&store).await?,
        fence_rejections: Some(lines.iter().filter(|line| line.target == journal_line::FENCE).count() as u64),
        logs: lines.iter().map(|line| log(line, start)).collect(),
        requests: world.plan.counts(),
        elapsed: Seconds::between(start, world.clock.now_ms()),
        unsettled: unsettled(world, &Parked::look(world).await?),
        ..Output::default()
    };
    output.set_calls(start, world.fakes.calls());
    output.set_pings(start, world.fakes.pings());
    Ok(output)
}

async fn sessions(store: &Store) -> Result<Vec<Value>, StoreError> {
    let mut sessions = Vec::new();
    for (key, head) in store.sessions(LIMIT).await? {
        let turns = store.history(&key, head.generation, 0).await?;
        let messages: Vec<_> = turns.into_iter().flat_map(|turn| turn.messages).collect();
        sessions.push(json!({
            "key": key, "messages": messages, "boundary": head.boundary, "generation": head.generation,
            "fence": head.fence, "locked": head.owner.is_some(), "unfinished": head.unfinished,
            "steer": head.steer.len(),
        }));
    }
    Ok(sessions)
}

/// Every event where it was accepted or, if it never got that far, where its line stands in the log; the outcome is the
/// log's, or, if the process died before it wrote its line, the marker's.
async fn events(world: &World, store: &Store, lines: &[Line]) -> Result<Vec<EventRow>, StoreError> {
    let mut rows: BTreeMap<String, EventRow> = BTreeMap::new();
    let mut order = Vec::new();
    for Accepted { envelope, lines: before } in world.record.accepted() {
        let id = envelope.event.event_id.to_string();
        order.push((before, id.clone()));
        let (session, text) = (envelope.event.session_key().to_string(), envelope.event.text());
        rows.insert(id.clone(), EventRow { id, session, text, outcome: None, reason: None, attempts: 0 });
    }
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| line.target == journal_line::EVENT) {
        let id = line.text("event_id");
        // What has no identity is an entry of its own each time.
        let key = if id.is_empty() { format!("line {index}") } else { id.clone() };
        let row = rows.entry(key.clone()).or_insert_with(|| {
            order.push((index, key));
            EventRow {
                id,
                session: line.text("session"),
                text: String::new(),
                outcome: None,
                reason: None,
                attempts: 0,
            }
        });
        row.outcome = Some(line.text("outcome"));
        row.reason = Some(line.text("reason")).filter(|reason| !reason.is_empty());
        row.attempts = u32::try_from(line.number("attempts").unwrap_or(0)).unwrap_or(u32::MAX);
    }
    for row in rows.values_mut().filter(|row| row.outcome.is_none()) {
        let Some(marker) = store.marker(&EventId::from_stored(row.id.clone())).await? else { continue };
        let (outcome, reason) = match marker.outcome() {
            Outcome::Failed { reason: Failure::Dead } => ("dead", Some(Failure::Dead.as_str())),
            Outcome::Failed { reason } => ("failed", Some(reason.as_str())),
            Outcome::Stopped => ("committed", Some("stopped")),
            Outcome::Reset => ("committed", Some("reset")),
            Outcome::Answered => ("committed", Some("answered")),
            Outcome::Merged { .. } => ("committed", Some("merged")),
            Outcome::Replied | Outcome::Unknown => ("committed", None),
        };
        row.outcome = Some(outcome.to_owned());
        row.reason = reason.map(str::to_owned);
    }
    order.sort_by_key(|(position, _)| *position);
    Ok(order.into_iter().filter_map(|(_, id)| rows.remove(&id)).collect())
}

/// Every start of a scripted tool, and every call that came to something without one. At one instant the order is that
/// of the log, which has a line for every call that ended.
fn tool_runs(world: &World, lines: &[Line], start: Millis) -> Vec<ToolRun> {
    let mut starts = world.tools.starts();
    let known: BTreeSet<String> = starts.iter().map(|started| started.key.clone()).collect();
    let mut runs: Vec<(Millis, ToolRun)> = Vec::new();
    for line in lines.iter().filter(|line| line.target == journal_line::TOOL) {
        let key = line.text("key");
        let (ended, others): (Vec<_>, Vec<_>) = starts.into_iter().partition(|started| started.key == key);
        starts = others;
        runs.extend(ended.into_iter().map(|started| tool_run(started, start)));
        if !known.contains(&key) {
            let run = ToolRun {
                at: Seconds::between(start, line.at),
                session: line.text("session"),
                name: line.text("name"),
                input: Value::Null,
                key,
                outcome: line.text("outcome"),
            };
            runs.push((line.at, run));
        }
    }
    runs.extend(starts.into_iter().map(|started| tool_run(started, start)));
    runs.sort_by_key(|(at, _)| *at);
    runs.into_iter().map(|(_, run)| run).collect()
}

fn tool_run(started: Start, start: Millis) -> (Millis, ToolRun) {
    let run = ToolRun {
        at: Seconds::between(start, started.at),
        session: started.session,
        name: started.name,
        input: started.input,
        key: started.key,
        outcome: started.outcome.unwrap_or("unknown").to_owned(),
    };
    (started.at, run)
}

/// What people were asked, those that were asked first in front.
async fn approvals(store: &Store) -> Result<Vec<ApprovalRow>, StoreError> {
    let mut approvals = store.approvals(LIMIT).await?;
    approvals.sort_by_key(|approval| approval.asked_at);
    let row = |approval: turnlock_store::approvals::Approval| ApprovalRow {
        session: approval.session.to_string(),
        tool: approval.tool,
        state: approval.state.as_str(),
        decided_by: approval.decided_by,
    };
    Ok(approvals.into_iter().map(row).collect())
}

fn jobs(lines: &[Line]) -> Vec<JobRow> {
    let jobs = lines.iter().filter(|line| line.target == journal_line::JOB);
    jobs.map(|line| JobRow {
        kind: line.text("kind"),
        session: line.text("session"),
        generation: line.number("generation").unwrap_or(0),
        from: line.number("from").unwrap_or(0),
        to: line.number("to"),
        outcome: Some(line.text("outcome")),
        attempts: u32::try_from(line.number("attempts").unwrap_or(0)).unwrap_or(u32::MAX),
    })
    .collect()
}

async fn ledger(store: &Store) -> Result<Vec<Value>, StoreError> {
    let mut ledgers = store.ledgers(LIMIT).await?;
    ledgers.sort_by(|a, b| (a.at(), a.event()).cmp(&(b.at(), b.event())));
    let parts = |ledger: &turnlock_store::ledger::Ledger| -> Vec<Value> {
        let part = |part: &turnlock_store::ledger::LedgerPart| json!({"state": part.state(), "message_ids": part.message_ids()});
        ledger.parts().iter().map(part).collect()
    };
    Ok(ledgers
        .iter()
        .map(|ledger| json!({"event": ledger.event(), "state": ledger.state(), "parts": parts(ledger)}))
        .collect())
}

fn observed(lines: &[Line], start: Millis) -> Vec<Value> {
    let observed = lines.iter().filter(|line| line.target == observers::OUTBOUND);
    observed
        .map(|line| {
            json!({"at": Seconds::between(start, line.at), "event_id": line.text("event_id"),
                "caused_by": line.text("caused_by"), "channel": line.text("channel"), "kind": line.text("kind"),
                "is_final": line.fields.get("is_final")})
        })
        .collect()
}

async fn dead(store: &Store) -> Result<Vec<DeadRow>, StoreError> {
    let items = store.dead_items(LIMIT).await?;
    let row = |item: turnlock_store::dead::DeadItem| DeadRow { event: item.event_id.to_string(), reason: item.reason };
    Ok(items.into_iter().rev().map(row).collect())
}

fn log(line: &Line, start: Millis) -> LogRow {
    LogRow {
        at: Seconds::between(start, line.at),
        level: line.level.as_str().to_lowercase(),
        event_id: Some(line.text("event_id")).filter(|id| !id.is_empty()),
        message: line.text("message"),
    }
}

/// What the queues still hold, and how.
fn unsettled(world: &World, parked: &Parked) -> Vec<String> {
    let mut left = Vec::new();
    for queue in world.queues.all() {
        for held in queue.contents().unwrap_or_default() {
            let state = match held.state {
                MessageState::InFlight { .. } if parked.holds(queue, &held) => "sleeps until a person decides",
                MessageState::Waiting if parked.holds(queue, &held) => "waits behind it",
                MessageState::Waiting => "waits",
                MessageState::Delayed { .. } => "is delayed",
                MessageState::InFlight { .. } => "is in flight",
            };
            let group = held.record.group.as_deref().unwrap_or("no group");
            left.push(format!("{}: message {} of {group} {state}", queue.settings().name, held.record.message_id));
        }
    }
    left
}
