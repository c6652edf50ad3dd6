//! Turnlock's values and rules: events, sessions, messages, turns. No I/O, no clock, no async: whoever needs the time
//! passes it in.
//!
//! | module | holds |
//! |---|---|
//! | [`event`] | the event contract: [`event::InboundEvent`], [`event::OutboundEvent`] |
//! | [`envelope`] | what only our own code may claim about an event |
//! | [`ids`] | identities that derive from the source event |
//! | [`session`] | session keys, made in one place |
//! | [`message`] | the messages of a conversation |
//! | [`conversation`] | the validity checker and the repair that every model request passes |
//! | [`thinking`] | the filter that keeps reasoning out of what people see |
//! | [`boundary`] | how far a consolidation may move the boundary |
//! | [`rate`] | the arithmetic of the session rate |
//! | [`turn`] | outcomes, jobs and what a committed turn owes |
//! | [`commit`] | the only door through which a turn becomes a committed turn |
//! | [`secrets`] | secrets by their known shapes, and how they are removed |
//! | [`text`] | graphemes, lone surrogates, invisible characters |
//! | [`time`] | typed milliseconds and seconds |

pub mod boundary;
pub mod commit;
pub mod conversation;
pub mod envelope;
pub mod event;
pub mod ids;
pub mod message;
pub mod rate;
pub mod secrets;
pub mod session;
pub mod text;
pub mod thinking;
pub mod time;
pub mod turn;
