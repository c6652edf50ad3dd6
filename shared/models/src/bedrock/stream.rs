//! A stream of the wire's events as ours: silence, breaks and the end.

use std::collections::VecDeque;
use std::time::Duration;

use aws_sdk_bedrockruntime::primitives::event_stream::EventReceiver;
use aws_sdk_bedrockruntime::types::ConverseStreamOutput;
use aws_sdk_bedrockruntime::types::error::ConverseStreamOutputError;
use futures_util::{Stream, stream};
use tokio::time::timeout;

use super::decode::Decoder;
use super::failure;
use crate::error::ModelError;
use crate::event::ModelEvent;

/// How long the usage, and then the end of the connection's answer, may follow the end of the message.
const USAGE_WAIT: Duration = Duration::from_secs(5);

type Receiver = EventReceiver<ConverseStreamOutput, ConverseStreamOutputError>;

/// The events of a successful response.
pub(super) fn events(receiver: Receiver, idle: Duration) -> impl Stream<Item = Result<ModelEvent, ModelError>> + Send {
    let reader = Reader { receiver, decoder: Decoder::default(), ready: VecDeque::new(), idle, over: false };
    stream::unfold(reader, |mut reader| async move {
        let item = reader.next().await?;
        Some((item, reader))
    })
}

struct Reader {
    receiver: Receiver,
    decoder: Decoder,
    ready: VecDeque<ModelEvent>,
    idle: Duration,
    over: bool,
}

impl Reader {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if self.over {
                return None;
            }
            if let Err(error) = self.read().await {
                self.over = true;
                return Some(Err(error));
            }
        }
    }

    /// Reads the next event. The stream is read to its end, so that its connection can serve the next request; a message
    /// that is whole is not lost by what happens after it.
    async fn read(&mut self) -> Result<(), ModelError> {
        let is_whole = self.decoder.is_finished();
        let wait = if is_whole { USAGE_WAIT.min(self.idle) } else { self.idle };
        match timeout(wait, self.receiver.recv()).await {
            Ok(Ok(Some(event))) => self.ready.extend(self.decoder.event(event)?),
            Ok(Ok(None)) => self.end()?,
            Ok(Err(_)) | Err(_) if is_whole => self.end()?,
            Ok(Err(error)) => return Err(failure::inside_the_answer(error)),
            Err(_) => return Err(ModelError::Timeout),
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), ModelError> {
        self.over = true;
        self.ready.push_back(self.decoder.stop()?);
        Ok(())
    }
}
