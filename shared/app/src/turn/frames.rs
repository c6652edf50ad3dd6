//! Frames: the whole visible text so far, sent on its way while the model still writes; and, on chats, now and then that
//! the turn is at work as long as there is no text. Any of them may be dropped, so one that cannot be sent is forgotten;
//! the final carries everything.
//!
//! At most one of any kind leaves an interval, with the newest text. On chats the first waits a moment: a turn that is over
//! by then sends its final and nothing else. A piece of a stream costs what it is long: the whole text is put together when
//! a frame is due, and what looks like a secret is taken out then.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use turnlock_domain::envelope::Envelope;
use turnlock_domain::event::{Button, Channel, InboundEvent, MessageKind, OutboundEvent, Revision};
use turnlock_domain::secrets::mask_unfinished;
use turnlock_domain::thinking::ThinkingFilter;
use turnlock_queue::Queue;

use super::response::MAX_REPLY;
use crate::buttons;
use crate::send;
use crate::settings::AgentSettings;
use crate::words::Language;

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
    language: Language,
    /// What stands under a text that is being written.
    buttons: Vec<Button>,
    state: Mutex<State>,
    /// Something has changed in `state`.
    changed: Notify,
}

struct State {
    sequence: u32,
    /// The text of the answer that is being written.
    filter: ThinkingFilter,
    /// Whether it has grown since a frame was made of it.
    has_grown: bool,
    /// What the answer before it came to, if that was not sent: shown until there is something newer.
    earlier: Option<String>,
    /// The text that was sent last.
    sent: String,
    /// Whether a frame has shown something of the answer that is being written.
    is_shown: bool,
    /// Before this nothing may be sent.
    next: Instant,
    /// When the next sign of work is due; none once there is text.
    next_typing: Option<Instant>,
}

impl<'a> Frames<'a> {
    /// Frames of the turn that the event caused, under `fence`.
    pub(super) fn new(
        outbound: &'a Arc<dyn Queue>,
        settings: &AgentSettings,
        Envelope { event, position, .. }: &'a Envelope,
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
            language: settings.language,
            buttons: buttons::stop(settings.language, event.channel, position),
            state: Mutex::new(State {
                sequence: 0,
                filter: ThinkingFilter::new(false),
                has_grown: false,
                earlier: None,
                sent: String::new(),
                is_shown: false,
                next: first,
                next_typing: types.then_some(first),
            }),
            changed: Notify::new(),
        }
    }

    /// An answer begins; `starts_in_reasoning` as for [`ThinkingFilter::new`].
    pub(super) fn begin(&self, starts_in_reasoning: bool) {
        let mut state = self.state();
        if state.has_grown {
            state.earlier = text_of(&state.filter);
        }
        state.restart(starts_in_reasoning);
    }

    /// Takes the next piece of the answer's text.
    pub(super) fn show(&self, piece: &str) {
        if !self.streams {
            return;
        }
        let mut state = self.state();
        state.filter.push(piece);
        if !state.has_grown && !state.filter.visible().is_empty() {
            state.has_grown = true;
            self.changed.notify_one();
        }
    }

    /// Whether a frame has shown something of the answer that is being written.
    pub(super) fn is_shown(&self) -> bool {
        self.state().is_shown
    }

    /// Takes the answer back if nobody has seen any of it; else it stays, and this is true.
    pub(super) fn withdraw(&self) -> bool {
        let mut state = self.state();
        if !state.is_shown {
            state.restart(false);
        }
        state.is_shown
    }

    /// Sends the text once more when that is due, with the mark that it is not whole and goes on.
    pub(super) async fn interrupted(&self) {
        let next = {
            let mut state = self.state();
            state.has_grown = false;
            state.next
        };
        sleep_until(next).await;
        let text = {
            let mut state = self.state();
            state.is_shown = true;
            text_of(&state.filter).map(|text| format!("{}\n\n{}", text.trim_end(), self.language.interrupted()))
        };
        if let Some(text) = text {
            self.send(MessageKind::Streaming, text).await;
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
            if let Some((kind, text)) = self.take() {
                self.send(kind, text).await;
            }
        }
    }

    /// Waits until something is to be sent.
    async fn due(&self) {
        loop {
            let at = {
                let state = self.state();
                if state.waits() { Some(state.next) } else { state.next_typing.map(|at| at.max(state.next)) }
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

    /// What is due: the newest text, or, as long as there is none, a sign of work. Nothing if the text would show what is
    /// shown already.
    fn take(&self) -> Option<(MessageKind, String)> {
        let mut state = self.state();
        if !state.waits() {
            state.next_typing = Some(Instant::now() + TYPING);
            return Some((MessageKind::Progress, String::new()));
        }
        let earlier = state.earlier.take();
        let text = if std::mem::take(&mut state.has_grown) { text_of(&state.filter) } else { earlier };
        let text = text.filter(|text| *text != state.sent)?;
        state.is_shown |= !state.filter.visible().is_empty();
        state.sent.clone_from(&text);
        state.next_typing = None;
        Some((MessageKind::Streaming, text))
    }

    async fn send(&self, kind: MessageKind, text: String) {
        let sequence = {
            let mut state = self.state();
            state.sequence += 1;
            state.next = Instant::now() + self.interval;
            state.sequence
        };
        let suffix = format!("frame.{}.{sequence}", self.fence);
        let mut frame = OutboundEvent::answering(self.event, &suffix, kind, text);
        frame.is_final = false;
        if kind == MessageKind::Streaming {
            frame.buttons.clone_from(&self.buttons);
        }
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

impl State {
    /// Whether there is a text that was not sent.
    fn waits(&self) -> bool {
        self.has_grown || self.earlier.is_some()
    }

    fn restart(&mut self, starts_in_reasoning: bool) {
        self.filter = ThinkingFilter::new(starts_in_reasoning);
        (self.has_grown, self.is_shown) = (false, false);
    }
}

/// What a frame shows of an answer: nothing of what is blank, nor of what is longer than a reply may be, which shows at its
/// end, cut.
fn text_of(filter: &ThinkingFilter) -> Option<String> {
    let visible = filter.visible();
    let text = (visible.len() <= MAX_REPLY).then(|| mask_unfinished(visible))?;
    (!text.trim().is_empty()).then(|| text.into_owned())
}

#[cfg(test)]
mod tests;
