//! Random stories, played to the queue and to a model of it that is too simple to be wrong: a list of messages per group
//! and the clock. Whatever happens, they give out the same messages with the same receipts' validity.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use turnlock_queue::local::{LocalQueue, QueueSettings};
use turnlock_queue::{NewMessage, Queue, Receipt};

use crate::kit;

const VISIBILITY_SECONDS: u64 = 30;
const MAX_RECEIVES: u32 = 4;

#[derive(Debug, Clone)]
enum Step {
    Send { group: u8, id: u8 },
    Receive { max: usize },
    Delete { nth: usize },
    SetVisibility { nth: usize, seconds: u64 },
    Pass { seconds: u64 },
    MakeVisible,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3_u8, 0..12_u8).prop_map(|(group, id)| Step::Send { group, id }),
        4 => (1..4_usize).prop_map(|max| Step::Receive { max }),
        3 => (0..40_usize).prop_map(|nth| Step::Delete { nth }),
        3 => (0..40_usize, prop_oneof![Just(0), 1..60_u64]).prop_map(|(nth, seconds)| Step::SetVisibility { nth, seconds }),
        2 => (1..120_u64).prop_map(|seconds| Step::Pass { seconds }),
        1 => Just(Step::MakeVisible),
    ]
}

#[derive(Debug, Clone)]
struct Message {
    number: usize,
    receives: u32,
    hidden_until: u64,
}

#[derive(Debug, Default)]
struct Model {
    now: u64,
    sent: usize,
    groups: BTreeMap<String, Vec<Message>>,
    known: BTreeMap<(String, u8), u64>,
    dead: Vec<usize>,
}

impl Model {
    fn send(&mut self, group: &str, id: u8) {
        let known = self.known.entry((group.to_owned(), id)).or_default();
        if *known > self.now {
            return;
        }
        *known = self.now + 300;
        self.sent += 1;
        let message = Message { number: self.sent, receives: 0, hidden_until: 0 };
        self.groups.entry(group.to_owned()).or_default().push(message);
    }

    /// Message numbers and receive counts, in order.
    fn receive(&mut self, max: usize) -> Vec<(usize, u32)> {
        let mut out = Vec::new();
        let now = self.now;
        while out.len() < max {
            let free = self.groups.values_mut().filter(|group| group.iter().all(|message| message.hidden_until <= now));
            let Some(group) = free.filter(|group| !group.is_empty()).min_by_key(|group| group[0].number) else { break };
            // The look at a group is as deep as the request has room when it starts; dead letters use it up.
            let depth = max - out.len();
            let mut kept = Vec::new();
            for (place, mut message) in std::mem::take(group).into_iter().enumerate() {
                if place < depth && message.receives >= MAX_RECEIVES {
                    self.dead.push(message.number);
                    continue;
                }
                if place < depth {
                    message.receives += 1;
                    message.hidden_until = now + VISIBILITY_SECONDS;
                    out.push((message.number, message.receives));
                }
                kept.push(message);
            }
            *group = kept;
        }
        out
    }

    fn holds(&mut self, number: usize, receives: u32) -> Option<&mut Message> {
        let now = self.now;
        let mut messages = self.groups.values_mut().flatten();
        messages.find(|m| m.number == number && m.receives == receives && m.hidden_until > now)
    }
}

struct Story {
    queue: Arc<LocalQueue>,
    dead: Arc<LocalQueue>,
    queues: turnlock_queue::local::LocalQueues,
    model: Model,
    receipts: Vec<(Receipt, usize, u32)>,
}

impl Story {
    fn new() -> Self {
        let settings = QueueSettings {
            visibility: Duration::from_secs(VISIBILITY_SECONDS),
            max_receive_count: MAX_RECEIVES,
            dead_letter: Some("dead".into()),
            ..QueueSettings::fifo("in")
        };
        let queues = kit::queues(vec![settings, QueueSettings::fifo("dead")]);
        let (queue, dead) = (queues.queue("in").unwrap(), queues.queue("dead").unwrap());
        Self { queue, dead, queues, model: Model::default(), receipts: Vec::new() }
    }

    async fn play(&mut self, step: Step) {
        match step {
            Step::Send { group, id } => {
                let group = format!("g{group}");
                self.queue.send(NewMessage::fifo("body", group.as_str(), id.to_string())).await.unwrap();
                self.model.send(&group, id);
            }
            Step::Receive { max } => self.receive(max),
            Step::Delete { nth } => self.delete(nth),
            Step::SetVisibility { nth, seconds } => self.set_visibility(nth, seconds).await,
            Step::Pass { seconds } => {
                tokio::time::advance(Duration::from_secs(seconds)).await;
                self.model.now += seconds;
            }
            Step::MakeVisible => {
                self.queues.make_visible().unwrap();
                self.model.groups.values_mut().flatten().for_each(|message| message.hidden_until = 0);
            }
        }
    }

    fn receive(&mut self, max: usize) {
        let records = self.queue.receive(max).unwrap();
        let seen: Vec<(usize, u32)> =
            records.iter().map(|record| (record.message_id.parse().unwrap(), record.receive_count)).collect();
        assert_eq!(seen, self.model.receive(max));
        self.receipts.extend(
            records.into_iter().zip(seen).map(|(record, (number, receives))| (record.receipt, number, receives)),
        );
    }

    fn delete(&mut self, nth: usize) {
        let Some((receipt, number, receives)) = self.receipts.get(nth) else { return };
        let held = self.model.holds(*number, *receives).is_some();
        assert_eq!(self.queue.delete(receipt).is_ok(), held);
        if held {
            self.model.groups.values_mut().for_each(|group| group.retain(|message| message.number != *number));
        }
    }

    async fn set_visibility(&mut self, nth: usize, seconds: u64) {
        let Some((receipt, number, receives)) = self.receipts.get(nth) else { return };
        let now = self.model.now;
        let message = self.model.holds(*number, *receives);
        let set = self.queue.set_visibility(receipt, Duration::from_secs(seconds)).await;
        assert_eq!(set.is_ok(), message.is_some());
        if let Some(message) = message {
            message.hidden_until = now + seconds;
        }
    }

    /// Nothing is lost, nothing is counted twice, and what is due is due.
    async fn check(&self) {
        let messages = || self.model.groups.values().flatten();
        let in_flight = messages().filter(|message| message.hidden_until > self.model.now).count();
        assert_eq!(self.queue.in_flight().unwrap(), in_flight as u64);
        assert_eq!(self.queue.waiting().await.unwrap(), (messages().count() - in_flight) as u64);
        let mut expected: Vec<_> = messages().map(|message| message.number.to_string()).collect();
        let mut held: Vec<_> = self.queue.contents().unwrap().into_iter().map(|held| held.record.message_id).collect();
        expected.sort_unstable();
        held.sort_unstable();
        assert_eq!(held, expected);
        assert_eq!(self.dead.contents().unwrap().len(), self.model.dead.len());

        let due = self.queue.next_due().unwrap().map(|due| due.since(self.queue.now()).as_secs());
        let groups = self.model.groups.values().filter(|group| !group.is_empty());
        let free_in = groups.filter_map(|group| group.iter().map(|message| message.hidden_until).max());
        assert_eq!(due, free_in.map(|until| until.saturating_sub(self.model.now)).min());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_queue_behaves_like_its_model(steps in proptest::collection::vec(step(), 1..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut story = Story::new();
            for step in steps {
                story.play(step).await;
                story.check().await;
            }
        });
    }
}
