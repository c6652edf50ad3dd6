//! The context stage: what the model is shown. History after the boundary, the memory snapshot, facts about the chat,
//! and the journal of a turn that somebody else began.

use turnlock_channels::files::Files;
use turnlock_domain::envelope::Envelope;
use turnlock_domain::event::{ContentBlock, ContentType};
use turnlock_domain::message::{Block, Media, Message, Role};
use turnlock_domain::session::SessionKey;
use turnlock_store::history::StoredTurn;
use turnlock_store::journal::Journal;
use turnlock_store::memory::ScopeHead;
use turnlock_store::sessions::Head;
use turnlock_store::{Store, StoreError};

use crate::media;
use crate::memory_text;
use crate::settings::AgentSettings;

/// The most facts and episodes that a snapshot is made of.
const SNAPSHOT_FACTS: usize = 100;
const SNAPSHOT_EPISODES: usize = 10;

/// What the inference stage works with.
#[derive(Debug)]
pub(super) struct Context {
    /// The system prompt.
    pub(super) system: String,
    /// The conversation before this turn.
    pub(super) history: Vec<Message>,
    /// The user's message.
    pub(super) user: Message,
    /// The steps that were taken already.
    pub(super) journal: Journal,
}

/// The memory scope of an event: its chat, by the name it had first. A thread shares the memory of its chat; another
/// chat never sees it.
#[must_use]
pub fn scope(envelope: &Envelope) -> String {
    let event = &envelope.event;
    let named = || SessionKey::new(event.channel.as_str(), &event.account, &event.chat_id, None);
    format!("chat:{}", envelope.former_chat.clone().unwrap_or_else(named))
}

/// Gathers the context of a turn; the history has been read already, beside the marker. `files` is where the event's
/// images are, for a model that sees any.
///
/// # Errors
/// Those of the store.
pub(super) async fn gather(
    store: &Store,
    settings: &AgentSettings,
    envelope: &Envelope,
    head: &Head,
    (history, scope_head): (Vec<StoredTurn>, Option<ScopeHead>),
    files: Option<&Files>,
) -> Result<Context, StoreError> {
    let event = &envelope.event;
    let journal = match head.step {
        0 => Journal::default(),
        _ => store.journal(&event.session_key(), &event.event_id).await?,
    };
    let memory = snapshot(store, scope_head).await?;
    let user = match files {
        // Boxed: few events have images, and every turn would be as large as if it had.
        Some(files) => user_message(&Box::pin(media::with_images(files, event)).await),
        None => user_message(&event.content),
    };
    Ok(Context {
        system: system(settings, envelope, &memory),
        history: history.into_iter().flat_map(|turn| turn.messages).collect(),
        user,
        journal,
    })
}

/// The scope's snapshot; one whose epoch is old is rebuilt, and stamped with the epoch read **before** its facts were
/// read (trace V14), so that a fact forgotten in between cannot come back through it.
async fn snapshot(store: &Store, head: Option<ScopeHead>) -> Result<String, StoreError> {
    let Some(head) = head else { return Ok(String::new()) };
    if let Some(snapshot) = head.snapshot.filter(|_| head.snapshot_epoch == head.epoch) {
        return Ok(snapshot);
    }
    let (facts, episodes) =
        tokio::try_join!(store.facts(&head.scope, SNAPSHOT_FACTS), store.episodes(&head.scope, SNAPSHOT_EPISODES))?;
    let text = memory_text::snapshot(&facts, &episodes);
    store.write_snapshot(&head.scope, &text, head.epoch).await?;
    Ok(text)
}

fn system(settings: &AgentSettings, envelope: &Envelope, memory: &str) -> String {
    let event = &envelope.event;
    let mut system = settings.instructions.clone();
    let mut section = |text: &str| {
        if !system.is_empty() {
            system.push_str("\n\n");
        }
        system.push_str(text);
    };
    section(&format!("You are {}. You are talking over {}.", settings.name, event.channel.as_str()));
    if envelope.unattended {
        section("Nobody is waiting for the answer: do not ask questions back.");
    }
    if !memory.is_empty() {
        section(memory);
    }
    system
}

/// An event's content as the user's message. Users' own text is never filtered; media is named by reference.
#[must_use]
pub(super) fn user_message(content: &[ContentBlock]) -> Message {
    let mut content: Vec<Block> = content.iter().filter_map(block).collect();
    if content.is_empty() {
        content.push(Block::text("(an empty message)"));
    }
    Message::new(Role::User, content)
}

fn block(block: &ContentBlock) -> Option<Block> {
    let media = || Media { url: block.url.clone(), name: block.name.clone(), mime_type: block.mime_type.clone() };
    match block.kind {
        ContentType::Text | ContentType::Unknown => (!block.text.trim().is_empty()).then(|| Block::text(&block.text)),
        ContentType::Image => Some(Block::Image(media())),
        ContentType::File | ContentType::Audio | ContentType::Voice | ContentType::Video => Some(Block::File(media())),
    }
}
