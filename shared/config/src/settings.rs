//! What can be set, as plain structs. Each type's `Default` is what a file without it says.

mod accounts;
mod agent;
mod approvals;
mod demo;
mod model;
mod tools;

pub use accounts::{
    Account, Allow, Cron, Gateway, GatewayKey, Groups, ReplyTo, Server, Slack, Telegram, Verify, Webhook,
};
pub use agent::{Agent, Instruction, Limits, WhileBusy};
pub use approvals::{ApprovalAction, ApprovalRule, Approvals};
pub use demo::DemoSecrets;
pub(crate) use demo::demo;
pub use model::{Capability, Guardrail, ModelSettings, Price, Provider, Thinking, millionths};
pub use tools::{LocalTarget, ToolSettings, ToolTarget};
pub(crate) use tools::{object_schema, read_schemas};
