//! The images and documents of the event at hand, as a model that takes them is shown them. They are fetched when the model
//! is asked, by reference, and stand in that turn's requests alone: history, journal and logs keep the reference, and a turn
//! that is resumed fetches again.
//!
//! Nothing here fails a turn: a file that cannot be had stays a reference, with the reason in its place, and the log has a
//! line. Each request to a platform ends in time, and all of them run beside each other.

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
use turnlock_domain::text::is_blank;

/// The most images of one event that a model is shown: an album has no more.
const MAX_IMAGES: usize = 10;
/// The most documents: Bedrock takes no more in one request.
const MAX_DOCUMENTS: usize = 5;
/// The most bytes of all of them: with base64 and the text a request stays below what providers take (20 MB).
const MAX_TOTAL: usize = 12_000_000;

/// What a picture may come as when it was sent as a document.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Documents that models take, by media type, with the ends of their names.
const DOCUMENTS: [(&str, &[&str]); 9] = [
    ("application/pdf", &["pdf"]),
    ("application/msword", &["doc"]),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", &["docx"]),
    ("application/vnd.ms-excel", &["xls"]),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", &["xlsx"]),
    ("text/csv", &["csv"]),
    ("text/html", &["html", "htm"]),
    ("text/markdown", &["md", "markdown"]),
    ("text/plain", &["txt", "log", "json", "xml", "yaml", "yml", "toml", "ini"]),
];

/// Other media types whose files are text.
const TEXTS: [&str; 5] =
    ["application/json", "application/toml", "application/xml", "application/yaml", "application/x-yaml"];

/// What of an event's files a model is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Shown {
    /// Images.
    pub(crate) images: bool,
    /// Documents.
    pub(crate) documents: bool,
}

/// What a file is to become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Image,
    /// A document of this media type.
    Document(&'static str),
}

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

/// The content of `event` with those of its files in it that are shown.
pub(crate) async fn with_files(files: &Files, event: &InboundEvent, shown: Shown) -> Vec<ContentBlock> {
    let mut content = event.content.clone();
    let mut counts = (0, 0);
    let wanted: Vec<(&mut ContentBlock, Kind, bool)> = content
        .iter_mut()
        .filter_map(|block| {
            let kind = kind(block, shown)?;
            let (count, most) = match kind {
                Kind::Image => (&mut counts.0, MAX_IMAGES),
                Kind::Document(_) => (&mut counts.1, MAX_DOCUMENTS),
            };
            *count += 1;
            Some((block, kind, *count > most))
        })
        .collect();
    let found = join_all(wanted.iter().map(|(block, kind, beyond)| read(files, event, block, *kind, *beyond))).await;
    let mut total = 0;
    for ((block, kind, _), found) in wanted.into_iter().zip(found) {
        let found = found.and_then(|(mime_type, bytes)| {
            // What is not shown takes no room from those behind it.
            if total + bytes.len() > MAX_TOTAL {
                return Err(NotShown::TooMany);
            }
            total += bytes.len();
            Ok((mime_type, bytes))
        });
        match found {
            Ok((mime_type, bytes)) => {
                block.kind = match kind {
                    Kind::Image => ContentType::Image,
                    Kind::Document(_) => ContentType::File,
                };
                block.url = format!("data:{mime_type};base64,{}", STANDARD.encode(bytes));
                mime_type.clone_into(&mut block.mime_type);
            }
            Err(error) => {
                let (event_id, reference) = (&event.event_id, &block.url);
                let what = match kind {
                    Kind::Image => "an image",
                    Kind::Document(_) => "a document",
                };
                tracing::warn!(%event_id, reference, channel = event.channel.as_str(), account = event.account,
                    "{what} of event {event_id} is not shown to the model: {error}");
                // A provider's placeholder names it by this; a file's name has no colon.
                let why = reason(&error, kind);
                block.name = Some(match kind {
                    Kind::Image => format!("not available: {why}"),
                    Kind::Document(_) => format!("not available ({why})"),
                });
            }
        }
    }
    content
}

/// What a block that lies somewhere else is shown as, if it is.
fn kind(block: &ContentBlock, shown: Shown) -> Option<Kind> {
    if !Files::is_reference(&block.url) {
        None
    } else if is_image(block) {
        shown.images.then_some(Kind::Image)
    } else if block.kind == ContentType::File && shown.documents {
        document_type(block).map(Kind::Document)
    } else {
        None
    }
}

