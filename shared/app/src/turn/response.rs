//! The response stage: cleans the text and builds the draft that is committed. It never calls the model or a tool, and
//! sends nothing: what it makes can only go through the commit door.

use turnlock_domain::boundary;
use turnlock_domain::commit::Draft;
use turnlock_domain::envelope::Envelope;
use turnlock_domain::ids::EventId;
use turnlock_domain::message::{Block, Message, Role};
use turnlock_domain::secrets;
use turnlock_domain::text;
use turnlock_domain::thinking;
use turnlock_domain::time::Millis;
use turnlock_domain::turn::{Failure, Job, JobTarget, ModelCall, Outcome, Owed, Usage};
use turnlock_store::approvals::ApprovalState;
use turnlock_store::journal::Step;
use turnlock_store::sessions::{Head, HeadChange, Lock};
use turnlock_store::steer::SteerText;

use crate::settings::AgentSettings;

/// How many tool calls since the last review raise the signal for the next one.
const REVIEW_AFTER: u32 = 10;
/// How long a queued consolidation stops a second one from being queued, unless its worker renews the claim.
const CLAIM: std::time::Duration = std::time::Duration::from_secs(15 * 60);
/// How many new messages a consolidation that failed for good waits for.
const AFTER_FAILURES: u64 = 10;
/// How often a consolidation may fail before it waits for new messages.
pub(crate) const MAX_FAILURES: u32 = 3;

/// The longest reply, in bytes of JSON: half of what a queue takes. A longer one would be committed and never be sent.
pub(super) const MAX_REPLY: usize = 512 * 1024;

/// What the inference stage hands over.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Said {
    /// The turn's messages after the user's: tool uses and their results, in pairs. Text of thinking tags is out.
    pub(super) steps: Vec<Message>,
    /// The last answer's blocks, as the model gave them.
    pub(super) answer: Vec<Block>,
    /// Whether the answer hit its length limit.
    pub(super) cut: bool,
    /// Whether it may end in the middle of a word: cut, blocked, or ended for a reason that nobody knows.
    pub(super) ends_early: bool,
    /// The calls of models, those of earlier invocations too.
    pub(super) calls: Vec<ModelCall>,
    /// The events whose texts reached the model besides the turn's own.
    pub(super) steered: Vec<EventId>,
    /// The head as it was read last, if it was since the turn began.
    pub(super) head: Option<Box<Head>>,
    /// Tools called.
    pub(super) tool_calls: u32,
    /// Whether the model's text begins inside its reasoning.
    pub(super) starts_in_reasoning: bool,
}

impl Said {
    /// Counts a step that the journal has.
    pub(super) fn count(&mut self, step: &Step) {
        if step.calls.is_empty() {
            // A step of an earlier version says what it used, and not by which model.
            self.calls.push(ModelCall { model: String::new(), usage: step.usage });
        }
        self.calls.extend(step.calls.iter().cloned());
    }

    /// Adds what somebody said meanwhile, behind the last results.
    pub(super) fn hear(&mut self, texts: &[SteerText]) {
        let Some(last) = self.steps.last_mut() else { return };
        last.content.extend(texts.iter().map(|text| Block::text(&text.text)));
        self.steered.extend(texts.iter().map(|text| text.event_id.clone()));
    }
}

/// What `calls` used together.
pub(super) fn usage_of(calls: &[ModelCall]) -> Usage {
    let mut usage = Usage::default();
    calls.iter().for_each(|call| usage.add(call.usage));
    usage
}

/// How the inference stage ended, as far as the response stage is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The model answered.
    Answered,
    /// A stop ended it.
    Stopped,
    /// It failed for good.
    Failed(Failure),
}

