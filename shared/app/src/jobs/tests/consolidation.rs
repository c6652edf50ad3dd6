//! Consolidation as one worker sees it: what memory takes in, where the boundary goes, and what failures cost.

use std::sync::Arc;

use serde_json::json;
use turnlock_domain::message::{Block, Message, Reasoning, Role};
use turnlock_domain::turn::Outcome;
use turnlock_models::{Capabilities, Price, Route, Router, Scripted, Wire};
use turnlock_store::memory::ScopeHead;

use super::bench::{Bench, SCOPE, conversation, saving, seconds, session};
use crate::memory_text::snapshot;

#[tokio::test(start_paused = true)]
async fn memory_takes_in_all_but_the_last_three_turns() {
    let bench = Bench::with_session(&conversation(15)).await;
    bench.owe(0).await;
    bench.work(seconds(60)).await;
    let head = bench.head().await;
    assert_eq!((head.boundary, head.message_count, head.claim_job), (24, 30, None));
    assert_eq!(bench.recalled("box b11 colour").await[0], "The colour of box b11 is c11.");
    assert!(bench.facts().await.iter().all(|fact| !fact.text().contains("b12")), "the last turns stay out");
    let episodes = bench.episodes().await;
    assert_eq!(episodes.len(), 1);
    let evidence = episodes[0].evidence();
    assert_eq!((evidence.range(), evidence.generation(), evidence.model()), (0..24, 0, "scripted"));
    assert_eq!((evidence.session(), evidence.event_ids().len()), (&session(), 12));
    assert_eq!(bench.store.scope_head(SCOPE).await.expect("read").epoch, 1);
    assert!(bench.model.requests().iter().all(|request| request.problems.is_empty()));
    assert!(bench.is_drained().await);
}

/// What was wrong elsewhere: only the first 3,000 characters of a chunk reached the model.
#[tokio::test(start_paused = true)]
async fn facts_anywhere_in_the_chunk_are_recalled() {
    let filler = "and so on ".repeat(40);
    let mut messages: Vec<Message> =
        (0..20).flat_map(|n| [Message::user(format!("{filler} marker{n}")), Message::assistant("Noted.")]).collect();
    messages[20] = Message::user(format!("{} lastword is needle", "word ".repeat(1_700)));
    let bench = Bench::with_session(&messages).await;
    bench.owe(0).await;
    bench.work(seconds(60)).await;
    assert_eq!(bench.head().await.boundary, 34);
    for n in (0..17).filter(|n| *n != 10) {
        let marker = format!("marker{n}");
        assert!(bench.recalled(&marker).await[0].ends_with(&marker), "{marker}");
    }
    assert!(bench.recalled("needle").await[0].ends_with("lastword is needle"));
}

