//! Pairing: a code lets its first sender in, once, in time, and nobody notices who tries.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;
use turnlock_app::ingress::Ingress;
use turnlock_app::pairing::{self, Code, REMEMBERED, VALID};
use turnlock_config::Allow;
use turnlock_domain::event::Channel;
use turnlock_queue::Queue;
use turnlock_store::pairing::Offered;

use crate::admission::{FREE, deliver, ingress, slack_message, update, waiting};
use crate::kit::Kit;

const WELCOME: &str = "Welcome! You may talk with me now. What can I do for you?";

fn nobody() -> Allow {
    Allow::Only(BTreeSet::new())
}

async fn offer(kit: &Kit, random: u8) -> String {
    let code = Code::from_random([random; 12]);
    let offered = pairing::offer(&kit.store, Channel::Telegram, "main", &code, kit.clock.now_ms()).await.unwrap();
    assert_eq!(offered, Offered::Waits);
    code.to_string()
}

/// A private message of `sender`.
fn says(id: i64, sender: i64, text: &str) -> Value {
    let mut update = update(id, text);
    update["message"]["from"]["id"] = json!(sender);
    update["message"]["chat"]["id"] = json!(sender);
    update
}

async fn say(ingress: &Ingress, id: i64, sender: i64, text: &str) {
    assert_eq!(deliver(ingress, &says(id, sender, text)).await.status, 200);
}

fn texts(kit: &Kit) -> Vec<String> {
    waiting(&kit.inbound).into_iter().map(|envelope| envelope.event.text()).collect()
}

#[tokio::test(start_paused = true)]
async fn who_sends_the_code_may_talk_and_the_code_is_no_message() {
    let kit = Kit::new().await;
    let ingress = ingress(&kit, kit.admission(FREE, 100), &nobody());
    let code = offer(&kit, 7).await;
    say(&ingress, 1, 7, &code.to_lowercase().replace('-', " ")).await;
    assert_eq!(kit.notices(), [WELCOME]);
    // Telegram delivers it once more: the same answer, which its queue takes once.
    say(&ingress, 1, 7, &code.to_lowercase().replace('-', " ")).await;
    assert!(kit.notices().is_empty());
    say(&ingress, 2, 7, "hello").await;
    say(&ingress, 3, 7, "and more").await;
    assert_eq!(texts(&kit), ["hello", "and more"]);
    assert!(kit.notices().is_empty());
    assert_eq!(kit.control.waiting().await.unwrap(), 0);
}

/// A link (`t.me/bot?start=CODE`) makes Telegram send `/start CODE`, which is a command otherwise.
#[tokio::test(start_paused = true)]
async fn a_link_with_the_code_pairs() {
    let kit = Kit::new().await;
    let ingress = ingress(&kit, kit.admission(FREE, 100), &nobody());
    let code = offer(&kit, 8).await;
    say(&ingress, 1, 7, &format!("/start {code}")).await;
    assert_eq!(kit.notices(), [WELCOME]);
    assert_eq!(kit.control.waiting().await.unwrap(), 0);
    say(&ingress, 2, 7, "/start").await;
    assert_eq!(kit.control.waiting().await.unwrap(), 1, "a command like anybody's");
}

/// A code that is wrong, used, replaced or too late is what a stranger says.
#[tokio::test(start_paused = true)]
async fn every_other_code_is_a_strangers_message() {
    let kit = Kit::new().await;
    let ingress = ingress(&kit, kit.admission(FREE, 100), &nobody());
    let wrong = Code::from_random([1; 12]).to_string();
    say(&ingress, 1, 5, &wrong).await;
    let refusal = kit.notices();
    assert!(refusal.len() == 1 && refusal[0].ends_with(": 5"), "{refusal:?}");
    let replaced = offer(&kit, 2).await;
    let late = offer(&kit, 3).await;
    say(&ingress, 2, 6, &replaced).await;
    sleep(VALID).await;
    say(&ingress, 3, 6, &late).await;
    let used = offer(&kit, 4).await;
    say(&ingress, 4, 7, &used).await;
    say(&ingress, 5, 6, &used).await;
    let told = kit.notices();
    let (welcomes, refusals): (Vec<_>, Vec<_>) = told.iter().partition(|text| *text == WELCOME);
    assert_eq!(welcomes.len(), 1, "{told:?}");
    assert!(!refusals.is_empty() && refusals.iter().all(|text| text.ends_with(": 6")), "{told:?}");
    assert_eq!(kit.inbound.waiting().await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn of_two_who_send_it_at_once_one_comes_in() {
    let kit = Kit::new().await;
    let ingress = ingress(&kit, kit.admission(FREE, 100), &nobody());
    let code = offer(&kit, 5).await;
    let (one, two) = (says(1, 5, &code), says(2, 6, &code));
    tokio::join!(deliver(&ingress, &one), deliver(&ingress, &two));
    let told = kit.notices();
    assert_eq!(told.iter().filter(|text| *text == WELCOME).count(), 1, "{told:?}");
    assert_eq!(told.len(), 2);
}

/// Whoever is removed is let in for as long as a process remembers them, and a code is of one account.
#[tokio::test(start_paused = true)]
async fn who_is_removed_is_a_stranger_again() {
    let kit = Kit::new().await;
    let ingress = ingress(&kit, kit.admission(FREE, 100), &nobody());
    let code = offer(&kit, 6).await;
    say(&ingress, 1, 7, &code).await;
    say(&ingress, 2, 7, "one").await;
    kit.store.remove_pairing(Channel::Telegram, "main", "7").await.unwrap();
    say(&ingress, 3, 7, "two").await;
    assert_eq!(kit.inbound.waiting().await.unwrap(), 2);
    sleep(REMEMBERED).await;
    say(&ingress, 4, 7, "three").await;
    assert_eq!(kit.inbound.waiting().await.unwrap(), 2);
    assert_eq!(kit.notices().len(), 2, "a welcome and a refusal");
    assert_eq!(slack_message(&kit, &ingress, None).await.status, 200);
    let told = kit.notices();
    assert!(told.len() == 1 && told[0].ends_with(": U0USER"), "{told:?}");
}

/// Slack's way in knows pairings, too; whoever is on the list is asked for nowhere.
#[tokio::test(start_paused = true)]
async fn slack_users_pair_as_well() {
    let kit = Kit::new().await;
    let ingress = ingress(&kit, kit.admission(FREE, 100), &nobody());
    let code = Code::from_random([9; 12]);
    pairing::offer(&kit.store, Channel::Slack, "main", &code, kit.clock.now_ms()).await.unwrap();
    let digest = turnlock_domain::ids::digest(code.to_string().replace('-', "").as_bytes());
    let now = kit.clock.now_ms();
    kit.store.redeem_pairing(Channel::Slack, "main", "U0USER", &digest, now).await.unwrap();
    assert_eq!(slack_message(&kit, &ingress, None).await.status, 200);
    assert_eq!(texts(&kit), ["hi"]);
    sleep(Duration::from_secs(1)).await;
    assert!(kit.notices().is_empty());
}
