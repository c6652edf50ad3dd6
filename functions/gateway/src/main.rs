//! `/v1/…` and `/healthz`: the HTTP API.

use std::process::ExitCode;
use std::time::Duration;

use turnlock_app::api::Api;
use turnlock_config::names;
use turnlock_lambda::{Function, http};

const FUNCTION: Function = Function {
    settings: &[names::TABLE, names::INBOUND_QUEUE, names::CONTROL_QUEUE, names::OUTBOUND_QUEUE, names::SECRETS],
    needs: &["gateway.keys.*.key"],
    for_images: &[],
};

/// An HTTP API waits 30 s for a function (API Gateway quotas).
const STREAM_LIMIT: Duration = Duration::from_secs(25);

fn main() -> ExitCode {
    turnlock_lambda::main(FUNCTION, async |start| {
        http::serve(
            start,
            |start, config| {
                let (store, admission) = (start.store()?, start.admission(config)?);
                let api = Api::from_config(config, store, admission, start.clock(), start.fresh_ids()?, false);
                Ok(Api { stream_limit: Some(STREAM_LIMIT), ..api })
            },
            async |api: &Api, request| api.route(request).await,
        )
        .await
    })
}
