//! The platforms' budgets: how many calls they take in how long, before they say 429.
//!
//! The platforms publish averages and say that short bursts are fine; how many calls a burst may have, nobody says. Here
//! an average of one a second is five calls in any five seconds ([`A_SECOND`]): the parts of a long reply pass at once,
//! a reply that is edited as fast as its model writes does not. What is published by the minute is any minute, with no
//! burst above it. A caller that keeps within these keeps within the platforms'.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use turnlock_domain::event::Channel;
use turnlock_domain::time::Millis;

/// One call a second on average, five at once: Telegram for a chat (bots FAQ, "My bot is hitting limits"), Slack for the
/// posts of a channel (docs.slack.dev, "Rate limits").
pub(super) const A_SECOND: Budget = Budget { calls: 5, per: Duration::from_secs(5) };

/// So many calls in any span of this length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Budget {
    pub(super) calls: usize,
    pub(super) per: Duration,
}

impl Budget {
    pub(super) const fn a_minute(calls: usize) -> Self {
        Self { calls, per: Duration::from_secs(60) }
    }

    pub(super) const fn at_once(calls: usize) -> Self {
        Self { calls, per: Duration::from_secs(1) }
    }
}

/// A budget that a call draws on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Limit {
    /// Whose it is, within its platform.
    pub(super) name: String,
    pub(super) budget: Budget,
}

/// What was spent of every budget: the times of the newest calls, as many as the budget has.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    spent: BTreeMap<(Channel, String), (Budget, VecDeque<Millis>)>,
}

impl Budgets {
    /// How long until a call that draws on `limits` is taken; none = now.
    pub(super) fn wait(&self, channel: Channel, limits: &[Limit], now: Millis) -> Option<Duration> {
        let waits = limits.iter().filter_map(|limit| {
            let (_, calls) = self.spent.get(&(channel, limit.name.clone()))?;
            let oldest = calls.front().filter(|_| calls.len() >= limit.budget.calls)?;
            Some((*oldest + limit.budget.per).since(now)).filter(|wait| !wait.is_zero())
        });
        waits.max()
    }

    /// Counts a call that was taken.
    pub(super) fn spend(&mut self, channel: Channel, limits: &[Limit], now: Millis) {
        self.spent.retain(|_, (budget, calls)| calls.back().is_some_and(|newest| *newest + budget.per > now));
        for limit in limits {
            let key = (channel, limit.name.clone());
            let (_, calls) = self.spent.entry(key).or_insert_with(|| (limit.budget, VecDeque::new()));
            if calls.len() >= limit.budget.calls {
                calls.pop_front();
            }
            calls.push_back(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(name: &str, budget: Budget) -> Limit {
        Limit { name: name.to_owned(), budget }
    }

    #[test]
    fn a_budget_is_for_any_span_of_its_length() {
        let mut budgets = Budgets::default();
        let limits = [limit("chat", A_SECOND)];
        let mut refused = Vec::new();
        for at in [0, 0, 3_000, 3_000, 3_000, 4_000, 5_000, 5_000, 5_000, 7_999, 8_000] {
            match budgets.wait(Channel::Telegram, &limits, Millis(at)) {
                Some(wait) => refused.push((at, u64::try_from(wait.as_millis()).unwrap())),
                None => budgets.spend(Channel::Telegram, &limits, Millis(at)),
            }
        }
        assert_eq!(refused, [(4_000, 1_000), (5_000, 3_000), (7_999, 1)]);
    }

    #[test]
    fn a_call_is_taken_when_all_of_its_budgets_take_it() {
        let mut budgets = Budgets::default();
        let (chat, group) = (limit("chat", A_SECOND), limit("group", Budget::a_minute(2)));
        for _ in 0..2 {
            budgets.spend(Channel::Telegram, &[chat.clone(), group.clone()], Millis(0));
        }
        let wait = |limits: &[Limit]| budgets.wait(Channel::Telegram, limits, Millis(20_000));
        assert_eq!(wait(&[chat.clone(), group.clone()]), Some(Duration::from_secs(40)));
        assert_eq!(wait(&[chat]), None);
        assert_eq!(budgets.wait(Channel::Slack, &[group], Millis(0)), None, "a platform knows its own alone");
    }

    #[test]
    fn what_is_over_is_forgotten() {
        let mut budgets = Budgets::default();
        for chat in 0..1_000 {
            budgets.spend(Channel::Telegram, &[limit(&chat.to_string(), A_SECOND)], Millis(i64::from(chat) * 1_000));
        }
        assert_eq!(budgets.spent.len(), 5);
    }
}
