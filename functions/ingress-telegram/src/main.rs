//! `POST /telegram/{account}`: Telegram's updates, to events on the inbound queue.

use std::process::ExitCode;

use turnlock_app::api::ApiResponse;
use turnlock_app::ingress::Ingress;
use turnlock_config::names;
use turnlock_lambda::{Function, http};

const FUNCTION: Function = Function {
    settings: &[names::TABLE, names::INBOUND_QUEUE, names::CONTROL_QUEUE, names::OUTBOUND_QUEUE, names::SECRETS],
    needs: &["telegram.*.secret_token"],
    for_images: &[],
};

fn main() -> ExitCode {
    turnlock_lambda::main(FUNCTION, async |start| {
        http::serve(
            start,
            |start, config| {
                Ok(Ingress::from_config(config, start.admission(config)?, start.clock(), start.fresh_ids()?)?)
            },
            async |ingress: &Ingress, request| ApiResponse::Full(ingress.route(request).await),
        )
        .await
    })
}