/// The media type of a document, by what the sender calls it; [`is_of`] looks at what it is.
fn document_type(block: &ContentBlock) -> Option<&'static str> {
    let mime_type = block.mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let end = block.name.as_deref().and_then(|name| name.rsplit_once('.')).map(|(_, end)| end.to_ascii_lowercase());
    let by_type = DOCUMENTS.iter().find(|(known, _)| *known == mime_type && mime_type != "text/plain");
    let by_name = || DOCUMENTS.iter().find(|(_, ends)| end.as_deref().is_some_and(|end| ends.contains(&end)));
    let text = || (mime_type.starts_with("text/") || TEXTS.contains(&mime_type.as_str())).then_some("text/plain");
    by_type.or_else(by_name).map(|(known, _)| *known).or_else(text)
}

/// Whether bytes can be of a document's media type: names and declared types are the sender's words.
fn is_of(mime_type: &str, bytes: &[u8]) -> bool {
    match mime_type {
        "application/pdf" => bytes.starts_with(b"%PDF-"),
        "application/msword" | "application/vnd.ms-excel" => bytes.starts_with(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"),
        office if office.starts_with("application/") => bytes.starts_with(b"PK\x03\x04"),
        _ => std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0') && !is_blank(text)),
    }
}

fn is_image(block: &ContentBlock) -> bool {
    match block.kind {
        ContentType::Image => true,
        ContentType::File => IMAGES.contains(&block.mime_type.as_str()),
        ContentType::Text | ContentType::Audio | ContentType::Voice | ContentType::Video | ContentType::Unknown => {
            false
        }
    }
}

async fn read(
    files: &Files,
    event: &InboundEvent,
    block: &ContentBlock,
    kind: Kind,
    beyond: bool,
) -> Result<(&'static str, Bytes), NotShown> {
    if beyond {
        return Err(NotShown::TooMany);
    }
    if block.size.and_then(|size| usize::try_from(size).ok()).is_some_and(|size| size > MAX_BYTES) {
        return Err(FileError::TooLarge.into());
    }
    let bytes = files.read(event.channel, &event.account, &block.url).await?;
    let mime_type = match kind {
        Kind::Image => image_type(&bytes).ok_or(FileError::WrongType)?,
        Kind::Document(mime_type) if is_of(mime_type, &bytes) => mime_type,
        Kind::Document(_) => return Err(NotShown::OtherDocument),
    };
    Ok((mime_type, bytes))
}

/// Why a model is not shown a file.
#[derive(Debug, thiserror::Error)]
enum NotShown {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("its message has too many")]
    TooMany,
    #[error("it is not what it is called")]
    OtherDocument,
}

