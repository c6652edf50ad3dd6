//! Server-sent events of one message: read as they come, resumed where the connection ended.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::anyhow;
use reqwest::{Response, StatusCode};
use serde_json::Value;

use super::{Client, sentence};
use crate::console;

/// How often a broken stream is resumed without a word from it: half a minute, in which a host is started again.
const RESUMES: u32 = 60;
const PAUSE: Duration = Duration::from_millis(500);
/// After so many of them a person is told why nothing comes.
const TOLD_AFTER: u32 = 3;

/// What a message came to, so far or for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    /// The whole text so far.
    Frame(String),
    /// What a person is asked; the answer goes on once somebody has decided.
    Asks {
        /// The approval's id.
        approval: String,
        /// The card.
        card: String,
    },
    /// The answer.
    Final(String),
}

/// The news of one message.
pub(crate) struct Events {
    client: Client,
    path: String,
    response: Option<Response>,
    reader: Reader,
    failures: u32,
}

impl Events {
    pub(super) fn new(client: Client, path: String) -> Self {
        Self { client, path, response: None, reader: Reader::default(), failures: 0 }
    }

    /// The next news. May be dropped and called again at any time.
    pub(crate) async fn next(&mut self) -> anyhow::Result<News> {
        loop {
            if let Some(news) = self.reader.next() {
                self.failures = 0;
                return Ok(news);
            }
            if self.response.is_none() {
                self.connect().await?;
            }
            let Some(response) = &mut self.response else { continue };
            match response.chunk().await {
                Ok(Some(chunk)) => self.reader.take(&chunk),
                // The host ended it, or is gone: what was shown is known, the rest is asked for again.
                Ok(None) | Err(_) => self.response = None,
            }
        }
    }

    async fn connect(&mut self) -> anyhow::Result<()> {
        if self.failures > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        self.failures += 1;
        self.reader.forget_half();
        let host = self.client.host();
        let error = match self.client.stream(&self.path, self.reader.seen.as_deref()).await {
            Ok(response) if response.status() == StatusCode::OK => {
                self.response = Some(response);
                return Ok(());
            }
            Ok(response) => {
                let status = response.status();
                let body = response.text().await.unwrap_or_default();
                let error = anyhow!("the host does not stream the answer: {}", sentence(status, &body));
                // One that was started again has a new token, and tells it when it listens.
                if status.is_client_error() && status != StatusCode::UNAUTHORIZED {
                    return Err(error);
                }
                error
            }
            Err(error) => error,
        };
        if self.client.follow_restart(&host) {
            return Ok(());
        }
        if self.failures > RESUMES {
            return Err(error.context("the answer is not lost: it is in the session when the host runs again"));
        }
        if self.failures == TOLD_AFTER {
            console::aside("(the host does not answer: I try again for half a minute, in which it can be started)");
        }
        Ok(())
    }
}

/// Takes bytes, gives events (WHATWG HTML, "Interpreting an event stream", as far as our own host writes it).
#[derive(Debug, Default)]
struct Reader {
    buffer: Vec<u8>,
    ready: VecDeque<News>,
    seen: Option<String>,
}

impl Reader {
    fn take(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
        while let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
            let block: Vec<u8> = self.buffer.drain(..end + 2).collect();
            self.read(&String::from_utf8_lossy(&block));
        }
    }

    fn read(&mut self, block: &str) {
        let (mut id, mut name, mut data) = (None, "", "");
        for line in block.lines() {
            match line.split_once(": ") {
                Some(("id", value)) => id = Some(value.to_owned()),
                Some(("event", value)) => name = value,
                Some(("data", value)) => data = value,
                _ => {}
            }
        }
        let field = |name: &str| serde_json::from_str::<Value>(data).ok()?[name].as_str().map(str::to_owned);
        let text = || field("text");
        let news = match name {
            "frame" => text().map(News::Frame),
            "approval" => field("approval").zip(text()).map(|(approval, card)| News::Asks { approval, card }),
            "merged" => Some(News::Final(String::new())),
            "final" => Some(News::Final(text().unwrap_or_default())),
            _ => None,
        };
        self.seen = id.or_else(|| self.seen.take());
        self.ready.extend(news);
    }

    fn next(&mut self) -> Option<News> {
        self.ready.pop_front()
    }

    /// A new connection begins with a whole event.
    fn forget_half(&mut self) {
        self.buffer.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "retry: 1000\n\n: waiting\n\nid: 1.1\nevent: frame\ndata: {\"text\":\"Hé\",\"kind\":\"streaming\"}\n\n\
                          id: final\nevent: final\ndata: {\"text\":\"Héllo\",\"kind\":\"final\"}\n\n";

    #[test]
    fn every_chunking_gives_the_same_events() {
        for size in 1..STREAM.len() {
            let mut reader = Reader::default();
            STREAM.as_bytes().chunks(size).for_each(|chunk| reader.take(chunk));
            let news: Vec<News> = std::iter::from_fn(|| reader.next()).collect();
            assert_eq!(news, [News::Frame("Hé".into()), News::Final("Héllo".into())], "chunks of {size}");
            assert_eq!(reader.seen.as_deref(), Some("final"));
        }
    }

    #[test]
    fn a_card_asks_and_what_another_turn_took_up_is_over() {
        let mut reader = Reader::default();
        reader.take(b"id: 1.9\nevent: approval\ndata: {\"text\":\"May I?\",\"approval\":\"a1\"}\n\n");
        reader.take(b"id: final\nevent: merged\ndata: {\"merged_into\":\"e1\"}\n\n");
        let news: Vec<News> = std::iter::from_fn(|| reader.next()).collect();
        assert_eq!(news, [News::Asks { approval: "a1".into(), card: "May I?".into() }, News::Final(String::new())]);
    }

    #[test]
    fn half_an_event_is_forgotten_when_the_connection_ends() {
        let mut reader = Reader::default();
        reader.take(b"id: 1.1\nevent: frame\nda");
        reader.forget_half();
        reader.take(b"id: 1.2\nevent: frame\ndata: {\"text\":\"a\"}\n\n");
        assert_eq!(reader.next(), Some(News::Frame("a".into())));
        assert_eq!(reader.seen.as_deref(), Some("1.2"));
    }
}
