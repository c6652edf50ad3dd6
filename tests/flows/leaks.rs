//! Nothing that is secret, and nothing that a person wrote, gets out where it does not belong. Tokens, signatures and
//! texts are planted in everything that comes in; then everything that can fail fails, and all that was written, said
//! and stored is looked through.
//!
//! | planted | may stand in |
//! |---|---|
//! | tokens, keys, signatures | nothing at all: no log, answer, chat, request to a model, item, queue |
//! | a person's text | items, queues, requests to the model, chats, answers of the API about its own session |
//! | text of thinking tags | nothing at all |
//! | signed reasoning | the history and requests to the model that made it |
//! | the bytes of a picture | requests to the model |

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use turnlock_channels::IngressRequest;
use turnlock_config::{Allow, Config, ReplyTo};
use turnlock_domain::event::Channel;
use turnlock_domain::session::{SessionKey, encode_part};
use turnlock_host::queues;
use turnlock_models::ScriptLine;
use turnlock_queue::{NewMessage, Queue};
use turnlock_replay::fakes::{Answer, ScriptedAnswer};
use turnlock_replay::faults::{Failure, Fault, Operation, Port, Rule, Span};
use turnlock_tools::{Risk, ToolContext, ToolError, ToolHandler, ToolInfo, ToolOutput, ToolSpec};

use super::bench::{
    Answered, Bench, GATEWAY_KEY, Logs, PLAIN_SECRET, Route, SLACK_SECRET, SLACK_TOKEN, Setup, TELEGRAM_SECRET,
    TELEGRAM_TOKEN, WEBHOOK_SECRET, config, slack_message, update,
};

/// What every person writes.
const TEXT: &str = "planted-words-of-a-person";
/// What stands in thinking tags.
const THOUGHT: &str = "planted-thought-in-tags";
/// Signed reasoning.
const REASONING: &str = "planted-signed-reasoning";
/// What reasoning is signed with.
const REASONING_SIGNATURE: &str = "cGxhbnRlZC1yZWFzb25pbmctc2lnbmF0dXJl";
/// The verification token of old that Slack still sends in every body.
const VERIFICATION_TOKEN: &str = "ZplantedVerificationToken";
/// Where a webhook's replies go; whoever has the address may post there.
const REPLY_ADDRESS: &str = "https://receiver.invalid/planted-reply-address?key=planted-reply-key";

/// A picture.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1A\nplanted-pixels";

/// Secrets, as they are and in the forms in which they travel.
fn tokens() -> Vec<&'static str> {
    let bare = |text: &'static str| text.split_once(['_', ':']).map_or(text, |(_, rest)| rest);
    vec![
        bare(TELEGRAM_TOKEN),
        TELEGRAM_SECRET,
        SLACK_TOKEN,
        SLACK_SECRET,
        bare(WEBHOOK_SECRET),
        "planted-webhook-secret-of-ours",
        PLAIN_SECRET,
        GATEWAY_KEY,
        VERIFICATION_TOKEN,
        "planted-reply-address",
        "planted-reply-key",
    ]
}

/// Everything that left, by where it went.
#[derive(Default)]
struct Evidence {
    signatures: Vec<String>,
    /// Answers to platforms and producers, and to callers about what is not theirs.
    answers: Vec<String>,
    /// Answers to a caller about its own session.
    own_answers: Vec<String>,
}

impl Evidence {
    fn note_signatures(&mut self, request: &IngressRequest) {
        for name in ["x-slack-signature", "webhook-signature", "x-hub-signature-256", "x-signature"] {
            let value = request.header(name).map(|value| value.trim_end_matches('='));
            let signature = value.map(|value| value.rsplit(['=', ',']).next().unwrap_or(value));
            self.signatures.extend(signature.map(str::to_owned));
        }
    }

    async fn send(&mut self, bench: &Bench, request: IngressRequest) -> Answered {
        self.note_signatures(&request);
        let own = request.path.starts_with("/v1/");
        // Boxed: a request's whole way through the code is too much for a test's stack, so many calls deep.
        let answer = Box::pin(bench.answer(request)).await;
        if own { &mut self.own_answers } else { &mut self.answers }.push(answer.shown());
        answer
    }
}

