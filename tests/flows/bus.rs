//! The bus, composed: what one session, one platform or one handler does touches no other; what is too much is said at
//! the door; what ends in the middle comes again and is answered once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use tracing::Level;
use turnlock_channels::IngressRequest;
use turnlock_config::Config;
use turnlock_domain::event::OutboundEvent;
use turnlock_domain::session::SessionKey;
use turnlock_host::queues;
use turnlock_models::scripted::ScriptLine;
use turnlock_models::{Capabilities, Model, ModelError, ModelRequest, ModelStream, Scripted, Wire};
use turnlock_queue::{NewMessage, Queue};
use turnlock_replay::fakes::{Answer, ScriptedAnswer};
use turnlock_store::ledger::LedgerState;
use turnlock_tools::{Risk, ToolContext, ToolError, ToolHandler, ToolInfo, ToolOutput, ToolSpec};

use super::bench::{Answered, Bench, Logs, Route, Setup, config, slack_message, update};

const SORRY: &str = "Sorry, something went wrong and I could not answer this message. Please send it again.";
const REFUSED: &str =
    "The language model refused this message, so I have no answer. Whoever runs me finds the reason in my log.";

/// A line for the model's script, for one Telegram chat.
fn line(chat: i64, line: Value) -> ScriptLine {
    let mut line: ScriptLine = serde_json::from_value(line).unwrap();
    line.session = Some(SessionKey::from_text(format!("telegram:{chat}")));
    line
}

impl Bench {
    /// A Telegram message into a chat of its own.
    async fn tell(&self, n: i64, chat: i64, text: &str) -> Answered {
        let body = update(n, chat, text).to_string().into_bytes();
        self.answer(Route::Telegram.signed(self.now(), n, body)).await
    }

    /// What the reader of a Telegram chat sees of us.
    fn shown(&self, chat: i64) -> Vec<String> {
        self.chat(&format!("telegram:main:{chat}"))
    }

    /// Puts an outbound event into its queue, as another version of our code might.
    async fn outbound(&self, event: &Value) {
        let parsed: OutboundEvent = serde_json::from_value(event.clone()).unwrap();
        let message = NewMessage::fifo(event.to_string(), queue_group(&parsed), parsed.event_id);
        self.queue(queues::OUTBOUND).send(message).await.unwrap();
    }
}

fn queue_group(event: &OutboundEvent) -> String {
    turnlock_domain::ids::queue_id(&event.chat())
}

fn with(change: impl FnOnce(&mut Config)) -> Setup {
    let mut config = config();
    change(&mut config);
    Setup::new(config)
}

/// What the test's own tools and model do when they are asked to fail.
struct Panics;

#[async_trait]
impl ToolHandler for Panics {
    async fn call(&self, _: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        panic!("a tool panics");
    }
}

fn panicking_tool() -> (ToolInfo, Arc<dyn ToolHandler>) {
    let spec =
        ToolSpec { name: "explode".into(), description: "Explodes.".into(), schema: json!({ "type": "object" }) };
    let info = ToolInfo { spec, risk: Risk::Read, keyed: true, timeout: Duration::from_secs(30), foreign: false };
    (info, Arc::new(Panics))
}