/// Builds the draft of a turn, and what else changes on the head with it.
#[must_use]
pub(super) fn draft(
    settings: &AgentSettings,
    envelope: &Envelope,
    (head, lock): (&Head, &Lock),
    (user, said, ending): (Message, &Said, Ending),
    scope: &str,
    now: Millis,
) -> (Draft, HeadChange) {
    let (outcome, visible) = outcome(settings, said, ending);
    let intro = intro(settings, envelope, head, ending);
    let mut messages = vec![user];
    match ending {
        Ending::Answered => messages.extend(said.steps.iter().cloned()),
        Ending::Stopped | Ending::Failed(_) => messages.extend(said.steps.iter().cloned().map(unheard)),
    }
    messages.push(reply(said, ending, &intro, &visible));
    let messages = messages.into_iter().map(kept).collect();
    let mut draft = Draft {
        event_id: envelope.event.event_id.clone(),
        session: lock.session.clone(),
        generation: head.generation,
        fence: lock.fence,
        first: head.message_count,
        messages,
        outcome,
        usage: usage_of(&said.calls),
        calls: said.calls.clone(),
        owed: Vec::new(),
        merged: if ending == Ending::Answered { said.steered.clone() } else { Vec::new() },
        at: now,
    };
    let latest = said.head.as_deref().unwrap_or(head);
    let mut change = HeadChange {
        claim: None,
        tool_calls: head.tool_calls.saturating_add(said.tool_calls),
        introduced: head.introduced || !intro.is_empty(),
        steer_done: latest.steer_done(&envelope.position, &draft.merged),
        ask_ended: ask_ended(head, lock, ending),
        ..HeadChange::default()
    };
    draft.owed = owed(&change);
    owe_jobs(settings, head, &mut draft, &mut change, said.tool_calls, scope);
    (draft, change)
}

/// What every turn owes: its answer, and the card of a call about which nobody decided.
pub(super) fn owed(change: &HeadChange) -> Vec<Owed> {
    let card = change.ask_ended.iter().map(|(id, _)| Owed::Card { approval: id.clone() });
    std::iter::once(Owed::Final).chain(card).collect()
}

/// What becomes of an approval about which nobody has decided when its turn ends.
pub(super) fn ask_ended(head: &Head, lock: &Lock, ending: Ending) -> Option<(String, ApprovalState)> {
    let ask = head.ask_of(lock).filter(|ask| ask.decision.is_none())?;
    let state = match ending {
        Ending::Failed(Failure::ApprovalExpired | Failure::TooOld) => ApprovalState::Expired,
        Ending::Answered | Ending::Stopped | Ending::Failed(_) => ApprovalState::Stopped,
    };
    Some((ask.id.clone(), state))
}

/// The draft of a reset: no messages, the next generation.
#[must_use]
pub(super) fn reset(envelope: &Envelope, head: &Head, lock: &Lock, now: Millis) -> (Draft, HeadChange) {
    let draft = Draft {
        event_id: envelope.event.event_id.clone(),
        session: lock.session.clone(),
        generation: head.generation.saturating_add(1),
        fence: lock.fence,
        first: 0,
        messages: Vec::new(),
        outcome: Outcome::Reset,
        usage: Usage::default(),
        calls: Vec::new(),
        owed: vec![Owed::Final],
        merged: Vec::new(),
        at: now,
    };
    let steer_done = head.steer_done(&envelope.position, &[]);
    (draft, HeadChange { introduced: head.introduced, steer_done, ..HeadChange::default() })
}

/// The messages of a failed turn whose question is not at hand any more: what it had done, and the answer. Nothing if it
/// had done nothing.
pub(super) fn without_question(settings: &AgentSettings, said: Said, reason: Failure) -> Vec<Message> {
    if said.steps.is_empty() {
        return Vec::new();
    }
    let mut messages = vec![Message::user("(a message that is not at hand any more)")];
    messages.extend(said.steps.into_iter().map(unheard).map(kept));
    messages.push(Message::assistant(settings.language.failed(reason)));
    messages
}

/// A message as the history has it: no model wants reasoning back that is not sealed, once its turn is over.
fn kept(mut message: Message) -> Message {
    message.content.retain(|block| !matches!(block, Block::Reasoning(reasoning) if !reasoning.is_sealed()));
    message
}

/// A message of a turn that gives no answer, without what somebody said meanwhile: that has a turn of its own.
fn unheard(mut message: Message) -> Message {
    if message.role == Role::User {
        message.content.retain(|block| matches!(block, Block::ToolResult { .. }));
    }
    message
}

