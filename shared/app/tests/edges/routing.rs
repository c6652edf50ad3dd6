//! A question and the models that may answer it: what is tried again, when the next one is asked, what a person has seen by
//! then, and what it costs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use turnlock_app::turn::Handled;
use turnlock_domain::event::{MessageKind, OutboundEvent};
use turnlock_domain::turn::{Failure, ModelCall, Outcome, Usage};
use turnlock_models::{
    Capabilities, Model, ModelError, ModelRequest, ModelStream, Price, Route, Router, ScriptLine, Scripted, Wire,
};

use crate::talk::Talk;

const SECOND: Duration = Duration::from_secs(1);
const MARK: &str = "(I was interrupted here, and begin again in a moment.)";
const REFUSED: &str =
    "The language model refused this message, so I have no answer. Whoever runs me finds the reason in my log.";

/// A chat whose agent has two models.
struct Pair {
    talk: Talk,
    first: Arc<Scripted>,
    second: Arc<Scripted>,
}

impl Pair {
    async fn new() -> Self {
        let mut talk = Talk::new().await;
        let named = |name: &str| Arc::new(Scripted::new(Wire::Neutral).with_name(name));
        let (first, second) = (named("first"), named("second"));
        talk.agent.models =
            Arc::new(Router::new(vec![Route::free(first.clone() as _), Route::free(second.clone() as _)]));
        talk.hears("e1", "Hi.").await;
        Self { talk, first, second }
    }

    /// How often each was asked.
    fn asked(&self) -> (usize, usize) {
        (self.first.requests().len(), self.second.requests().len())
    }

    /// The reply of the `n`th turn, and which models it has calls of.
    async fn reply(&self, n: usize) -> (String, Vec<String>) {
        let turn = self.talk.history().await.remove(n);
        let said = turn.messages.last().map(turnlock_domain::message::Message::text);
        (said.unwrap_or_default(), turn.calls.into_iter().map(|call| call.model).collect())
    }

    /// The texts of the frames that wait to be delivered.
    fn frames(&self) -> Vec<String> {
        let events = self.talk.kit.batch().into_iter().map(|record| {
            let event: turnlock_domain::event::OutboundEvent = serde_json::from_str(&record.body).unwrap();
            (event.message_kind == MessageKind::Streaming).then(|| event.text())
        });
        events.flatten().collect()
    }
}

fn script(model: &Scripted, line: Value) {
    model.push(serde_json::from_value::<ScriptLine>(line).unwrap());
}

fn replied(text: &str, models: &[&str]) -> (String, Vec<String>) {
    (text.to_owned(), models.iter().map(|model| (*model).to_owned()).collect())
}

