//! Drains the inbound queue: a turn a record.

use std::process::ExitCode;
use std::sync::Arc;

use turnlock_app::settings::AgentSettings;
use turnlock_app::turn::Agent;
use turnlock_config::names;
use turnlock_lambda::Function;
use turnlock_lambda::batch::{self, Batch};

const FUNCTION: Function = Function {
    settings: &[
        names::TABLE,
        names::INBOUND_QUEUE,
        names::OUTBOUND_QUEUE,
        names::CONSOLIDATE_QUEUE,
        names::REVIEW_QUEUE,
        names::DEAD_LETTER_QUEUE,
        names::SECRETS,
        names::TURN_SECONDS,
    ],
    needs: &["*.api_key", "tools.*.bearer"],
    for_images: &["telegram.*.bot_token", "slack.*.bot_token"],
};

fn main() -> ExitCode {
    turnlock_lambda::main(FUNCTION, async |start| {
        batch::serve(
            start,
            |start, config| {
                let store = start.store()?;
                Ok(Agent {
                    inbound: start.queue(names::INBOUND_QUEUE)?,
                    dead_letters: start.queue(names::DEAD_LETTER_QUEUE)?,
                    outbound: start.queue(names::OUTBOUND_QUEUE)?,
                    consolidate: start.queue(names::CONSOLIDATE_QUEUE)?,
                    review: start.queue(names::REVIEW_QUEUE)?,
                    models: start.models(config)?,
                    tools: Arc::new(start.tools(config, &store)?),
                    files: start.files(config)?,
                    settings: Arc::new(AgentSettings::from_config(config)),
                    store,
                })
            },
            async |agent: &Agent, batch: Batch| {
                batch.each(&*agent.inbound, async |record, deadline| agent.handle(record, deadline).await).await
            },
        )
        .await
    })
}
