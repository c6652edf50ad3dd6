//! Rules that the code is held to by reading it.

mod readme;
mod response_stage;
