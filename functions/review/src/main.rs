//! Drains the queue of memory reviews.

use std::process::ExitCode;
use std::sync::Arc;

use turnlock_app::jobs::Jobs;
use turnlock_config::names;
use turnlock_lambda::Function;
use turnlock_lambda::batch::{self, Batch};
use turnlock_queue::Queue;

const FUNCTION: Function = Function {
    settings: &[names::TABLE, names::REVIEW_QUEUE, names::JOB_DEAD_LETTER_QUEUE, names::SECRETS],
    needs: &["*.api_key"],
    for_images: &[],
};

fn main() -> ExitCode {
    turnlock_lambda::main(FUNCTION, async |start| {
        batch::serve(
            start,
            |start, config| {
                let dead_letters = start.queue(names::JOB_DEAD_LETTER_QUEUE)?;
                let (models, daily_cost) = (start.models(config)?, config.agent.limits.daily_cost);
                let jobs = Jobs { store: start.store()?, models, dead_letters, daily_cost };
                Ok((jobs, start.queue(names::REVIEW_QUEUE)?))
            },
            async |(jobs, queue): &(Jobs, Arc<dyn Queue>), batch: Batch| {
                batch.each(&**queue, async |record, _| jobs.handle(&**queue, record).await).await
            },
        )
        .await
    })
}
