use serde_json::json;
use turnlock_domain::message::Message;
use turnlock_domain::session::SessionKey;

use super::*;
use crate::request::Purpose;
use crate::scripted::ScriptLine;
use crate::wire::Wire;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn named(name: &str) -> Arc<Scripted> {
    Arc::new(Scripted::new(Wire::Neutral).with_name(name))
}

fn router(models: &[&Arc<Scripted>]) -> Router {
    Router::new(models.iter().map(|model| Route::free(Arc::clone(model) as _)).collect())
}

fn order(router: &Router) -> Vec<&str> {
    router.candidates(Instant::now()).into_iter().map(|route| route.model.name()).collect()
}

fn fails(router: &Router, name: &str, error: &ModelError) {
    let now = Instant::now();
    let route = router.candidates(now).into_iter().find(|route| route.model.name() == name).expect("a model");
    router.failed(route, error, now);
}

fn request() -> ModelRequest {
    ModelRequest::new(Purpose::Consolidate, SessionKey::from_text("telegram:1"), vec![Message::user("Hi.")])
}

fn line(line: serde_json::Value) -> ScriptLine {
    serde_json::from_value(line).expect("a line")
}

#[test]
fn a_cost_is_exact_rounded_up_and_never_overflows() {
    let price = Price { input: 3_000_000, output: 15_000_000, cache_read: 300_000, cache_write: 3_750_000 };
    let usage = |input, output, read, write| Usage {
        input_tokens: input,
        output_tokens: output,
        cache_read_tokens: read,
        cache_write_tokens: write,
        ..Usage::default()
    };
    let table = [
        (usage(0, 0, 0, 0), 0),
        (usage(1, 0, 0, 0), 3),
        (usage(1000, 100, 0, 0), 3000 + 1500),
        (usage(7, 5, 1000, 200), 21 + 75 + 300 + 750),
        // A third of a millionth counts as one.
        (usage(0, 0, 1, 0), 1),
        (usage(1_000_000, 1_000_000, 1_000_000, 1_000_000), 3_000_000 + 15_000_000 + 300_000 + 3_750_000),
    ];
    for (usage, want) in table {
        assert_eq!(price.of(&usage), want, "{usage:?}");
    }
    let dear = Price { input: u64::MAX, output: u64::MAX, cache_read: u64::MAX, cache_write: u64::MAX };
    assert_eq!(dear.of(&usage(u64::MAX, u64::MAX, u64::MAX, u64::MAX)), u64::MAX);
    assert_eq!(Price::default().of(&usage(9, 9, 9, 9)), 0);
}

#[test]
fn a_call_says_its_model_and_its_cost() {
    let price = Price { input: 2_000_000, ..Price::default() };
    let route = Route { model: named("a"), price, max_tokens: None };
    let call = route.call(Usage { input_tokens: 4, output_tokens: 9, ..Usage::default() });
    let usage = Usage { input_tokens: 4, output_tokens: 9, cost: 8, ..Usage::default() };
    assert_eq!(call, ModelCall { model: "a".into(), usage });
}