/// What the model is told: neutral, and nothing that somebody else wrote.
fn reason(not_shown: &NotShown, kind: Kind) -> &'static str {
    match not_shown {
        NotShown::TooMany if kind == Kind::Image => "too many images",
        NotShown::TooMany => "too many documents",
        NotShown::OtherDocument => "not a document of its type",
        NotShown::File(FileError::TooLarge) => "too large",
        NotShown::File(FileError::Gone) => "no longer there",
        NotShown::File(FileError::WrongType) => "not an image",
        NotShown::File(
            FileError::MissingScope(_) | FileError::ForeignHost | FileError::NoClient | FileError::Unavailable(_),
        ) => "it could not be read",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use turnlock_channels::http::{PlatformError, PlatformRequest, PlatformResponse};

    use super::*;

    fn file(name: &str, mime_type: &str) -> ContentBlock {
        let name = (!name.is_empty()).then(|| name.to_owned());
        ContentBlock { name, ..ContentBlock::media(ContentType::File, "telegram-file:F", mime_type) }
    }

    #[test]
    fn a_document_is_taken_for_what_it_is_called() {
        let word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
        let table = [
            ("a.pdf", "application/pdf", Some("application/pdf")),
            ("a.PDF", "application/octet-stream", Some("application/pdf")),
            ("", word, Some(word)),
            ("report.docx", "application/zip", Some(word)),
            ("a.csv", "text/plain; charset=utf-8", Some("text/csv")),
            ("a.csv", "text/csv", Some("text/csv")),
            ("notes", "text/x-rust", Some("text/plain")),
            ("a.json", "application/json", Some("text/plain")),
            ("data", "application/json", Some("text/plain")),
            ("a.zip", "application/zip", None),
            ("a.exe", "", None),
            ("", "", None),
        ];
        for (name, mime_type, want) in table {
            assert_eq!(document_type(&file(name, mime_type)), want, "{name} {mime_type}");
        }
    }

    #[test]
    fn what_it_is_its_bytes_say() {
        let table: [(&str, &[u8], bool); 9] = [
            ("application/pdf", b"%PDF-1.7", true),
            ("application/pdf", b"MZ", false),
            ("application/msword", b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1x", true),
            ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", b"PK\x03\x04x", true),
            ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", b"%PDF-", false),
            ("text/csv", "id,näme\n".as_bytes(), true),
            ("text/csv", b"id,n\xe4me", false),
            ("text/plain", b"a\0b", false),
            ("text/plain", b" \n", false),
        ];
        for (mime_type, bytes, want) in table {
            assert_eq!(is_of(mime_type, bytes), want, "{mime_type} {bytes:?}");
        }
    }

    /// Telegram with a file of each size: its id is its size in bytes.
    struct Telegram;

    #[async_trait::async_trait]
    impl PlatformHttp for Telegram {
        async fn send(&self, request: PlatformRequest, _: Duration) -> Result<PlatformResponse, PlatformError> {
            let body = match serde_json::from_slice::<serde_json::Value>(&request.body) {
                Ok(asked) => {
                    let path = format!("documents/{}", asked["file_id"].as_str().unwrap_or_default());
                    let answer = serde_json::json!({ "ok": true, "result": { "file_path": path } });
                    Bytes::from(answer.to_string())
                }
                Err(_) => {
                    let size = request.url.rsplit('/').next().and_then(|size| size.parse().ok()).expect("a size");
                    Bytes::from("x".repeat(size))
                }
            };
            Ok(PlatformResponse { status: 200, headers: http::HeaderMap::new(), body })
        }
    }

    #[tokio::test]
    async fn a_file_that_is_refused_takes_no_room_from_others() {
        let client = telegram::Client::new(Arc::new(Telegram), "main", "1:token".into(), "http://telegram.invalid");
        let sizes = [3_700_000, 3_700_000, 3_700_000, 3_700_000, 10_000];
        let blocks = sizes.map(|size| ContentBlock {
            name: Some("a.txt".to_owned()),
            ..ContentBlock::media(ContentType::File, format!("telegram-file:{size}"), "text/plain")
        });
        let mut event: InboundEvent = serde_json::from_value(serde_json::json!({
            "event_id": "e1", "event_type": "message", "channel": "telegram", "chat_id": "5", "sender_id": "7",
            "timestamp": "2026-01-05T09:00:00Z", "content": [],
        }))
        .expect("an event");
        event.content = blocks.into();
        let shown = Shown { documents: true, ..Shown::default() };
        let content = with_files(&Files::new().with_telegram(client), &event, shown).await;
        let got: Vec<bool> = content.iter().map(|block| block.url.starts_with("data:")).collect();
        assert_eq!(got, [true, true, true, false, true]);
    }

    #[test]
    fn only_what_is_shown_is_fetched() {
        let (pdf, photo) = (file("a.pdf", "application/pdf"), file("a.png", "image/png"));
        let all = Shown { images: true, documents: true };
        assert_eq!(kind(&pdf, all), Some(Kind::Document("application/pdf")));
        assert_eq!(kind(&photo, all), Some(Kind::Image));
        assert_eq!(kind(&pdf, Shown { images: true, ..Shown::default() }), None);
        assert_eq!(kind(&photo, Shown { documents: true, ..Shown::default() }), None, "a picture is no document");
        let elsewhere = ContentBlock { url: "https://example.org/a.pdf".to_owned(), ..pdf };
        assert_eq!(kind(&elsewhere, all), None);
        let voice = ContentBlock::media(ContentType::Voice, "telegram-file:F", "text/plain");
        assert_eq!(kind(&voice, all), None);
    }
}
