//! `GET /v1/events/{id}`: one event in three states, made of what was written anyway: the admission and the session head
//! (queued, running), the newest frame (running), the final that delivery wrote, or the marker with its turn (done).

use serde_json::{Map, Value, json};
use turnlock_channels::IngressResponse;
use turnlock_domain::commit::Marker;
use turnlock_domain::event::MessageKind;
use turnlock_domain::ids::EventId;
use turnlock_domain::session::{SessionKey, encode_part};
use turnlock_domain::turn::Outcome;
use turnlock_store::StoreError;
use turnlock_store::admission::AdmissionState;
use turnlock_store::approvals::Ask;
use turnlock_store::gateway::GatewayEvent;
use turnlock_store::sessions::Head;

use super::{Api, Scope, not_found};
use crate::approvals::card_text;
use crate::turn::{final_of, stored_turn};

/// How far an event is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    /// It waits for its turn.
    Queued,
    /// Its turn runs; the text so far, once there is some.
    Running(Option<String>),
    /// Its turn waits for a person to decide about a call.
    Asking {
        /// The approval's id.
        approval: String,
        /// The card that asks for it.
        card: String,
    },
    /// It is over.
    Done(Ending),
    /// Another event's turn took it up.
    Merged(EventId),
}

/// What an event ended with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) text: String,
    pub(super) kind: MessageKind,
}

/// An event as a caller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EventView {
    pub(super) event_id: EventId,
    pub(super) session: SessionKey,
    pub(super) progress: Progress,
}

impl Api {
    pub(super) async fn get_event(&self, scope: &Scope, id: &EventId) -> Result<IngressResponse, StoreError> {
        let event = self.event(id).await?.filter(|event| scope.sees(&event.session));
        Ok(event.map_or_else(not_found, |event| IngressResponse::json(200, &event.json())))
    }

    /// The event, if there is one. What delivery wrote is asked for first: it is what callers wait for.
    pub(super) async fn event(&self, id: &EventId) -> Result<Option<EventView>, StoreError> {
        let shown = self.store.gateway_event(id).await?;
        if let Some(view) = shown.as_ref().and_then(done) {
            return Ok(Some(view));
        }
        if let Some(marker) = self.store.marker(id).await? {
            let session = marker.session().clone();
            if let Outcome::Merged { into } = marker.outcome() {
                let progress = Progress::Merged(into.clone());
                return Ok(Some(EventView { event_id: id.clone(), session, progress }));
            }
            // What control answered stands in no history: its text is there when delivery has written it.
            if *marker.outcome() == Outcome::Answered && self.store.admission(id).await?.is_some() {
                return Ok(Some(EventView { event_id: id.clone(), session, progress: Progress::Running(None) }));
            }
            let progress = Progress::Done(self.committed(marker).await?);
            return Ok(Some(EventView { event_id: id.clone(), session, progress }));
        }
        if let Some(event) = shown {
            let progress = if event.asks() {
                self.asking(self.asked(&event.session, id).await?).await?
            } else {
                Progress::Running(event.frame.map(|frame| frame.text))
            };
            return Ok(Some(EventView { event_id: id.clone(), session: event.session, progress }));
        }
        let Some(admission) = self.store.admission(id).await? else { return Ok(None) };
        let head = self.store.head(&admission.session).await?;
        let running = head.as_ref().is_some_and(|head| head.unfinished.as_ref() == Some(id));
        let progress = match (running, admission.state) {
            (true, _) => self.asking(head.and_then(|head| asked(&head, id))).await?,
            (false, AdmissionState::Queued) => Progress::Queued,
            // Nobody was promised anything: it is on its way to the queue, or the queue did not take it.
            (false, AdmissionState::Admitted) => return Ok(None),
        };
        Ok(Some(EventView { event_id: id.clone(), session: admission.session, progress }))
    }

