//! One request to SQS: its tries, and what their outcomes say about whether it was carried out.
//!
//! The SDK's own retries are off; these are all there are. What passes (throttling, an I/O error, 5xx) is tried again up
//! to [`ATTEMPTS`] times with seeded jitter, within one total time. What SQS refuses is not.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::config::http::HttpResponse;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::BatchResultErrorEntry;
use backon::{BackoffBuilder, ExponentialBackoff};
use tokio::time::{Instant, sleep, timeout_at};

use crate::BoxError;

/// How often one request is sent at the most.
pub(super) const ATTEMPTS: usize = 6;
const FIRST_DELAY: Duration = Duration::from_millis(50);
const LONGEST_DELAY: Duration = Duration::from_millis(800);

/// After so long without an answer a try is given up for another one, on another connection.
pub(super) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);

/// SQS has no room for the request now. `OverLimit` is its word for too many messages in flight; a queue with a key of
/// its own also passes on what KMS says. They come with status 400 or 403 and as the sender's fault.
const THROTTLES: &[&str] = &[
    "KMS.ThrottlingException",
    "OverLimit",
    "RequestThrottled",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
];

/// The error below; one of a request is that of all its entries.
pub(super) type Source = Arc<dyn Error + Send + Sync>;

/// What one try came to, if not to its answer.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// SQS has no room for it now and did not carry it out.
    Throttled(Source),
    /// It did not reach SQS, or SQS refused it for a passing reason.
    Unsent(Source),
    /// It may have been carried out.
    Lost(Source),
    /// SQS refuses it, however often it comes.
    Refused(Refusal),
}

/// SQS's own words.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    /// The name of the error, as the query protocol knows it.
    pub(super) code: String,
    /// What SQS says about it.
    pub(super) message: String,
    pub(super) source: Source,
}

/// What all tries together came to.
#[derive(Debug)]
pub(super) struct Failure {
    /// The last one.
    pub(super) fault: Fault,
    /// An earlier one that may have been carried out.
    pub(super) lost: Option<Source>,
}

impl Fault {
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Throttled(_) | Self::Unsent(_) | Self::Lost(_) => true,
            Self::Refused(_) => false,
        }
    }

    /// The error of a try that may have been carried out.
    pub(super) fn lost(self) -> Option<Source> {
        match self {
            Self::Lost(source) => Some(source),
            Self::Throttled(_) | Self::Unsent(_) | Self::Refused(_) => None,
        }
    }

    /// The error below.
    pub(super) fn into_source(self) -> BoxError {
        match self {
            Self::Throttled(source) | Self::Unsent(source) | Self::Lost(source) => Box::new(source),
            Self::Refused(refusal) => Box::new(refusal.source),
        }
    }

    fn of<E>(error: SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        match &error {
            SdkError::ServiceError(service) => {
                let status = service.raw().status().as_u16();
                let code = service.err().code().unwrap_or_default();
                match status {
                    _ if THROTTLES.contains(&code) => Self::Throttled(Arc::new(error)),
                    429 => Self::Throttled(Arc::new(error)),
                    503 => Self::Unsent(Arc::new(error)),
                    400..=499 => {
                        let message = service.err().message().unwrap_or_default();
                        let (code, message) = (code.to_owned(), message.to_owned());
                        Self::Refused(Refusal { code, message, source: Arc::new(error) })
                    }
                    // Its own breakdown, or an answer that is none.
                    _ => Self::Lost(Arc::new(error)),
                }
            }
            // No credentials, or a request that cannot be written down: no other try would be another one.
            SdkError::ConstructionFailure(_) => {
                Self::Refused(Refusal { code: String::new(), message: String::new(), source: Arc::new(error) })
            }
            SdkError::DispatchFailure(failure)
                if failure.as_connector_error().is_some_and(|error| never_connected(error)) =>
            {
                Self::Unsent(Arc::new(error))
            }
            _ => Self::Lost(Arc::new(error)),
        }
    }

    /// What SQS says about one entry of a batch: that it did not take it.
    pub(super) fn of_entry(entry: &BatchResultErrorEntry) -> Self {
        let message = entry.message().unwrap_or_default();
        let source = Arc::from(BoxError::from(format!("{}: {message}", entry.code())));
        match entry.code() {
            code if THROTTLES.contains(&code) => Self::Throttled(source),
            code if entry.sender_fault() => {
                Self::Refused(Refusal { code: code.to_owned(), message: message.to_owned(), source })
            }
            _ => Self::Unsent(source),
        }
    }
}

/// Whether the chain of errors names a cause that comes before anything is sent. What cannot be told from a connection
/// that broke (a name that does not resolve, a handshake that fails) counts as sent.
fn never_connected(error: &(dyn Error + 'static)) -> bool {
    use std::io::ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable};
    let mut cause = Some(error);
    while let Some(error) = cause {
        let kind = error.downcast_ref().map(std::io::Error::kind);
        if matches!(kind, Some(AddrNotAvailable | ConnectionRefused | HostUnreachable | NetworkUnreachable)) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The tries of one request.
#[derive(Debug)]
pub(super) struct Tries {
    operation: &'static str,
    deadline: Instant,
    attempt: Duration,
    delays: ExponentialBackoff,
}

impl Tries {
    /// Tries that end `total` from now, none of them longer than `attempt`.
    pub(super) fn new(operation: &'static str, total: Duration, attempt: Duration, seed: u64) -> Self {
        let delays = backon::ExponentialBuilder::default()
            .with_min_delay(FIRST_DELAY)
            .with_max_delay(LONGEST_DELAY)
            .with_max_times(ATTEMPTS - 1)
            .with_jitter()
            .with_jitter_seed(seed)
            .build();
        Self { operation, deadline: Instant::now() + total, attempt, delays }
    }

    /// One try.
    pub(super) async fn send<T, E>(
        &self,
        sending: impl Future<Output = Result<T, SdkError<E, HttpResponse>>>,
    ) -> Result<T, Fault>
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        let end = self.deadline.min(Instant::now() + self.attempt);
        match timeout_at(end, sending).await {
            Ok(answer) => answer.map_err(Fault::of),
            Err(elapsed) => Err(Fault::Lost(Arc::new(elapsed))),
        }
    }

    /// Waits for the next try; false when there is none.
    pub(super) async fn again(&mut self) -> bool {
        let Some(delay) = self.delays.next() else { return false };
        if Instant::now() + delay >= self.deadline {
            return false;
        }
        tracing::debug!(operation = self.operation, "a request to the queue is sent again");
        sleep(delay).await;
        true
    }

    /// Tries until there is an answer, a refusal or no try left. Takes a function that makes futures, not an async
    /// closure: the compiler cannot see that one's futures may change threads.
    pub(super) async fn run<T, E, Sending>(mut self, mut send: impl FnMut() -> Sending) -> Result<T, Failure>
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
        Sending: Future<Output = Result<T, SdkError<E, HttpResponse>>>,
    {
        let mut lost = None;
        loop {
            let fault = match self.send(send()).await {
                Ok(answer) => return Ok(answer),
                Err(fault) => fault,
            };
            if !fault.is_passing() || !self.again().await {
                return Err(Failure { fault, lost });
            }
            lost = fault.lost().or(lost);
        }
    }
}
