//! Albums: the turn of several messages that a person sent as one begins once no more of them come.
//!
//! The first record of an album is handed back until the album has been quiet; its group hides what comes behind it. That
//! is no attempt and takes no lock. Then the album is closed, and its parts are the event's content, the same ones at
//! every redelivery.

use std::time::Duration;

use turnlock_domain::event::{ContentBlock, ContentType};
use turnlock_store::StoreError;
use turnlock_store::albums::{Closed, ContentBlocks, MAX_PARTS};

use super::{Agent, Handled, Receive};

/// How long nothing must have come.
const QUIET: Duration = Duration::from_millis(1500);

/// How long after its first part an album may still be gathered. Until then receives say nothing about deaths or outages.
pub(super) const LONGEST: Duration = QUIET.saturating_mul(MAX_PARTS as u32);

impl Agent {
    /// Puts the album's parts into the event, or hands the record back because more may come.
    pub(super) async fn gather(&self, receive: &mut Receive<'_>) -> Result<Option<Handled>, StoreError> {
        let album = &receive.envelope.event.event_id;
        // What was given up waits for nothing.
        let quiet = if receive.dead_letter { Duration::ZERO } else { QUIET };
        match self.store.close_album(album, quiet, self.store.clock().now_ms()).await? {
            Closed::Whole(parts) => {
                // It was received for nothing once for every part that came meanwhile.
                receive.gathering = u32::try_from(parts.len()).unwrap_or(u32::MAX);
                receive.envelope.event.content = content(parts);
            }
            Closed::NotQuiet(after) => return Ok(Some(self.back(receive, after).await)),
            // Its time is over; the part that made the event is in the event.
            Closed::Unknown => {}
        }
        Ok(None)
    }
}

/// The parts as one content. One text (a caption may stand on any part) comes first; where several parts have their own,
/// each stays before its part. The same block twice is one: every part of an answer quotes what it answers.
fn content(parts: Vec<ContentBlocks>) -> ContentBlocks {
    let mut content: ContentBlocks = Vec::new();
    let mut with_text = 0;
    for part in parts {
        let new: Vec<ContentBlock> = part.into_iter().filter(|block| !content.contains(block)).collect();
        with_text += usize::from(new.iter().any(is_text));
        content.extend(new);
    }
    if with_text == 1 {
        content.sort_by_key(|block| !is_text(block));
    }
    content
}

fn is_text(block: &ContentBlock) -> bool {
    block.kind == ContentType::Text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(url: &str) -> ContentBlock {
        ContentBlock { kind: ContentType::Image, url: url.to_owned(), ..ContentBlock::default() }
    }

    fn texts(parts: Vec<ContentBlocks>) -> Vec<String> {
        content(parts).into_iter().map(|block| block.text + &block.url).collect()
    }

    #[test]
    fn one_text_comes_first_and_several_stay_with_their_parts() {
        let text = ContentBlock::text;
        let last = vec![vec![image("1")], vec![image("2")], vec![text("a"), image("3")]];
        assert_eq!(texts(last), ["a", "1", "2", "3"]);
        let both = vec![vec![text("a"), image("1")], vec![image("2")], vec![text("b"), image("3")]];
        assert_eq!(texts(both), ["a", "1", "2", "b", "3"]);
        let quoted = vec![vec![text("q"), image("1")], vec![text("q"), image("2")]];
        assert_eq!(texts(quoted), ["q", "1", "2"]);
        assert_eq!(texts(vec![vec![image("1")], vec![image("1")]]), ["1"]);
        assert!(texts(Vec::new()).is_empty());
    }
}
