//! The promises of [`crate::Queue`] as checks.
