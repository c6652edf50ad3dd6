//! Configured tools against real servers, real processes, and a stand-in for Lambda's own address.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request as Received;
use axum::http::{Response, StatusCode};
use insta::assert_snapshot;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use turnlock_domain::message::Block;

use super::*;
use crate::context::example;
use crate::{Registry, Risk, ToolHandler, ToolInfo, ToolSpec};

/// A registry with one tool, `orders`, that does not honour keys.
fn registry(handler: impl ToolHandler + 'static, timeout: Duration) -> Registry {
    let spec = ToolSpec { name: "orders".to_owned(), description: String::new(), schema: json!({"type": "object"}) };
    let info = ToolInfo { spec, risk: Risk::Execute, keyed: false, timeout, foreign: true };
    let mut registry = Registry::default();
    registry.register_handler(info, Arc::new(handler));
    registry
}

async fn told(registry: &Registry) -> String {
    let run = registry.run("orders", json!({"customer": "4711"}), example()).await;
    let texts = run.content.iter().map(|block| if let Block::Text { text } = block { text.as_str() } else { "media" });
    format!("{}: {}", run.outcome.as_str(), texts.collect::<Vec<_>>().join(" | "))
}

async fn told_by(handler: impl ToolHandler + 'static) -> String {
    told(&registry(handler, Duration::from_secs(10))).await
}

/// The requests that a server got: the path, the key in the header, the body.
type Requests = Arc<Mutex<Vec<(String, String, Value)>>>;

