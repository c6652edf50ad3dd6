//! Rules that the code is held to by reading it.

mod response_stage;
