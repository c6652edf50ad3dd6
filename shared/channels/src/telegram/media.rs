//! The media of a message: files as references, the rest as words. A reference names a file of this bot; the link to its
//! bytes holds the bot's token, so it is made when the file is read and never before.

use serde_json::Value;
use turnlock_domain::event::{ContentBlock, ContentType};
use turnlock_domain::text::clean;

use super::FILE_SCHEME;
use crate::json;
use crate::quote::one_line;

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
const UNSUPPORTED: [&str; 8] =
    ["game", "story", "checklist", "paid_media", "giveaway", "invoice", "rich_message", "live_photo"];

/// The most options of a poll (Bot API, `sendPoll`: 12).
const MAX_OPTIONS: usize = 12;

/// The longest reference to a file: theirs have less than a hundred characters.
const MAX_FILE_ID: usize = 512;

/// The blocks of the message's files.
pub(super) fn blocks(message: &Value) -> Vec<ContentBlock> {
    let photo = json::list(message, "/photo").iter().max_by_key(|size| area(size));
    let photo = photo.and_then(|photo| block(photo, ContentType::Image, "image/jpeg"));
    let file = FILES.iter().find_map(|(field, kind, mime)| block(message.get(field)?, *kind, mime));
    photo.into_iter().chain(file).collect()
}

/// What a message without text or file says, in words for the model; one line, as brackets are ours.
pub(super) fn described(message: &Value) -> Option<String> {
    let text = |pointer: &str| json::string(message, pointer).map(one_line).unwrap_or_default();
    let listed = |parts: [String; 3]| parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    let has = |field| message.get(field).is_some();
    let words = if has("sticker") {
        let set = Some(text("/sticker/set_name")).filter(|set| !set.is_empty());
        format!("sticker {}{}", text("/sticker/emoji"), set.map(|set| format!(" of the set {set}")).unwrap_or_default())
    } else if has("venue") {
        // A venue comes with its `location` a second time.
        format!("venue: {}", listed([text("/venue/title"), text("/venue/address"), place(message, "/venue/location")]))
    } else if has("location") {
        format!("location: {}", place(message, "/location"))
    } else if has("contact") {
        format!(
            "contact: {}",
            listed(["first_name", "last_name", "phone_number"].map(|f| text(&format!("/contact/{f}"))))
        )
    } else if has("poll") {
        let options = json::list(message, "/poll/options").iter().take(MAX_OPTIONS);
        let options: Vec<_> = options.filter_map(|option| json::string(option, "/text")).map(one_line).collect();
        format!("poll: {} {}", text("/poll/question"), options.join("; "))
    } else if has("dice") {
        let value = json::integer(message, "/dice/value").map(|value| format!(": {value}"));
        format!("dice {}{}", text("/dice/emoji"), value.unwrap_or_default())
    } else {
        return None;
    };
    Some(format!("[{}]", words.trim()))
}

/// A message in a word, where it has no text that could be quoted.
pub(super) fn word(message: &Value) -> Option<String> {
    let fields = ["photo"].into_iter().chain(FILES.iter().map(|(field, ..)| *field)).chain(UNSUPPORTED);
    let named = || fields.into_iter().find(|field| message.get(field).is_some());
    described(message).or_else(|| named().map(|field| format!("[{}]", field.replace('_', " "))))
}

/// Latitude and longitude.
fn place(message: &Value, pointer: &str) -> String {
    let side = |name| message.pointer(&format!("{pointer}/{name}")).and_then(Value::as_f64);
    match (side("latitude"), side("longitude")) {
        (Some(latitude), Some(longitude)) => format!("{latitude:.6}, {longitude:.6}"),
        _ => String::new(),
    }
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
