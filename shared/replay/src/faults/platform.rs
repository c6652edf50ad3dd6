//! The platforms as a process reaches them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use turnlock_channels::http::{PlatformError, PlatformHttp, PlatformRequest, PlatformResponse};

use super::life::{Life, Outgoing};
use super::rule::{Failure, Port};

/// [`PlatformHttp`] under the rules of a plan.
pub(super) struct FaultPlatform {
    life: Life,
    inner: Arc<dyn PlatformHttp>,
}

impl FaultPlatform {
    pub(super) fn new(life: Life, inner: Arc<dyn PlatformHttp>) -> Self {
        Self { life, inner }
    }
}

#[async_trait]
impl PlatformHttp for FaultPlatform {
    async fn send(&self, request: PlatformRequest, timeout: Duration) -> Result<PlatformResponse, PlatformError> {
        let operation = request.method.clone();
        let outgoing = Outgoing { port: Port::Platform, operation: &operation, bytes: request.body.len() };
        let passing = self.life.pass(outgoing, self.inner.send(request, timeout), |failure| Err(refusal(&failure)));
        // The caller's patience covers the rule's delay as well: an answer that is too late is lost.
        match tokio::time::timeout(timeout, passing).await {
            Ok(answer) => answer,
            Err(_) => Err(PlatformError::AnswerLost("no answer in time".into())),
        }
    }
}

fn refusal(failure: &Failure) -> PlatformError {
    let source = format!("played: {}", failure.name()).into();
    match failure {
        Failure::LostAnswer | Failure::Slow => PlatformError::AnswerLost(source),
        // The last four are refused for this port when a rule is made.
        Failure::Unreachable | Failure::Conflict { .. } | Failure::InProgress | Failure::Throttled | Failure::Full => {
            PlatformError::Unreachable(source)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use bytes::Bytes;
    use http::HeaderMap;
    use turnlock_domain::event::Channel;

    use super::super::FaultPlan;
    use super::super::rule::{Fault, Operation, Rule, Span};
    use super::*;

    const TEN_SECONDS: Duration = Duration::from_secs(10);

    #[derive(Default)]
    struct Recorder(Mutex<Vec<String>>);

    #[async_trait]
    impl PlatformHttp for Recorder {
        async fn send(&self, request: PlatformRequest, _: Duration) -> Result<PlatformResponse, PlatformError> {
            self.0.lock().unwrap().push(request.method);
            Ok(PlatformResponse { status: 200, headers: HeaderMap::new(), body: Bytes::new() })
        }
    }

    fn request(method: &str) -> PlatformRequest {
        PlatformRequest {
            channel: Channel::Telegram,
            account: "main".into(),
            method: method.into(),
            url: String::new(),
            headers: HeaderMap::new(),
            body: Bytes::from_static(b"{}"),
        }
    }

    async fn outcome(failure: Failure, delay: u64) -> (Result<u16, PlatformError>, usize) {
        let plan = FaultPlan::new();
        let fault = Fault::Fail { failure, delay: Duration::from_secs(delay) };
        let operation = Operation::Named("sendMessage".into());
        plan.arm(Rule { port: Port::Platform, operation, nth: 1, span: Span::Times(1), fault });
        let recorder = Arc::new(Recorder::default());
        let http = plan.process().platform(Arc::clone(&recorder) as Arc<dyn PlatformHttp>);
        http.send(request("sendChatAction"), TEN_SECONDS).await.unwrap();
        let answer = http.send(request("sendMessage"), TEN_SECONDS).await.map(|response| response.status);
        let sent = recorder.0.lock().unwrap().len();
        (answer, sent - 1)
    }

    #[tokio::test(start_paused = true)]
    async fn a_platform_fails_as_the_network_does() {
        assert!(matches!(outcome(Failure::Unreachable, 0).await, (Err(PlatformError::Unreachable(_)), 0)));
        assert!(matches!(outcome(Failure::LostAnswer, 0).await, (Err(PlatformError::AnswerLost(_)), 1)));
        assert!(matches!(outcome(Failure::Slow, 9).await, (Ok(200), 1)));
        assert!(matches!(outcome(Failure::Slow, 11).await, (Err(PlatformError::AnswerLost(_)), 1)));
    }
}
