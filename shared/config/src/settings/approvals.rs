//! What a tool may do without asking, and who is asked.

use std::collections::BTreeSet;

/// What a tool may do without asking, and who is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Approvals {
    /// Who may decide besides whoever caused the turn, each as `channel:sender` or `channel:account:sender`.
    pub approvers: BTreeSet<String>,
    /// The first that fits a call decides about it; where none does, its risk does.
    pub rules: Vec<ApprovalRule>,
}

/// A rule about calls. What it does not name fits every call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRule {
    /// The tool.
    pub tool: Option<String>,
    /// The tool's risk, by its word: `read`, `write`, `execute` or `dangerous`.
    pub risk: Option<String>,
    /// The channel of the message that led to the call.
    pub channel: Option<String>,
    /// Who sent it, as `channel:sender` or `channel:account:sender`.
    pub sender: Option<String>,
    /// What happens to such a call.
    pub action: ApprovalAction,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalAction {
    /// It runs.
    Allow,
    /// Somebody is asked first.
    Ask,
    /// It does not run.
    Deny,
}
