//! The images of the event at hand, as a model with eyes is shown them. They are fetched when the model is asked, by
//! reference, and stand in that turn's requests alone: history, journal and logs keep the reference, and a turn that is
//! resumed fetches again.
//!
//! Nothing here fails a turn: an image that cannot be had stays a reference, with the reason in its place, and the log
//! has a line. Each request to a platform ends in time, and all of them run beside each other.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::join_all;
use turnlock_channels::files::{FileError, Files, MAX_BYTES, image_type};
use turnlock_channels::http::PlatformHttp;
use turnlock_channels::{slack, telegram};
use turnlock_config::Config;
use turnlock_domain::event::{ContentBlock, ContentType, InboundEvent};

/// The most images of one event that a model is shown: an album has no more.
const MAX_IMAGES: usize = 10;
/// The most bytes of all of them: with base64 and the text a request stays below what providers take (20 MB).
const MAX_TOTAL: usize = 12_000_000;

/// What a picture may come as when it was sent as a document.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// A reader of files for every account that has a token.
#[must_use]
pub fn files(config: &Config, http: &Arc<dyn PlatformHttp>) -> Files {
    let mut files = Files::new();
    for (account, bot) in &config.telegram {
        if let Some(token) = bot.bot_token.clone() {
            let base = bot.base_url.as_deref().unwrap_or(telegram::DEFAULT_BASE_URL);
            files = files.with_telegram(telegram::Client::new(Arc::clone(http), account, token, base));
        }
    }
    for (account, app) in &config.slack {
        if let Some(token) = app.bot_token.clone() {
            let base = app.base_url.as_deref().unwrap_or(slack::DEFAULT_BASE_URL);
            files = files.with_slack(slack::Client::new(Arc::clone(http), account, token, base));
        }
    }
    files
}

/// The content of `event` with its images in it.
pub(crate) async fn with_images(files: &Files, event: &InboundEvent) -> Vec<ContentBlock> {
    let mut content = event.content.clone();
    let images: Vec<&mut ContentBlock> = content.iter_mut().filter(|block| is_image(block)).collect();
    let found = join_all((0..).zip(&images).map(|(n, block)| read(files, event, n, block))).await;
    let mut total = 0;
    for (block, found) in images.into_iter().zip(found) {
        let found = found.and_then(|(mime_type, bytes)| {
            total += bytes.len();
            if total > MAX_TOTAL { Err(NotShown::TooMany) } else { Ok((mime_type, bytes)) }
        });
        match found {
            Ok((mime_type, bytes)) => {
                block.kind = ContentType::Image;
                block.url = format!("data:{mime_type};base64,{}", STANDARD.encode(bytes));
                mime_type.clone_into(&mut block.mime_type);
            }
            Err(error) => {
                let (event_id, reference) = (&event.event_id, &block.url);
                tracing::warn!(%event_id, reference, channel = event.channel.as_str(), account = event.account,
                    "an image of event {event_id} is not shown to the model: {error}");
                // A provider's placeholder names it by this.
                block.name = Some(format!("not available: {}", reason(&error)));
            }
        }
    }
    content
}

/// Whether a block is a picture that lies somewhere else.
fn is_image(block: &ContentBlock) -> bool {
    let kind = match block.kind {
        ContentType::Image => true,
        ContentType::File => IMAGES.contains(&block.mime_type.as_str()),
        ContentType::Text | ContentType::Audio | ContentType::Voice | ContentType::Video | ContentType::Unknown => {
            false
        }
    };
    kind && Files::is_reference(&block.url)
}

async fn read(
    files: &Files,
    event: &InboundEvent,
    n: usize,
    block: &ContentBlock,
) -> Result<(&'static str, Bytes), NotShown> {
    if n >= MAX_IMAGES {
        return Err(NotShown::TooMany);
    }
    if block.size.and_then(|size| usize::try_from(size).ok()).is_some_and(|size| size > MAX_BYTES) {
        return Err(FileError::TooLarge.into());
    }
    let bytes = files.read(event.channel, &event.account, &block.url).await?;
    let mime_type = image_type(&bytes).ok_or(FileError::WrongType)?;
    Ok((mime_type, bytes))
}

/// Why a model is not shown an image.
#[derive(Debug, thiserror::Error)]
enum NotShown {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("its message has too many")]
    TooMany,
}

/// What the model is told: neutral, and nothing that somebody else wrote.
fn reason(not_shown: &NotShown) -> &'static str {
    match not_shown {
        NotShown::TooMany => "too many images",
        NotShown::File(FileError::TooLarge) => "too large",
        NotShown::File(FileError::Gone) => "no longer there",
        NotShown::File(FileError::WrongType) => "not an image",
        NotShown::File(
            FileError::MissingScope(_) | FileError::ForeignHost | FileError::NoClient | FileError::Unavailable(_),
        ) => "it could not be read",
    }
}
