//! What delivery knows of a chat: when its next frame may be shown, how long the platform wants to be left alone, whether
//! the chat is gone for us, and where it moved to. One item a chat, and one of the same kind for a budget that several chats
//! share. One that says where a chat went, or that it is gone, is kept for as long as the chat may come back; any other
//! ends some days after the last frame.
//!
//! Delivery handles a chat's events in order, so two workers meet here only when one was replaced: the slot is then the
//! one's that took it. A refusal that arrives after the person came back does not undo the return: both are compared by
//! their time.

use std::time::Duration;

use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;
use serde::{Deserialize, Serialize};
use turnlock_domain::time::Millis;

use crate::error::StoreError;
use crate::item::{from_item, ms, n, s};
use crate::request::Conditional;
use crate::{CHAT_LIFETIME, Store, keys, write};

/// A chat as delivery knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChatState {
    /// When the next frame may be shown in this chat. Finals do not wait for it.
    pub next_at: Millis,
    /// Until when the platform asked to be left alone for this chat: nothing is sent before.
    pub blocked_until: Millis,
    /// Why nothing more can be sent to it: a short word (`blocked`, `kicked`, `not_found`).
    pub gone: Option<String>,
    /// The chat, by our name for it, that this one moved to.
    pub alias: Option<String>,
    /// The chat, by our name for it, that moved here: its conversation goes on under that name.
    pub former: Option<String>,
    /// Who took the last slot.
    slot: Option<String>,
}

/// What reserving a slot came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slot {
    /// The platform may be called now.
    Free,
    /// Not before then.
    Wait(Millis),
    /// Nothing can be sent to this chat, and why.
    Gone(String),
}

/// The platform may be called for a frame.
const FREE: &str = "(attribute_not_exists(next_at) OR next_at <= :now) AND attribute_not_exists(gone) \
                    AND (attribute_not_exists(blocked_until) OR blocked_until <= :now)";
/// Nothing is known of the chat that has to stay known.
const PASSING: &str = " AND attribute_not_exists(alias) AND attribute_not_exists(former)";

impl Store {
    /// What is known of `chat` (as `OutboundEvent::chat` names it).
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn chat(&self, chat: &str) -> Result<Option<ChatState>, StoreError> {
        let (pk, sk) = keys::chat(chat);
        let item = self.get(self.get_item(pk, sk)).await?;
        write::live(item, self.clock().now_ms()).map(|item| from_item("chat", item)).transpose()
    }

    /// Takes the right to show one frame in `chat` now; the next slot is `interval` later.
    ///
    /// # Errors
    /// [`StoreError`]; a slot that was taken by a lost request passes by itself.
    pub async fn reserve_slot(&self, chat: &str, now: Millis, interval: Duration) -> Result<Slot, StoreError> {
        let name = self.write_name();
        let reserve = |set: &str, condition: &str| {
            let (pk, sk) = keys::chat(chat);
            self.update_item(pk, sk)
                .update_expression(format!("SET next_at = :next, slot = :slot{set}"))
                .condition_expression(format!("{FREE}{condition}"))
                .expression_attribute_values(":next", ms(now + interval))
                .expression_attribute_values(":now", ms(now))
                .expression_attribute_values(":slot", s(&name))
                .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        };
        let ends = format!(", {} = :ends", keys::TTL);
        let request = reserve(&ends, PASSING).expression_attribute_values(":ends", n(now.ttl(CHAT_LIFETIME).0));
        let Conditional::Failed(old) = self.update(request).await? else { return Ok(Slot::Free) };
        let mut old: ChatState = from_item("chat", old.unwrap_or_default())?;
        if old.alias.is_some() || old.former.is_some() {
            // Where a chat went is not forgotten.
            let Conditional::Failed(last) = self.update(reserve("", "")).await? else { return Ok(Slot::Free) };
            old = from_item("chat", last.unwrap_or_default())?;
        }
        Ok(match old.gone {
            _ if old.slot.as_deref() == Some(&name) => Slot::Free,
            Some(reason) => Slot::Gone(reason),
            None => Slot::Wait(old.next_at.max(old.blocked_until)),
        })
    }

