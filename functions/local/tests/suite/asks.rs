//! `chat` while a turn waits for a decision.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::routing::post;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::kit::{Place, until};

/// A model that calls the tool `note` as often as it is told to, once a step, and then answers; it does so while the set
/// is there.
async fn model(calls: usize) -> (String, JoinSet<()>) {
    let complete = move |body: String| async move {
        let request: Value = serde_json::from_str(&body).unwrap();
        let messages = request["messages"].as_array().unwrap();
        let results = messages.iter().filter(|message| message["role"] == "tool").count();
        let (delta, finish) = if results < calls {
            let arguments = json!({ "n": results + 1 }).to_string();
            let function = json!({ "name": "note", "arguments": arguments });
            let call = json!({ "index": 0, "id": format!("c{results}"), "type": "function", "function": function });
            (json!({ "role": "assistant", "tool_calls": [call] }), "tool_calls")
        } else {
            (json!({ "role": "assistant", "content": "All is noted." }), "stop")
        };
        let chunk = |delta: Value, finish: Value| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
        let body = format!(
            "data: {}\n\ndata: {}\n\ndata: [DONE]\n\n",
            chunk(delta, Value::Null),
            chunk(json!({}), json!(finish))
        );
        ([("content-type", "text/event-stream")], body)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().route("/v1/chat/completions", post(complete));
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
    (format!("http://{address}/v1"), serving)
}

/// A directory whose host has that model, and a tool that is asked for.
async fn place(calls: usize) -> (Place, JoinSet<()>) {
    let place = Place::new();
    let (base_url, serving) = model(calls).await;
    place.write(
        "turnlock.toml",
        &format!(
            r#"
            [[models]]
            provider = "openai"
            model = "m"
            base_url = "{base_url}"
            capabilities = ["tools"]
            [tools.note]
            description = "notes it"
            command = ["cat"]
            risk = "execute"
            schema = {{ type = "object", properties = {{ n = {{ type = "integer" }} }} }}
            "#
        ),
    );
    (place, serving)
}

/// A conversation whose input stays open.
struct Talking {
    child: Child,
    input: ChildStdin,
    shown: Arc<Mutex<String>>,
}

impl Talking {
    fn begin(place: &Place) -> Self {
        let log = std::fs::File::create(place.path("chat.log")).unwrap();
        let mut command = place.command(&["chat"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let (input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let shown = Arc::new(Mutex::new(String::new()));
        let copy = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut buffer) {
                copy.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..length]));
            }
        });
        Self { child, input, shown }
    }

    fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    /// Types a line and waits until something is shown.
    async fn say(&mut self, line: &str, wanted: &str) {
        writeln!(self.input, "{line}").unwrap();
        self.shows(wanted).await;
    }

    async fn shows(&self, wanted: &str) {
        let what = format!("{wanted:?} is shown");
        until(&what, async || self.shown().contains(wanted).then_some(())).await;
    }

    async fn leave(mut self) -> (Option<i32>, String) {
        drop(self.input);
        let status = until("the conversation ends", async || self.child.try_wait().unwrap()).await;
        let shown = self.shown.lock().unwrap().clone();
        (status.code(), shown)
    }
}

#[tokio::test]
async fn each_card_is_shown_once_and_commands_are_answered_while_it_waits() {
    let (place, _model) = place(2).await;
    let _host = place.serve(&[]);
    let mut talking = Talking::begin(&place);
    talking.say("note it twice", "\"n\": 1").await;
    talking.say("/status", "I am waiting for somebody to decide").await;
    talking.say("/approve WRONG1", "I have not taken that as a yes").await;
    talking.say("/approve 000000", "There is no such request").await;
    talking.say("/help", "/stop ends what I am doing").await;
    assert!(!talking.shown().contains("\"n\": 2"), "{}", talking.shown());
    talking.say("/approve", "\"n\": 2").await;
    talking.shows("Allowed. I go on.").await;
    talking.say("/approve", "All is noted.").await;
    let (code, shown) = talking.leave().await;
    assert_eq!((code, shown.matches("May I run this?").count()), (Some(0), 2), "{shown}");
    assert_eq!(shown.matches("Allowed. I go on.").count(), 2, "{shown}");
}

/// The host dies while somebody is asked, and is started again at another address with another token.
#[tokio::test]
async fn a_conversation_follows_its_host_through_a_restart() {
    let (place, _model) = place(1).await;
    let host = place.serve(&[]);
    let mut talking = Talking::begin(&place);
    talking.say("note it", "\"n\": 1").await;
    host.signal("KILL");
    drop(host);
    let _again = place.serve(&[]);
    talking.say("/approve", "All is noted.").await;
    talking.say("/status", "waiting for your next message").await;
    let (code, shown) = talking.leave().await;
    assert_eq!((code, shown.matches("May I run this?").count()), (Some(0), 1), "{shown}");
}

#[tokio::test]
async fn who_is_asked_may_leave() {
    let (place, _model) = place(1).await;
    let _host = place.serve(&[]);
    let mut talking = Talking::begin(&place);
    talking.say("note it", "\"n\": 1").await;
    writeln!(talking.input, "/quit").unwrap();
    let status = until("the conversation ends", async || talking.child.try_wait().unwrap()).await;
    assert_eq!(status.code(), Some(0), "{}", talking.shown());
}

/// The decision of a pipe that ends behind it is not lost, and its answer is waited for.
#[tokio::test]
async fn a_pipe_may_end_with_a_decision() {
    let (place, _model) = place(1).await;
    let _host = place.serve(&[]);
    let talked = tokio::time::timeout(Duration::from_secs(30), async {
        let mut talking = Talking::begin(&place);
        writeln!(talking.input, "note it\n/approve").unwrap();
        talking.leave().await
    });
    let (code, shown) = talked.await.unwrap();
    assert!(code == Some(0) && shown.contains("All is noted."), "{shown}");
}