#[test]
fn no_model_is_the_stand_in() {
    let router = Router::new(Vec::new());
    assert_eq!((router.name(), router.candidates(Instant::now()).len()), ("scripted", 1));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_failed_is_asked_last_for_thirty_seconds_and_twice_as_long_each_time() {
    let router = router(&[&named("a"), &named("b"), &named("c")]);
    let mut rests = Vec::new();
    for _ in 0..6 {
        fails(&router, "a", &ModelError::Overloaded);
        let began = Instant::now();
        while order(&router) == ["b", "c", "a"] {
            tokio::time::advance(seconds(1)).await;
        }
        assert_eq!(order(&router), ["a", "b", "c"]);
        rests.push(began.elapsed().as_secs());
    }
    assert_eq!(rests, [30, 60, 120, 240, 300, 300]);
    let all = router.candidates(Instant::now());
    router.answered(all[0]);
    fails(&router, "a", &ModelError::Timeout);
    tokio::time::advance(seconds(30)).await;
    assert_eq!(order(&router), ["a", "b", "c"], "an answer makes the next rest a first one");
}

/// A hundred turns that meet one outage are one failure.
#[tokio::test(start_paused = true)]
async fn a_failure_of_a_model_that_rests_does_not_prolong_the_rest() {
    let router = router(&[&named("a"), &named("b")]);
    for _ in 0..100 {
        fails(&router, "a", &ModelError::Unavailable("down".into()));
    }
    tokio::time::advance(seconds(29)).await;
    assert_eq!(order(&router), ["b", "a"]);
    tokio::time::advance(seconds(1)).await;
    assert_eq!(order(&router), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_rest_is_at_least_what_the_provider_asks_for_and_a_bad_request_is_none() {
    let router = router(&[&named("a"), &named("b")]);
    fails(&router, "a", &ModelError::Invalid { reason: "status 400".into() });
    fails(&router, "a", &ModelError::ContextFull);
    assert_eq!(order(&router), ["a", "b"]);
    fails(&router, "a", &ModelError::Throttled { retry_after: Some(seconds(50)) });
    tokio::time::advance(seconds(49)).await;
    assert_eq!(order(&router), ["b", "a"]);
    tokio::time::advance(seconds(1)).await;
    assert_eq!(order(&router), ["a", "b"]);
    // All of them rest: they are asked all the same, in their order.
    fails(&router, "b", &ModelError::Unauthorized { advice: "check the key" });
    fails(&router, "a", &ModelError::Overloaded);
    assert_eq!(order(&router), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_gets_the_answer_of_the_first_model_that_has_one() {
    let (one, other) = (named("a"), named("b"));
    one.push(line(json!({"error": "overloaded", "times": 2})));
    other.push(line(json!({"chunks": ["kept"]})));
    let router = router(&[&one, &other]);
    let (answer, route) = router.answer(&request(), seconds(120)).await.expect("an answer");
    assert_eq!((answer.text().as_str(), route.model.name()), ("kept", "b"));
    assert_eq!(order(&router), ["b", "a"]);
    assert_eq!((one.requests().len(), other.requests().len()), (1, 1));
}

/// One that hangs leaves time for the next.
#[tokio::test(start_paused = true)]
async fn a_model_that_hangs_gets_half_of_a_jobs_time() {
    let (one, other) = (named("a"), named("b"));
    one.push(line(json!({"error": "hang"})));
    other.push(line(json!({"chunks": ["kept"]})));
    let router = router(&[&one, &other]);
    let began = Instant::now();
    let (_, route) = router.answer(&request(), seconds(120)).await.expect("an answer");
    assert_eq!((route.model.name(), began.elapsed()), ("b", seconds(60)));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_no_model_answers_fails_with_what_may_pass() {
    let (one, other) = (named("a"), named("b"));
    one.push(line(json!({"error": "throttled"})));
    other.push(line(json!({"error": "invalid"})));
    let error = router(&[&one, &other]).answer(&request(), seconds(120)).await.err().expect("no answer");
    assert_eq!(error.kind(), "throttled");
}

#[test]
fn the_failure_that_counts_is_the_one_that_may_pass() {
    let throttled = |secs: Option<u64>| ModelError::Throttled { retry_after: secs.map(seconds) };
    let invalid = || ModelError::Invalid { reason: "status 400".into() };
    let table = [
        (None, invalid(), "invalid", None),
        (Some(ModelError::Timeout), invalid(), "timeout", None),
        (Some(invalid()), ModelError::Timeout, "timeout", None),
        (Some(throttled(None)), ModelError::Overloaded, "throttled", None),
        (Some(throttled(Some(9))), throttled(Some(4)), "throttled", Some(4)),
        (Some(throttled(Some(9))), throttled(None), "throttled", Some(9)),
        (Some(invalid()), ModelError::ContextFull, "context_full", None),
    ];
    for (earlier, later, kind, asks) in table {
        let counts = worth_waiting_for(earlier, later);
        assert_eq!((counts.kind(), counts.retry_after()), (kind, asks.map(seconds)));
    }
}
