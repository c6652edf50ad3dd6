//! Which calls run at once, which are asked of a person, which do not run; and who may answer.
//!
//! By default what reads or writes runs, and what makes something happen outside is asked for. Rules of the configuration
//! come before that. Where nobody waits for the answer nobody can be asked: what would be asked does not run.

use std::collections::BTreeSet;
use std::time::Duration;

use turnlock_config::{ApprovalAction, ApprovalRule, Config};
use turnlock_domain::envelope::Envelope;
use turnlock_tools::{Risk, ToolInfo};

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It runs.
    Allow,
    /// A person is asked first.
    Ask,
    /// It does not run; the model is told so.
    Deny,
}

/// Which calls run at once, which are asked for, and who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    approvers: BTreeSet<String>,
    rules: Vec<ApprovalRule>,
    expiry: Duration,
}

impl Policy {
    /// The policy of a configuration.
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        Self {
            approvers: config.approvals.approvers.clone(),
            rules: config.approvals.rules.clone(),
            expiry: config.agent.limits.approval_expiry,
        }
    }

    /// What happens to a call of `tool` in the turn of `envelope`: the first rule that fits decides, else the tool's risk.
    #[must_use]
    pub fn action(&self, tool: &ToolInfo, envelope: &Envelope) -> Action {
        let action = self.rules.iter().find(|rule| fits(rule, tool, envelope)).map(|rule| match rule.action {
            ApprovalAction::Allow => Action::Allow,
            ApprovalAction::Ask => Action::Ask,
            ApprovalAction::Deny => Action::Deny,
        });
        match action.unwrap_or_else(|| by_risk(tool.risk)) {
            Action::Ask if envelope.unattended => Action::Deny,
            action => action,
        }
    }

    /// Whether `who` (as [`turnlock_domain::event::InboundEvent::person`] says it) may decide about a call of a turn that
    /// `asked_by` caused: a listed approver, or who caused it. Whoever holds an API key vouches for the people it names. Where a chat caused it (Telegram's
    /// anonymous administrators write in its name, and press buttons in their own) nobody else can: it is no one person.
    #[must_use]
    pub fn may_decide(&self, who: &str, asked_by: &str) -> bool {
        let asked = |rest: &str| rest.is_empty() || rest.starts_with(':');
        // A channel alone is nobody.
        let is_asker = || !is_chat(asked_by) && asked_by.strip_prefix(who).is_some_and(asked);
        who.contains(':') && (self.is_approver(who) || is_asker())
    }

    /// Whether `who` may decide whatever is asked, and by whom.
    #[must_use]
    pub fn is_approver(&self, who: &str) -> bool {
        self.approvers.contains(who)
    }

    /// How long a decision may take.
    #[must_use]
    pub fn expiry(&self) -> Duration {
        self.expiry
    }
}

impl Default for Policy {
    /// That of an empty configuration.
    fn default() -> Self {
        Self::from_config(&Config::default())
    }
}

/// Whether a person's name is that of a chat: only people have positive ids (Telegram Bot API, "Chat").
fn is_chat(person: &str) -> bool {
    let last = person.rsplit(':').next().unwrap_or_default();
    person.starts_with("telegram:") && last.starts_with('-')
}

fn by_risk(risk: Risk) -> Action {
    match risk {
        Risk::Read | Risk::Write => Action::Allow,
        Risk::Execute | Risk::Dangerous => Action::Ask,
    }
}

