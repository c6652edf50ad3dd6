//! The media of a message as references. A reference names a file of this bot; the link to its bytes holds the bot's
//! token, so it is made when the file is read and never before.

use serde_json::Value;
use turnlock_domain::event::{ContentBlock, ContentType};
use turnlock_domain::text::clean;

use super::FILE_SCHEME;
use crate::json;

/// The fields that hold one file each, what they are to us, and the media type where the field says it. An animation
/// comes with a `document` of the same file.
const FILES: [(&str, ContentType, &str); 6] = [
    ("animation", ContentType::Video, "video/mp4"),
    ("document", ContentType::File, "application/octet-stream"),
    ("audio", ContentType::Audio, "audio/mpeg"),
    ("voice", ContentType::Voice, "audio/ogg"),
    ("video", ContentType::Video, "video/mp4"),
    ("video_note", ContentType::Video, "video/mp4"),
];

/// Fields with which a person says something that this version cannot read.
const UNSUPPORTED: [&str; 14] = [
    "sticker",
    "location",
    "venue",
    "contact",
    "poll",
    "dice",
    "game",
    "story",
    "checklist",
    "paid_media",
    "giveaway",
    "invoice",
    "rich_message",
    "live_photo",
];

/// The longest reference to a file: theirs have less than a hundred characters.
const MAX_FILE_ID: usize = 512;

/// The blocks of the message's files.
pub(super) fn blocks(message: &Value) -> Vec<ContentBlock> {
    let photo = json::list(message, "/photo").iter().max_by_key(|size| area(size));
    let photo = photo.and_then(|photo| block(photo, ContentType::Image, "image/jpeg"));
    let file = FILES.iter().find_map(|(field, kind, mime)| block(message.get(field)?, *kind, mime));
    photo.into_iter().chain(file).collect()
}

/// Whether the message says something that this version cannot read.
pub(super) fn is_unsupported(message: &Value) -> bool {
    let files = FILES.iter().map(|(field, ..)| *field).chain(["photo"]);
    UNSUPPORTED.into_iter().chain(files).any(|field| message.get(field).is_some())
}

/// A photo comes in several sizes; the list's order is not documented.
fn area(size: &Value) -> i64 {
    let side = |pointer| json::integer(size, pointer).unwrap_or(0);
    side("/width").saturating_mul(side("/height"))
}

fn block(file: &Value, kind: ContentType, default_mime: &str) -> Option<ContentBlock> {
    let id = json::string(file, "/file_id").filter(|id| id.len() <= MAX_FILE_ID)?;
    let mime = json::string(file, "/mime_type").unwrap_or(default_mime);
    let mut block = ContentBlock::media(kind, format!("{FILE_SCHEME}{id}"), clean(mime));
    block.name = json::string(file, "/file_name").map(|name| clean(name).into_owned());
    block.size = json::integer(file, "/file_size").and_then(|size| u64::try_from(size).ok());
    block.metadata = json::facts([
        ("file_unique_id", file.get("file_unique_id").cloned()),
        ("width", file.get("width").cloned()),
        ("height", file.get("height").cloned()),
        ("duration", file.get("duration").cloned()),
    ]);
    Some(block)
}
