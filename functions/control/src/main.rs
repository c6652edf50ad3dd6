//! Drains the control queue: what must not wait behind queued messages.

use std::process::ExitCode;
use std::sync::Arc;

use turnlock_app::control::Control;
use turnlock_app::settings::AgentSettings;
use turnlock_config::names;
use turnlock_lambda::Function;
use turnlock_lambda::batch::{self, Batch};

const FUNCTION: Function = Function {
    settings: &[
        names::TABLE,
        names::CONTROL_QUEUE,
        names::INBOUND_QUEUE,
        names::OUTBOUND_QUEUE,
        names::DEAD_LETTER_QUEUE,
    ],
    needs: &[],
    for_images: &[],
};

fn main() -> ExitCode {
    turnlock_lambda::main(FUNCTION, async |start| {
        batch::serve(
            start,
            |start, config| {
                Ok(Control {
                    store: start.store()?,
                    control: start.queue(names::CONTROL_QUEUE)?,
                    inbound: start.queue(names::INBOUND_QUEUE)?,
                    dead_letters: start.queue(names::DEAD_LETTER_QUEUE)?,
                    outbound: start.queue(names::OUTBOUND_QUEUE)?,
                    settings: Arc::new(AgentSettings::from_config(config)),
                })
            },
            async |control: &Control, batch: Batch| {
                batch.each(&*control.control, async |record, _| control.handle(record).await).await
            },
        )
        .await
    })
}
