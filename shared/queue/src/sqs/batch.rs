//! Many messages at once, in as few requests as they fit.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use aws_sdk_sqs::types::SendMessageBatchRequestEntry;

use super::request::{Failure, Fault, Source, Tries};
use super::{SqsQueue, attributes, delay, send_error};
use crate::{BEHIND, BoxError, MAX_BATCH, NewMessage, SendError};

/// A message on its way.
#[derive(Debug)]
struct Entry {
    /// Where it stands among all of them; its id in a request, too.
    place: usize,
    /// What it keeps its order in.
    group: Option<String>,
    bytes: usize,
    wire: SendMessageBatchRequestEntry,
    /// A try that may have been carried out.
    lost: Option<Source>,
}

impl SqsQueue {
    /// Sends all of `messages` and says of each, in their order, what became of it.
    ///
    /// The order within a group is kept: a request holds one message of a FIFO group, and after one that was not sent for
    /// a passing reason no later one of its group is. A request holds at most [`MAX_BATCH`] messages, together no more
    /// bytes than the queue takes at once (SQS has one limit for both), and takes at most [`crate::PUBLISH_TIMEOUT`], in
    /// which what failed is sent again without what did not.
    pub(super) async fn send_in_batches(&self, messages: Vec<NewMessage>) -> Vec<Result<(), SendError>> {
        let mut outcomes = Vec::with_capacity(messages.len());
        let mut pending = VecDeque::new();
        for (place, message) in messages.into_iter().enumerate() {
            let entry = self.entry(place, message);
            outcomes.push(entry.map(|entry| pending.push_back(entry)));
        }
        while !pending.is_empty() {
            let entries = self.next_request(&mut pending);
            for (entry, failure) in self.send_request(entries).await {
                let error = send_error(failure, entry.bytes);
                if entry.group.is_some() && error.is_retryable() {
                    let later = pending.iter().filter(|other| other.group == entry.group);
                    later.for_each(|other| outcomes[other.place] = Err(SendError::Unreachable(BEHIND.into())));
                    pending.retain(|other| other.group != entry.group);
                }
                outcomes[entry.place] = Err(error);
            }
        }
        outcomes
    }

    fn entry(&self, place: usize, message: NewMessage) -> Result<Entry, SendError> {
        message.check(self.fifo, self.max_bytes)?;
        let bytes = message.bytes();
        let wire = SendMessageBatchRequestEntry::builder()
            .id(place.to_string())
            .set_message_attributes(attributes(&message.attributes)?)
            .set_delay_seconds(delay(&message))
            .message_body(message.body)
            .set_message_group_id(message.group.clone())
            .set_message_deduplication_id(message.deduplication_id)
            .build();
        let wire = wire.map_err(|error| SendError::Unreachable(error.into()))?;
        Ok(Entry { place, group: message.group.filter(|_| self.fifo), bytes, wire, lost: None })
    }

    /// Takes what fits one request. What stays behind holds back the later ones of its group.
    fn next_request(&self, pending: &mut VecDeque<Entry>) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut bytes = 0;
        let mut groups = HashSet::new();
        let mut behind = VecDeque::new();
        for entry in pending.drain(..) {
            let is_free = entry.group.as_ref().is_none_or(|group| groups.insert(group.clone()));
            if is_free && entries.len() < MAX_BATCH && bytes + entry.bytes <= self.max_bytes {
                bytes += entry.bytes;
                entries.push(entry);
            } else {
                behind.push_back(entry);
            }
        }
        *pending = behind;
        entries
    }

    /// Sends the entries of one request until they are sent, refused or out of tries; returns those that were not sent.
    async fn send_request(&self, mut entries: Vec<Entry>) -> Vec<(Entry, Failure)> {
        let mut tries = self.tries("SendMessageBatch");
        let mut failed = Vec::new();
        loop {
            let mut again = Vec::new();
            for (entry, fault) in self.try_request(&tries, entries).await {
                let to = if fault.is_passing() { &mut again } else { &mut failed };
                to.push((entry, fault));
            }
            if again.is_empty() || !tries.again().await {
                failed.append(&mut again);
                let failure = |(mut entry, fault): (Entry, Fault)| {
                    let lost = entry.lost.take();
                    (entry, Failure { fault, lost })
                };
                return failed.into_iter().map(failure).collect();
            }
            let noted = |(entry, fault): (Entry, Fault)| {
                let lost = fault.lost().or(entry.lost);
                Entry { lost, ..entry }
            };
            entries = again.into_iter().map(noted).collect();
        }
    }

    /// One try, and what was not sent in it.
    async fn try_request(&self, tries: &Tries, entries: Vec<Entry>) -> Vec<(Entry, Fault)> {
        let wire = entries.iter().map(|entry| entry.wire.clone()).collect();
        let request = self.client.send_message_batch().queue_url(&*self.url).set_entries(Some(wire));
        let answer = match tries.send(request.send()).await {
            Ok(answer) => answer,
            Err(fault) => return entries.into_iter().map(|entry| (entry, fault.clone())).collect(),
        };
        let sent: HashSet<&str> = answer.successful.iter().map(|entry| entry.id()).collect();
        let failed: HashMap<&str, Fault> =
            answer.failed.iter().map(|entry| (entry.id(), Fault::of_entry(entry))).collect();
        let unsent = entries.into_iter().filter(|entry| !sent.contains(entry.wire.id()));
        let faults = unsent.map(|entry| {
            let fault = failed.get(entry.wire.id()).cloned();
            (entry, fault.unwrap_or_else(|| Fault::Lost(Arc::from(BoxError::from("the answer leaves the entry out")))))
        });
        faults.collect()
    }
}
