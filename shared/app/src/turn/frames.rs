//! Frames: the whole visible text so far, sent on its way while the model still writes. Any of them may be dropped, so
//! a frame that cannot be sent is forgotten; the final carries everything.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use turnlock_domain::event::{InboundEvent, MessageKind, OutboundEvent, Revision};
use turnlock_queue::Queue;

use super::response::MAX_REPLY;
use crate::send;

/// How long a frame's send may take.
const PATIENCE: Duration = Duration::from_millis(500);

/// Sends frames of one turn, at most one an interval.
pub(super) struct Frames<'a> {
    outbound: &'a Arc<dyn Queue>,
    event: &'a InboundEvent,
    fence: u64,
    interval: Duration,
    sequence: u32,
    last: Option<(Instant, String)>,
}

impl<'a> Frames<'a> {
    /// Frames of the turn that `event` caused, under `fence`.
    pub(super) fn new(outbound: &'a Arc<dyn Queue>, event: &'a InboundEvent, fence: u64, interval: Duration) -> Self {
        Self { outbound, event, fence, interval, sequence: 0, last: None }
    }

    /// Shows `visible`, unless a frame went out a moment ago or nothing is new.
    pub(super) async fn show(&mut self, visible: &str) {
        // What is longer than a reply may be shows at its end, cut.
        if visible.len() > MAX_REPLY {
            return;
        }
        let now = Instant::now();
        let due = match &self.last {
            None => !visible.trim().is_empty(),
            Some((at, shown)) => now.duration_since(*at) >= self.interval && shown != visible,
        };
        if !due {
            return;
        }
        self.sequence += 1;
        self.last = Some((now, visible.to_owned()));
        let suffix = format!("frame.{}.{}", self.fence, self.sequence);
        let mut frame = OutboundEvent::answering(self.event, &suffix, MessageKind::Streaming, visible);
        frame.is_final = false;
        frame.turn = Some(self.event.event_id.clone());
        frame.revision = Revision { fence: self.fence, sequence: self.sequence };
        // A full queue must not hold up the stream for something that may be dropped.
        match timeout(PATIENCE, send::outbound(&**self.outbound, &frame)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(event_id = %self.event.event_id, %error, "a frame was dropped"),
            Err(_) => tracing::debug!(event_id = %self.event.event_id, "a frame was dropped: the queue is slow"),
        }
    }
}
