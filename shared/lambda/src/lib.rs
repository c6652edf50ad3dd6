//! Turnlock as Lambda functions: what every one of them does besides its use case. A function's `main` names what it reads
//! and builds its use case; everything else is here.
//!
//! | module | does |
//! |---|---|
//! | [`start`] | the start of a process: environment, configuration, secrets, clients; what is missing ends it |
//! | [`batch`] | a batch of queue messages to a handler, and what it leaves to the event source mapping's answer |
//! | [`http`] | API Gateway's and function URLs' events to requests, and answers back |
//! | [`call`] | direct calls |
//! | `bus` | the observer that copies events to an EventBridge bus |
//! | `aws` | the SDK's settings that all clients share |
//! | `secrets` | Secrets Manager |
//! | `logs` | lines as JSON, with CloudWatch metrics in them |
//!
//! How it fails: a wrong or missing setting ends the process at its start with a line that names it. While it runs, a
//! request gets a status and a record comes again; nothing is thrown at Lambda, which would repeat a whole batch.

mod aws;
pub mod batch;
#[cfg(feature = "eventbridge")]
mod bus;
pub mod call;
pub mod http;
mod logs;
mod reload;
mod secrets;
pub mod start;

pub use start::{Function, Start, StartError, main};
