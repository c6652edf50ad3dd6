//! Drains both dead-letter queues: what was committed is sent, what was not is answered, everything is kept.

use std::process::ExitCode;
use std::sync::Arc;

use turnlock_app::dead_letter;
use turnlock_app::settings::AgentSettings;
use turnlock_app::turn::Agent;
use turnlock_config::names;
use turnlock_lambda::Function;
use turnlock_lambda::batch::{self, Batch};
use turnlock_models::{Router, Scripted, Wire};
use turnlock_queue::Queue;

const FUNCTION: Function = Function {
    settings: &[
        names::TABLE,
        names::OUTBOUND_QUEUE,
        names::CONSOLIDATE_QUEUE,
        names::REVIEW_QUEUE,
        names::DEAD_LETTER_QUEUE,
        names::JOB_DEAD_LETTER_QUEUE,
    ],
    needs: &[],
    for_images: &[],
};

fn main() -> ExitCode {
    turnlock_lambda::main(FUNCTION, async |start| {
        batch::serve(
            start,
            |start, config| {
                let dead_letters = start.queue(names::DEAD_LETTER_QUEUE)?;
                let agent = Agent {
                    store: start.store()?,
                    inbound: Arc::clone(&dead_letters),
                    dead_letters,
                    outbound: start.queue(names::OUTBOUND_QUEUE)?,
                    consolidate: start.queue(names::CONSOLIDATE_QUEUE)?,
                    review: start.queue(names::REVIEW_QUEUE)?,
                    // A dead letter ends without a model.
                    models: Arc::new(Router::single(Arc::new(Scripted::new(Wire::Neutral)))),
                    tools: Arc::default(),
                    files: Arc::default(),
                    settings: Arc::new(AgentSettings::from_config(config)),
                };
                Ok((agent, start.queue(names::JOB_DEAD_LETTER_QUEUE)?))
            },
            async |(agent, jobs): &(Agent, Arc<dyn Queue>), batch: Batch| {
                let queue = if batch.is_fifo { &agent.dead_letters } else { jobs };
                batch
                    .each(&**queue, async |record, deadline| {
                        dead_letter::handle(agent, &**queue, record, deadline).await
                    })
                    .await
            },
        )
        .await
    })
}
