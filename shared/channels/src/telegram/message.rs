//! One message.
/// The General topic.
pub(super) const GENERAL_TOPIC: &str = "1";