#[tokio::test(start_paused = true)]
async fn a_first_turn_of_any_length_is_kept_whole() {
    let mut messages = conversation(6);
    messages[0] = Message::user((0..12_000).map(|n| format!("w{n} ")).collect::<String>());
    let bench = Bench::with_session(&messages).await;
    bench.owe(0).await;
    bench.work(seconds(60)).await;
    assert_eq!(bench.head().await.boundary, 2, "as much as one job takes in");
    assert!(bench.model.requests().len() > 2);
    for word in ["w0", "w6000", "w11999"] {
        assert!(!bench.recalled(word).await.is_empty(), "{word}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_small_model_is_asked_window_by_window_and_the_claim_is_renewed() {
    let small = Capabilities { tools: true, context_tokens: Some(4_000), ..Capabilities::default() };
    let bench = Bench::with_model(Scripted::new(Wire::Neutral).with_capabilities(small)).await;
    let long = |n: usize| Message::user(format!("Box b{n} holds c{n}. {}", "x".repeat(850)));
    let messages: Vec<Message> = (0..9).flat_map(|n| [long(n), Message::assistant("Noted.")]).collect();
    bench.seed(0, &messages).await;
    for n in 0..3 {
        bench.script(saving("consolidate", 100, &format!("part {n}"), &format!("Part {n} was read.")));
    }
    bench.owe(0).await;
    bench.work(seconds(600)).await;
    assert_eq!((bench.head().await.boundary, bench.model.requests().len()), (12, 3));
    let keys: Vec<String> = bench.facts().await.iter().map(|fact| fact.key().to_owned()).collect();
    assert_eq!(keys, ["part-0", "part-1", "part-2"]);
    assert_eq!(bench.facts().await[1].evidence().range(), 4..8, "each fact names the messages it comes from");
}

#[tokio::test(start_paused = true)]
async fn a_failing_model_costs_three_calls_and_moves_nothing() {
    let bench = Bench::with_session(&conversation(10)).await;
    bench.script(json!({ "for": "consolidate", "error": "overloaded", "times": 100 }));
    bench.owe(0).await;
    bench.work(seconds(3_600)).await;
    bench.owe(0).await;
    bench.work(seconds(3_600)).await;
    let head = bench.head().await;
    assert_eq!((bench.model.requests().len(), head.boundary, head.claim_failures), (3, 0, 3));
    assert!(bench.facts().await.is_empty() && bench.episodes().await.is_empty());
    assert!(bench.is_drained().await);

    bench.turn("11", conversation(1), Outcome::Replied).await;
    bench.owe(0).await;
    bench.work(seconds(3_600)).await;
    assert_eq!(bench.model.requests().len(), 4, "new messages are worth one more try");
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_none_count_as_failures() {
    let bench = Bench::with_session(&conversation(10)).await;
    bench.script(json!({ "for": "consolidate", "chunks": ["I would rather chat."] }));
    bench.script(json!({ "for": "consolidate", "tools": [{ "name": "save_memory", "input": { "facts": 7 } }] }));
    bench.owe(0).await;
    bench.work(seconds(31)).await;
    let head = bench.head().await;
    assert_eq!((head.boundary, head.claim_failures), (0, 2));
    bench.work(seconds(300)).await;
    let head = bench.head().await;
    assert_eq!((head.boundary, head.claim_failures, bench.model.requests().len()), (14, 0, 3));
}

/// Case mem-interrupted: attempts that broke off leave no trace, and the one that succeeds writes once.
#[tokio::test(start_paused = true)]
async fn mem_interrupted() {
    let bench = Bench::with_session(&conversation(10)).await;
    bench.script(json!({ "for": "consolidate", "chunks": ["so far"], "error": "hang", "times": 1 }));
    bench.script(json!({ "for": "consolidate", "error": "eof" }));
    bench.owe(0).await;
    bench.work(seconds(200)).await;
    assert_eq!((bench.model.requests().len(), bench.head().await.boundary), (2, 0));
    assert!(bench.facts().await.is_empty() && bench.episodes().await.is_empty());
    assert_eq!(bench.store.scope_head(SCOPE).await.expect("read").epoch, 0);
    bench.work(seconds(300)).await;
    assert_eq!((bench.head().await.boundary, bench.facts().await.len(), bench.episodes().await.len()), (14, 7, 1));
}

/// Case mem-cut-pair: a boundary that stands between a call and its result moves to the end of that turn; never between.
#[tokio::test(start_paused = true)]
async fn mem_cut_pair() {
    let call = Block::ToolUse { id: "t1".into(), name: "lookup".into(), input: json!({ "of": "b" }) };
    let result = Block::ToolResult { tool_use_id: "t1".into(), content: vec![Block::text("c")], is_error: false };
    let mut messages = vec![
        Message::user("What is in box b?"),
        Message::new(Role::Assistant, vec![call]),
        Message::new(Role::User, vec![result]),
        Message::assistant("It is c."),
    ];
    messages.extend(conversation(3));
    for cut_at in [0, 2] {
        let bench = Bench::new().await;
        bench.seed(cut_at, &messages).await;
        bench.owe(cut_at).await;
        bench.work(seconds(60)).await;
        assert_eq!(bench.head().await.boundary, 4, "from {cut_at}");
        let request = &bench.requests()[0];
        assert!(request.contains("[calls lookup with") && request.contains("It is c."), "{request}");
    }
}

/// Case mem-late-resume-dropped: what comes after a session was consolidated is a new range, and is taken in.
#[tokio::test(start_paused = true)]
async fn mem_late_resume_dropped() {
    let bench = Bench::with_session(&conversation(10)).await;
    bench.owe(0).await;
    bench.work(seconds(60)).await;
    assert_eq!(bench.head().await.boundary, 14);
    for n in 0..4 {
        let said = vec![Message::user(format!("Later word l{n}.")), Message::assistant("Noted.")];
        bench.turn(&format!("late{n}"), said, Outcome::Replied).await;
    }
    bench.owe(14).await;
    bench.work(seconds(60)).await;
    assert_eq!(bench.head().await.boundary, 22);
    assert_eq!(bench.recalled("later l0").await[0], "Later word l0.");
    let ranges: Vec<_> = bench.episodes().await.iter().map(|episode| episode.evidence().range()).collect();
    assert_eq!(ranges, [14..22, 0..14]);
}

#[tokio::test(start_paused = true)]
async fn where_there_is_nothing_to_take_in_the_claim_is_free_at_once() {
    let bench = Bench::with_session(&conversation(3)).await;
    bench.owe(0).await;
    bench.work(seconds(10)).await;
    let head = bench.head().await;
    assert_eq!((bench.model.requests().len(), head.boundary), (0, 0));
    assert!(head.claim_until.is_some_and(|until| until <= bench.store.clock().now_ms()));
    assert!(bench.is_drained().await);
}

#[tokio::test(start_paused = true)]
async fn reasoning_reaches_neither_the_model_nor_memory() {
    let mut messages = conversation(6);
    let reasoning = Reasoning { text: "secret thought".into(), model: Some("scripted".into()), ..Reasoning::default() };
    messages[1].content.insert(0, Block::Reasoning(reasoning));
    let bench = Bench::with_session(&messages).await;
    bench.script(json!({ "for": "consolidate", "chunks": [{ "reasoning": "another secret" }], "tools": [{
        "name": "save_memory",
        "input": { "summary": "<think>a secret</think>Boxes.", "facts": [{ "key": "a", "text": "<think>secret</think>Blue." },
                                                                        { "key": "b", "text": "<think>secret" }] },
    }] }));
    bench.owe(0).await;
    bench.work(seconds(60)).await;
    assert!(!bench.requests()[0].contains("secret"));
    let texts: Vec<String> = bench.facts().await.iter().map(|fact| fact.text().to_owned()).collect();
    assert_eq!((texts, bench.episodes().await[0].summary()), (vec!["Blue.".to_owned()], "Boxes."));
}

/// Trace V14: a fact that is forgotten while a turn builds its snapshot does not come back through it.
#[tokio::test(start_paused = true)]
async fn v14_a_forgotten_fact_does_not_come_back_through_the_snapshot() {
    let bench = Bench::with_session(&conversation(6)).await;
    bench.owe(0).await;
    bench.work(seconds(60)).await;
    let before = bench.store.scope_head(SCOPE).await.expect("read");
    let facts = bench.facts().await;
    bench.store.forget(SCOPE, facts[0].key()).await.expect("forgotten");
    let text = snapshot(&facts, &bench.episodes().await);
    assert!(text.contains(facts[0].text()));
    bench.store.write_snapshot(SCOPE, &text, before.epoch).await.expect("written");
    let after: ScopeHead = bench.store.scope_head(SCOPE).await.expect("read");
    assert!(after.needs_snapshot(), "what was stamped with the epoch before the facts is old: {after:?}");
    assert!(!snapshot(&bench.facts().await, &[]).contains(facts[0].text()));
}

/// Memory names the model that answered, and what it is shown fits every model.
#[tokio::test(start_paused = true)]
async fn the_next_model_answers_for_one_that_fails() {
    let mut bench = Bench::with_session(&conversation(15)).await;
    let capabilities = Capabilities { tools: true, context_tokens: Some(8_000), ..Capabilities::default() };
    let other = Arc::new(Scripted::new(Wire::Neutral).with_name("other").with_capabilities(capabilities));
    bench.jobs.models = Arc::new(Router::new(vec![Route::free(bench.model.clone()), Route::free(other.clone())]));
    bench.script(json!({ "error": "overloaded", "times": 100 }));
    bench.owe(0).await;
    bench.work(seconds(60)).await;
    assert_eq!((bench.head().await.boundary, bench.model.requests().len(), other.requests().len()), (24, 1, 1));
    assert_eq!(bench.episodes().await[0].evidence().model(), "other");
    assert!(bench.facts().await.iter().all(|fact| fact.evidence().model() == "other"));
}

/// A job is no way around the cap: it sleeps until the day is over, no failure is counted, and its own cost counts.
#[tokio::test(start_paused = true)]
async fn a_job_waits_for_the_next_day_when_this_one_has_cost_what_it_may() {
    let mut bench = Bench::with_session(&conversation(15)).await;
    let price = Price { input: 1_000_000, ..Price::default() };
    let route = Route { price, ..Route::free(bench.model.clone()) };
    bench.jobs.models = Arc::new(Router::new(vec![route]));
    bench.jobs.daily_cost = Some(50);
    bench.store.add_spent(50).await.expect("added");
    bench.owe(0).await;
    // The bench's day begins at nine.
    bench.work(seconds(15 * 3600 - 60)).await;
    let head = bench.head().await;
    assert_eq!((bench.model.requests().len(), head.boundary, head.claim_failures), (0, 0, 0));
    let now = bench.store.clock().now_ms();
    assert!(head.claim_until.is_none_or(|until| until <= now), "a later turn may owe it again");
    let mut line = saving("consolidate", 0, "boxes", "There are boxes.");
    line["usage"] = json!({ "input_tokens": 7 });
    bench.script(line);
    bench.work(seconds(180)).await;
    assert_eq!((bench.model.requests().len(), bench.head().await.boundary), (1, 24));
    assert_eq!(bench.store.spent_today().await.expect("read"), 7);
    assert!(bench.is_drained().await);
}
