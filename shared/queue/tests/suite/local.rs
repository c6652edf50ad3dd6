//! What the local queue does beyond the promises of the trait: delays, dead letters' details, inspection, restarts.

use turnlock_queue::local::{LocalQueues, Location, MessageState, OpenError, QueueSettings, UnknownQueue};
use turnlock_queue::{MAX_VISIBILITY, NewMessage, Queue, Receipt, ReceiptError};

use crate::kit::{self, bodies, fifo, one, queues, seconds, send};

#[tokio::test(start_paused = true)]
async fn a_standard_queue_delays_and_gives_out_messages_of_one_group_in_parallel() {
    let queue = queues(vec![QueueSettings::standard("jobs")]).queue("jobs").unwrap();
    let late = NewMessage { delay: seconds(10), ..NewMessage::standard("late") };
    queue.send(late).await.unwrap();
    for body in ["1", "2"] {
        queue.send(NewMessage { group: Some("g".into()), ..NewMessage::standard(body) }).await.unwrap();
    }
    let until = queue.now() + seconds(10);
    assert_eq!(queue.contents().unwrap()[0].state, MessageState::Delayed { until });
    assert_eq!((queue.waiting().await.unwrap(), queue.in_flight().unwrap()), (3, 0));
    assert_eq!(one(&queue).body, "1");
    assert_eq!(one(&queue).body, "2");
    assert_eq!(queue.next_due().unwrap(), Some(until));
    tokio::time::advance(seconds(10)).await;
    let record = one(&queue);
    assert_eq!((record.body.as_str(), record.receive_count, record.group), ("late", 1, None));
}

#[tokio::test(start_paused = true)]
async fn counts_and_due_times_follow_the_clock() {
    let queue = fifo(|settings| settings.visibility = seconds(30));
    assert_eq!(queue.next_due().unwrap(), None);
    send(&queue, "g", &["1", "2"]).await;
    assert_eq!(queue.next_due().unwrap(), Some(queue.now()));
    let record = one(&queue);
    let until = queue.now() + seconds(30);
    assert_eq!((queue.waiting().await.unwrap(), queue.in_flight().unwrap()), (1, 1));
    assert_eq!(queue.next_due().unwrap(), Some(until));
    let states: Vec<_> = queue.contents().unwrap().into_iter().map(|held| held.state).collect();
    assert_eq!(states, [MessageState::InFlight { until }, MessageState::Waiting]);
    tokio::time::advance(seconds(30)).await;
    assert_eq!((queue.waiting().await.unwrap(), queue.in_flight().unwrap()), (2, 0));
    assert!(queue.next_due().unwrap().unwrap() <= queue.now());
    assert!(matches!(queue.delete(&record.receipt), Err(ReceiptError::Ended)));
}

#[tokio::test(start_paused = true)]
async fn dead_letters_of_a_batch_leave_the_rest_in_order() {
    let settings =
        QueueSettings { max_receive_count: 1, dead_letter: Some("dead".into()), ..QueueSettings::fifo("in") };
    let queues = queues(vec![settings, QueueSettings { capacity: 1, ..QueueSettings::fifo("dead") }]);
    let (queue, dead) = (queues.queue("in").unwrap(), queues.queue("dead").unwrap());
    send(&queue, "g", &["1", "2"]).await;
    for record in queue.receive(10).unwrap() {
        queue.set_visibility(&record.receipt, seconds(0)).await.unwrap();
    }
    send(&queue, "g", &["3"]).await;
    assert_eq!(bodies(&queue), ["3"]);
    // Both came in although the dead-letter queue takes one from a sender; the receive count went with them.
    let records = dead.receive(10).unwrap();
    let seen: Vec<_> = records.iter().map(|record| (record.body.as_str(), record.receive_count)).collect();
    assert_eq!(seen, [("1", 2), ("2", 2)]);
    assert!(matches!(queue.delete(&records[0].receipt), Err(ReceiptError::Ended)), "a receipt is of its queue alone");
    dead.delete(&records[0].receipt).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_receipt_that_was_never_given_has_ended() {
    let queue = fifo(|_| ());
    send(&queue, "g", &["1"]).await;
    for made_up in ["", "1", "1.0", "1.1", "x.y", "1.1.1", "-1.1"] {
        assert!(matches!(queue.delete(&Receipt(made_up.into())), Err(ReceiptError::Ended)), "{made_up}");
    }
    let record = one(&queue);
    let too_long = queue.set_visibility(&record.receipt, MAX_VISIBILITY + seconds(1)).await;
    assert!(matches!(too_long, Err(ReceiptError::VisibilityTooLong(_))));
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_everything_in_flight_is_visible_and_delays_go_on() {
    let queues = queues(vec![QueueSettings::fifo("in"), QueueSettings::standard("jobs")]);
    let (queue, jobs) = (queues.queue("in").unwrap(), queues.queue("jobs").unwrap());
    send(&queue, "g", &["1", "2"]).await;
    jobs.send(NewMessage { delay: seconds(60), ..NewMessage::standard("later") }).await.unwrap();
    let record = one(&queue);
    assert_eq!(queues.make_visible().unwrap(), 1);
    assert_eq!(queues.make_visible().unwrap(), 0);
    assert!(matches!(queue.delete(&record.receipt), Err(ReceiptError::Ended)));
    assert_eq!(bodies(&queue), ["1", "2"]);
    assert_eq!(bodies(&jobs), [""; 0]);
    assert_eq!(jobs.next_due().unwrap(), Some(jobs.now() + seconds(60)));
}

#[tokio::test(start_paused = true)]
async fn new_settings_find_the_old_messages() {
    let old = queues(vec![QueueSettings::fifo("in")]);
    send(&old.queue("in").unwrap(), "g", &["1"]).await;
    let new = old.reopen(vec![QueueSettings { visibility: seconds(5), ..QueueSettings::fifo("in") }]).unwrap();
    let queue = new.queue("in").unwrap();
    assert_eq!(one(&queue).body, "1");
    assert_eq!(queue.next_due().unwrap(), Some(queue.now() + seconds(5)));
}

#[tokio::test(start_paused = true)]
async fn ids_and_receipts_repeat_in_a_replay() {
    let mut seen = Vec::new();
    for _ in 0..2 {
        let queue = fifo(|_| ());
        send(&queue, "g", &["1", "2"]).await;
        seen.push(queue.receive(10).unwrap());
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0][0].receipt, Receipt("1.1".into()));
}

#[tokio::test(start_paused = true)]
async fn unknown_queues_and_newer_files_are_named() {
    assert_eq!(queues(vec![]).queue("nope").unwrap_err(), UnknownQueue("nope".into()));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("queues.sqlite");
    let open = || LocalQueues::open(&Location::File(path.clone()), kit::clock(), vec![QueueSettings::fifo("in")]);
    drop(open().unwrap());
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 9).unwrap();
    assert!(matches!(open(), Err(OpenError::NewerFormat { found: 9, known: 1 })));
}