/// A tool that fails in the way that it is asked for, quoting what it was given.
struct Fails;

#[async_trait]
impl ToolHandler for Fails {
    async fn call(&self, input: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        match input["how"].as_str().unwrap_or_default() {
            "for_model" => Err(ToolError::for_model(format!("no such thing: {input}"))),
            "transient" => Err(ToolError::Transient("connection refused".into())),
            "failed" => Err(ToolError::Failed("status 500".into())),
            "panic" => panic!("a tool panics over {input}"),
            "hang" => std::future::pending().await,
            _ => Ok(ToolOutput::text(input.to_string())),
        }
    }
}

fn failing_tool() -> (ToolInfo, Arc<dyn ToolHandler>) {
    let spec = ToolSpec { name: "fails".into(), description: "Fails.".into(), schema: json!({ "type": "object" }) };
    let info = ToolInfo { spec, risk: Risk::Read, keyed: false, timeout: Duration::from_secs(5), foreign: false };
    (info, Arc::new(Fails))
}

/// The bench's configuration with replies to an address, few messages to a consolidation, and a bot of few friends.
fn planted_config() -> Config {
    let mut config = config();
    config.webhook.get_mut("main").unwrap().reply_to = Some(ReplyTo::Url(REPLY_ADDRESS.to_owned()));
    let mut shy = config.telegram["main"].clone();
    shy.account.allow = Allow::Only([TEXT.to_owned()].into());
    config.telegram.insert("shy".to_owned(), shy);
    config.agent.limits.consolidate_after = 8;
    config
}

/// Every recorded delivery of a channel with the text and the token planted in it.
fn planted_fixtures(channel: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../shared/channels/src/{channel}/fixtures"));
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let planted = paths.into_iter().filter_map(|path| match path.extension()?.to_str()? {
        "json" => {
            let mut body: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            plant(&mut body);
            Some(body.to_string().into_bytes())
        }
        "form" => {
            let form = fs::read_to_string(&path).unwrap();
            let fields = form.trim().split('&').map(|field| match field.split_once('=') {
                Some(("text", _)) => format!("text={TEXT}"),
                Some(("token", _)) => format!("token={VERIFICATION_TOKEN}"),
                _ => field.to_owned(),
            });
            Some(fields.collect::<Vec<_>>().join("&").into_bytes())
        }
        _ => None,
    });
    planted.collect()
}