    /// No frame is shown in `chat` before then: only ever later.
    ///
    /// # Errors
    /// [`StoreError`]; holding them again is harmless.
    pub async fn hold_frames_until(&self, chat: &str, until: Millis) -> Result<(), StoreError> {
        let (pk, sk) = keys::chat(chat);
        let request = self
            .update_item(pk, sk)
            .update_expression("SET next_at = :until")
            .condition_expression("attribute_not_exists(next_at) OR next_at < :until")
            .expression_attribute_values(":until", ms(until));
        self.update(request).await.map(|_| ())
    }

    /// The platform asked to be left alone for this chat until then: only ever later.
    ///
    /// # Errors
    /// [`StoreError`]; blocking it again is harmless.
    pub async fn block_chat_until(&self, chat: &str, until: Millis) -> Result<(), StoreError> {
        let (pk, sk) = keys::chat(chat);
        let request = self
            .update_item(pk, sk)
            .update_expression("SET blocked_until = :until")
            .condition_expression("attribute_not_exists(blocked_until) OR blocked_until < :until")
            .expression_attribute_values(":until", ms(until));
        self.update(request).await.map(|_| ())
    }

    /// The chat is gone for us (`reason`, never empty): a call that began at `at` was refused, or the platform said so
    /// then. A person who came back later than that, or at the same time, stays.
    ///
    /// # Errors
    /// [`StoreError`]; marking it again is harmless.
    pub async fn mark_chat_gone(&self, chat: &str, reason: &str, at: Millis) -> Result<(), StoreError> {
        let (pk, sk) = keys::chat(chat);
        let request = self
            .update_item(pk, sk)
            .update_expression(format!("SET gone = :reason, gone_at = :at REMOVE {}", keys::TTL))
            .condition_expression(
                "(attribute_not_exists(back_at) OR back_at < :at) AND (attribute_not_exists(gone_at) OR gone_at <= :at)",
            )
            .expression_attribute_values(":reason", s(reason))
            .expression_attribute_values(":at", ms(at));
        self.update(request).await.map(|_| ())
    }

    /// The chat is there again: somebody wrote in it at `at`, or let us in. Who left later than that is gone.
    ///
    /// # Errors
    /// [`StoreError`]; clearing it again is harmless.
    pub async fn clear_chat_gone(&self, chat: &str, at: Millis) -> Result<(), StoreError> {
        let (pk, sk) = keys::chat(chat);
        let request = self
            .update_item(pk, sk)
            .update_expression("SET back_at = :at REMOVE gone, gone_at")
            .condition_expression(
                "(attribute_not_exists(back_at) OR back_at < :at) AND (attribute_not_exists(gone_at) OR gone_at <= :at)",
            )
            .expression_attribute_values(":at", ms(at));
        self.update(request).await.map(|_| ())
    }

    /// `from` is `to` from now on (a group that migrated): what is sent to `from` goes to `to`, and what is said in `to`
    /// goes on where `from` was. A chat is no alias of itself.
    ///
    /// # Errors
    /// [`StoreError`]; storing it again is harmless.
    pub async fn alias_chat(&self, from: &str, to: &str) -> Result<(), StoreError> {
        if from == to {
            return Ok(());
        }
        let note = |chat, field, other| {
            let (pk, sk) = keys::chat(chat);
            let expression = format!("SET {field} = :other REMOVE {}", keys::TTL);
            let request = self.update_item(pk, sk).update_expression(expression);
            self.update(request.expression_attribute_values(":other", s(other)))
        };
        tokio::try_join!(note(from, "alias", to), note(to, "former", from)).map(|_| ())
    }
}
