//! What can be asked about an account's pairings, and the answer as a value, so that it can go over loopback.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::anyhow;
use serde::{Deserialize, Serialize};
use turnlock_app::pairing::{self, Code};
use turnlock_store::Store;
use turnlock_store::pairing::Offered;

use super::Account;

/// How long somebody who was removed may still be let in.
pub(crate) const REMOVED_WITHIN: Duration = pairing::REMEMBERED;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Asked {
    /// A code.
    Offer,
    /// Who is paired.
    List,
    /// That this sender no longer is.
    Remove(String),
}

/// The answer. It may hold a code: it is shown, and not logged.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Pairings {
    /// The code that waits now, as it is shown.
    Code(String),
    /// No code: too many are paired.
    Full,
    /// Sender ids, and since when.
    List(BTreeMap<String, String>),
    /// This sender is no longer paired.
    Removed(String),
    /// This sender was not.
    Unknown(String),
}

/// Answers over the store that has the pairings.
pub(crate) async fn answer(store: &Store, account: &Account, asked: &Asked) -> anyhow::Result<Pairings> {
    let Account { channel, name } = account;
    Ok(match asked {
        Asked::Offer => {
            let mut random = [0; 12];
            getrandom::fill(&mut random).map_err(|error| anyhow!("the system gives no randomness: {error}"))?;
            let code = Code::from_random(random);
            match pairing::offer(store, *channel, name, &code, store.clock().now_ms()).await? {
                Offered::Waits => Pairings::Code(code.to_string()),
                Offered::Full => Pairings::Full,
            }
        }
        Asked::List => {
            let paired = store.pairing(*channel, name).await?.paired;
            let since = paired.into_iter().map(|(sender, paired)| (sender, format!("{:.0}", paired.at.timestamp())));
            Pairings::List(since.collect())
        }
        Asked::Remove(sender) => {
            if !store.pairing(*channel, name).await?.paired.contains_key(sender) {
                return Ok(Pairings::Unknown(sender.clone()));
            }
            store.remove_pairing(*channel, name, sender).await?;
            Pairings::Removed(sender.clone())
        }
    })
}