fn fits(rule: &ApprovalRule, tool: &ToolInfo, envelope: &Envelope) -> bool {
    let event = &envelope.event;
    let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
    is(&rule.tool, &tool.spec.name)
        && is(&rule.risk, tool.risk.as_str())
        && is(&rule.channel, event.channel.as_str())
        && is(&rule.sender, &event.person())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnlock_domain::event::InboundEvent;
    use turnlock_tools::ToolSpec;

    use super::*;

    fn policy(approvals: &str) -> Policy {
        Policy::from_config(&Config::parse(approvals, &|_| None).expect("a configuration"))
    }

    fn tool(name: &str, risk: Risk) -> ToolInfo {
        let spec = ToolSpec { name: name.to_owned(), description: String::new(), schema: json!({ "type": "object" }) };
        ToolInfo { spec, risk, keyed: false, timeout: Duration::from_secs(1), foreign: false }
    }

    fn envelope(channel: &str, account: &str, sender: &str) -> Envelope {
        let event = json!({ "event_id": "e", "channel": channel, "account": account, "sender_id": sender,
            "timestamp": "2026-11-30T12:00:00Z" });
        let envelope = json!({ "event": event, "accepted_at": 0, "position": "0#1" });
        serde_json::from_value(envelope).expect("an envelope")
    }

    fn event(channel: &str, account: &str, sender: &str) -> InboundEvent {
        envelope(channel, account, sender).event
    }

    #[test]
    fn without_a_rule_the_risk_decides() {
        let table = [
            (Risk::Read, Action::Allow),
            (Risk::Write, Action::Allow),
            (Risk::Execute, Action::Ask),
            (Risk::Dangerous, Action::Ask),
        ];
        for (risk, action) in table {
            let attended = envelope("telegram", "main", "1");
            assert_eq!(Policy::default().action(&tool("t", risk), &attended), action, "{risk:?}");
        }
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let policy = policy(
            r#"
            [[approvals.rules]]
            tool = "deploy"
            sender = "slack:U1"
            action = "allow"
            [[approvals.rules]]
            tool = "deploy"
            channel = "telegram"
            action = "deny"
            [[approvals.rules]]
            risk = "write"
            action = "ask"
            "#,
        );
        let deploy = tool("deploy", Risk::Dangerous);
        assert_eq!(policy.action(&deploy, &envelope("slack", "main", "U1")), Action::Allow);
        assert_eq!(policy.action(&deploy, &envelope("slack", "other", "U1")), Action::Ask, "another app's U1");
        assert_eq!(policy.action(&deploy, &envelope("telegram", "main", "5")), Action::Deny);
        assert_eq!(policy.action(&tool("note", Risk::Write), &envelope("cli", "main", "main")), Action::Ask);
        assert_eq!(policy.action(&tool("look", Risk::Read), &envelope("telegram", "main", "5")), Action::Allow);
    }

    #[test]
    fn a_turn_for_which_nobody_waits_never_asks() {
        let nobody = Envelope { unattended: true, ..envelope("cron", "daily", "daily") };
        assert_eq!(Policy::default().action(&tool("deploy", Risk::Execute), &nobody), Action::Deny);
        let allowed = policy("[[approvals.rules]]\nchannel = \"cron\"\naction = \"allow\"");
        assert_eq!(allowed.action(&tool("deploy", Risk::Execute), &nobody), Action::Allow);
    }

    /// Case se-approver-any: who pressed must be an approver or have caused the turn.
    #[test]
    fn se_approver_any_only_approvers_and_the_asker_decide() {
        let policy = policy("[approvals]\napprovers = [\"telegram:7\", \"gateway:ops\"]");
        let asked = "telegram:1000001";
        for (who, may) in [
            ("telegram:1000001", true),
            ("telegram:7", true),
            ("gateway:ops", true),
            ("telegram:1000777", false),
            ("telegram:100000", false),
            ("slack:1000001", false),
            ("", false),
            ("telegram", false),
        ] {
            assert_eq!(policy.may_decide(who, asked), may, "{who:?}");
        }
        assert!(!policy.may_decide("", ""), "nobody is nobody's asker");
    }

    /// Anybody who may write in the name of a chat would be its asker.
    #[test]
    fn where_a_chat_asks_only_approvers_decide() {
        let policy = policy("[approvals]\napprovers = [\"telegram:7\"]");
        for chat in ["telegram:-1001", "telegram:other:-1001"] {
            assert!(!policy.may_decide(chat, chat) && policy.may_decide("telegram:7", chat), "{chat}");
        }
        assert!(Policy::default().may_decide("gateway:shop:-5", "gateway:shop:-5"));
    }

    #[test]
    fn a_key_decides_for_those_it_names_and_they_for_themselves() {
        let (policy, asked) = (Policy::default(), event("gateway", "shop", "alice").person());
        assert!(policy.may_decide("gateway:shop", &asked) && policy.may_decide("gateway:shop:alice", &asked));
        for other in ["gateway:sho", "gateway:shop:bob", "gateway:shop:alice2", "gateway:main:alice", "gateway"] {
            assert!(!policy.may_decide(other, &asked), "{other}");
        }
    }

    #[test]
    fn no_two_people_have_one_name() {
        let names = [
            event("telegram", "main", "5"),
            event("telegram", "other", "5"),
            event("slack", "main", "U5"),
            event("slack", "other", "U5"),
            event("gateway", "ops", "ops"),
            event("gateway", "main", "ops"),
            event("gateway", "main", "main"),
            event("gateway", "ops", "a:b"),
            event("cli", "main", "main"),
            event("webhook", "main", "ops"),
        ]
        .map(|event| event.person());
        assert_eq!(
            names,
            [
                "telegram:5",
                "telegram:other:5",
                "slack:U5",
                "slack:other:U5",
                "gateway:ops",
                "gateway:main:ops",
                "gateway:main",
                "gateway:ops:a%3Ab",
                "cli:main",
                "webhook:main:ops",
            ]
        );
        assert_eq!(event("telegram", "main", "").person(), "");
    }
}
