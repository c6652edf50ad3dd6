//! Called by EventBridge Scheduler: a schedule's time to an event on the inbound queue.

use std::process::ExitCode;

use turnlock_app::ingress::cron;
use turnlock_config::names;
use turnlock_lambda::{Function, call};

const FUNCTION: Function = Function { settings: &[names::INBOUND_QUEUE], needs: &[], for_images: &[] };

fn main() -> ExitCode {
    turnlock_lambda::main(FUNCTION, async |start| {
        let (inbound, clock) = (start.queue(names::INBOUND_QUEUE)?, start.clock());
        let config = start.config().await?;
        call::serve(async |event: turnlock_channels::cron::Call| cron(&*inbound, &config.cron, &event, &clock).await)
            .await
    })
}