/// A scripted model that takes a second, counts how many calls it has at once, and panics where a session's key says so.
struct Watched {
    inner: Scripted,
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Watched {
    fn new() -> Arc<Self> {
        let inner = Scripted::new(Wire::Neutral);
        Arc::new(Self { inner, now: AtomicUsize::new(0), most: AtomicUsize::new(0) })
    }
}

/// Chats whose turns panic.
const PANICS: i64 = 666;

#[async_trait]
impl Model for Watched {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn stream(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        sleep(Duration::from_secs(1)).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
        assert!(!request.session.as_str().ends_with(&PANICS.to_string()), "a model panics");
        self.inner.stream(request).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_turn_blocks_no_other_session() {
    let bench = with(|config| config.agent.limits.concurrency = 2).start().await;
    bench.world.model.push(line(11, json!({ "chunks": ["slow ", { "wait": 100 }, "answer"] })));
    assert_eq!(bench.tell(11, 11, "slow").await.status, 200);
    bench.run(1).await;
    for chat in 12..=17 {
        bench.tell(chat, chat, "quick").await;
    }
    bench.run(2).await;
    for chat in 12..=17 {
        assert_eq!(bench.shown(chat), ["quick"], "{chat}");
    }
    assert_eq!(bench.shown(11), ["slow"], "it is at work");
    bench.run(100).await;
    assert_eq!(bench.shown(11), ["slow answer"]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_chat_on_a_platform_blocks_no_other_chat() {
    let bench = Bench::new().await;
    let answer = Answer { delay: Duration::from_secs(9), ..Answer::default() };
    let chat = Some("11".to_owned());
    bench.world.platform.script(ScriptedAnswer { chat, answer, ..ScriptedAnswer::default() });
    for n in 1..=20 {
        bench.tell(n, 11, "slow").await;
        bench.tell(100 + n, 11 + n, "quick").await;
    }
    bench.run(2).await;
    for n in 1..=20 {
        assert_eq!(bench.shown(11 + n), ["quick"], "{n}");
    }
    bench.run(300).await;
    assert_eq!(bench.shown(11).len(), 20);
}

/// Invariants 10 and 12: a turn whose model refuses, breaks off or panics is answered, and nobody else notices.
#[tokio::test(start_paused = true)]
async fn a_failing_or_panicking_model_touches_no_other_session() {
    let model = Watched::new();
    let mut setup = with(|config| config.agent.limits.concurrency = 2);
    setup.model = Some(model.clone());
    let bench = setup.start().await;
    for (chat, error) in [(11, "invalid"), (12, "mid_stream"), (13, "throttled"), (14, "eof"), (15, "overloaded")] {
        model.inner.push(line(chat, json!({ "error": error })));
    }
    for chat in [11, 12, 13, 14, 15, PANICS, 17, 18] {
        bench.tell(chat, chat, "hello").await;
        bench.tell(1000 + chat, chat, "again").await;
    }
    bench.run(30).await;
    for chat in [17, 18] {
        assert_eq!(bench.shown(chat), ["hello", "again"], "{chat}");
    }
    bench.run(1800).await;
    assert_eq!(bench.shown(11), [REFUSED, "again"]);
    for chat in 12..=15 {
        assert_eq!(bench.shown(chat), ["hello", "again"], "{chat}");
    }
    assert_eq!(bench.shown(PANICS), [SORRY, SORRY]);
    assert!(bench.left().is_empty(), "{:?}", bench.left());
    assert_eq!(bench.host.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_panicking_tool_is_a_result_for_its_model_alone() {
    let mut setup = with(|_| {});
    setup.tools.push(panicking_tool());
    let bench = setup.start().await;
    bench.world.model.push(line(11, json!({ "tools": [{ "name": "explode" }, { "name": "current_time" }] })));
    bench.world.model.push(line(11, json!({ "chunks": ["It exploded."] })));
    for chat in [11, 12] {
        bench.tell(chat, chat, "explode").await;
    }
    bench.run(5).await;
    assert_eq!((bench.shown(11), bench.shown(12)), (vec!["It exploded.".to_owned()], vec!["explode".to_owned()]));
    let requests = bench.world.model.requests();
    let session = SessionKey::from_text("telegram:11");
    let request = requests.iter().rfind(|request| request.session == session).unwrap();
    assert!(request.problems.is_empty(), "{:?}", request.problems);
    assert!(request.request.to_string().contains("failed in the middle of the call"), "{}", request.request);
}

/// Permits come back on every path: more work than permits, most of it failing, and never more than R at once.
#[tokio::test(start_paused = true)]
async fn a_permit_is_free_again_however_its_turn_ended() {
    let model = Watched::new();
    let mut setup = with(|config| config.agent.limits.concurrency = 2);
    setup.model = Some(model.clone());
    setup.tools.push(panicking_tool());
    let bench = setup.start().await;
    let errors = ["invalid", "throttled", "overloaded", "mid_stream", "eof"];
    for (chat, error) in (10..).zip(errors) {
        model.inner.push(line(chat, json!({ "chunks": ["begun "], "error": error, "times": 2 })));
    }
    model.inner.push(line(20, json!({ "tools": [{ "name": "explode" }] })));
    model.inner.push(line(21, json!({ "chunks": ["silence"], "error": "hang" })));
    let chats: Vec<i64> = (10..15).chain([20, 21, PANICS]).chain(30..42).collect();
    for (n, chat) in (1..).zip(&chats) {
        assert_eq!(bench.tell(n, *chat, "hello").await.status, 200);
    }
    bench.run(1800).await;
    for chat in chats {
        let expected = match chat {
            10 => REFUSED,
            PANICS => SORRY,
            _ => "hello",
        };
        assert_eq!(bench.shown(chat), [expected], "{chat}");
    }
    assert_eq!((bench.host.running(), model.most.load(Ordering::SeqCst)), (0, 2));
    assert!(bench.left().is_empty(), "{:?}", bench.left());
}

/// A Slack delivery with Slack's own count of its repetitions.
fn slack_retry(bench: &Bench, n: i64, retry: Option<u32>) -> IngressRequest {
    let mut request = Route::Slack.signed(bench.now(), n, slack_message(n, "D0DM", "slack").to_string().into_bytes());
    if let Some(retry) = retry {
        request.headers.insert("x-slack-retry-num", retry.into());
    }
    request
}

/// Invariant 12: never pretend that an event was accepted, and say so where it came from.
#[tokio::test(start_paused = true)]
async fn a_full_queue_is_said_by_status_and_what_was_refused_can_come_again() {
    let bench = with(|config| config.agent.limits.queue = 2).start().await;
    assert_eq!(bench.deliver(Route::Api, 1, "one").await.status, 202);
    assert_eq!(bench.tell(2, 12, "two").await.status, 200);
    // The number of waiting events is asked for every ten seconds: in between the queue itself says that it is full.
    for (route, n) in [(Route::Api, 3), (Route::Telegram, 4)] {
        let began = Instant::now();
        let busy = bench.deliver(route, n, "too much").await;
        assert_eq!((busy.status, busy.header("retry-after")), (503, Some("5")), "{route:?}");
        assert!(began.elapsed() <= Duration::from_secs(5), "{route:?}: {:?}", began.elapsed());
        sleep(Duration::from_millis(100)).await;
    }
    for (route, n) in [(Route::Api, 3), (Route::Telegram, 4), (Route::Standard, 5)] {
        let began = Instant::now();
        let busy = bench.deliver(route, n, "too much").await;
        assert_eq!((busy.status, busy.header("retry-after")), (503, Some("10")), "{route:?}");
        assert!(began.elapsed().is_zero(), "{route:?}");
    }
    for retry in [None, Some(1), Some(2)] {
        let began = Instant::now();
        assert_eq!(bench.answer(slack_retry(&bench, 6, retry)).await.status, 503, "{retry:?}");
        assert!(began.elapsed() <= Duration::from_millis(2500));
    }
    assert_eq!(bench.answer(slack_retry(&bench, 6, Some(3))).await.status, 200);
    assert_eq!(bench.tell(7, 12, "/help").await.status, 200, "a command gets through");
    assert_eq!(bench.event(&Route::Api.event_id(3)).await.0, "", "what was refused is nowhere");
    bench.run(10).await;
    assert_eq!(bench.event(&Route::Api.event_id(1)).await, ("done".to_owned(), "one".to_owned()));
    let busy = "I am very busy right now and could not take your message. Please send it again in a minute.";
    assert_eq!(bench.chat("slack:main:D0DM"), [busy]);
    let shown = bench.shown(12);
    assert!(shown.len() == 2 && shown.contains(&"two".to_owned()), "{shown:?}");
    for (route, n) in [(Route::Api, 3), (Route::Telegram, 4)] {
        let again = bench.deliver(route, n, "too much").await;
        assert_eq!(again.status, route.accepted(), "{route:?}");
        bench.run(5).await;
        assert_eq!(bench.event(&route.event_id(n)).await, ("done".to_owned(), "too much".to_owned()), "{route:?}");
    }
    assert_eq!(bench.shown(1_000_001), ["too much"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_over_its_rate_is_told_so_and_commands_pass() {
    let limits = |config: &mut Config| (config.agent.limits.rpm, config.agent.limits.burst) = (6, 2);
    let bench = with(limits).start().await;
    for (route, n) in [(Route::Api, 10), (Route::Standard, 20)] {
        assert_eq!(bench.deliver(route, n, "1").await.status, route.accepted());
        assert_eq!(bench.deliver(route, n + 1, "2").await.status, route.accepted());
        let limited = bench.deliver(route, n + 2, "3").await;
        assert_eq!((limited.status, limited.header("retry-after")), (429, Some("10")), "{route:?}");
        let again = bench.deliver(route, n + 1, "2").await;
        assert!(matches!(again.status, 200 | 202), "what was taken is not limited: {again:?}");
    }
    for n in 1..=6 {
        assert_eq!(bench.tell(n, 7, "hello").await.status, 200);
    }
    for (n, command) in (7..).zip(["/status", "/help", "/stop"]) {
        assert_eq!(bench.tell(n, 7, command).await.status, 200);
    }
    // Another session has its own rate.
    bench.tell(100, 8, "other").await;
    // Six messages at once are one more than a chat takes: the last comes when the platform lets it.
    bench.run(8).await;
    let shown = bench.shown(7);
    let notices: Vec<&String> = shown.iter().filter(|text| text.starts_with("That was a lot")).collect();
    assert_eq!(notices, ["That was a lot at once. Please try again in 10 seconds."], "{shown:?}");
    assert_eq!(shown.len(), 2 + 1 + 3, "{shown:?}");
    assert_eq!(bench.shown(8), ["other"]);
    sleep(Duration::from_secs(10)).await;
    bench.tell(50, 7, "later").await;
    bench.run(5).await;
    assert_eq!(bench.shown(7).last().map(String::as_str), Some("later"));
    let limited = bench.deliver(Route::Api, 12, "3").await;
    assert_eq!(limited.status, 202, "the same message, when its time has come");
}

/// Invariant 13: a frame that its channel does not show is still seen by the observers.
#[tokio::test(start_paused = true)]
async fn a_dropped_frame_is_seen_by_observers_and_not_by_its_channel() {
    let bench = Bench::new().await;
    let logs = Logs::start();
    let frame = json!({ "event_id": "e1.frame.1.1", "channel": "webhook", "chat_id": "7", "caused_by": "e1", "turn": "e1",
        "content": [{ "type": "text", "text": "half a" }], "message_kind": "streaming", "is_final": false,
        "revision": { "fence": 1, "sequence": 1 }, "metadata": { "drop": false } });
    bench.outbound(&frame).await;
    bench.run(5).await;
    assert_eq!(bench.world.platform.calls(), []);
    assert_eq!(bench.event("e1").await, ("running".to_owned(), "half a".to_owned()), "the item observer has it");
    let seen = logs.lines().into_iter().find(|line| line.target == "turnlock::outbound").unwrap();
    assert_eq!((seen.field("event_id"), seen.field("kind")), ("e1.frame.1.1", "Streaming"), "so has the log's");
    assert!(bench.host.store().ledger("e1.frame.1.1").await.unwrap().is_none());
    assert!(bench.left().is_empty(), "{:?}", bench.left());
}

/// The same answer in pieces: the API shows frames, Telegram one message that grows.
#[tokio::test(start_paused = true)]
async fn frames_show_where_their_channel_shows_them() {
    let bench = Bench::new().await;
    let answer = json!({ "chunks": ["One ", { "wait": 3 }, "two ", { "wait": 3 }, "three."], "times": 2 });
    bench.world.model.push(serde_json::from_value(answer).unwrap());
    bench.deliver(Route::Api, 1, "count").await;
    bench.tell(2, 7, "count").await;
    let path = format!("/v1/events/{}/stream", turnlock_domain::session::encode_part(&Route::Api.event_id(1)));
    let (stream, ()) = tokio::join!(bench.get(&path), bench.run(20));
    let frames: Vec<&str> = stream.body.lines().filter(|line| line.starts_with("event: ")).collect();
    assert_eq!(frames, ["event: frame", "event: frame", "event: final"], "{}", stream.body);
    assert_eq!(bench.shown(7), ["One two three."]);
    let methods: Vec<String> = bench.world.platform.calls().into_iter().map(|call| call.method).collect();
    assert_eq!(methods, ["sendMessage", "editMessageText", "editMessageText"]);
}

/// A bot that is told not to stream shows that it is at work, and then the answer.
#[tokio::test(start_paused = true)]
async fn an_account_that_does_not_stream_shows_the_final_alone() {
    let bench = with(|config| {
        if let Some(bot) = config.telegram.get_mut("main") {
            bot.account.stream = false;
        }
    });
    let bench = bench.start().await;
    let answer = json!({ "chunks": ["One ", { "wait": 3 }, "two ", { "wait": 3 }, "three."] });
    bench.world.model.push(serde_json::from_value(answer).unwrap());
    bench.tell(2, 7, "count").await;
    bench.run(20).await;
    let methods: Vec<String> = bench.world.platform.calls().into_iter().map(|call| call.method).collect();
    assert_eq!(methods, ["sendChatAction", "sendChatAction", "sendMessage"]);
    assert_eq!(bench.shown(7), ["One two three."]);
}

/// What is over within a second costs no frame and no sign of work.
#[tokio::test(start_paused = true)]
async fn a_quick_turn_sends_its_final_and_nothing_else() {
    let bench = Bench::new().await;
    let answer = json!({ "chunks": ["One ", { "wait": 0.4 }, "two ", { "wait": 0.4 }, "three."] });
    bench.world.model.push(serde_json::from_value(answer).unwrap());
    bench.tell(2, 7, "count").await;
    bench.run(5).await;
    let methods: Vec<String> = bench.world.platform.calls().into_iter().map(|call| call.method).collect();
    assert_eq!(methods, ["sendMessage"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_nobody_can_show_is_given_up_and_the_others_arrive() {
    let bench = Bench::new().await;
    let logs = Logs::start();
    let event = |id: &str, channel: &str, account: &str| {
        json!({ "event_id": id, "channel": channel, "account": account, "chat_id": "7", "message_kind": "final",
            "content": [{ "type": "text", "text": id }], "revision": { "fence": 1, "sequence": 1 } })
    };
    for (id, channel, account) in
        [("ghost", "telegram", "ghost"), ("later", "matrix", "main"), ("real", "telegram", "main")]
    {
        bench.outbound(&event(id, channel, account)).await;
    }
    bench.run(5).await;
    assert_eq!(bench.shown(7), ["real"]);
    for id in ["ghost", "later"] {
        let ledger = bench.host.store().ledger(id).await.unwrap().unwrap();
        assert_eq!((ledger.state(), ledger.parts()[0].reason()), (LedgerState::Failed, Some("no_handler")), "{id}");
        let warned = logs.lines().into_iter().find(|line| {
            line.level == Level::WARN && line.field("event_id") == id && line.field("reason") == "no_handler"
        });
        assert!(warned.is_some(), "{id}");
    }
    assert_eq!(bench.host.store().ledger("real").await.unwrap().unwrap().state(), LedgerState::Sent);
    assert!(bench.left().is_empty(), "{:?}", bench.left());
}

/// What no version can read goes to the operator, and holds up nobody.
#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_read_is_set_aside_and_its_queue_goes_on() {
    let bench = Bench::new().await;
    for queue in [queues::INBOUND, queues::CONTROL, queues::OUTBOUND] {
        let message = NewMessage::fifo(r#"{"no": "event"}"#, "telegram:7", "broken");
        bench.queue(queue).send(message).await.unwrap();
    }
    bench.tell(1, 7, "hello").await;
    bench.tell(2, 7, "/help").await;
    bench.run(60).await;
    let shown = bench.shown(7);
    assert!(shown.len() == 2 && shown.contains(&"hello".to_owned()), "{shown:?}");
    assert!(bench.left().is_empty(), "{:?}", bench.left());
    let dead = bench.host.store().dead_items(10).await.unwrap();
    let mut queues: Vec<&str> = dead.iter().map(|item| item.queue.as_str()).collect();
    queues.sort_unstable();
    assert_eq!(queues, ["control", "inbound", "outbound"]);
}

/// A queue refuses two characters that a model may well write: the reply arrives all the same.
#[tokio::test(start_paused = true)]
async fn a_reply_that_a_queue_would_refuse_as_it_is_arrives() {
    let bench = Bench::new().await;
    bench.world.model.push(line(7, json!({ "chunks": ["a\u{ffff}b\u{fffe}\u{0} c"] })));
    bench.tell(1, 7, "hello").await;
    bench.run(10).await;
    assert_eq!(bench.shown(7).len(), 1, "{:?}", bench.shown(7));
    assert!(bench.shown(7)[0].starts_with('a') && bench.left().is_empty(), "{:?}", bench.left());
}

/// A reply that no queue would take is cut before it is committed: it would hold its session, and nobody would hear of it.
#[tokio::test(start_paused = true)]
async fn a_reply_larger_than_a_queue_takes_is_cut_and_its_session_goes_on() {
    let bench = Bench::new().await;
    bench.world.model.push(line(7, json!({ "chunks": ["\"".repeat(600_000)] })));
    bench.tell(1, 7, "hello").await;
    bench.tell(2, 7, "and now?").await;
    bench.run(3600).await;
    let shown = bench.shown(7);
    let (last, parts) = shown.split_last().unwrap();
    assert!(last.contains("and now?"), "{last}");
    let letters: usize = parts.iter().map(|part| part.matches('"').count()).sum();
    assert_eq!(letters, 256 * 1024);
    assert!(
        parts.last().is_some_and(|part| part.ends_with("(This answer reached its length limit. Ask me to go on.)"))
    );
    assert!(bench.left().is_empty() && bench.host.store().dead_items(10).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_host_starts_and_stops_as_often_as_one_likes() {
    let mut bench = Bench::new().await;
    bench.host.stop(Duration::from_secs(1)).await;
    for round in 1..=6 {
        bench.tell(round, 7, &format!("round {round}")).await;
        if round % 2 == 0 {
            bench.restart();
        }
        bench.run(3).await;
        bench.host.stop(Duration::from_secs(5)).await;
        bench.host.stop(Duration::ZERO).await;
        assert_eq!(bench.host.running(), 0);
    }
    let expected: Vec<String> = (1..=6).map(|round| format!("round {round}")).collect();
    assert_eq!(bench.shown(7), expected);
    assert_eq!(bench.world.model.requests().len(), 6);
}

/// A turn that ends within the drain is committed; its reply leaves with the next start.
#[tokio::test(start_paused = true)]
async fn work_that_ends_within_the_drain_is_done() {
    let mut bench = Bench::new().await;
    bench.world.model.push(line(7, json!({ "chunks": [{ "wait": 4 }, "done"] })));
    bench.tell(1, 7, "work").await;
    bench.run(1).await;
    let began = Instant::now();
    bench.host.stop(Duration::from_secs(10)).await;
    assert!(began.elapsed() < Duration::from_secs(4), "no longer than the work: {:?}", began.elapsed());
    bench.restart();
    bench.run(5).await;
    assert_eq!(bench.shown(7), ["done"]);
    assert_eq!(bench.world.model.requests().len(), 1);
}

/// What does not end within the drain comes again, in its order, and is answered once.
#[tokio::test(start_paused = true)]
async fn work_that_outlasts_the_drain_comes_again_and_is_answered_once() {
    for restart in [false, true] {
        let mut bench = with(|config| config.agent.limits.concurrency = 2).start().await;
        bench.world.model.push(line(7, json!({ "chunks": ["never ", { "wait": 200 }, "seen"] })));
        bench.world.model.push(line(8, json!({ "tools": [{ "name": "current_time" }] })));
        bench.world.model.push(line(8, json!({ "chunks": [{ "wait": 200 }] })));
        for (n, chat) in [(1, 7), (2, 8), (3, 9)] {
            bench.tell(n, chat, "first").await;
            bench.tell(10 + n, chat, "second").await;
        }
        bench.run(2).await;
        let began = Instant::now();
        bench.host.stop(Duration::from_secs(5)).await;
        assert_eq!(began.elapsed().as_secs(), 5, "the drain is bounded");
        assert_eq!(bench.host.running(), 0);
        if restart {
            bench.restart();
        }
        bench.run(300).await;
        for chat in [7, 8, 9] {
            assert_eq!(bench.shown(chat), ["first", "second"], "{chat}");
            let session = SessionKey::from_text(format!("telegram:{chat}"));
            assert_eq!(bench.host.store().history(&session, 0, 0).await.unwrap().len(), 2, "{chat}");
            let head = bench.host.store().head(&session).await.unwrap().unwrap();
            assert_eq!((head.owner, head.unfinished), (None, None), "{chat}");
        }
        assert!(bench.left().is_empty(), "{:?}", bench.left());
    }
}

/// A caller that waits for its answer when the host is dropped or stopped is not left with a wrong one.
#[tokio::test(start_paused = true)]
async fn a_caller_that_waits_is_answered_or_told_where_to_look() {
    let bench = Bench::new().await;
    bench.world.model.push(serde_json::from_value(json!({ "chunks": [{ "wait": 10 }, "done"] })).unwrap());
    let mut request = Route::Api.delivery(bench.now(), 1, "wait");
    request.query = "wait=5".to_owned();
    let (answer, ()) = tokio::join!(bench.answer(request.clone()), bench.run(6));
    assert_eq!((answer.status, answer.json()["status"].as_str()), (202, Some("running")), "{answer:?}");
    let waiting = async { timeout(Duration::from_secs(30), bench.answer(request)).await.unwrap() };
    let (answer, ()) = tokio::join!(waiting, bench.run(10));
    assert_eq!((answer.status, answer.json()["message"]["text"].as_str()), (200, Some("done")), "{answer:?}");
    assert_eq!(bench.world.model.requests().len(), 1);
}
