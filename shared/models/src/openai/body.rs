//! An answer's bytes as events: framing, silence and size.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use tokio::time::timeout;

use super::chunk::Decoder;
use super::sse::{SseParser, TooLong};
use crate::error::ModelError;
use crate::event::ModelEvent;

/// The most bytes of one answer.
const ANSWER_MAX: usize = 16 << 20;
/// How long the usage may follow the end of the answer: some servers keep the connection open and send none.
const USAGE_WAIT: Duration = Duration::from_secs(5);

/// The events of a successful response. `is_stream` is false where a server answered with one JSON object instead.
pub(super) fn events(
    bytes: BoxStream<'static, reqwest::Result<Bytes>>,
    is_stream: bool,
    idle: Duration,
) -> impl Stream<Item = Result<ModelEvent, ModelError>> + Send {
    let framing = if is_stream { Framing::Events(SseParser::default()) } else { Framing::Whole(Vec::new()) };
    let body = Body { bytes, framing, decoder: Decoder::default(), ready: VecDeque::new(), read: 0, idle, over: false };
    stream::unfold(body, |mut body| async move {
        let item = body.next().await?;
        Some((item, body))
    })
}

struct Body {
    bytes: BoxStream<'static, reqwest::Result<Bytes>>,
    framing: Framing,
    decoder: Decoder,
    ready: VecDeque<Result<ModelEvent, ModelError>>,
    read: usize,
    idle: Duration,
    over: bool,
}

enum Framing {
    Events(SseParser),
    Whole(Vec<u8>),
}

/// What stands in place of a chunk at the end of a stream.
const DONE: &str = "[DONE]";

impl Body {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            if self.over {
                return None;
            }
            if let Err(error) = self.read().await {
                self.over = true;
                self.ready.push_back(Err(error));
            }
        }
    }

    /// Reads the next bytes and decodes what they complete.
    async fn read(&mut self) -> Result<(), ModelError> {
        let is_whole = self.decoder.is_finished();
        let wait = if is_whole { USAGE_WAIT.min(self.idle) } else { self.idle };
        match timeout(wait, self.bytes.next()).await {
            Ok(Some(Ok(bytes))) => self.take(&bytes),
            Ok(None) => self.end(),
            Ok(Some(Err(_))) | Err(_) if is_whole => self.end(),
            Ok(Some(Err(error))) => Err(ModelError::Interrupted(error.into())),
            Err(_) => Err(ModelError::Timeout),
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        self.read += bytes.len();
        if self.read > ANSWER_MAX {
            return Err(ModelError::Interrupted(format!("the answer is longer than {ANSWER_MAX} bytes").into()));
        }
        match &mut self.framing {
            Framing::Whole(whole) => whole.extend_from_slice(bytes),
            Framing::Events(parser) => {
                for data in parser.push(bytes).map_err(too_long)? {
                    self.chunk(&data)?;
                }
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), ModelError> {
        let rest = match &mut self.framing {
            Framing::Events(parser) => parser.finish().map_err(too_long)?,
            Framing::Whole(whole) => Some(String::from_utf8_lossy(whole).into_owned()),
        };
        if let Some(rest) = rest {
            self.chunk(&rest)?;
        }
        self.stop()
    }

    fn chunk(&mut self, data: &str) -> Result<(), ModelError> {
        let data = data.trim();
        if self.over || data.is_empty() {
            return Ok(());
        }
        if data == DONE {
            return self.stop();
        }
        let events = self.decoder.chunk(data)?;
        self.ready.extend(events.into_iter().map(Ok));
        Ok(())
    }

    fn stop(&mut self) -> Result<(), ModelError> {
        if !self.over {
            self.over = true;
            let stop = self.decoder.stop()?;
            self.ready.extend(stop.into_iter().map(Ok));
        }
        Ok(())
    }
}

fn too_long(error: TooLong) -> ModelError {
    ModelError::Interrupted(error.into())
}
