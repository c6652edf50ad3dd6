//! A bounded queue: publishers wait for room, in line, and never longer than the publish timeout.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio::time::Instant;
use turnlock_queue::{NewMessage, PUBLISH_TIMEOUT, Queue, SendError};

use crate::kit::{fifo, one, seconds, send};

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_after_five_seconds() {
    let queue = fifo(|settings| settings.capacity = 2);
    send(&queue, "g", &["1", "2"]).await;
    let before = Instant::now();
    let refused = queue.send(NewMessage::fifo("3", "g", "3")).await.unwrap_err();
    assert_eq!(before.elapsed(), PUBLISH_TIMEOUT);
    assert!(matches!(refused, SendError::Full { .. }));
    assert!(refused.is_retryable());
    assert_eq!(queue.waiting().await.unwrap(), 2);

    // The refusal left no trace: the same message goes in later.
    one(&queue);
    queue.send(NewMessage::fifo("3", "g", "3")).await.unwrap();
    assert_eq!(queue.waiting().await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn waiting_publishers_go_in_as_room_comes_in_the_order_of_their_arrival() {
    let queue = fifo(|settings| settings.capacity = 1);
    send(&queue, "g", &["0"]).await;
    let mut publishers = JoinSet::new();
    for body in ["1", "2", "3"] {
        let queue = Arc::clone(&queue);
        publishers.spawn(async move { queue.send(NewMessage::fifo(body, "g", body)).await });
        tokio::time::sleep(seconds(1)).await;
    }
    let mut received = Vec::new();
    for _ in 0..3 {
        let record = one(&queue);
        received.push(record.body);
        queue.delete(&record.receipt).unwrap();
        publishers.join_next().await.unwrap().unwrap().unwrap();
    }
    received.push(one(&queue).body);
    assert_eq!(received, ["0", "1", "2", "3"]);
}

#[tokio::test(start_paused = true)]
async fn the_time_in_line_counts_against_the_timeout() {
    let queue = fifo(|settings| settings.capacity = 1);
    send(&queue, "g", &["0"]).await;
    let before = Instant::now();
    let mut publishers = JoinSet::new();
    for body in ["1", "2", "3"] {
        let queue = Arc::clone(&queue);
        publishers.spawn(async move { queue.send(NewMessage::fifo(body, "g", body)).await });
    }
    for answer in publishers.join_all().await {
        assert!(matches!(answer, Err(SendError::Full { .. })));
    }
    assert_eq!(before.elapsed(), PUBLISH_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn a_message_in_flight_takes_no_room_and_comes_back_regardless() {
    let queue = fifo(|settings| settings.capacity = 1);
    send(&queue, "a", &["asleep"]).await;
    let record = one(&queue);
    queue.set_visibility(&record.receipt, seconds(900)).await.unwrap();
    send(&queue, "b", &["1"]).await;
    queue.wake(&record.receipt).await.unwrap();
    assert_eq!(queue.waiting().await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_needs_no_room() {
    let queue = fifo(|settings| settings.capacity = 1);
    send(&queue, "g", &["1"]).await;
    let before = Instant::now();
    send(&queue, "g", &["1"]).await;
    assert_eq!(before.elapsed(), seconds(0));
    assert_eq!(queue.waiting().await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_publisher_that_gives_up_has_sent_nothing_and_lets_the_next_one_pass() {
    let queue = fifo(|settings| settings.capacity = 1);
    send(&queue, "g", &["0"]).await;
    let impatient = queue.send(NewMessage::fifo("1", "g", "1"));
    assert!(tokio::time::timeout(seconds(1), impatient).await.is_err());
    let record = one(&queue);
    queue.delete(&record.receipt).unwrap();
    send(&queue, "g", &["2"]).await;
    assert_eq!(one(&queue).body, "2");
}
