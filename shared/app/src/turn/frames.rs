//! Frames: the whole visible text so far, sent on its way while the model still writes; and, on chats, now and then that
//! the turn is at work as long as there is no text. Any of them may be dropped, so one that cannot be sent is forgotten;
//! the final carries everything.
//!
//! At most one of any kind leaves an interval, with the newest text. On chats the first waits a moment: a turn that is over
//! by then sends its final and nothing else.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use turnlock_domain::event::{Channel, InboundEvent, MessageKind, OutboundEvent, Revision};
use turnlock_queue::Queue;

use super::response::MAX_REPLY;
use crate::send;
use crate::settings::AgentSettings;

/// How long a frame's send may take.
const PATIENCE: Duration = Duration::from_millis(500);
/// When a chat sees the first sign of a turn.
const FIRST: Duration = Duration::from_secs(1);
/// How long Telegram shows that somebody is typing is five seconds; so often it is said anew.
const TYPING: Duration = Duration::from_millis(4500);

/// Sends frames of one turn.
pub(super) struct Frames<'a> {
    outbound: &'a Arc<dyn Queue>,
    event: &'a InboundEvent,
    fence: u64,
    interval: Duration,
    /// Whether the channel shows text as it is written.
    streams: bool,
    state: Mutex<State>,
    /// Something has changed in `state`.
    changed: Notify,
}

struct State {
    sequence: u32,
    /// The newest text that has not been sent.
    waiting: Option<String>,
    /// The text that was sent last.
    sent: String,
    /// Before this nothing may be sent.
    next: Instant,
    /// When the next sign of work is due; none once there is text.
    next_typing: Option<Instant>,
}

impl<'a> Frames<'a> {
    /// Frames of the turn that `event` caused, under `fence`.
    pub(super) fn new(
        outbound: &'a Arc<dyn Queue>,
        settings: &AgentSettings,
        event: &'a InboundEvent,
        fence: u64,
    ) -> Self {
        let now = Instant::now();
        let first = match event.channel {
            Channel::Gateway | Channel::Cli => now,
            Channel::Telegram | Channel::Slack | Channel::Webhook | Channel::Cron | Channel::Unknown => now + FIRST,
        };
        let types = event.channel == Channel::Telegram;
        Self {
            outbound,
            event,
            fence,
            interval: settings.limits.frame_interval,
            streams: settings.streams(event.channel, &event.account),
            state: Mutex::new(State {
                sequence: 0,
                waiting: None,
                sent: String::new(),
                next: first,
                next_typing: types.then_some(first),
            }),
            changed: Notify::new(),
        }
    }

    /// Takes `visible` as what is to be shown next.
    pub(super) fn show(&self, visible: &str) {
        // What is longer than a reply may be shows at its end, cut.
        if !self.streams || visible.trim().is_empty() || visible.len() > MAX_REPLY {
            return;
        }
        let mut state = self.state();
        if state.sent != visible {
            state.waiting = Some(visible.to_owned());
            self.changed.notify_one();
        }
    }

    /// Does `work`, and sends beside it what falls due; both go on at the same time. Nothing of it goes on after `work` has
    /// ended: a frame that is just being sent is left to itself, for if it arrives all the same the final is behind it or
    /// known.
    pub(super) async fn beside<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! { biased;
            done = work => done,
            never = self.sending() => match never {},
        }
    }

    async fn sending(&self) -> Infallible {
        loop {
            self.due().await;
            self.send().await;
        }
    }

    /// Waits until something is to be sent.
    async fn due(&self) {
        loop {
            let at = {
                let state = self.state();
                if state.waiting.is_some() { Some(state.next) } else { state.next_typing.map(|at| at.max(state.next)) }
            };
            match at {
                Some(at) => tokio::select! { biased;
                    () = self.changed.notified() => {}
                    () = sleep_until(at) => return,
                },
                None => self.changed.notified().await,
            }
        }
    }

    async fn send(&self) {
        let (kind, text, sequence) = {
            let mut state = self.state();
            state.sequence += 1;
            let now = Instant::now();
            state.next = now + self.interval;
            let (kind, text) = match state.waiting.take() {
                Some(text) => {
                    state.sent.clone_from(&text);
                    state.next_typing = None;
                    (MessageKind::Streaming, text)
                }
                None => {
                    state.next_typing = Some(now + TYPING);
                    (MessageKind::Progress, String::new())
                }
            };
            (kind, text, state.sequence)
        };
        let suffix = format!("frame.{}.{sequence}", self.fence);
        let mut frame = OutboundEvent::answering(self.event, &suffix, kind, text);
        frame.is_final = false;
        frame.turn = Some(self.event.event_id.clone());
        frame.revision = Revision { fence: self.fence, sequence };
        // A full queue must not hold up the turn for something that may be dropped.
        match timeout(PATIENCE, send::outbound(&**self.outbound, &frame)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(event_id = %self.event.event_id, %error, "a frame was dropped"),
            Err(_) => tracing::debug!(event_id = %self.event.event_id, "a frame was dropped: the queue is slow"),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
