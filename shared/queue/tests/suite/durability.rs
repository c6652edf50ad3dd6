//! What was accepted is in the file, whatever happens to the process.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use turnlock_queue::local::{LocalQueues, Location, QueueSettings};
use turnlock_queue::{NewMessage, Queue, ReceiptError};

use crate::kit::{bodies, clock, one, send};

/// Tells the second process where the file is; unset in an ordinary run.
const CHILD_FILE: &str = "TURNLOCK_QUEUE_TEST_CHILD";

fn open(path: &Path) -> LocalQueues {
    LocalQueues::open(&Location::File(path.to_owned()), clock(), vec![QueueSettings::fifo("in")]).unwrap()
}

#[tokio::test(start_paused = true)]
async fn messages_receipts_and_duplicates_survive_a_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("queues.sqlite");
    let receipt = {
        let queue = open(&path).queue("in").unwrap();
        send(&queue, "g", &["1", "2"]).await;
        one(&queue).receipt
    };
    let queue = open(&path).queue("in").unwrap();
    assert_eq!(bodies(&queue), [""; 0], "the group is still blocked");
    send(&queue, "g", &["1"]).await;
    queue.delete(&receipt).unwrap();
    assert_eq!(bodies(&queue), ["2"]);
}

/// The first process of [`messages_survive_kill_9`]: sends, receives one, says so and hangs. An ordinary run passes by.
#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "only so is it told that it is the process to be killed")]
async fn process_that_is_killed() {
    let Some(path) = std::env::var_os(CHILD_FILE).map(PathBuf::from) else { return };
    let queue = open(&path).queue("in").unwrap();
    send(&queue, "g", &["1", "2"]).await;
    send(&queue, "h", &["3"]).await;
    let mut out = std::io::stderr();
    std::io::Write::write_all(&mut out, format!("received {}\n", one(&queue).receipt).as_bytes()).unwrap();
    loop {
        std::thread::park();
    }
}

#[tokio::test(start_paused = true)]
async fn messages_survive_kill_9() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("queues.sqlite");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["durability::process_that_is_killed", "--exact", "--nocapture"])
        .env(CHILD_FILE, &path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let receipt = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("received ").map(str::to_owned));
    child.kill().unwrap();
    child.wait().unwrap();

    let queues = open(&path);
    let queue = queues.queue("in").unwrap();
    assert_eq!(queue.in_flight().unwrap(), 1);
    assert_eq!(queues.make_visible().unwrap(), 1);
    let of_the_dead = turnlock_queue::Receipt(receipt.unwrap());
    assert!(matches!(queue.delete(&of_the_dead), Err(ReceiptError::Ended)));
    assert_eq!(bodies(&queue), ["1", "2", "3"]);
    queue.send(NewMessage::fifo("4", "i", "4")).await.unwrap();
    assert_eq!(one(&queue).message_id, "4", "numbers go on where they were");
}