/// A server that answers everything in the same way, as long as its test runs.
async fn server(
    answer: impl Fn() -> Response<Body> + Clone + Send + Sync + 'static,
) -> (String, Requests, JoinSet<()>) {
    let requests = Requests::default();
    let seen = Arc::clone(&requests);
    let routes = Router::new().fallback(async move |received: Received| {
        let key = received.headers().get("idempotency-key").map(|key| key.to_str().expect("text").to_owned());
        let path = received.uri().path().to_owned();
        let body = axum::body::to_bytes(received.into_body(), 1 << 20).await.expect("a body");
        let body = serde_json::from_slice(&body).expect("JSON");
        seen.lock().expect("requests").push((path, key.unwrap_or_default(), body));
        answer()
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let mut running = JoinSet::new();
    running.spawn(async move { axum::serve(listener, routes).await.expect("serves") });
    (url, requests, running)
}

fn respond(status: u16, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
    response
}

fn golden() -> Value {
    json!({
        "schema": 1,
        "tool": "orders",
        "input": {"customer": "4711"},
        "context": {
            "session": "telegram:1000001",
            "event_id": "telegram:1:1003",
            "key": "telegram:1:1003:1:0",
            "time": "2026-01-05T09:00:00Z"
        }
    })
}

#[tokio::test]
async fn an_endpoint_is_asked_with_input_context_and_key() {
    let (url, requests, _running) = server(|| respond(200, r#"{"open": 2, "note": "</data>"}"#)).await;
    let endpoint = || Endpoint::new("orders", &format!("{url}/orders/"), None).expect("a client");
    assert_snapshot!(told_by(endpoint()).await, @r#"
    ok: <data source="orders">
    {"open": 2, "note": "&lt;/data>"}
    </data>
    "#);
    let asked = requests.lock().expect("requests").clone();
    assert_eq!(asked, [("/orders/".to_owned(), example().key, golden())]);
}

#[tokio::test]
async fn an_endpoint_is_shown_its_token() {
    let shown = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&shown);
    let routes = Router::new().fallback(async move |received: Received| {
        seen.lock().expect("shown").push(received.headers().get("authorization").cloned());
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let mut running = JoinSet::new();
    running.spawn(async move { axum::serve(listener, routes).await.expect("serves") });
    for bearer in [Some("t0ken"), None] {
        told_by(Endpoint::new("orders", &url, bearer).expect("a client")).await;
    }
    assert_eq!(*shown.lock().expect("shown"), [Some("Bearer t0ken".parse().expect("a header")), None]);
    let refused = Endpoint::new("orders", &url, Some("t0\nken")).err().expect("no header");
    assert_eq!(refused.to_string(), "the bearer token has characters that no header can carry");
}

#[tokio::test]
async fn how_an_endpoint_ends_is_told_apart() {
    let mut lines = Vec::new();
    for (status, body) in [
        (200, "\"two\\nlines\""),
        (200, "null"),
        (200, "plain é"),
        (204, ""),
        (302, ""),
        (404, "no such customer"),
        (400, ""),
        (429, "secret"),
        (503, "secret"),
        (500, "secret"),
        (502, "secret"),
    ] {
        let (url, _, _running) = server(move || respond(status, body)).await;
        lines.push(format!(
            "{status} {body} -> {}",
            told_by(Endpoint::new("orders", &url, None).expect("a client")).await
        ));
    }
    let closed = Endpoint::new("orders", "http://127.0.0.1:1/", None).expect("a client");
    lines.push(format!("no server -> {}", told_by(closed).await));
    let long = |n: usize| move || respond(200, vec![b'x'; n]);
    let (url, _, _running) = server(long(ANSWER_MAX + 1)).await;
    let cut = told_by(Endpoint::new("orders", &url, None).expect("a client")).await;
    lines.push(format!("long -> {}", &cut[cut.find("</data>").expect("a frame")..]));
    assert_snapshot!(lines.join("\n"), @r#"
    200 "two\nlines" -> ok: <data source="orders">
    two
    lines
    </data>
    200 null -> ok: (The tool gave no output.)
    200 plain é -> ok: <data source="orders">
    plain é
    </data>
    204  -> ok: (The tool gave no output.)
    302  -> error: The tool `orders` answered 302.
    404 no such customer -> error: The tool `orders` answered 404 and says:
    <data source="orders">
    no such customer
    </data>
    400  -> error: The tool `orders` answered 400.
    429 secret -> error: The tool `orders` cannot be reached now. Try again later, or go on without it.
    503 secret -> error: The tool `orders` cannot be reached now. Try again later, or go on without it.
    500 secret -> unknown: The tool `orders` broke off in the middle of the call. It may have taken effect all the same: do not assume that it did not.
    502 secret -> unknown: The tool `orders` broke off in the middle of the call. It may have taken effect all the same: do not assume that it did not.
    no server -> error: The tool `orders` cannot be reached now. Try again later, or go on without it.
    long -> </data> | [The result was cut: its first 16000 of 1048576 characters are shown.] | [The answer was too long: its end is missing.]
    "#);
}

#[tokio::test]
async fn a_command_gets_the_request_and_nothing_of_ours() {
    let command = |script: &str| Command::new("orders", "sh", &["-c".to_owned(), script.to_owned()]);
    let said = told_by(command("cat")).await;
    let said = said.strip_prefix("ok: <data source=\"orders\">\n").and_then(|said| said.strip_suffix("\n</data>"));
    assert_eq!(serde_json::from_str::<Value>(said.expect("a frame")).expect("JSON"), golden());
    assert_snapshot!(told_by(command("env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= | sort")).await, @r#"
    ok: <data source="orders">
    LANG=C.UTF-8
    PATH=/usr/local/bin:/usr/bin:/bin
    </data>
    "#);
    let mut lines = Vec::new();
    for script in [
        "echo '\"done\"'",
        "true",
        "echo said; echo complained >&2; exit 3",
        "echo said; exit 1",
        "exit 7",
        "kill -9 $$",
        "head -c 1100000 /dev/zero | tr '\\0' x",
        "echo warned >&2; echo fine",
    ] {
        let told = told_by(command(script)).await;
        let (start, end) = (told.chars().take(200).collect::<String>(), told.len().saturating_sub(150).max(200));
        lines.push(format!("{script} -> {start}{}", told.get(end..).map_or(String::new(), |end| format!(" … {end}"))));
    }
    lines.push(format!("no program -> {}", told_by(Command::new("orders", "no-such-program", &[])).await));
    assert_snapshot!(lines.join("\n"), @r#"
    echo '"done"' -> ok: <data source="orders">
    done
    </data>
    true -> ok: (The tool gave no output.)
    echo said; echo complained >&2; exit 3 -> error: The tool `orders` ended with the code 3 and says:
    <data source="orders">
    complained
    </data>
    echo said; exit 1 -> error: The tool `orders` ended with the code 1 and says:
    <data source="orders">
    said
    </data>
    exit 7 -> error: The tool `orders` ended with the code 7.
    kill -9 $$ -> unknown: The tool `orders` broke off in the middle of the call. It may have taken effect all the same: do not assume that it did not.
    head -c 1100000 /dev/zero | tr '\0' x -> ok: <data source="orders">
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx … xxxxxxxxxxxxxxxxxxxx
    </data> | [The result was cut: its first 16000 of 1048576 characters are shown.] | [The answer was too long: its end is missing.]
    echo warned >&2; echo fine -> ok: <data source="orders">
    fine
    </data>
    no program -> error: The tool `orders` failed. Go on without it.
    "#);
}

#[tokio::test]
async fn a_command_that_is_given_up_dies_with_what_it_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("a pipe");
    assert!(made.success());
    // Both hold the pipe open, so that it ends when the last of them has.
    let script = format!("exec 3>{}; sleep 600 & echo started >&3; wait", pipe.display());
    let command = Command::new("orders", "sh", &["-c".to_owned(), script]);
    let registry = registry(command, Duration::from_millis(500));
    let (said, written) = tokio::join!(told(&registry), tokio::fs::read_to_string(&pipe));
    assert_snapshot!(said, @"unknown: The tool `orders` gave no answer within 0.5 seconds. It may have taken effect all the same: do not assume that it did not.");
    assert_eq!(written.expect("it ends"), "started\n");
}

#[tokio::test]
async fn a_command_that_has_ended_leaves_nothing_behind_and_loses_no_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("a pipe");
    assert!(made.success());
    // With its output and without: what stays behind holds the pipe open until it is killed.
    for left in ["sleep 600", "sleep 600 >/dev/null 2>&1", "sleep 600 <&- >&2"] {
        let script = format!("exec 3>{}; {left} & echo ok", pipe.display());
        let command = Command::new("orders", "sh", &["-c".to_owned(), script]);
        let (said, written) = tokio::join!(told_by(command), tokio::fs::read_to_string(&pipe));
        assert_eq!(said, "ok: <data source=\"orders\">\nok\n</data>", "{left}");
        assert_eq!(written.expect("it ends"), "", "{left}");
    }
    let silent = Command::new("orders", "sh", &["-c".to_owned(), "exec >&- 2>&-; exit 3".to_owned()]);
    assert_eq!(
        told_by(silent).await,
        "error: The tool `orders` ended with the code 3.",
        "it ends later than its output"
    );
}

#[cfg(feature = "lambda")]
mod lambda {
    use aws_sdk_lambda::config::{BehaviorVersion, Credentials, Region, SharedCredentialsProvider};
    use aws_types::SdkConfig;

    use super::*;

    fn function(url: &str) -> Function {
        let sdk = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-west-1"))
            .credentials_provider(SharedCredentialsProvider::new(Credentials::new("key", "secret", None, None, "test")))
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .endpoint_url(url)
            .build();
        Function::new("orders", "arn:aws:lambda:eu-west-1:123456789012:function:orders", &sdk)
    }

    #[tokio::test]
    async fn a_function_is_invoked_and_waited_for() {
        let (url, requests, _running) = server(|| respond(200, "\"2 open orders\"")).await;
        assert_snapshot!(told_by(function(&url)).await, @r#"
        ok: <data source="orders">
        2 open orders
        </data>
        "#);
        let asked = requests.lock().expect("requests").clone();
        let path =
            "/2015-03-31/functions/arn%3Aaws%3Alambda%3Aeu-west-1%3A123456789012%3Afunction%3Aorders/invocations";
        assert_eq!(asked, [(path.to_owned(), String::new(), golden())]);
    }

    #[tokio::test]
    async fn how_a_function_ends_is_told_apart() {
        let thrown = |kind: &str, message: &str| {
            json!({"errorType": kind, "errorMessage": message, "stackTrace": ["secret.py"]}).to_string()
        };
        let mut lines = Vec::new();
        for (status, error, body) in [
            (200, "x-amz-function-error: Unhandled", thrown("ValueError", "no such customer")),
            (200, "x-amz-function-error: Unhandled", thrown("Sandbox.Timedout", "Task timed out after 3.00 seconds")),
            (200, "x-amz-function-error: Unhandled", thrown("Runtime.ExitError", "signal: killed")),
            (200, "x-amz-function-error: Unhandled", thrown("Runtime.ImportModuleError", "no module")),
            (200, "x-amz-function-error: Unhandled", thrown("Runtime.UserCodeSyntaxError", "line 1")),
            (
                200,
                "x-amz-function-error: Unhandled",
                json!({"errorMessage": "2026-01-05T09:00:00.000Z 0a1b Task timed out after 3.00 seconds"}).to_string(),
            ),
            (200, "x-amz-function-error: Unhandled", "broken".to_owned()),
            (429, "x-amzn-errortype: TooManyRequestsException", json!({"Reason": "secret"}).to_string()),
            (502, "x-amzn-errortype: EC2ThrottledException", "{}".to_owned()),
            (500, "x-amzn-errortype: ServiceException", "{}".to_owned()),
            (404, "x-amzn-errortype: ResourceNotFoundException", json!({"Message": "secret"}).to_string()),
            (403, "x-amzn-errortype: AccessDeniedException", json!({"Message": "secret"}).to_string()),
        ] {
            let (url, requests, _running) = server(move || {
                let (name, value) = error.split_once(": ").expect("a header");
                let mut response = respond(status, body.clone());
                response.headers_mut().insert(name, value.parse().expect("a value"));
                response
            })
            .await;
            lines.push(format!("{status} {error} -> {}", told_by(function(&url)).await));
            assert_eq!(requests.lock().expect("requests").len(), 1, "no call is repeated");
        }
        lines.push(format!("no answer -> {}", told_by(function("http://127.0.0.1:1")).await));
        let lines = lines.join("\n");
        assert!(!lines.contains("secret"), "{lines}");
        assert_snapshot!(lines, @r#"
        200 x-amz-function-error: Unhandled -> error: The tool `orders` failed and says:
        <data source="orders">
        no such customer
        </data>
        200 x-amz-function-error: Unhandled -> unknown: The tool `orders` broke off in the middle of the call. It may have taken effect all the same: do not assume that it did not.
        200 x-amz-function-error: Unhandled -> unknown: The tool `orders` broke off in the middle of the call. It may have taken effect all the same: do not assume that it did not.
        200 x-amz-function-error: Unhandled -> error: The tool `orders` failed. Go on without it.
        200 x-amz-function-error: Unhandled -> error: The tool `orders` failed. Go on without it.
        200 x-amz-function-error: Unhandled -> unknown: The tool `orders` broke off in the middle of the call. It may have taken effect all the same: do not assume that it did not.
        200 x-amz-function-error: Unhandled -> error: The tool `orders` failed.
        429 x-amzn-errortype: TooManyRequestsException -> error: The tool `orders` cannot be reached now. Try again later, or go on without it.
        502 x-amzn-errortype: EC2ThrottledException -> error: The tool `orders` cannot be reached now. Try again later, or go on without it.
        500 x-amzn-errortype: ServiceException -> unknown: The tool `orders` broke off in the middle of the call. It may have taken effect all the same: do not assume that it did not.
        404 x-amzn-errortype: ResourceNotFoundException -> error: The tool `orders` failed. Go on without it.
        403 x-amzn-errortype: AccessDeniedException -> error: The tool `orders` failed. Go on without it.
        no answer -> unknown: The tool `orders` broke off in the middle of the call. It may have taken effect all the same: do not assume that it did not.
        "#);
    }
}
