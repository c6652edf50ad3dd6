//! `GET /v1/sessions/{key}/messages`: what was said in a session's present conversation, newest page first, oldest
//! message of the page first. Reasoning is left out, whoever asks. `POST /v1/sessions/{key}/stop` is what `/stop` is in a
//! chat, for callers whose session it is and for approvers.

use serde_json::{Value, json};
use turnlock_channels::IngressResponse;
use turnlock_domain::envelope::Position;
use turnlock_domain::message::Block;
use turnlock_domain::session::SessionKey;
use turnlock_store::StoreError;
use turnlock_store::history::StoredTurn;

use super::{Api, Scope, not_found, number};
use crate::decisions;

/// The most messages of one page.
const MAX_PAGE: u64 = 100;
/// The messages of a page that does not say.
const PAGE: u64 = 20;
/// How many messages before a page are read, so that the turn in which it begins is whole.
const SLACK: u64 = 64;

impl Api {
    pub(super) async fn get_messages(
        &self,
        scope: &Scope,
        session: &SessionKey,
        query: &str,
    ) -> Result<IngressResponse, StoreError> {
        if !scope.sees(session) {
            return Ok(not_found());
        }
        let Some(head) = self.store.head(session).await? else { return Ok(not_found()) };
        let limits = number(query, "limit", (1, MAX_PAGE), PAGE)
            .and_then(|limit| Ok((limit, number(query, "before", (0, u64::MAX), head.message_count)?)));
        let (limit, before) = match limits {
            Ok((limit, before)) => (limit, before.min(head.message_count)),
            Err(answer) => return Ok(answer),
        };
        let turns = self.turns(session, head.generation, limit, before).await?;
        let mut messages: Vec<_> = turns.iter().flat_map(numbered).filter(|(index, _)| *index < before).collect();
        let surplus = messages.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
        messages.drain(..surplus);
        let first = messages.first().map_or(0, |(index, _)| *index);
        let shown: Vec<Value> = messages.into_iter().map(|(_, message)| message).collect();
        Ok(IngressResponse::json(
            200,
            &json!({
                "session": session,
                "generation": head.generation,
                "messages": shown,
                "before": (first > 0).then_some(first),
            }),
        ))
    }

    /// Stops what was sent to the session before now. It is stored when this is answered.
    pub(super) async fn post_stop(&self, scope: &Scope, session: &SessionKey) -> Result<IngressResponse, StoreError> {
        let may_stop = scope.sees(session) || self.policy.is_approver(&scope.person());
        // A session that never was is not made by a stop.
        if !may_stop || self.store.head(session).await?.is_none() {
            return Ok(not_found());
        }
        let position = Position::new(self.clock.now_ms(), &self.ids.next());
        let head = self.store.stop(session, &position).await?;
        decisions::wake(&*self.admission.inbound, &head).await;
        Ok(IngressResponse::json(202, &json!({ "session": session, "running": head.unfinished.is_some() })))
    }

    /// The turns that hold the page, and some before it.
    async fn turns(
        &self,
        session: &SessionKey,
        generation: u32,
        limit: u64,
        before: u64,
    ) -> Result<Vec<StoredTurn>, StoreError> {
        let from = before.saturating_sub(limit + SLACK);
        let most = i32::try_from(limit + SLACK).unwrap_or(i32::MAX);
        let turns = self.store.oldest_turns(session, generation, from, most).await?;
        if turns.iter().any(|turn| turn.first < before) || before == 0 {
            return Ok(turns);
        }
        // One turn longer than all that: it begins somewhere before.
        self.store.history(session, generation, 0).await
    }
}

/// A turn's messages with their index in the session, as an answer shows them.
fn numbered(turn: &StoredTurn) -> impl Iterator<Item = (u64, Value)> + '_ {
    (turn.first..).zip(&turn.messages).map(|(index, message)| {
        let shown = json!({
            "index": index,
            "role": message.role,
            "content": shown(&message.content),
            "event_id": turn.event_id,
            "at": turn.at.timestamp(),
        });
        (index, shown)
    })
}

/// The blocks that people may see.
fn shown(content: &[Block]) -> Vec<Block> {
    let blocks = content.iter().filter_map(|block| match block {
        Block::Text { .. } | Block::Image(_) | Block::File(_) | Block::ToolUse { .. } => Some(block.clone()),
        Block::ToolResult { tool_use_id, content, is_error } => {
            Some(Block::ToolResult { tool_use_id: tool_use_id.clone(), content: shown(content), is_error: *is_error })
        }
        Block::Reasoning(_) | Block::Unknown => None,
    });
    blocks.collect()
}
