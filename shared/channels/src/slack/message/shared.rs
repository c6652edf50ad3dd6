//! Messages that a person passed on or linked: Slack sends them as attachments, with their text. For the model each is a
//! quotation before the person's own text, as in Telegram; links to it and to its files stay out.

use serde_json::{Value, json};
use turnlock_domain::event::ContentBlock;
use turnlock_domain::text::is_blank;

use super::files;
use crate::json;
use crate::quote::{one_line, quoted};
use crate::slack::text::readable;

/// The most messages that one message passes on.
const MAX_SHARED: usize = 5;

/// The quotations, then the references of their files. Previews of other links say nothing that the text does not.
pub(super) fn blocks(event: &Value, bot_user: &str) -> (Vec<ContentBlock>, Vec<ContentBlock>) {
    let attachments = json::list(event, "/attachments").iter();
    let shared: Vec<_> = attachments.filter(|shared| is_message(shared)).take(MAX_SHARED).collect();
    let quotations = shared.iter().filter_map(|shared| quotation(shared, bot_user)).collect();
    (quotations, shared.iter().flat_map(|shared| files(shared)).collect())
}

fn is_message(attachment: &Value) -> bool {
    json::flag(attachment, "/is_share") || json::flag(attachment, "/is_msg_unfurl")
}

fn quotation(shared: &Value, bot_user: &str) -> Option<ContentBlock> {
    let said = readable(json::string(shared, "/text").or_else(|| json::string(shared, "/fallback"))?, bot_user).text;
    if is_blank(&said) {
        return None;
    }
    let ours = json::string(shared, "/author_id").is_some_and(|author| author == bot_user);
    let name = json::string(shared, "/author_name").or_else(|| json::string(shared, "/author_subname")).map(one_line);
    let heading = match name.filter(|name| !name.is_empty()) {
        _ if ours => "shared: your message".to_owned(),
        Some(name) => format!("shared: a message of {name}"),
        None => "shared: a message".to_owned(),
    };
    let metadata = json::facts([("context", Some(json!("forward")))]);
    Some(ContentBlock { metadata, ..ContentBlock::text(quoted(&heading, &said)) })
}
