//! The session rate: one bucket a session, a number and the ids of the events of the current burst.
//!
//! An idle bucket costs one conditional update, an event in a burst two. An event that was counted is counted once: its
//! id stands in the bucket for as long as the burst lasts, so a redelivery and a repetition after a lost answer find
//! themselves. Two that race for the last place are ordered by the condition on the number; the loser reads the winner's
//! bucket and decides again, at most as often as a burst has places.
//!
//! Refusals are answered once a window on chat channels: the first refusal says so, and its redelivery again. A window
//! ends when the bucket has been idle, or after [`NOTICE_WINDOW`].

use std::time::Duration;

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;
use serde::{Deserialize, Serialize};
use turnlock_domain::ids::EventId;
use turnlock_domain::rate::{Decision, Rate, decide};
use turnlock_domain::session::SessionKey;
use turnlock_domain::time::Millis;

use crate::error::StoreError;
use crate::item::{from_item, ms, n, s};
use crate::request::Conditional;
use crate::{Store, keys};

/// The longest time in which one notice answers all refusals.
pub const NOTICE_WINDOW: Duration = Duration::from_secs(60);
/// How long a bucket is kept: longer than platforms redeliver.
const BUCKET_LIFETIME: Duration = Duration::from_secs(2 * 24 * 3600);
/// The most event ids that a bucket keeps.
const MAX_EVENTS: usize = 64;

/// Whether an event may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It may, and is counted.
    Allowed,
    /// It may, and was counted before.
    AllowedBefore,
    /// It may not.
    Limited {
        /// When the next one may.
        retry_after: Duration,
        /// Whether this refusal is the one that is answered in a chat.
        notice: bool,
    },
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Bucket {
    tat: Millis,
    events: Vec<String>,
    noticed_at: Option<Millis>,
    noticed_event: Option<String>,
}

impl Store {
    /// Counts `event` against its session's rate.
    ///
    /// # Errors
    /// [`StoreError`]; whether the event passes then is the caller's policy, and asking again is harmless.
    pub async fn take(
        &self,
        session: &SessionKey,
        event: &EventId,
        rate: Rate,
        now: Millis,
    ) -> Result<Taken, StoreError> {
        if rate.is_off() {
            return Ok(Taken::Allowed);
        }
        let mut outcome = self.update(self.take_idle(session, event, rate, now)).await?;
        // Who loses a race lost it to an event that took a place: the places end first.
        let mut tries = rate.burst_events().min(MAX_EVENTS);
        loop {
            let Conditional::Failed(old) = outcome else { return Ok(Taken::Allowed) };
            let bucket: Bucket = from_item("rate bucket", old.unwrap_or_default())?;
            if bucket.events.iter().any(|counted| counted == event.as_str()) {
                return Ok(Taken::AllowedBefore);
            }
            match decide(rate, Some(bucket.tat), now) {
                Decision::Limited { retry_after } => {
                    let notice = self.notice(session, event, &bucket, now).await?;
                    return Ok(Taken::Limited { retry_after, notice });
                }
                Decision::Allowed { .. } if tries == 0 => {
                    return Ok(Taken::Limited { retry_after: rate.idle_tat(now).since(now), notice: false });
                }
                Decision::Allowed { tat } => {
                    tries -= 1;
                    outcome = self.update(self.take_busy(session, event, rate, &bucket, tat)).await?;
                }
            }
        }
    }

    fn take_idle(&self, session: &SessionKey, event: &EventId, rate: Rate, now: Millis) -> UpdateItemFluentBuilder {
        let tat = rate.idle_tat(now);
        self.bucket_update(session)
            .update_expression("SET tat = :tat, events = :events, expires_at = :ttl REMOVE noticed_at, noticed_event")
            .condition_expression("attribute_not_exists(tat) OR (tat <= :now AND NOT contains(events, :event))")
            .expression_attribute_values(":tat", ms(tat))
            .expression_attribute_values(":events", AttributeValue::L(vec![s(event.as_str())]))
            .expression_attribute_values(":ttl", n(tat.ttl(BUCKET_LIFETIME).0))
            .expression_attribute_values(":now", ms(now))
            .expression_attribute_values(":event", s(event.as_str()))
    }

    fn take_busy(
        &self,
        session: &SessionKey,
        event: &EventId,
        rate: Rate,
        bucket: &Bucket,
        tat: Millis,
    ) -> UpdateItemFluentBuilder {
        // As many as a burst has places, twice: a redelivery may come a little late.
        let keep = rate.burst_events().saturating_mul(2).min(MAX_EVENTS) - 1;
        let kept = &bucket.events[bucket.events.len().saturating_sub(keep)..];
        let events = kept.iter().map(s).chain([s(event.as_str())]).collect();
        self.bucket_update(session)
            .update_expression("SET tat = :tat, events = :events, expires_at = :ttl")
            .condition_expression("tat = :old")
            .expression_attribute_values(":tat", ms(tat))
            .expression_attribute_values(":events", AttributeValue::L(events))
            .expression_attribute_values(":ttl", n(tat.ttl(BUCKET_LIFETIME).0))
            .expression_attribute_values(":old", ms(bucket.tat))
    }

    /// Whether this refusal is the window's first.
    async fn notice(
        &self,
        session: &SessionKey,
        event: &EventId,
        bucket: &Bucket,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let answered = bucket.noticed_at.is_some_and(|at| at > now - NOTICE_WINDOW);
        if answered {
            return Ok(bucket.noticed_event.as_deref() == Some(event.as_str()));
        }
        let request = self
            .bucket_update(session)
            .update_expression("SET noticed_at = :now, noticed_event = :event")
            .condition_expression("attribute_not_exists(noticed_at) OR noticed_at <= :window")
            .expression_attribute_values(":now", ms(now))
            .expression_attribute_values(":event", s(event.as_str()))
            .expression_attribute_values(":window", ms(now - NOTICE_WINDOW));
        match self.update(request).await? {
            Conditional::Met(_) => Ok(true),
            Conditional::Failed(old) => {
                let bucket: Bucket = from_item("rate bucket", old.unwrap_or_default())?;
                Ok(bucket.noticed_event.as_deref() == Some(event.as_str()))
            }
        }
    }

    fn bucket_update(&self, session: &SessionKey) -> UpdateItemFluentBuilder {
        let (pk, sk) = keys::bucket(session);
        self.update_item(pk, sk).return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
    }
}
