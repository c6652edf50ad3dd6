//! Direct calls of a function, with an input of its own. Its caller reads an error and calls again.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde::de::DeserializeOwned;

use crate::start::StartError;

/// Serves calls until Lambda ends the process. An input that is no `T` is an error that names what is wrong with it.
///
/// # Errors
/// [`StartError`]; nothing once it runs.
pub async fn serve<T, E>(handle: impl AsyncFn(T) -> Result<(), E>) -> Result<(), StartError>
where
    T: DeserializeOwned,
    E: std::error::Error + Send + Sync + 'static,
{
    let handle = &handle;
    let answer = async move |call: LambdaEvent<T>| -> Result<(), Error> {
        handle(call.payload).await?;
        Ok(())
    };
    let ended = lambda_runtime::run(service_fn(|call| Box::pin(answer(call)))).await;
    ended.map_err(StartError::Runtime)
}
