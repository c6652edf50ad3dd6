use async_trait::async_trait;
use tokio::time::sleep;
use turnlock_config::Config;
use turnlock_domain::event::SCHEMA;
use turnlock_queue::{NewMessage, QueueError, Receipt, ReceiptError, SendError};

use super::*;

/// Takes messages, slowly, and notes when each came and what it was.
struct Notes {
    slow: Duration,
    began: Instant,
    sent: Mutex<Vec<(u128, MessageKind)>>,
}

#[async_trait]
impl Queue for Notes {
    async fn send(&self, message: NewMessage) -> Result<(), SendError> {
        sleep(self.slow).await;
        let event: OutboundEvent = serde_json::from_str(&message.body).unwrap();
        self.sent.lock().unwrap().push((self.began.elapsed().as_millis(), event.message_kind));
        Ok(())
    }

    async fn set_visibility(&self, _: &Receipt, _: Duration) -> Result<(), ReceiptError> {
        Ok(())
    }

    async fn waiting(&self) -> Result<u64, QueueError> {
        Ok(0)
    }
}

fn question() -> InboundEvent {
    let event = serde_json::json!({"schema": SCHEMA, "event_id": "telegram:7:1", "event_type": "message",
        "channel": "telegram", "account": "main", "chat_id": "1", "content": [], "timestamp": "2026-01-05T09:00:00Z"});
    serde_json::from_value(event).unwrap()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// What leaves beside a turn that shows text at these times, and when the turn was over.
async fn left(slow: Duration, texts: &[u64], turn: Duration) -> (Vec<(u128, MessageKind)>, u128) {
    let notes = Arc::new(Notes { slow, began: Instant::now(), sent: Mutex::default() });
    let outbound: Arc<dyn Queue> = Arc::clone(&notes) as _;
    let (settings, event) = (AgentSettings::from_config(&Config::default()), question());
    let frames = Frames::new(&outbound, &settings, &event, 1);
    let work = async {
        for (number, at) in texts.iter().enumerate() {
            sleep_until(notes.began + ms(*at)).await;
            frames.show(&"word ".repeat(number + 1));
        }
        sleep_until(notes.began + turn).await;
    };
    frames.beside(work).await;
    let over = notes.began.elapsed().as_millis();
    // What would still go on would be seen.
    sleep(ms(10_000)).await;
    let sent = notes.sent.lock().unwrap().clone();
    (sent, over)
}

/// A sign of work is a frame, too: the text behind it waits as long as behind a text.
#[tokio::test(start_paused = true)]
async fn at_most_one_frame_of_any_kind_leaves_an_interval() {
    use MessageKind::{Progress, Streaming};
    let (sent, _) = left(Duration::ZERO, &[1050, 1100, 2600], ms(6000)).await;
    assert_eq!(sent, [(1000, Progress), (2500, Streaming), (4000, Streaming)]);
    let (sent, _) = left(Duration::ZERO, &[], ms(11_000)).await;
    assert_eq!(sent, [(1000, Progress), (5500, Progress), (10_000, Progress)]);
    let (sent, _) = left(Duration::ZERO, &[5600], ms(8000)).await;
    assert_eq!(sent, [(1000, Progress), (5500, Progress), (7000, Streaming)]);
}

/// The turn goes on while a frame is sent, and does not wait for one when it is over.
#[tokio::test(start_paused = true)]
async fn a_slow_queue_holds_up_no_turn() {
    use MessageKind::{Progress, Streaming};
    // The text at 1200 comes while the sign is sent: `work` would otherwise be over later.
    let (sent, over) = left(ms(400), &[500, 1200], ms(1300)).await;
    assert_eq!((sent, over), (vec![], 1300));
    let (sent, over) = left(ms(400), &[1200], ms(2950)).await;
    assert_eq!((sent, over), (vec![(1400, Progress), (2900, Streaming)], 2950));
}

/// The work beside is looked after in the middle of a send.
#[tokio::test(start_paused = true)]
async fn the_work_is_polled_while_a_frame_is_sent() {
    let notes = Arc::new(Notes { slow: ms(400), began: Instant::now(), sent: Mutex::default() });
    let outbound: Arc<dyn Queue> = Arc::clone(&notes) as _;
    let (settings, event) = (AgentSettings::from_config(&Config::default()), question());
    let frames = Frames::new(&outbound, &settings, &event, 1);
    let looked_at = frames.beside(async {
        sleep(ms(1100)).await;
        let at = notes.began.elapsed().as_millis();
        sleep(ms(1000)).await;
        at
    });
    assert_eq!(looked_at.await, 1100);
}
