//! `kill -9` for real: the binary serves twenty sessions, is killed at random moments and started again on the same data
//! at once. Afterwards every message that was accepted has one turn in the history and one reply in its chat.
//!
//! The platform and the model are servers in this process: they outlive every kill and know what each start of the binary
//! asked of them. Whoever writes tries again as a platform does, until the answer is 2xx, and delivers some messages
//! twice.
//!
//! Another seed, and with it another story, every time; it is printed, and `TURNLOCK_TEST_SEED` plays its messages and
//! moments again (what the kills hit depends on the machine all the same). `TURNLOCK_TEST_KILLS` is the number of kills.

#![expect(clippy::print_stderr, reason = "the seed and what was measured are for whoever runs the test")]

mod host;
mod load;
mod outside;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use turnlock_config::names::environment;

use self::host::Place;
use self::load::{Person, World};
use self::outside::Outside;
use self::verdict::Verdict;

/// How many times the process is killed where nobody says otherwise.
const KILLS: u64 = 10;
/// How many sessions write at the same time.
const SESSIONS: usize = 20;
/// How long a process lives at most, its start included.
const LONGEST_LIFE_MS: u64 = 1500;
/// The same for one in four: it dies while it starts, or takes back what the one before it held.
const SHORT_LIFE_MS: u64 = 250;
/// How long every third lives at least: a message that always kills its process is given up, and one that takes long must
/// not look like that.
const THIRD_LIFE: Duration = Duration::from_secs(3);
/// How long after an answer of the model every second one dies, at most.
const MOMENT_MS: u64 = 10;
/// How long anything may take that is waited for, on a busy machine. Shorter than a lease (60 s): nobody waits for one.
const WITHIN: Duration = Duration::from_secs(30);
/// How often a condition is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

#[tokio::test]
async fn kill_9_at_random_moments_loses_nothing_and_repeats_nothing() {
    let kills = number("TURNLOCK_TEST_KILLS").unwrap_or(KILLS);
    let seed = number("TURNLOCK_TEST_SEED").unwrap_or_else(|| fastrand::u64(..));
    eprintln!("SIGKILL: {kills} kills, TURNLOCK_TEST_SEED={seed}");
    let place = Place::new(seed);
    // Nothing in it waits without an end of its own; this is for what nobody thought of.
    let all = Duration::from_secs(150 + 5 * kills);
    timeout(all, play(&place, seed, kills)).await.expect("the test comes to its end");
}

fn number(name: &str) -> Option<u64> {
    environment(name).map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

async fn play(place: &Place, seed: u64, kills: u64) {
    let started = Instant::now();
    let mut rng = Rng::with_seed(seed);
    let mut servers = JoinSet::new();
    let outside = Outside::serve(rng.fork(), &mut servers).await;
    let (told, address) = watch::channel(String::new());
    let world = World::new(address, Arc::clone(&outside));
    let (end, over) = watch::channel(false);
    let people: Vec<Person> = (0..SESSIONS).map(|number| Person::new(number, rng.fork())).collect();

    let mut verdict = Verdict::default();
    let killing = async {
        for kill in 1..=kills {
            let mut death = Death::random(&mut rng);
            if kill.is_multiple_of(3) {
                death.after = death.after.max(THIRD_LIFE);
            }
            verdict.lives.push(live(place, &outside, death, &told).await);
        }
        let host = place.start(&outside);
        let ready = host.ready(WITHIN).await.expect("the last start listens");
        verdict.lives.push(Some(ready.after));
        told.send_replace(ready.address.clone());
        end.send_replace(true);
        (host, ready)
    };
    let talking = join_all(people.into_iter().map(|person| person.talk(&world, &over)));
    let ((host, ready), mut people) = tokio::join!(killing, talking);

    verdict.everything_is_answered(&world, &ready, &people).await;
    verdict.no_lock_is_held(&world, &mut people).await;
    verdict.nothing_is_left_to_do(place).await;
    verdict.transcripts(&world, &ready, &people).await;
    host.kill();
    verdict.stored(place, &outside, &people).await;
    verdict.pronounce(seed, started.elapsed(), &people);
}

/// When a process dies.
struct Death {
    /// So long after its start.
    after: Duration,
    /// If it is said: so long after the next answer of the model, when a turn commits and its reply goes out.
    after_an_answer: Option<Duration>,
}

impl Death {
    fn random(rng: &mut Rng) -> Self {
        let mut up_to = |longest| Duration::from_millis(rng.u64(0..=longest));
        let (short, long, moment) = (up_to(SHORT_LIFE_MS), up_to(LONGEST_LIFE_MS), up_to(MOMENT_MS));
        match rng.u8(0..4) {
            0 => Self { after: short, after_an_answer: None },
            1 => Self { after: long, after_an_answer: None },
            _ => Self { after: long, after_an_answer: Some(moment) },
        }
    }
}

/// Starts a process and kills it; how long its first health check took, if it got that far.
async fn live(place: &Place, outside: &Outside, death: Death, told: &watch::Sender<String>) -> Option<Duration> {
    let end = Instant::now() + death.after;
    let host = place.start(outside);
    let ready = host.ready(death.after).await;
    if let Some(ready) = &ready {
        told.send_replace(ready.address.clone());
        sleep(end.saturating_duration_since(Instant::now())).await;
        if let Some(moment) = death.after_an_answer {
            outside.next_answer(death.after).await;
            sleep(moment).await;
        }
    }
    host.kill();
    ready.map(|ready| ready.after)
}

/// Waits until `look` finds something; `None` when the time is over.
async fn until<Found>(within: Duration, mut look: impl AsyncFnMut() -> Option<Found>) -> Option<Found> {
    let end = Instant::now() + within;
    loop {
        if let Some(found) = look().await {
            return Some(found);
        }
        if Instant::now() >= end {
            return None;
        }
        sleep(LOOK_AGAIN).await;
    }
}