    /// What the event's turn waits for, if it does.
    pub(super) async fn asked(&self, session: &SessionKey, id: &EventId) -> Result<Option<Ask>, StoreError> {
        Ok(self.store.head(session).await?.and_then(|head| asked(&head, id)))
    }

    /// The state of an event whose turn waits for `ask`, or runs. The card is made of what is asked: what delivery wrote may
    /// be the card of something before.
    pub(super) async fn asking(&self, ask: Option<Ask>) -> Result<Progress, StoreError> {
        let approval = match ask {
            Some(ask) => self.store.approval(&ask.id).await?,
            None => None,
        };
        Ok(approval.map_or(Progress::Running(None), |approval| Progress::Asking {
            card: card_text(self.admission.language, &approval),
            approval: approval.id,
        }))
    }

    /// The event whose turn took this one up.
    pub(super) async fn merged(&self, id: &EventId) -> Result<Option<EventId>, StoreError> {
        Ok(self.store.marker(id).await?.and_then(|marker| match marker.outcome() {
            Outcome::Merged { into } => Some(into.clone()),
            _ => None,
        }))
    }

    /// The ending of an event that is committed while its final is on its way, or has none of its own.
    async fn committed(&self, marker: Marker) -> Result<Ending, StoreError> {
        let turn = stored_turn(&self.store, marker).await?;
        // As its final will say it.
        let (kind, text) = final_of(&turn, self.admission.language);
        Ok(Ending { text, kind })
    }
}

/// What the event's turn waits for.
fn asked(head: &Head, id: &EventId) -> Option<Ask> {
    let ask = head.open_ask().filter(|ask| head.unfinished.as_ref() == Some(id) && ask.decision.is_none());
    ask.cloned()
}

/// The event whose final delivery has written.
pub(super) fn done(event: &GatewayEvent) -> Option<EventView> {
    let last = event.final_.clone()?;
    let progress = Progress::Done(Ending { text: last.text, kind: last.kind });
    Some(EventView { event_id: event.event_id.clone(), session: event.session.clone(), progress })
}

impl EventView {
    /// Whether nothing more will come.
    pub(super) fn is_done(&self) -> bool {
        match self.progress {
            Progress::Done(_) | Progress::Merged(_) => true,
            Progress::Queued | Progress::Running(_) | Progress::Asking { .. } => false,
        }
    }

    /// The event as an answer.
    pub(super) fn json(&self) -> Value {
        let (status, message) = match &self.progress {
            Progress::Queued => ("queued", None),
            Progress::Running(text) => ("running", text.as_ref().map(|text| message(text, MessageKind::Streaming))),
            Progress::Asking { card, .. } => {
                ("waiting_for_approval", Some(message(card, MessageKind::ApprovalRequest)))
            }
            Progress::Done(ending) => ("done", Some(message(&ending.text, ending.kind))),
            Progress::Merged(_) => ("done", None),
        };
        let mut body = Map::from_iter([
            ("event_id".to_owned(), json!(self.event_id)),
            ("session".to_owned(), json!(self.session)),
            ("status".to_owned(), json!(status)),
        ]);
        body.extend(message.map(|message| ("message".to_owned(), message)));
        match &self.progress {
            Progress::Asking { approval, .. } => drop(body.insert("approval".to_owned(), json!(approval))),
            Progress::Merged(into) => drop(body.insert("merged_into".to_owned(), json!(into))),
            Progress::Queued | Progress::Running(_) | Progress::Done(_) => {}
        }
        body.insert("links".to_owned(), self.links());
        Value::Object(body)
    }

    fn links(&self) -> Value {
        let event = format!("/v1/events/{}", encode_part(self.event_id.as_str()));
        json!({
            "self": event,
            "stream": format!("{event}/stream"),
            "messages": format!("/v1/sessions/{}/messages", encode_part(self.session.as_str())),
        })
    }
}

/// A text as an answer shows it.
pub(super) fn message(text: &str, kind: MessageKind) -> Value {
    json!({ "text": text, "kind": kind })
}
