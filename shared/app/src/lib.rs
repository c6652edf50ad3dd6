//! What Turnlock does: the use cases, as functions over ports and values. Every Lambda function and the one-process host
//! call these; nothing here knows which.
//!
//! | module | does |
//! |---|---|
//! | [`ingress`] | HTTP request → verify → normalise → [`admit`] → HTTP answer |
//! | [`admit`] | rate, backpressure, who may talk, the send to the inbound queue, clear answers |
//! | [`turn`] | context stage, inference stage, response stage, commit, dispatch of what is owed |
//! | [`deliver`] | outbound events to their channels, through the ledger, with observers beside |
//! | [`control`] | stop, status, help: what must not wait behind queued messages |
//! | [`jobs`] | derived work: consolidation, memory review |
//! | `daily_cost` | the one cap on what a day may cost |
//! | [`media`] | the images of an event, fetched for the model and kept nowhere |
//! | [`memory_text`] | what a system prompt says of long-term memory |
//! | [`model`] | the configured models |
//! | [`tools`] | the tools that every agent has, and the configured ones |
//! | [`settings`] | the configuration as the use cases need it |
//! | [`policy`] | which calls run, which are asked for, and who answers |
//! | `decisions` | a decision is stored, the turn woken, the card settled |
//! | [`approvals`] | the card of a call that waits for a person |
//! | [`pairing`] | a code that lets its first sender in |
//! | [`dead_letter`] | what a queue gave up: send what was committed, answer for what was not |
//! | [`redrive`] | sends what was given up again |
//! | [`api`] | the HTTP API: messages, events, streams, sessions |
//! | [`words`] | every sentence shown to a user, by language |
//! | [`send`] | events and jobs as queue messages |
//! | [`journal_line`] | the one log line of an event |

pub mod admit;
pub mod api;
pub mod approvals;
mod buttons;
pub mod control;
mod daily_cost;
pub mod dead_letter;
mod decisions;
pub mod deliver;
pub mod ingress;
pub mod jobs;
pub mod journal_line;
pub mod media;
pub mod memory_text;
pub mod model;
pub mod pairing;
pub mod policy;
pub mod redrive;
pub mod send;
pub mod settings;
pub mod tools;
pub mod turn;
pub mod words;
