//! Calls that have no answer, and answers that break off.

use super::*;

fn refused(status: u16, kind: &'static str, message: &str) -> Script {
    Script::json(status, &[("x-amzn-errortype", kind)], &json!({ "message": message }))
}

async fn failure(script: Script) -> ModelError {
    served(script, async |model| answer(&model, &hi()).await).await.expect_err("no answer")
}

#[tokio::test]
async fn a_refusal_tells_whether_trying_again_helps() {
    let on_demand = "Invocation of model ID x with on-demand throughput isn’t supported. Retry your request with the ID \
                     or ARN of an inference profile that contains this model.";
    let table = [
        (400, "ValidationException", "messages.1: text field is blank", "invalid"),
        (400, "ValidationException", "Input is too long for requested model.", "context_full"),
        (400, "ValidationException", "prompt is too long: 205054 tokens > 200000 maximum", "context_full"),
        (400, "ValidationException", "This model's maximum context length is 8192 tokens.", "context_full"),
        (400, "ValidationException", "Too many input tokens. Max input tokens: 8192, counted: 9000", "context_full"),
        (400, "ValidationException", "Number of input tokens exceeds maximum length", "context_full"),
        (400, "ValidationException", "This model does not report input tokens in advance.", "invalid"),
        (400, "ValidationException", on_demand, "invalid"),
        (400, "ServiceQuotaExceededException", "Your request exceeds the service quota.", "throttled"),
        (403, "AccessDeniedException", "User is not authorized to perform: bedrock:InvokeModel", "unauthorized"),
        (403, "UnrecognizedClientException", "The security token is invalid.", "unauthorized"),
        (404, "ResourceNotFoundException", "Could not resolve the foundation model", "invalid"),
        (408, "ModelTimeoutException", "", "timeout"),
        (424, "ModelErrorException", "", "unavailable"),
        (429, "ThrottlingException", "Too many requests, please wait before trying again.", "throttled"),
        (429, "ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/", "", "throttled"),
        (429, "ModelNotReadyException", "Model is not ready for inference.", "overloaded"),
        (500, "InternalServerException", "", "unavailable"),
        (503, "ServiceUnavailableException", "Bedrock is unable to process your request.", "overloaded"),
    ];
    for (status, kind, message, want) in table {
        let error = failure(refused(status, kind, message)).await;
        assert_eq!(error.kind(), want, "{status} {kind} {message}");
        let whole = BedrockSettings { streams: false, ..settings() };
        assert_eq!(events_with(refused(status, kind, message), whole).await, [Err(want)], "in one piece: {kind}");
    }
}

/// A proxy's page is no error of Bedrock's: its status decides.
#[tokio::test]
async fn a_refusal_that_is_not_bedrock_s_goes_by_its_status() {
    let table =
        [(502, "unavailable"), (503, "overloaded"), (429, "throttled"), (413, "context_full"), (302, "invalid")];
    for (status, want) in table {
        let page = Script {
            status,
            headers: vec![("content-type", "text/html")],
            ..Script::stream(vec![b"<html>Bad gateway</html>".to_vec()])
        };
        assert_eq!(failure(page).await.kind(), want, "{status}");
    }
}

#[tokio::test]
async fn a_refusal_tells_when_to_come_back() {
    let table = [
        ("retry-after", "7", Some(7000)),
        ("x-amz-retry-after", "250", Some(250)),
        ("retry-after", "999999", Some(3_600_000)),
        ("retry-after", "soon", None),
    ];
    for (name, value, want) in table {
        let headers = [("x-amzn-errortype", "ThrottlingException"), (name, value)];
        let error = failure(Script::json(429, &headers, &json!({"message": "slow down"}))).await;
        assert_eq!(error.retry_after(), want.map(Duration::from_millis), "{name}: {value}");
    }
}

/// What an operator reads says what to do, in our own words.
#[tokio::test]
async fn a_refusal_repeats_nothing_and_says_what_to_do() {
    let profile = "my secret: retry with an inference profile";
    let table = [
        (400, "ValidationException", "my secret", "status 400 (ValidationException)"),
        (400, "ValidationException", profile, "name an inference profile in the place of this model"),
        (
            400,
            "ValidationException",
            "my secret: This model doesn't support tool use in streaming mode.",
            "set `stream = false` for it, so that it answers in one piece",
        ),
        (403, "AccessDeniedException", "my secret", "allow the role bedrock:InvokeModel"),
        (500, "my secret", "my secret", "the model provider is not available"),
    ];
    for (status, kind, message, want) in table {
        let error = failure(refused(status, kind, message)).await;
        assert!(error.to_string().contains(want), "{error}");
        assert!(!format!("{error:?} {error}").contains("secret"), "{error:?}");
    }
}

