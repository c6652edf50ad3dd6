//! A turn that is longer than an invocation.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use turnlock_tests::aws::bedrock::{Asked, Turn};

use crate::kit::{Kit, WITHIN};

/// How many calls of a tool the model makes, one after the other; its answer is the fortieth step, the last there may be.
const CALLS: usize = 39;
/// How many of them one invocation has time for.
const STEPS_AT_ONCE: usize = 8;
/// No call of a model begins with less than this left of an invocation.
const MODEL_MARGIN: Duration = Duration::from_secs(60);
/// For how long calls begin in an invocation.
const WINDOW: Duration = Duration::from_secs(4);

/// Forty steps in five invocations: the last step of each takes until no further one may begin. The turn is handed from one
/// to the next, each goes on where the last one was, and nothing is asked or done twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_forty_steps_spans_five_invocations() {
    let kit = Kit::start("", &[]).await;
    kit.aws.lambda.set_timeout("Agent", MODEL_MARGIN + WINDOW);
    let call = |step: usize| {
        let fact = json!({ "key": format!("fact-{step}"), "text": format!("Fact {step} of {CALLS}.") });
        let call = Turn::tool("remember", fact);
        let is_last = step.is_multiple_of(STEPS_AT_ONCE) && step < CALLS;
        if is_last { call.after(WINDOW) } else { call }
    };
    kit.aws.bedrock.on("learn all", (1..=CALLS).map(call).chain([Turn::text("Learnt.")]));
    kit.say(5, "learn all of it").await;
    kit.shows_within("telegram:main:5", &["Learnt."], STEPS_WITHIN).await;
    kit.settle().await;

    let invocations = kit.aws.lambda.received("Agent").len();
    assert!(invocations >= CALLS.div_ceil(STEPS_AT_ONCE), "{invocations}");
    let asked: Vec<Asked> = kit.aws.bedrock.asked().into_iter().filter(|asked| asked.forced_tool().is_none()).collect();
    assert_eq!(asked.len(), CALLS + 1);
    // Each question is one step longer than the one before it, whichever invocation asks.
    let steps = |asked: &Asked| count(&asked.body, "toolUse");
    assert_eq!(asked.iter().map(steps).collect::<Vec<_>>(), (0..=CALLS).collect::<Vec<_>>());

    let log = kit.aws.log("Agent");
    let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of = |target: &str| lines.iter().filter(|line| line["target"] == target).collect::<Vec<_>>();
    let calls = of("turnlock::tool");
    let keys: BTreeSet<_> = calls.iter().map(|line| line["key"].to_string()).collect();
    assert_eq!((calls.len(), keys.len()), (CALLS, CALLS), "every call ran once");
    assert!(calls.iter().all(|line| line["outcome"] == "ok"), "{calls:?}");
    let ends = of("turnlock::event");
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!((&ends[0]["outcome"], &ends[0]["attempts"]), (&json!("committed"), &json!(1)));
    let finals = kit.aws.front.on_the_bus().into_iter();
    let finals =
        finals.filter(|entry| entry["Detail"].as_str().is_some_and(|detail| detail.contains("\"is_final\":true")));
    assert_eq!(finals.count(), 1);

    // All of it is in the history, each call with its result.
    kit.say(5, "and now?").await;
    kit.shows("telegram:main:5", &["Learnt.", "echo: and now?"]).await;
    let asked = kit.aws.bedrock.asked();
    let next = asked.iter().rfind(|asked| asked.forced_tool().is_none()).unwrap();
    assert_eq!((count(&next.body, "toolUse"), count(&next.body, "toolResult")), (CALLS, CALLS));
    kit.end().await;
}

/// Four windows, and what the steps take beside them.
const STEPS_WITHIN: Duration = WINDOW.saturating_mul(4).saturating_add(WITHIN);

/// How many blocks of a kind the messages of a request have.
fn count(body: &Value, kind: &str) -> usize {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    blocks.filter(|block| block.get(kind).is_some()).count()
}
