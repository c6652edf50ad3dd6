//! How far a consolidation may move the boundary (`last_consolidated`): forward only, to the end of a complete turn, and
//! never into the last [`KEEP_TURNS`]. Pure arithmetic on message indexes; that the move is conditional on the boundary
//! it started from is the store's part. What is odd (gaps, turns out of order) is never passed over: the answer is `None`
//! or an earlier end.

use std::collections::HashMap;

use crate::message::{Block, Message, Role};

/// How many complete turns at the end of a session stay out of long-term memory.
pub const KEEP_TURNS: usize = 3;

/// Where a complete turn lies in its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnSpan {
    /// The index of its first message.
    pub first: u64,
    /// How many messages it has.
    pub messages: u64,
}

impl TurnSpan {
    /// The index after its last message.
    #[must_use]
    pub fn end(self) -> u64 {
        self.first.saturating_add(self.messages)
    }
}

/// Whether enough messages lie behind the boundary for a consolidation; a threshold of 0 switches it off.
///
/// It asks nothing but the counts, so a session that is resumed after it was consolidated to its end falls due again.
#[must_use]
pub fn due(message_count: u64, boundary: u64, threshold: u64) -> bool {
    threshold > 0 && message_count.saturating_sub(boundary) >= threshold
}

/// The end of the last turn that a consolidation from `boundary` takes in: the last `keep` of `turns` stay out, and not
/// more than `max_messages` are taken unless the first turn alone is longer. `None` when there is nothing to take.
///
/// `turns` are the complete turns from the boundary on, in order. Turns that end at or before the boundary are skipped;
/// one that the boundary cuts (old damage) is finished; behind a gap nothing is taken.
#[must_use]
pub fn pick(boundary: u64, turns: &[TurnSpan], keep: usize, max_messages: usize) -> Option<u64> {
    let most = u64::try_from(max_messages).unwrap_or(u64::MAX);
    let mut to = boundary;
    for turn in &turns[..turns.len().saturating_sub(keep)] {
        if turn.end() <= to {
            continue;
        }
        let full = to > boundary && turn.end() - boundary > most;
        if turn.first > to || full {
            break;
        }
        to = turn.end();
    }
    (to > boundary).then_some(to)
}

/// The complete turns of `messages`, whose first has the index `first` in its session: for histories that were seeded
/// without turns.
///
/// A turn begins at a user message without tool results, but never between a call and its result, wherever that stands.
/// What stands before the first beginning is a span of its own. A last turn that still waits for its answer or for the
/// result of a call is not complete and left out.
#[must_use]
pub fn turn_spans(first: u64, messages: &[Message]) -> Vec<TurnSpan> {
    let tied = tied_to_the_one_before(messages);
    let mut starts: Vec<usize> =
        (0..messages.len()).filter(|&i| i == 0 || (!tied[i] && begins(&messages[i]))).collect();
    // Without the end of the messages as its last mark, the list ends where the incomplete turn begins.
    if starts.last().is_some_and(|&last| is_complete(&messages[last..])) {
        starts.push(messages.len());
    }
    spans(first, &starts)
}

/// The spans between neighbouring `marks`.
fn spans(first: u64, marks: &[usize]) -> Vec<TurnSpan> {
    marks
        .windows(2)
        .filter(|pair| pair[0] < pair[1])
        .map(|pair| TurnSpan { first: first.saturating_add(pair[0] as u64), messages: (pair[1] - pair[0]) as u64 })
        .collect()
}

fn begins(message: &Message) -> bool {
    message.role == Role::User && !message.content.iter().any(|block| matches!(block, Block::ToolResult { .. }))
}

/// For each message, whether a cut right before it would part a call from its result. Some providers use the same call
/// id in every turn: a result belongs to the last call of its id, and to one only.
fn tied_to_the_one_before(messages: &[Message]) -> Vec<bool> {
    let mut tied = vec![false; messages.len()];
    let mut calls: HashMap<&str, usize> = HashMap::new();
    for (index, message) in messages.iter().enumerate() {
        for block in &message.content {
            match block {
                Block::ToolUse { id, .. } => {
                    calls.insert(id, index);
                }
                Block::ToolResult { tool_use_id, .. } => {
                    if let Some(call) = calls.remove(tool_use_id.as_str()) {
                        tied[call + 1..=index].fill(true);
                    }
                }
                Block::Text { .. } | Block::Image(_) | Block::File(_) | Block::Reasoning(_) | Block::Unknown => {}
            }
        }
    }
    tied
}