fn outcome(settings: &AgentSettings, said: &Said, ending: Ending) -> (Outcome, String) {
    let answer = Message::new(Role::Assistant, said.answer.clone()).text();
    let stripped = thinking::strip(&answer, said.starts_in_reasoning);
    // A text that ends too early may end in the middle of a secret.
    let whole = ending == Ending::Answered && !said.ends_early;
    let mut visible = if whole { secrets::mask(&stripped) } else { secrets::mask_unfinished(&stripped) }.into_owned();
    let mut was_cut = said.cut;
    let chars = fitting_chars(&visible);
    let fitting = if chars < visible.len() { text::cut(&visible, chars).len() } else { visible.len() };
    if fitting < visible.len() {
        was_cut = true;
        visible.truncate(fitting);
    }
    let join = |mark: String| if visible.is_empty() { mark } else { format!("{visible}\n\n{mark}") };
    match ending {
        Ending::Answered if was_cut => (Outcome::Replied, join(settings.language.cut())),
        Ending::Answered => (Outcome::Replied, visible),
        Ending::Stopped => (Outcome::Stopped, join(settings.language.stopped())),
        Ending::Failed(reason) => (Outcome::Failed { reason }, settings.language.failed(reason)),
    }
}

/// How many characters of `text` fit into [`MAX_REPLY`].
fn fitting_chars(text: &str) -> usize {
    // No character takes more than six times its bytes.
    if text.len() <= MAX_REPLY / 6 {
        return text.len();
    }
    let mut bytes = 0;
    let costs = text.chars().map(|c| match c {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => 6,
        c => c.len_utf8(),
    });
    costs
        .take_while(|cost| {
            bytes += cost;
            bytes <= MAX_REPLY
        })
        .count()
}

/// The configured first sentence, in a session's first answer.
fn intro(settings: &AgentSettings, envelope: &Envelope, head: &Head, ending: Ending) -> String {
    let configured = settings.intro.get(&envelope.event.channel);
    match (head.introduced, ending, configured) {
        (false, Ending::Answered, Some(intro)) => intro.replace("{name}", &settings.name),
        (true, _, _) | (_, Ending::Stopped | Ending::Failed(_), _) | (_, _, None) => String::new(),
    }
}

/// The last message: reasoning as it came (its model wants it back), then what people see.
fn reply(said: &Said, ending: Ending, intro: &str, visible: &str) -> Message {
    let whole = match (intro.is_empty(), visible.is_empty()) {
        (true, _) => visible.to_owned(),
        (false, true) => intro.to_owned(),
        (false, false) => format!("{intro}\n\n{visible}"),
    };
    let keep = |block: &&Block| matches!(block, Block::Reasoning(_)) && ending == Ending::Answered;
    let mut content: Vec<Block> = said.answer.iter().filter(keep).cloned().collect();
    content.push(Block::text(whole));
    Message::new(Role::Assistant, content)
}

fn owe_jobs(
    settings: &AgentSettings,
    head: &Head,
    draft: &mut Draft,
    change: &mut HeadChange,
    tool_calls: u32,
    scope: &str,
) {
    let target = |from| JobTarget {
        session: draft.session.clone(),
        generation: draft.generation,
        from,
        scope: scope.to_owned(),
        event_id: draft.event_id.clone(),
    };
    let count = draft.first + draft.messages.len() as u64;
    let mut jobs = Vec::new();
    if boundary::due(count, head.boundary, settings.limits.consolidate_after) && may_claim(head, count, draft.at) {
        let job = Job::Consolidate(target(head.boundary));
        change.claim = Some((job.id(), draft.at + CLAIM));
        jobs.push(job);
    }
    if tool_calls > 0 && change.tool_calls >= REVIEW_AFTER {
        change.tool_calls = 0;
        jobs.push(Job::ReviewMemory(target(draft.first)));
    }
    draft.owed.extend(jobs.into_iter().map(|job| Owed::Job { job }));
}

/// Whether no consolidation is queued or running, and it has not failed for good on what there is.
fn may_claim(head: &Head, count: u64, now: Millis) -> bool {
    let queued = head.claim_job.is_some() && head.claim_until.is_some_and(|until| until > now);
    let given_up = head.claim_failures >= MAX_FAILURES
        && head.claim_failed_count.is_some_and(|failed| count < failed + AFTER_FAILURES);
    !queued && !given_up
}
