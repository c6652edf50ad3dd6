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
    texts: Mutex<Vec<String>>,
    buttons: Mutex<Vec<(MessageKind, Vec<String>)>>,
}

impl Notes {
    fn taking(slow: Duration) -> Arc<Self> {
        Arc::new(Self {
            slow,
            began: Instant::now(),
            sent: Mutex::default(),
            texts: Mutex::default(),
            buttons: Mutex::default(),
        })
    }
}

#[async_trait]
impl Queue for Notes {
    async fn send(&self, message: NewMessage) -> Result<(), SendError> {
        sleep(self.slow).await;
        let event: OutboundEvent = serde_json::from_str(&message.body).unwrap();
        let buttons = event.buttons.iter().map(|button| button.data.clone()).collect();
        self.buttons.lock().unwrap().push((event.message_kind, buttons));
        self.sent.lock().unwrap().push((self.began.elapsed().as_millis(), event.message_kind));
        if event.message_kind == MessageKind::Streaming {
            self.texts.lock().unwrap().push(event.text());
        }
        Ok(())
    }

    async fn set_visibility(&self, _: &Receipt, _: Duration) -> Result<(), ReceiptError> {
        Ok(())
    }

    async fn waiting(&self) -> Result<u64, QueueError> {
        Ok(0)
    }
}

fn question(channel: &str) -> Envelope {
    let event = serde_json::json!({"schema": SCHEMA, "event_id": "telegram:7:1", "event_type": "message",
        "channel": channel, "account": "main", "chat_id": "1", "content": [], "timestamp": "2026-01-05T09:00:00Z"});
    serde_json::from_value(serde_json::json!({"event": event, "accepted_at": 0, "position": "001767603600000#9"}))
        .unwrap()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// What leaves beside a turn that shows text at these times, and when the turn was over.
async fn left(slow: Duration, texts: &[u64], turn: Duration) -> (Vec<(u128, MessageKind)>, u128) {
    let notes = Notes::taking(slow);
    let outbound: Arc<dyn Queue> = Arc::clone(&notes) as _;
    let (settings, event) = (AgentSettings::from_config(&Config::default()), question("telegram"));
    let frames = Frames::new(&outbound, &settings, &event, 1);
    let work = async {
        for at in texts {
            sleep_until(notes.began + ms(*at)).await;
            frames.show("word ");
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
    let notes = Notes::taking(ms(400));
    let outbound: Arc<dyn Queue> = Arc::clone(&notes) as _;
    let (settings, event) = (AgentSettings::from_config(&Config::default()), question("telegram"));
    let frames = Frames::new(&outbound, &settings, &event, 1);
    let looked_at = frames.beside(async {
        sleep(ms(1100)).await;
        let at = notes.began.elapsed().as_millis();
        sleep(ms(1000)).await;
        at
    });
    assert_eq!(looked_at.await, 1100);
}

/// The texts of the frames that leave beside `work`, which is told when it begins.
async fn shown<F: Future<Output = ()>>(work: impl FnOnce(Arc<Frames<'static>>) -> F) -> Vec<String> {
    let notes = Notes::taking(Duration::ZERO);
    let outbound: &'static Arc<dyn Queue> = Box::leak(Box::new(Arc::clone(&notes) as _));
    let event: &'static Envelope = Box::leak(Box::new(question("telegram")));
    let frames = Arc::new(Frames::new(outbound, &AgentSettings::from_config(&Config::default()), event, 1));
    frames.beside(work(Arc::clone(&frames))).await;
    notes.texts.lock().unwrap().clone()
}

/// Reasoning shows in no frame, and a word that begins as a secret not before it is known what it is.
#[tokio::test(start_paused = true)]
async fn a_frame_shows_neither_reasoning_nor_a_secret() {
    let texts = shown(|frames| async move {
        frames.begin(true);
        frames.show("a thought</think>The key is ");
        sleep(ms(1200)).await;
        frames.show("AKIA");
        sleep(ms(1500)).await;
        frames.show("IOSFODNN7EXAMPLE");
        sleep(ms(1500)).await;
        frames.show(", and that is it.");
        sleep(ms(1500)).await;
    });
    assert_eq!(texts.await, ["The key is ", "The key is [secret removed], and that is it."]);
}

/// What one answer said stands until the next has something to say.
#[tokio::test(start_paused = true)]
async fn an_answer_that_was_not_shown_yet_is_shown_while_the_next_is_silent() {
    let texts = shown(|frames| async move {
        frames.begin(false);
        frames.show("Let me look.");
        sleep(ms(500)).await;
        frames.begin(false);
        sleep(ms(1000)).await;
        assert!(!frames.is_shown(), "nothing of this answer");
        frames.show("It is ");
        sleep(ms(2000)).await;
        assert!(frames.is_shown());
    });
    assert_eq!(texts.await, ["Let me look.", "It is "]);
}

/// What nobody saw is taken back; what somebody saw is marked, when the next frame is due, and goes on under another fence.
#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_withdrawn_unseen_and_marked_seen() {
    let texts = shown(|frames| async move {
        frames.begin(false);
        frames.show("Unseen");
        assert!(!frames.withdraw());
        sleep(ms(2000)).await;
        frames.begin(false);
        frames.show("Once upon ");
        sleep(ms(1000)).await;
        frames.show("a time ");
        assert!(frames.withdraw());
        frames.interrupted().await;
    });
    let mark = Language::English.interrupted();
    assert_eq!(texts.await, ["Once upon ".to_owned(), format!("Once upon a time\n\n{mark}")]);
}

/// Where a button can be pressed a text has one that names its turn; a sign of work is no message and has none.
#[tokio::test(start_paused = true)]
async fn a_text_that_is_being_written_has_a_button_that_stops_it() {
    use MessageKind::{Progress, Streaming};
    let stop = || vec!["stop:001767603600000#9~".to_owned()];
    for (channel, expected) in [
        ("telegram", vec![(Progress, vec![]), (Streaming, stop()), (Streaming, stop())]),
        ("slack", vec![(Streaming, stop()), (Streaming, stop())]),
        ("gateway", vec![(Streaming, vec![]), (Streaming, vec![])]),
        ("cli", vec![(Streaming, vec![]), (Streaming, vec![])]),
    ] {
        let notes = Notes::taking(Duration::ZERO);
        let outbound: Arc<dyn Queue> = Arc::clone(&notes) as _;
        let (settings, envelope) = (AgentSettings::from_config(&Config::default()), question(channel));
        let frames = Frames::new(&outbound, &settings, &envelope, 1);
        let work = async {
            sleep(ms(2000)).await;
            frames.show("Once");
            sleep(ms(2000)).await;
            frames.interrupted().await;
        };
        frames.beside(work).await;
        assert_eq!(*notes.buttons.lock().unwrap(), expected, "{channel}");
    }
}