fn plant(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match (key.as_str(), &*value) {
                    (
                        "text" | "caption" | "title" | "body" | "first_name" | "last_name" | "file_name",
                        Value::String(_),
                    ) => {
                        *value = json!(TEXT);
                    }
                    ("token", Value::String(_)) => *value = json!(VERIFICATION_TOKEN),
                    _ => plant(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(plant),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn model(session: &str, line: Value) -> ScriptLine {
    let mut line: ScriptLine = serde_json::from_value(line).unwrap();
    line.session = Some(SessionKey::from_text(session));
    line
}

/// Every fixture, valid, forged, cut and of no account.
async fn deliver_fixtures(bench: &Bench, evidence: &mut Evidence) {
    let routes = [(Route::Telegram, "telegram"), (Route::Slack, "slack")];
    let webhooks = Route::ALL.into_iter().filter(|route| route.is_webhook()).map(|route| (route, "webhook"));
    for (route, channel) in routes.into_iter().chain(webhooks) {
        for (n, body) in (1..).zip(planted_fixtures(channel)) {
            let is_form = !body.starts_with(b"{");
            let mut request = route.signed(bench.now(), n, body.clone());
            if is_form {
                request.headers.insert("content-type", "application/x-www-form-urlencoded".parse().unwrap());
            }
            evidence.send(bench, request.clone()).await;
            let cut = body[..body.len() / 2].to_vec();
            evidence.send(bench, route.signed(bench.now(), n, cut.clone())).await;
            evidence.send(bench, IngressRequest { body: cut.into(), ..request.clone() }).await;
            evidence.send(bench, IngressRequest { path: format!("{}-{TEXT}", request.path), ..request }).await;
        }
    }
    bench.run(60).await;
}

/// Answers of platforms that repeat what they were sent, and the token.
fn script_platforms(bench: &Bench) {
    let telegram = |status: u16, description: &str| {
        json!({ "ok": false, "error_code": status, "description": format!("{description} {TEXT} {TELEGRAM_TOKEN}"),
            "parameters": { "retry_after": 2 } })
    };
    let slack = |error: String| json!({ "ok": false, "error": error });
    let answers = [
        (Channel::Telegram, 401, telegram(401, "Unauthorized:")),
        (Channel::Telegram, 429, telegram(429, "Too Many Requests: retry after 2:")),
        (Channel::Telegram, 500, telegram(500, "Internal Server Error:")),
        (Channel::Telegram, 400, telegram(400, "Bad Request: can't parse entities:")),
        (Channel::Telegram, 403, telegram(403, "Forbidden: bot was blocked by the user")),
        (Channel::Slack, 200, slack(format!("{TEXT} {SLACK_TOKEN}"))),
        (Channel::Slack, 200, slack("internal_error".to_owned())),
        (Channel::Slack, 401, json!(format!("{TEXT} {SLACK_TOKEN}"))),
        (Channel::Slack, 500, json!(format!("{TEXT} {SLACK_TOKEN}"))),
        (Channel::Webhook, 400, json!({ "error": format!("{TEXT} {REPLY_ADDRESS}") })),
        (Channel::Webhook, 500, json!({ "error": format!("{TEXT} {REPLY_ADDRESS}") })),
        (Channel::Webhook, 410, json!({ "error": format!("{TEXT} {REPLY_ADDRESS}") })),
    ];
    for (channel, status, body) in answers {
        let answer = Answer { status: Some(status), body: Some(body.to_string().into()), ..Answer::default() };
        let (channel, times) = (Some(channel), Some(1));
        bench.world.platform.script(ScriptedAnswer { channel, times, answer, ..ScriptedAnswer::default() });
    }
}

/// A few turns on every channel, each of its own chat, so that one chat's failure hides no other's.
async fn talk(bench: &Bench, evidence: &mut Evidence, turns: std::ops::Range<i64>) {
    for n in turns {
        let at = bench.now();
        for (route, body) in [
            (Route::Telegram, update(n, n, TEXT)),
            (Route::Slack, slack_message(n, &format!("D{n}"), TEXT)),
            (Route::Standard, json!({ "text": TEXT, "metadata": { "of": TEXT } })),
            (Route::Api, json!({ "text": TEXT, "session": "mine", "metadata": { "of": TEXT } })),
        ] {
            evidence.send(bench, route.signed(at, n, body.to_string().into_bytes())).await;
        }
    }
    bench.run(900).await;
}

/// Pictures that are had, and all the ways in which they are not, with answers that repeat the token and its address.
async fn pictures(bench: &Bench, evidence: &mut Evidence) {
    let platform = &bench.world.platform;
    platform.add_file(Channel::Telegram, "P1", PICTURE.into());
    platform.add_file(Channel::Slack, "F1", PICTURE.into());
    let planted = format!("{TEXT} https://api.telegram.org/file/bot{TELEGRAM_TOKEN}/P1 {SLACK_TOKEN}");
    let elsewhere =
        json!({ "ok": true, "file": { "url_private": format!("https://files.slack.com.invalid/{SLACK_TOKEN}") } });
    let path = json!({ "ok": true, "result": { "file_path": format!("../bot{TELEGRAM_TOKEN}/getMe") } });
    let refused = json!({ "ok": false, "error": planted, "error_code": 400, "description": planted });
    let page = format!("<!DOCTYPE html>{planted}");
    let (refused, path, elsewhere) = (refused.to_string(), path.to_string(), elsewhere.to_string());
    let answers = [
        ("getFile", 400, &refused),
        ("getFile", 500, &planted),
        ("getFile", 200, &path),
        ("file", 200, &page),
        ("file", 401, &refused),
        ("file", 302, &planted),
        ("files.info", 200, &refused),
        ("files.info", 200, &elsewhere),
        ("files.info", 500, &planted),
    ];
    let mut lost: Vec<Option<Answer>> = vec![Some(Answer { timeout: true, ..Answer::default() }), None];
    lost.extend(answers.map(|(_, status, body)| {
        let (status, body) = (Some(status), Some(body.clone().into()));
        Some(Answer { status, body, ..Answer::default() })
    }));
    let methods = ["getFile", "files.info"].into_iter().chain(answers.map(|(method, ..)| method));
    for (n, (answer, method)) in (3000..).zip(lost.into_iter().zip(methods)) {
        if let Some(answer) = answer {
            let (method, times) = (Some(method.to_owned()), Some(2));
            platform.script(ScriptedAnswer { method, times, answer, ..ScriptedAnswer::default() });
        }
        let mut photo = update(n, n, TEXT);
        photo["message"]["photo"] = json!([{ "file_id": "P1", "file_unique_id": "u", "width": 9, "height": 9 }]);
        let mut shared = slack_message(n, &format!("D{n}"), TEXT);
        shared["event"]["subtype"] = json!("file_share");
        shared["event"]["files"] = json!([{ "id": "F1", "mimetype": "image/png", "name": TEXT }]);
        for (route, body) in [(Route::Telegram, photo), (Route::Slack, shared)] {
            evidence.send(bench, route.signed(bench.now(), n, body.to_string().into_bytes())).await;
        }
        bench.run(60).await;
    }
}

async fn fail_every_port(bench: &Bench, evidence: &mut Evidence) {
    let fail = |port, operation: &str, failure| {
        let fault = Fault::Fail { failure, delay: Duration::ZERO };
        Rule { port, operation: Operation::from_text(operation), nth: 1, span: Span::Times(7), fault }
            .checked()
            .unwrap()
    };
    let conflict = || Failure::Conflict { reasons: Vec::new() };
    let rules = [
        fail(Port::Store, "*", Failure::Unreachable),
        fail(Port::Store, "*", Failure::LostAnswer),
        fail(Port::Store, "*", Failure::Throttled),
        fail(Port::Store, "*", conflict()),
        fail(Port::Store, "TransactWriteItems", conflict()),
        fail(Port::Store, "TransactWriteItems", Failure::InProgress),
        fail(Port::Store, "Query", Failure::Unreachable),
        fail(Port::Queue, "send", Failure::Unreachable),
        fail(Port::Queue, "send", Failure::LostAnswer),
        fail(Port::Queue, "*", Failure::Throttled),
        fail(Port::Queue, "waiting", Failure::Unreachable),
        fail(Port::Platform, "*", Failure::LostAnswer),
        fail(Port::Platform, "*", Failure::Unreachable),
    ];
    for (n, rule) in (2000..).step_by(10).zip(rules) {
        bench.world.plan.arm(rule);
        talk(bench, evidence, n..n + 2).await;
    }
}

async fn fail_model_and_tools(bench: &Bench, evidence: &mut Evidence) {
    let scripted = &bench.world.model;
    for error in ["invalid", "throttled", "overloaded", "mid_stream", "eof", "hang"] {
        let chunks = json!([format!("{TEXT} <think>{THOUGHT}"), { "reasoning": REASONING }]);
        scripted.push(model("telegram:5000", json!({ "chunks": chunks, "error": error })));
    }
    for how in ["for_model", "transient", "failed", "panic", "hang", "well"] {
        let call = json!({ "name": "fails", "input": { "how": how, "with": TEXT } });
        let chunks =
            json!([format!("<think>{THOUGHT}</think>"), { "reasoning": REASONING, "signature": REASONING_SIGNATURE }]);
        scripted.push(model("telegram:5001", json!({ "chunks": chunks, "tools": [call] })));
    }
    // Calls that are none: a name that does not exist, arguments that are no JSON.
    scripted.push(model(
        "telegram:5001",
        json!({ "tools": [
        { "name": TEXT, "input": {} },
        { "name": "fails", "input_chunks": [format!("{{\"how\": \"{TEXT}")] },
        { "name": "remember", "input": { "key": 5, "text": [TEXT] } },
        { "name": "remember", "input": { "text": TEXT } },
    ] }),
    ));
    for (n, chat) in [(5000, 5000), (5001, 5001), (5002, 5000)] {
        evidence
            .send(bench, Route::Telegram.signed(bench.now(), n, update(n, chat, TEXT).to_string().into_bytes()))
            .await;
        bench.run(900).await;
    }
}

/// Thinking in every form, on a channel that shows frames and on one that does not.
async fn think(bench: &Bench, evidence: &mut Evidence) {
    let reasoning = json!({ "reasoning": REASONING, "signature": REASONING_SIGNATURE });
    let forms = [
        json!([format!("<think>{THOUGHT}</think>visible")]),
        json!(["<thi", "nk>planted-thou", { "wait": 2 }, "ght-in-tags", { "wait": 2 }, "</th", "ink>vis", { "wait": 2 }, "ible"]),
        json!([reasoning, { "wait": 2 }, "visible", { "wait": 2 }, format!(" and <thinking>{THOUGHT}")]),
        json!([format!("visible <think>{THOUGHT}</think>"), { "wait": 2 }, format!("more <think>{THOUGHT}</think> end")]),
        json!([format!("<think>{THOUGHT}</think>")]),
    ];
    for (n, chunks) in (6000..).zip(forms) {
        for session in ["gateway:mine", "telegram:6000"] {
            bench.world.model.push(model(session, json!({ "chunks": chunks })));
        }
        evidence
            .send(bench, Route::Telegram.signed(bench.now(), n, update(n, 6000, TEXT).to_string().into_bytes()))
            .await;
        let body = json!({ "text": TEXT, "session": "mine" }).to_string().into_bytes();
        evidence.send(bench, Route::Api.signed(bench.now(), n, body)).await;
        let path = format!("/v1/events/{}/stream", encode_part(&Route::Api.event_id(n)));
        let (stream, ()) = tokio::join!(bench.get(&path), bench.run(30));
        evidence.own_answers.push(stream.shown());
    }
    let messages = bench.get("/v1/sessions/gateway%3Amine/messages").await;
    assert!(messages.body.contains("visible"), "{}", messages.body);
    evidence.own_answers.push(messages.shown());
}

/// Records that nobody can read, chats that may not talk, callers that ask for what is not theirs.
async fn refuse(bench: &Bench, evidence: &mut Evidence) {
    for queue in [queues::INBOUND, queues::CONTROL, queues::OUTBOUND] {
        let body = json!({ "event": TEXT, "token": TELEGRAM_TOKEN.len() }).to_string();
        bench.queue(queue).send(NewMessage::fifo(body, "telegram:1", "broken")).await.unwrap();
    }
    for queue in [queues::CONSOLIDATE, queues::REVIEW] {
        bench.queue(queue).send(NewMessage::standard(json!({ "job": TEXT }).to_string())).await.unwrap();
    }
    let mut shy = Route::Telegram.delivery(bench.now(), 7000, TEXT);
    shy.path = "/telegram/shy".to_owned();
    evidence.send(bench, shy).await;
    for (n, text) in (7001..).zip(["/help", "/status", "/stop", "/new"]) {
        evidence.send(bench, Route::Telegram.delivery(bench.now(), n, text)).await;
    }
    let conflict = json!({ "text": format!("{TEXT} again"), "session": "mine" }).to_string().into_bytes();
    let conflict = evidence.send(bench, Route::Api.signed(bench.now(), 6000, conflict)).await;
    assert_eq!(conflict.status, 409);
    let unknown = json!({ "text": "a", TEXT: 1 }).to_string().into_bytes();
    evidence.send(bench, Route::Api.signed(bench.now(), 7010, unknown)).await;
    for path in ["/v1/events/telegram%3A1%3A6000", "/v1/sessions/telegram%3A6000/messages", "/v1/nothing"] {
        let answer = bench.get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        evidence.answers.push(answer.shown());
    }
    bench.run(900).await;
}

/// All bytes of the files below `directory`.
fn stored(directory: &Path) -> String {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let contents = files.map(|path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned());
    contents.collect::<Vec<_>>().join("\n")
}

fn assert_absent(planted: &[&str], place: &str, text: &str) {
    for planted in planted {
        if let Some(at) = text.find(planted) {
            let start = text[..at].char_indices().rev().nth(400).map_or(0, |(start, _)| start);
            let end = text[at..].char_indices().nth(400).map_or(text.len(), |(end, _)| at + end);
            panic!("{planted} in {place}: …{}…", &text[start..end]);
        }
    }
}

/// None of the signatures is a word of `text`: there are too many to look for one by one.
fn assert_unsigned(signatures: &HashSet<&str>, place: &str, text: &str) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '/';
    if let Some(signature) = text.split(|c| !is_part(c)).find(|word| signatures.contains(word)) {
        assert_absent(&[signature], place, text);
    }
}

#[test]
#[should_panic(expected = "c2lnbmF0dXJl in a place")]
fn a_signature_would_be_found() {
    assert_unsigned(&HashSet::from(["c2lnbmF0dXJl"]), "a place", "x-signature: v1,c2lnbmF0dXJl= and more");
}

#[tokio::test(start_paused = true)]
async fn nothing_planted_shows_where_it_does_not_belong() {
    let directory = tempfile::tempdir().unwrap();
    let logs = Logs::start();
    let mut setup = Setup::in_directory(planted_config(), directory.path());
    setup.tools.push(failing_tool());
    let bench = setup.start().await;
    let mut evidence = Evidence::default();

    deliver_fixtures(&bench, &mut evidence).await;
    script_platforms(&bench);
    talk(&bench, &mut evidence, 1000..1006).await;
    fail_every_port(&bench, &mut evidence).await;
    pictures(&bench, &mut evidence).await;
    fail_model_and_tools(&bench, &mut evidence).await;
    think(&bench, &mut evidence).await;
    refuse(&bench, &mut evidence).await;

    let tokens = tokens();
    let secret: Vec<&str> = tokens.iter().copied().chain([THOUGHT]).collect();
    let picture = aws_smithy_types::base64::encode(PICTURE);
    let pixels = [picture.as_str(), "planted-pixels"];
    let signatures: HashSet<&str> = evidence.signatures.iter().map(String::as_str).collect();
    assert!(signatures.len() > 100 && signatures.iter().all(|signature| signature.len() > 30));

    let logged = logs.text();
    assert!(logged.lines().count() > 1000, "everything was logged: {}", logged.lines().count());
    assert_absent(&secret, "the log", &logged);
    assert_unsigned(&signatures, "the log", &logged);
    assert_absent(&[TEXT, REASONING, REASONING_SIGNATURE], "the log", &logged);
    assert_absent(&pixels, "the log", &logged);
    for reason in ["files:read", "not the platform's", "no answer", "status 500", "an error without a name"] {
        assert!(
            logged.lines().any(|line| line.contains("is not shown to the model") && line.contains(reason)),
            "{reason}"
        );
    }

    let answers = evidence.answers.join("\n");
    assert_absent(&secret, "an answer", &answers);
    assert_unsigned(&signatures, "an answer", &answers);
    assert_absent(&[TEXT, REASONING], "an answer", &answers);
    assert_absent(&pixels, "an answer", &answers);
    let own = evidence.own_answers.join("\n");
    assert!(own.contains(TEXT), "a caller reads its own session");
    assert_absent(&secret, "an answer of the API", &own);
    assert_unsigned(&signatures, "an answer of the API", &own);
    assert_absent(&[REASONING, REASONING_SIGNATURE], "an answer of the API", &own);

    let calls: Vec<String> = bench.world.platform.calls().iter().map(|call| format!("{:?}", call.arguments)).collect();
    let chats = format!("{:?} {}", bench.world.platform.chats(), calls.join("\n"));
    assert!(chats.contains(TEXT) && chats.contains("visible"));
    assert_absent(&[THOUGHT, REASONING, REASONING_SIGNATURE], "a chat", &chats);
    assert_absent(&pixels, "a chat", &chats);
    assert_absent(
        &tokens.iter().copied().filter(|token| !token.contains("reply")).collect::<Vec<_>>(),
        "a chat",
        &chats,
    );

    let requests = serde_json::to_string(&bench.world.model.requests()).unwrap();
    assert!(requests.contains(TEXT) && requests.contains(REASONING), "the model that reasoned gets it back");
    assert!(requests.contains(&picture), "and sees pictures");
    assert_absent(&secret, "a request to the model", &requests);
    assert_unsigned(&signatures, "a request to the model", &requests);

    let stored = stored(directory.path());
    assert!(stored.contains(TEXT) && stored.contains(REASONING), "history is kept in these files");
    assert_absent(&secret, "the files", &stored);
    assert_absent(&pixels, "the files", &stored);
    assert_unsigned(&signatures, "the files", &stored);

    let dead = bench.host.store().dead_items(100).await.unwrap();
    assert!(dead.len() >= 2, "{dead:?}");
    for item in dead {
        let words = [format!("{:?}", item), item.reason, item.queue].join(" ");
        assert_absent(&secret, "a dead item", &words);
        assert_absent(&[TEXT], "a dead item", &words);
    }
    let memories = memories(&bench).await;
    assert!(memories.contains(TEXT), "what people said is remembered: {memories}");
    assert_absent(&secret, "memory", &memories);
    assert_absent(&[REASONING, REASONING_SIGNATURE], "memory", &memories);
}

async fn memories(bench: &Bench) -> String {
    let mut memories = String::new();
    for scope in ["chat:gateway:mine", "chat:telegram:5001", "chat:telegram:6000"] {
        let store = bench.host.store();
        let (facts, episodes, head) =
            tokio::join!(store.facts(scope, 100), store.episodes(scope, 100), store.scope_head(scope));
        memories.push_str(&format!("{:?} {:?} {:?}", facts.unwrap(), episodes.unwrap(), head.unwrap()));
    }
    memories
}

/// What an error shows of itself and of everything below it, to people and to programmers.
fn whole(error: &dyn std::error::Error) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    chain.map(|error| format!("{error} {error:?}")).collect::<Vec<_>>().join(" ")
}

#[tokio::test(start_paused = true)]
async fn errors_and_values_show_no_secret_and_no_text() {
    let logs = Logs::start();
    let bench = Setup::new(planted_config()).start().await;
    bench.deliver(Route::Api, 1, TEXT).await;
    bench.run(5).await;
    let session = SessionKey::from_text("gateway:default");
    let mut shown = Vec::new();
    for failure in [Failure::Unreachable, Failure::LostAnswer, Failure::Throttled] {
        let fault = Fault::Fail { failure, delay: Duration::ZERO };
        let operation = Operation::Any;
        bench.world.plan.arm(Rule { port: Port::Store, operation, nth: 1, span: Span::Times(6), fault });
        shown.push(whole(&bench.host.store().history(&session, 0, 0).await.unwrap_err()));
    }
    let config = planted_config();
    shown.push(format!("{config:?}"));
    for route in Route::ALL {
        shown.push(format!("{:?}", route.delivery(bench.now(), 1, TEXT)));
    }
    shown.push(format!("{:?}", turnlock_app::ingress::telegram_routes(&config)));
    shown.push(format!("{:?}", turnlock_app::ingress::slack_routes(&config)));
    shown.push(format!(
        "{:?}",
        turnlock_app::ingress::webhook_routes(&config).unwrap().values().map(|route| &route.source).collect::<Vec<_>>()
    ));
    let platform: Arc<dyn turnlock_channels::http::PlatformHttp> = bench.world.platform.clone();
    shown.push(format!("{:?}", turnlock_app::deliver::clients(&config, &platform, &bench.world.clock).unwrap()));
    shown.push(format!("{:?}", turnlock_app::api::Access::from_config(&config)));
    let mut broken = planted_config();
    broken.webhook.get_mut("main").unwrap().reply_to = Some(ReplyTo::Url(format!("planted-reply-address {TEXT}")));
    shown.push(whole(&turnlock_app::ingress::webhook_routes(&broken).unwrap_err()));
    let toml = format!("[telegram.main]\nbot_token = \"{TELEGRAM_TOKEN}\"\nsecret_token = [\"{TELEGRAM_SECRET}\"]\n");
    shown.push(whole(&Config::parse(&toml, &|_| None).unwrap_err()));
    let shown = shown.join("\n");
    assert_absent(&tokens(), "an error or a value", &shown);
    assert_absent(&[TEXT], "an error or a value", &shown.replace(&format!("{:?}", TEXT), ""));
    assert_absent(&tokens(), "the log", &logs.text());
}