fn is_complete(turn: &[Message]) -> bool {
    turn.last().is_some_and(|message| {
        message.role == Role::Assistant && !message.content.iter().any(|block| matches!(block, Block::ToolUse { .. }))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn call(id: &str) -> Message {
        let input = json!({});
        Message::new(Role::Assistant, vec![Block::ToolUse { id: id.to_owned(), name: "lookup".to_owned(), input }])
    }

    fn result(id: &str) -> Message {
        let content = vec![Block::text("ok")];
        Message::new(Role::User, vec![Block::ToolResult { tool_use_id: id.to_owned(), content, is_error: false }])
    }

    fn lengths(spans: &[TurnSpan]) -> Vec<u64> {
        spans.iter().map(|span| span.messages).collect()
    }

    fn contiguous(first: u64, lengths: &[u64]) -> Vec<TurnSpan> {
        let mut next = first;
        lengths
            .iter()
            .map(|&messages| {
                let span = TurnSpan { first: next, messages };
                next += messages;
                span
            })
            .collect()
    }

    #[test]
    fn the_last_turns_stay_out() {
        let turns = contiguous(10, &[2, 4, 2, 2, 2]);
        assert_eq!(pick(10, &turns, KEEP_TURNS, 100), Some(16));
        assert_eq!(pick(16, &turns, KEEP_TURNS, 100), None);
        assert_eq!(pick(10, &turns[..3], KEEP_TURNS, 100), None);
        assert_eq!(pick(0, &[], 0, 100), None);
    }

    #[test]
    fn a_long_first_turn_is_taken_whole() {
        let turns = contiguous(0, &[2, 30, 2]);
        assert_eq!(pick(0, &turns, 0, 5), Some(2));
        assert_eq!(pick(2, &turns, 0, 5), Some(32));
        assert_eq!(pick(0, &turns, 0, 0), Some(2));
    }

    #[test]
    fn a_boundary_inside_a_turn_moves_to_its_end_and_a_gap_stops() {
        let turns = [TurnSpan { first: 0, messages: 4 }, TurnSpan { first: 6, messages: 2 }];
        assert_eq!(pick(2, &turns, 0, 100), Some(4));
        assert_eq!(pick(4, &turns, 0, 100), None);
    }

    /// Case mem-cut-pair: a cut is before the turn or behind it, never between a call and its result.
    #[test]
    fn mem_cut_pair() {
        let history = [Message::user("go"), call("t1"), result("t1"), Message::assistant("done")];
        let spans = turn_spans(0, &history);
        assert_eq!(spans, [TurnSpan { first: 0, messages: 4 }]);
        assert_eq!(pick(0, &spans, 0, 2), Some(4));
    }

    /// Case mem-stale-marker: a marker between a call and its result begins no turn.
    #[test]
    fn mem_stale_marker() {
        let history = [
            Message::user("go"),
            call("t1"),
            Message::user("[summary]"),
            result("t1"),
            Message::assistant("done"),
            Message::user("next"),
            Message::assistant("yes"),
        ];
        assert_eq!(lengths(&turn_spans(7, &history)), [5, 2]);
    }

    /// Case mem-orphan-kept: a turn that waits for a result is not complete, so no cut keeps half of it.
    #[test]
    fn mem_orphan_kept() {
        assert!(turn_spans(0, &[Message::user("go"), call("t9")]).is_empty());
        let history = [Message::user("a"), Message::assistant("b"), Message::user("go"), call("t9")];
        assert_eq!(lengths(&turn_spans(0, &history)), [2]);
    }

    #[test]
    fn a_call_id_used_in_every_turn_ties_no_turns_together() {
        let turn = [Message::user("go"), call("call_0"), result("call_0"), Message::assistant("done")];
        assert_eq!(lengths(&turn_spans(0, &[turn.clone(), turn.clone(), turn.clone()].concat())), [4, 4, 4]);
        let repeated = [Message::user("a"), Message::assistant("b"), result("call_0"), Message::assistant("c")];
        assert_eq!(lengths(&turn_spans(0, &[turn.as_slice(), repeated.as_slice()].concat())), [4, 4]);
    }

    #[test]
    fn an_answer_without_a_question_is_a_span_of_its_own() {
        let history = [Message::assistant("hello"), Message::user("a"), Message::assistant("b")];
        assert_eq!(lengths(&turn_spans(3, &history)), [1, 2]);
    }

    /// Case mem-late-resume-dropped: what comes after a session was consolidated to its end falls due again.
    #[test]
    fn mem_late_resume_dropped() {
        assert!(!due(100, 100, 50));
        assert!(!due(149, 100, 50));
        assert!(due(150, 100, 50));
        assert_eq!(pick(100, &contiguous(100, &[20, 20, 4, 4, 2]), KEEP_TURNS, 200), Some(140));
        assert!(!due(1_000, 0, 0), "a threshold of 0 switches it off");
        assert!(!due(3, 9, 1), "a boundary ahead of the count is never due");
    }

    fn any_message() -> impl Strategy<Value = Message> {
        prop_oneof![
            Just(Message::user("u")),
            Just(Message::assistant("a")),
            (0u8..3).prop_map(|id| call(&id.to_string())),
            (0u8..3).prop_map(|id| result(&id.to_string())),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn the_boundary_moves_only_to_ends_of_turns(
            start in 0u64..50, lengths in prop::collection::vec(1u64..6, 0..12), keep in 0usize..5, most in 0usize..20,
        ) {
            let turns = contiguous(start, &lengths);
            if let Some(to) = pick(start, &turns, keep, most) {
                prop_assert!(to > start);
                let taken = turns.iter().position(|turn| turn.end() == to);
                prop_assert!(taken.is_some_and(|taken| taken + keep < turns.len()));
                prop_assert!(to - start <= most as u64 || taken == Some(0));
            } else {
                prop_assert!(turns.len() <= keep);
            }
        }

        #[test]
        fn spans_are_contiguous_and_part_no_call_from_its_result(history in prop::collection::vec(any_message(), 0..14)) {
            let spans = turn_spans(5, &history);
            let mut next = 5;
            for span in &spans {
                prop_assert_eq!(span.first, next);
                next = span.end();
            }
            prop_assert!(next <= 5 + history.len() as u64);
            let tied = tied_to_the_one_before(&history);
            for span in &spans {
                prop_assert!(!tied.get((span.end() - 5) as usize).copied().unwrap_or(false));
            }
        }
    }
}