/// Cases br-midstream-swallowed, br-midstream-exception-frame and br-throttle-abort: an error in the stream is never an
/// answer, and trying again helps unless the request is at fault.
#[tokio::test]
async fn br_midstream_exception_frame() {
    let table = [
        ("internalServerException", "", "unavailable", true),
        ("modelStreamErrorException", "", "interrupted", true),
        ("throttlingException", "", "throttled", true),
        ("serviceUnavailableException", "", "overloaded", true),
        ("validationException", "my secret", "invalid", false),
        ("validationException", "Input is too long for requested model.", "context_full", false),
        ("somethingNewException", "", "interrupted", true),
    ];
    for (kind, message, want, retryable) in table {
        let error = exception(kind, &json!({ "message": message }));
        let thought = reasoning(0, json!({"text": "hm"}));
        for before in [vec![], thought, text_delta("Hel")] {
            let script = Script::stream(vec![before, error.clone()]);
            let failure = failure(script.clone()).await;
            assert_eq!((failure.kind(), failure.is_retryable()), (want, retryable), "{kind}");
            assert!(!format!("{failure:?} {failure}").contains("secret"), "{failure:?}");
            assert_eq!(events(script).await.last(), Some(&Err(want)), "{kind}");
        }
    }
}

/// Case br-midstream-exception-frame: a stream that ends, is cut or is garbled without a messageStop is no answer.
#[tokio::test]
async fn br_midstream_exception_frame_eof() {
    let half = text_delta("lo")[..20].to_vec();
    let mut garbled = text_delta("lo");
    garbled[15] ^= 1;
    for (name, rest, end) in [
        ("ends", vec![], End::Whole),
        ("is cut", vec![], End::Cut),
        ("ends in a frame", half.clone(), End::Whole),
        ("is cut in a frame", half, End::Cut),
        ("is garbled", garbled, End::Whole),
        ("is not JSON", frame("contentBlockDelta", &json!("no object")), End::Whole),
    ] {
        let script = Script { end, ..Script::stream(vec![text_delta("Hel"), rest]) };
        assert_eq!(events(script).await, [text("Hel"), Err("interrupted")], "it {name}");
    }
    assert_eq!(events(Script::stream(vec![])).await, [Err("interrupted")], "nothing at all");
}

/// What happens after the end of a message does not take the answer away.
#[tokio::test]
async fn a_message_that_is_whole_is_an_answer() {
    let broken = exception("internalServerException", &json!({"message": "late"}));
    for (rest, end) in [(vec![], End::Cut), (vec![], End::Hangs), (broken, End::Whole)] {
        let script = Script { end, ..Script::stream(vec![text_delta("a"), stopped("end_turn"), rest]) };
        assert_eq!(events(script).await, [text("a"), stop(StopReason::EndTurn, 0, 0)], "{end:?}");
    }
}

#[tokio::test]
async fn silence_is_a_timeout() {
    let script = Script { end: End::Hangs, ..Script::stream(vec![text_delta("a")]) };
    assert_eq!(events(script).await, [text("a"), Err("timeout")], "between two events");
    // Nobody accepts: the connection stands in the listener's queue, and no status comes.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let timeouts = Timeouts { first: Duration::from_millis(100), ..Timeouts::default() };
    for streams in [true, false] {
        let model = Bedrock::new(&aws(&endpoint), BedrockSettings { timeouts, streams, ..settings() });
        assert_eq!(answer(&model, &hi()).await.expect_err("silence").kind(), "timeout", "before the status");
    }
}

#[tokio::test]
async fn nobody_at_the_address_is_retryable() {
    let model = Bedrock::new(&aws("http://127.0.0.1:1"), settings());
    let error = answer(&model, &hi()).await.expect_err("nobody there");
    assert_eq!((error.kind(), error.is_retryable()), ("unavailable", true));
}

/// The SDK's own retries are off, whatever the configuration that was handed over says.
#[tokio::test]
async fn a_request_is_sent_once() {
    let script = refused(500, "InternalServerException", "");
    let received = Arc::clone(&script.received);
    failure(script).await;
    assert_eq!(received.lock().expect("not poisoned").len(), 1);
}
