//! The demo's stand-in at the pace of a real model, for whoever asks it to: a message that begins with "slowly" is
//! answered word by word, so that there is a stream to watch and a turn to stop. All others are answered at once.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use turnlock_domain::message::Role;
use turnlock_models::{Capabilities, Model, ModelError, ModelEvent, ModelRequest, ModelStream};

/// What a message that is answered slowly begins with.
pub(crate) const WORD: &str = "slowly";

/// As a model that writes about ten words a second.
const PAUSE: Duration = Duration::from_millis(100);

/// A model that can take its time.
pub(crate) struct Unhurried(pub(crate) Arc<dyn Model>);

#[async_trait]
impl Model for Unhurried {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    async fn stream(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        let answer = self.0.stream(request).await?;
        if !wants_time(request) {
            return Ok(answer);
        }
        let pieces = answer.flat_map(|event| stream::iter(pieces(event)));
        Ok(Box::pin(pieces.then(async |event| {
            if matches!(event, Ok(ModelEvent::Text(_))) {
                tokio::time::sleep(PAUSE).await;
            }
            event
        })))
    }
}

fn wants_time(request: &ModelRequest) -> bool {
    let newest = request.messages.iter().rev().find(|message| message.role == Role::User);
    newest.is_some_and(|message| {
        message.text().trim_start().get(..WORD.len()).is_some_and(|word| word.eq_ignore_ascii_case(WORD))
    })
}

/// A text word by word; everything else as it is.
fn pieces(event: Result<ModelEvent, ModelError>) -> Vec<Result<ModelEvent, ModelError>> {
    match event {
        Ok(ModelEvent::Text(text)) => {
            text.split_inclusive(char::is_whitespace).map(|word| Ok(ModelEvent::Text(word.to_owned()))).collect()
        }
        other => vec![other],
    }
}
