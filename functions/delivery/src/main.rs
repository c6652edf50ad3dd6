//! Drains the outbound queue: replies to their channels, through the ledger.

use std::process::ExitCode;
use std::sync::Arc;

use turnlock_app::deliver::Delivery;
use turnlock_app::deliver::observers::{LogObserver, Observer};
use turnlock_channels::http::{PlatformHttp, ReqwestHttp};
use turnlock_config::names;
use turnlock_lambda::batch::{self, Batch};
use turnlock_lambda::{Function, StartError};

const FUNCTION: Function = Function {
    settings: &[names::TABLE, names::OUTBOUND_QUEUE, names::SECRETS, names::EVENT_BUS],
    needs: &["telegram.*.bot_token", "slack.*.bot_token", "webhook.*.secret"],
    for_images: &[],
};

fn main() -> ExitCode {
    turnlock_lambda::main(FUNCTION, async |start| {
        let platforms: Arc<dyn PlatformHttp> =
            Arc::new(ReqwestHttp::new().map_err(|error| StartError::Machine(error.into()))?);
        batch::serve(
            start,
            move |start, config| {
                let ours = (start.store()?, start.queue(names::OUTBOUND_QUEUE)?);
                // No item of what other channels' turns say: callers of the API see their own events alone, and nobody
                // else could read one here.
                let mut observers: Vec<Arc<dyn Observer>> = vec![Arc::new(LogObserver)];
                observers.extend(start.event_bus()?);
                Ok(Delivery::from_config(config, ours, &platforms, &start.clock(), observers)?)
            },
            async |delivery: &Delivery, batch: Batch| delivery.handle(batch.records, batch.deadline).await,
        )
        .await
    })
}