#[tokio::test(start_paused = true)]
async fn what_may_pass_is_tried_three_times_then_the_next_model_answers() {
    let pair = Pair::new().await;
    script(&pair.first, json!({ "error": "overloaded", "times": 3 }));
    script(&pair.second, json!({ "chunks": ["Hello."] }));
    let began = Instant::now();
    assert_eq!(pair.talk.take().await, Some(Handled::Done));
    assert_eq!((began.elapsed().as_secs(), pair.asked()), (3, (3, 1)), "one and two seconds between the tries");
    assert_eq!(pair.reply(0).await, replied("Hello.", &["second"]));
    // The first one rests for half a minute, whoever asks.
    pair.talk.hears("e2", "And now?").await;
    assert_eq!((pair.talk.take().await, pair.asked()), (Some(Handled::Done), (3, 2)));
    sleep(30 * SECOND).await;
    pair.talk.hears("e3", "And now?").await;
    assert_eq!((pair.talk.take().await, pair.asked()), (Some(Handled::Done), (4, 2)));
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_passes_is_nothing_that_anybody_hears_of() {
    let pair = Pair::new().await;
    script(&pair.first, json!({ "error": "throttled" }));
    script(&pair.first, json!({ "error": "mid_stream" }));
    script(&pair.first, json!({ "chunks": ["Hello."] }));
    assert_eq!(pair.talk.settle().await, 1);
    assert_eq!((pair.reply(0).await, pair.asked()), (replied("Hello.", &["first"]), (3, 0)));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_goes_to_the_next_model_at_once_and_is_final_if_it_is_the_last() {
    let pair = Pair::new().await;
    script(&pair.first, json!({ "error": "invalid" }));
    script(&pair.second, json!({ "chunks": ["Hello."] }));
    let began = Instant::now();
    pair.talk.take().await;
    assert_eq!((began.elapsed().as_secs(), pair.asked()), (0, (1, 1)));
    assert_eq!(pair.reply(0).await, replied("Hello.", &["second"]));
    script(&pair.first, json!({ "error": "invalid" }));
    script(&pair.second, json!({ "error": "invalid" }));
    pair.talk.hears("e2", "And now?").await;
    assert_eq!(pair.talk.settle().await, 1);
    assert_eq!(pair.talk.outcome("e2").await, Some(Outcome::Failed { reason: Failure::ModelRefused }));
    // Sending it again would come to the same.
    let sent = pair.talk.sent();
    assert_eq!(sent.last().map(OutboundEvent::text).as_deref(), Some(REFUSED));
}

/// While one of them may still answer, the turn is not refused.
#[tokio::test(start_paused = true)]
async fn a_turn_waits_for_a_model_that_is_throttled_though_another_refuses() {
    let pair = Pair::new().await;
    script(&pair.first, json!({ "error": "throttled", "times": 3 }));
    script(&pair.second, json!({ "error": "invalid", "times": 100 }));
    assert!(matches!(pair.talk.take().await, Some(Handled::GivenBack(_))));
    script(&pair.first, json!({ "chunks": ["Hello."] }));
    pair.talk.settle().await;
    assert_eq!(pair.reply(0).await, replied("Hello.", &["first"]));
}

/// A stream that breaks off after somebody read a word of it: the preview says so, no other model goes on with it, and the
/// retry, under another fence, writes over the same message.
#[tokio::test(start_paused = true)]
async fn what_was_shown_is_marked_and_written_over_by_the_retry() {
    let pair = Pair::new().await;
    let delivery = pair.talk.kit.delivery();
    script(&pair.first, json!({ "chunks": ["Once upon", { "wait": 3 }], "error": "mid_stream" }));
    script(&pair.second, json!({ "chunks": ["A new ", { "wait": 3 }, "answer."] }));
    let (handled, ()) = tokio::join!(pair.talk.take(), pair.talk.kit.deliver_one_by_one(&delivery, 6 * SECOND));
    assert_eq!((handled, pair.asked()), (Some(Handled::GivenBack(SECOND)), (1, 0)));
    assert_eq!(pair.talk.kit.platform.chat("5"), [format!("Once upon\n\n{MARK}")]);
    assert!(pair.talk.history().await.is_empty(), "nothing of it is committed");
    let work = async { assert_eq!(pair.talk.settle().await, 1) };
    tokio::join!(work, pair.talk.kit.deliver_one_by_one(&delivery, 10 * SECOND));
    assert_eq!(pair.talk.kit.platform.chat("5"), ["A new answer."]);
    let methods = pair.talk.kit.platform.methods();
    assert_eq!(methods.iter().filter(|method| *method == "sendMessage").count(), 1, "{methods:?}");
    assert_eq!((pair.asked(), pair.reply(0).await), ((1, 1), replied("A new answer.", &["second"])));
}

/// What nobody has seen is nobody's: the next try begins afresh.
#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_off_unseen_is_tried_again_in_its_turn() {
    let pair = Pair::new().await;
    script(&pair.first, json!({ "chunks": ["Once upon"], "error": "eof", "times": 3 }));
    script(&pair.second, json!({ "chunks": ["Hello", { "wait": 2 }, "."] }));
    assert_eq!(pair.talk.take().await, Some(Handled::Done));
    assert_eq!((pair.asked(), pair.frames()), ((3, 1), vec!["Hello".to_owned()]));
    assert_eq!(pair.reply(0).await, replied("Hello.", &["second"]));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_hangs_has_had_its_time() {
    let pair = Pair::new().await;
    script(&pair.first, json!({ "error": "hang" }));
    script(&pair.second, json!({ "chunks": ["Hello."] }));
    let began = Instant::now();
    assert_eq!(pair.talk.take().await, Some(Handled::Done));
    assert_eq!((began.elapsed().as_secs(), pair.asked()), (120, (1, 1)));
}

/// Tries end where the time of a call would: the next model is asked if there is time for that, else nobody.
#[tokio::test(start_paused = true)]
async fn there_is_no_try_without_time_for_one() {
    for (time, asked) in [(61_500, (2, 1)), (60_500, (1, 1)), (60_000, (1, 1)), (59_999, (0, 0))] {
        let pair = Pair::new().await;
        script(&pair.first, json!({ "error": "overloaded", "times": 100 }));
        script(&pair.second, json!({ "error": "overloaded", "times": 100 }));
        let handled = pair.talk.take_within(Duration::from_millis(time)).await;
        assert!(matches!(handled, Some(Handled::GivenBack(_))));
        assert_eq!(pair.asked(), asked, "{time} ms");
    }
}

/// A model that limits its rate and says until when.
struct Limiting {
    asks: Duration,
    left: Mutex<u32>,
    inner: Scripted,
}

impl Limiting {
    fn router(asks: Duration, times: u32) -> Arc<Router> {
        let inner = Scripted::new(Wire::Neutral);
        Arc::new(Router::single(Arc::new(Self { asks, left: Mutex::new(times), inner })))
    }
}

#[async_trait]
impl Model for Limiting {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn stream(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        if let Some(left) = { self.left.lock().unwrap().checked_sub(1) } {
            *self.left.lock().unwrap() = left;
            return Err(ModelError::Throttled { retry_after: Some(self.asks) });
        }
        self.inner.stream(request).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_throttling_is_waited_for_in_the_turn() {
    let mut talk = Talk::new().await;
    talk.agent.models = Limiting::router(7 * SECOND, 2);
    talk.hears("e1", "Hi.").await;
    let began = Instant::now();
    assert_eq!(talk.take().await, Some(Handled::Done));
    assert_eq!(began.elapsed().as_secs(), 14);
}

/// Longer than a turn waits: the message sleeps as long as the provider asks for, and that is no attempt, however often.
#[tokio::test(start_paused = true)]
async fn a_long_throttling_hands_the_message_back_and_is_no_error() {
    let mut talk = Talk::new().await;
    talk.agent.models = Limiting::router(40 * SECOND, 20);
    talk.hears("e1", "Hi.").await;
    assert_eq!(talk.take().await, Some(Handled::GivenBack(40 * SECOND)));
    assert_eq!(talk.settle().await, 20);
    assert_eq!(talk.outcome("e1").await, Some(Outcome::Replied));
    let sent: Vec<_> = talk.sent().into_iter().map(|event| event.text()).collect();
    assert_eq!(sent, ["Hi."]);
}

#[tokio::test(start_paused = true)]
async fn a_throttling_that_never_ends_is_said_when_the_message_is_too_old() {
    let mut talk = Talk::new().await;
    talk.agent.models = Limiting::router(50 * SECOND, u32::MAX);
    talk.hears("e1", "Hi.").await;
    let began = Instant::now();
    talk.settle().await;
    assert_eq!(talk.outcome("e1").await, Some(Outcome::Failed { reason: Failure::TooOld }));
    assert_eq!(began.elapsed().as_secs() / 60, 60, "`max_wait`");
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_seen_while_a_turn_waits_for_its_next_try() {
    let mut talk = Talk::new().await;
    talk.agent.models = Limiting::router(10 * SECOND, 2);
    talk.hears("e1", "Hi.").await;
    let began = Instant::now();
    let stop = async {
        sleep(5 * SECOND).await;
        talk.stop(2).await;
    };
    let (handled, ()) = tokio::join!(talk.take(), stop);
    assert_eq!((handled, talk.outcome("e1").await), (Some(Handled::Done), Some(Outcome::Stopped)));
    assert!(began.elapsed() <= 7 * SECOND, "{:?}", began.elapsed());
}

/// Too long for a model: once more, tighter, then the next one, which gets the whole again.
#[tokio::test(start_paused = true)]
async fn a_conversation_that_is_too_long_is_cut_tighter_then_goes_to_the_next_model() {
    let pair = Pair::new().await;
    script(&pair.second, json!({ "chunks": ["Noted."] }));
    script(&pair.first, json!({ "chunks": ["Noted."] }));
    pair.talk.take().await;
    script(&pair.first, json!({ "stop": "context_full", "usage": { "input_tokens": 5 }, "times": 2 }));
    pair.talk.hears("e2", "And now?").await;
    assert_eq!(pair.talk.take().await, Some(Handled::Done));
    assert_eq!((pair.asked(), pair.reply(1).await), ((3, 1), replied("Noted.", &["first", "first", "second"])));
    let sizes: Vec<usize> = pair.first.requests().iter().map(|asked| asked.request.to_string().len()).collect();
    assert!(sizes[2] < sizes[1], "{sizes:?}");
    assert_eq!(pair.second.requests()[0].request["messages"], pair.first.requests()[1].request["messages"]);
    // No model has room for it.
    script(&pair.first, json!({ "stop": "context_full", "times": 2 }));
    script(&pair.second, json!({ "stop": "context_full", "times": 2 }));
    pair.talk.hears("e3", "And now?").await;
    assert_eq!(pair.talk.settle().await, 1);
    assert_eq!(pair.talk.outcome("e3").await, Some(Outcome::Failed { reason: Failure::ModelRefused }));
}

/// An answer for which the room ran out while somebody read it is cut, and says so.
#[tokio::test(start_paused = true)]
async fn an_answer_whose_room_ran_out_before_a_readers_eyes_is_cut() {
    let pair = Pair::new().await;
    script(&pair.first, json!({ "chunks": ["Once upon a time", { "wait": 3 }], "stop": "context_full" }));
    assert_eq!(pair.talk.take().await, Some(Handled::Done));
    let (said, _) = pair.reply(0).await;
    assert!(said.starts_with("Once upon a time\n\n"), "{said}");
    assert_eq!((pair.asked(), pair.talk.outcome("e1").await), ((1, 0), Some(Outcome::Replied)));
}

/// `max_tokens` of whichever model answered: partial calls are neither run nor stored, and the answer says that it was cut.
#[tokio::test(start_paused = true)]
async fn an_answer_that_was_cut_says_so_and_runs_no_partial_call() {
    let pair = Pair::new().await;
    script(&pair.first, json!({ "error": "invalid" }));
    let call = json!({ "name": "note", "input_chunks": ["{\"n\":1"] });
    script(&pair.second, json!({ "chunks": ["I will note"], "tools": [call], "stop": "max_tokens" }));
    assert_eq!(pair.talk.take().await, Some(Handled::Done));
    let turn = pair.talk.history().await.remove(0);
    assert_eq!((turn.messages.len(), pair.talk.ran.calls().len()), (2, 0));
    let (said, models) = pair.reply(0).await;
    assert!(said.starts_with("I will note\n\n"), "{said}");
    assert_eq!(models, ["second"]);
}

/// An empty answer is asked for once more; the second says so.
#[tokio::test(start_paused = true)]
async fn an_empty_answer_is_asked_for_once_more() {
    let pair = Pair::new().await;
    script(&pair.first, json!({ "chunks": ["<think>hm</think>"] }));
    script(&pair.first, json!({ "error": "overloaded", "times": 3 }));
    script(&pair.second, json!({ "chunks": [" "] }));
    pair.talk.settle().await;
    assert_eq!(pair.talk.outcome("e1").await, Some(Outcome::Failed { reason: Failure::NoAnswer }));
    assert_eq!((pair.asked(), pair.reply(0).await.1), ((4, 1), vec!["first".to_owned(), "second".to_owned()]));
}

/// Malformed output is a failed call: it is tried again, and what it used is counted.
#[tokio::test(start_paused = true)]
async fn a_malformed_answer_is_tried_again_and_paid_for() {
    let pair = Pair::new().await;
    script(&pair.first, json!({ "stop": "malformed", "usage": { "input_tokens": 5, "output_tokens": 1 } }));
    script(&pair.first, json!({ "chunks": ["Hello."], "usage": { "input_tokens": 5, "output_tokens": 2 } }));
    assert_eq!(pair.talk.settle().await, 1);
    let turn = pair.talk.history().await.remove(0);
    assert_eq!((turn.calls.len(), turn.usage.input_tokens, turn.usage.output_tokens), (2, 10, 3));
}

/// Each model gets its own signed reasoning back, and no other's; and what begins inside of its reasoning is another thing
/// with each.
#[tokio::test(start_paused = true)]
async fn a_model_is_not_sent_what_another_one_thought() {
    let mut pair = Pair::new().await;
    let capabilities = Capabilities { starts_in_reasoning: true, ..Capabilities::default() };
    let second = Arc::new(Scripted::new(Wire::Neutral).with_name("second").with_capabilities(capabilities));
    pair.second = second.clone();
    pair.talk.agent.models =
        Arc::new(Router::new(vec![Route::free(pair.first.clone() as _), Route::free(second as _)]));
    script(&pair.first, json!({ "chunks": [{ "reasoning": "a thought", "signature": "c2ln" }, "One."] }));
    pair.talk.take().await;
    script(&pair.first, json!({ "error": "invalid" }));
    script(&pair.second, json!({ "chunks": ["another thought</think>Two."] }));
    pair.talk.hears("e2", "Hi.").await;
    pair.talk.take().await;
    let asked = |model: &Scripted, nth: usize| model.requests()[nth].request.to_string();
    assert!(asked(&pair.first, 1).contains("c2ln"), "{}", asked(&pair.first, 1));
    assert!(!asked(&pair.second, 0).contains("thought"), "{}", asked(&pair.second, 0));
    assert_eq!(pair.reply(1).await, replied("Two.", &["second"]));
    assert!(pair.first.requests().iter().chain(&pair.second.requests()).all(|asked| asked.problems.is_empty()));
}

/// A call may write no more than fits the time that is left.
#[tokio::test(start_paused = true)]
async fn a_call_gets_a_token_limit_that_fits_the_time_left() {
    for (seconds, want) in [(300, Value::Null), (100, json!(3600)), (60, json!(2000))] {
        let pair = Pair::new().await;
        pair.talk.take_within(seconds * SECOND).await;
        assert_eq!(pair.first.requests()[0].request["max_tokens"], want, "{seconds} s");
    }
}

/// What each call used and cost stands with the turn.
#[tokio::test(start_paused = true)]
async fn a_turn_is_stored_with_what_its_calls_cost() {
    let mut pair = Pair::new().await;
    pair.talk.agent.models = Arc::new(dear(&pair.first, &pair.second));
    let usage = |input, output| json!({ "input_tokens": input, "output_tokens": output });
    script(&pair.first, json!({ "tools": [{ "name": "look", "input": { "n": 1 } }], "usage": usage(100, 10) }));
    script(&pair.first, json!({ "error": "overloaded", "times": 3 }));
    script(&pair.second, json!({ "chunks": ["Seen."], "usage": usage(200, 20) }));
    assert_eq!(pair.talk.settle().await, 1);
    let call = |model: &str, input_tokens, output_tokens, cost| ModelCall {
        model: model.to_owned(),
        usage: Usage { input_tokens, output_tokens, cost, ..Usage::default() },
    };
    let turn = pair.talk.history().await.remove(0);
    assert_eq!(turn.calls, [call("first", 100, 10, 450), call("second", 200, 20, 30)]);
    assert_eq!(turn.usage, Usage { input_tokens: 300, output_tokens: 30, cost: 480, ..Usage::default() });
}

/// Three and fifteen a million for the first, a tenth and a half for the second.
fn dear(first: &Arc<Scripted>, second: &Arc<Scripted>) -> Router {
    let route = |model: &Arc<Scripted>, input, output| Route {
        price: Price { input, output, ..Price::default() },
        ..Route::free(model.clone() as _)
    };
    Router::new(vec![route(first, 3_000_000, 15_000_000), route(second, 100_000, 500_000)])
}

/// Over the cap no model is asked, people are told, and the next day begins with nothing.
#[tokio::test(start_paused = true)]
async fn a_day_that_has_cost_what_it_may_ends_with_a_polite_refusal() {
    let mut pair = Pair::new().await;
    pair.talk.agent.models = Arc::new(dear(&pair.first, &pair.second));
    pair.talk.set(|settings| settings.limits.daily_cost = Some(1000));
    script(&pair.first, json!({ "chunks": ["Hello."], "usage": { "input_tokens": 333 }, "times": 2 }));
    script(&pair.first, json!({ "chunks": ["Hello."], "usage": { "input_tokens": 10 } }));
    for (id, outcome) in
        [("e1", Outcome::Replied), ("e2", Outcome::Replied), ("e3", Outcome::Failed { reason: Failure::DailyLimit })]
    {
        if id != "e1" {
            pair.talk.hears(id, "And now?").await;
        }
        assert_eq!(pair.talk.settle().await, 1);
        assert_eq!(pair.talk.outcome(id).await, Some(outcome), "{id}");
    }
    let sent = pair.talk.sent();
    let last = sent.last().unwrap();
    assert_eq!((last.message_kind, sent.len(), pair.asked().0), (MessageKind::Error, 3, 2));
    assert!(!last.text().is_empty());
    // Kit's day begins at nine.
    sleep(15 * 3600 * SECOND).await;
    pair.talk.hears("e4", "And today?").await;
    pair.talk.settle().await;
    assert_eq!((pair.talk.outcome("e4").await, pair.asked().0), (Some(Outcome::Replied), 3));
}

/// What a turn costs counts although it comes to no reply.
#[tokio::test(start_paused = true)]
async fn a_turn_that_fails_is_paid_for() {
    let mut pair = Pair::new().await;
    pair.talk.agent.models = Arc::new(dear(&pair.first, &pair.second));
    pair.talk.set(|settings| settings.limits.daily_cost = Some(1000));
    script(&pair.first, json!({ "chunks": [" "], "usage": { "input_tokens": 50 }, "times": 2 }));
    pair.talk.settle().await;
    assert_eq!(pair.talk.outcome("e1").await, Some(Outcome::Failed { reason: Failure::NoAnswer }));
    assert_eq!(pair.talk.kit.store.spent_today().await.unwrap(), 300);
}

/// A model whose stream our own deadline ends had little time, and goes on being preferred; unless it had all of an
/// invocation and was not done.
#[tokio::test(start_paused = true)]
async fn a_model_that_had_little_time_does_not_rest() {
    // Nobody sees what it thinks, and it is never silent for long.
    let long = json!({ "chunks": ["<think>", { "wait": 80 }, "hm", { "wait": 80 }, "hm", { "wait": 80 }, "hm", { "wait": 80 }] });
    for (looks, time, preferred) in [(true, 200, "first"), (false, 200, "second")] {
        let pair = Pair::new().await;
        if looks {
            script(&pair.first, json!({ "tools": [{ "name": "look", "input": { "n": 1, "seconds": 100 } }] }));
        }
        script(&pair.first, long.clone());
        assert!(matches!(pair.talk.take_within(time * SECOND).await, Some(Handled::GivenBack(_))));
        let candidates = pair.talk.agent.models.candidates(Instant::now());
        assert_eq!((candidates[0].model.name(), pair.asked().1), (preferred, 0), "looks: {looks}");
    }
}

/// What a stop leaves, or what breaks off, has been paid for; what was refused has not.
#[tokio::test(start_paused = true)]
async fn what_comes_to_no_answer_counts_towards_the_day() {
    let long = json!({ "chunks": ["word ".repeat(300), { "wait": 60 }] });
    let broken = json!({ "chunks": ["<think>", "word ".repeat(300)], "error": "mid_stream" });
    let refused = json!({ "error": "overloaded" });
    let mut costs = Vec::new();
    for line in [long, broken, refused] {
        let mut pair = Pair::new().await;
        pair.talk.agent.models = Arc::new(dear(&pair.first, &pair.second));
        pair.talk.set(|settings| settings.limits.daily_cost = Some(1_000_000));
        script(&pair.first, line);
        script(&pair.first, json!({ "chunks": ["Hello."] }));
        let stop = async {
            sleep(5 * SECOND).await;
            pair.talk.stop(2).await;
        };
        let (handled, ()) = tokio::join!(pair.talk.take(), stop);
        assert_eq!(handled, Some(Handled::Done));
        costs.push(pair.talk.kit.store.spent_today().await.unwrap());
        let turn = pair.talk.history().await.remove(0);
        assert_eq!(turn.usage, Usage::default(), "the turn says what its models said");
    }
    // 500 tokens at 15 a million, and the question at 3.
    assert!((7_500..9_500).contains(&costs[0]) && (7_500..9_500).contains(&costs[1]), "{costs:?}");
    assert_eq!(costs[2], 0);
}

/// An answer that is cut because little time was left is asked for again in an invocation that has all of it; not if
/// somebody has seen it, and not if this invocation had all of it.
#[tokio::test(start_paused = true)]
async fn an_answer_that_only_little_time_has_cut_is_asked_for_again() {
    let cut = |chunks: Value| json!({ "chunks": chunks, "stop": "max_tokens" });
    let look = json!({ "tools": [{ "name": "look", "input": { "n": 1, "seconds": 100 } }] });
    let pair = Pair::new().await;
    script(&pair.first, look.clone());
    script(&pair.first, cut(json!(["A long"])));
    script(&pair.first, json!({ "chunks": ["A long answer."] }));
    assert_eq!(pair.talk.take_within(200 * SECOND).await, Some(Handled::GivenBack(Duration::ZERO)));
    assert_eq!((pair.talk.history().await.len(), pair.talk.settle().await), (0, 1));
    assert_eq!(pair.reply(0).await, replied("A long answer.", &["first", "first"]));
    assert_eq!(pair.talk.ran.calls(), ["look 1"]);
    for (lines, time) in [(vec![look, cut(json!(["A long", { "wait": 3 }]))], 200), (vec![cut(json!(["A long"]))], 90)]
    {
        let pair = Pair::new().await;
        lines.into_iter().for_each(|line| script(&pair.first, line));
        assert_eq!(pair.talk.take_within(time * SECOND).await, Some(Handled::Done));
        let (said, _) = pair.reply(0).await;
        assert!(said.starts_with("A long\n\n"), "{said}");
    }
}
