//! Pairings: people who may talk to an account because they sent it a code that its operator gave them. One item an
//! account: the code that waits, as a digest, and who came in by one.
//!
//! A code is used in the same conditional update that lets its sender in, so of two senders one wins; a lost answer is
//! recognised by the code that stands beside the sender.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use serde::{Deserialize, Serialize};
use turnlock_domain::event::Channel;
use turnlock_domain::time::Millis;

use crate::error::StoreError;
use crate::item::{from_item, ms, n, s};
use crate::request::Conditional;
use crate::{Store, keys};

/// The most people of an account that pairings let in: all of them are read with every message of a stranger. Whoever
/// has more puts a group on the list.
pub const MAX_PAIRED: usize = 100;

/// The pairings of an account.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Pairing {
    /// The digest of the code that waits for its sender.
    pub code: Option<String>,
    /// Until when it waits.
    pub code_until: Option<Millis>,
    /// Who may talk to the account, by sender id.
    pub paired: BTreeMap<String, Paired>,
}

/// Somebody whom a code let in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Paired {
    /// When.
    pub at: Millis,
    /// The digest of the code.
    pub code: String,
}

/// What offering a code came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// It waits for its sender; one that waited before is void.
    Waits,
    /// So many people are paired that no more can be.
    Full,
}

/// What sending a code came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redeemed {
    /// Its sender is paired.
    Paired,
    /// It is not the code that waits, or no longer.
    Refused,
}

impl Pairing {
    /// Whether the code with this digest waits now. Both sides are digests: how long it takes to compare them says
    /// nothing about the code.
    #[must_use]
    pub fn waits_for(&self, digest: &str, now: Millis) -> bool {
        self.code.as_deref() == Some(digest) && self.code_until.is_some_and(|until| until > now)
    }
}

impl Store {
    /// The pairings of an account.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn pairing(&self, channel: Channel, account: &str) -> Result<Pairing, StoreError> {
        let (pk, sk) = keys::pairing(channel, account);
        let item = self.get(self.get_item(pk, sk)).await?;
        item.map_or_else(|| Ok(Pairing::default()), |item| from_item("pairing", item))
    }

    /// Lets the code with this digest wait until then, in the place of one that waits.
    ///
    /// # Errors
    /// [`StoreError`]; offering it again is harmless.
    pub async fn offer_pairing(
        &self,
        channel: Channel,
        account: &str,
        digest: &str,
        until: Millis,
    ) -> Result<Offered, StoreError> {
        let (pk, sk) = keys::pairing(channel, account);
        let request = self
            .update_item(pk, sk)
            .update_expression("SET code = :code, code_until = :until, paired = if_not_exists(paired, :nobody)")
            .condition_expression("attribute_not_exists(paired) OR size(paired) < :most")
            .expression_attribute_values(":code", s(digest))
            .expression_attribute_values(":until", ms(until))
            .expression_attribute_values(":nobody", AttributeValue::M(HashMap::new()))
            .expression_attribute_values(":most", n(MAX_PAIRED));
        Ok(match self.update(request).await? {
            Conditional::Met(_) => Offered::Waits,
            Conditional::Failed(_) => Offered::Full,
        })
    }

    /// Lets `sender` (never empty) in for the code with this digest, if it waits. The code is used up.
    ///
    /// # Errors
    /// [`StoreError`]; redeeming it again for the same sender is harmless.
    pub async fn redeem_pairing(
        &self,
        channel: Channel,
        account: &str,
        sender: &str,
        digest: &str,
        now: Millis,
    ) -> Result<Redeemed, StoreError> {
        let paired = HashMap::from([("at".to_owned(), ms(now)), ("code".to_owned(), s(digest))]);
        let (pk, sk) = keys::pairing(channel, account);
        let request = self
            .update_item(pk, sk)
            .update_expression("SET paired.#sender = :paired REMOVE code, code_until")
            .condition_expression("code = :code AND code_until > :now")
            .expression_attribute_names("#sender", sender)
            .expression_attribute_values(":paired", AttributeValue::M(paired))
            .expression_attribute_values(":code", s(digest))
            .expression_attribute_values(":now", ms(now))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let Conditional::Failed(old) = self.update(request).await? else { return Ok(Redeemed::Paired) };
        let old: Pairing = from_item("pairing", old.unwrap_or_default())?;
        let ours = old.paired.get(sender).is_some_and(|paired| paired.code == digest);
        Ok(if ours { Redeemed::Paired } else { Redeemed::Refused })
    }

    /// Takes back that `sender` (never empty) may talk to the account.
    ///
    /// # Errors
    /// [`StoreError`]; removing it again is harmless.
    pub async fn remove_pairing(&self, channel: Channel, account: &str, sender: &str) -> Result<(), StoreError> {
        let (pk, sk) = keys::pairing(channel, account);
        let request = self
            .update_item(pk, sk)
            .update_expression("REMOVE paired.#sender")
            .condition_expression("attribute_exists(paired.#sender)")
            .expression_attribute_names("#sender", sender);
        self.update(request).await.map(|_| ())
    }
}
