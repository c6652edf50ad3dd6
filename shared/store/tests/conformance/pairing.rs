use std::time::Duration;

use turnlock_domain::event::Channel::{Slack, Telegram};
use turnlock_store::keys;
use turnlock_store::pairing::{MAX_PAIRED, Offered, Pairing, Redeemed};

use crate::bench::{Bench, NOW};
use crate::golden;

const VALID: Duration = Duration::from_secs(900);

async fn waiting(digest: &str) -> Bench {
    let bench = Bench::new().await;
    assert_eq!(bench.store.offer_pairing(Telegram, "main", digest, NOW + VALID).await.unwrap(), Offered::Waits);
    bench
}

#[tokio::test]
async fn of_two_senders_of_a_code_one_comes_in() {
    let bench = waiting("d").await;
    let (one, two) = tokio::join!(
        bench.store.redeem_pairing(Telegram, "main", "5", "d", NOW),
        bench.other.redeem_pairing(Telegram, "main", "6", "d", NOW),
    );
    let paired = [one.unwrap(), two.unwrap()].into_iter().filter(|redeemed| *redeemed == Redeemed::Paired).count();
    assert_eq!(paired, 1);
    assert_eq!(bench.store.pairing(Telegram, "main").await.unwrap().paired.len(), 1);
    let late = bench.store.redeem_pairing(Telegram, "main", "7", "d", NOW).await.unwrap();
    assert_eq!(late, Redeemed::Refused, "it is used up");
}

#[tokio::test]
async fn a_code_is_of_one_account_and_ends() {
    let bench = waiting("d").await;
    for (channel, account, digest, at) in [
        (Telegram, "other", "d", NOW),
        (Slack, "main", "d", NOW),
        (Telegram, "main", "e", NOW),
        (Telegram, "main", "d", NOW + VALID),
    ] {
        let redeemed = bench.store.redeem_pairing(channel, account, "5", digest, at).await.unwrap();
        assert_eq!(redeemed, Redeemed::Refused, "{channel:?} {account} {digest} {at:?}");
        assert!(bench.store.pairing(channel, account).await.unwrap().paired.is_empty());
    }
    bench.store.offer_pairing(Telegram, "main", "e", NOW + VALID).await.unwrap();
    let old = bench.store.redeem_pairing(Telegram, "main", "5", "d", NOW).await.unwrap();
    assert_eq!(old, Redeemed::Refused, "a new code takes the place of the old one");
}

#[tokio::test]
async fn a_lost_answer_costs_nobody_the_code() {
    let bench = waiting("d").await;
    bench.lose("UpdateItem");
    let redeemed = bench.store.redeem_pairing(Telegram, "main", "5", "d", NOW).await.unwrap();
    assert_eq!(redeemed, Redeemed::Paired);
}

#[tokio::test]
async fn who_is_removed_is_gone_and_the_others_stay() {
    let bench = waiting("d").await;
    for (sender, digest) in [("5", "d"), ("6.#", "e")] {
        bench.store.offer_pairing(Telegram, "main", digest, NOW + VALID).await.unwrap();
        bench.store.redeem_pairing(Telegram, "main", sender, digest, NOW).await.unwrap();
    }
    for sender in ["6.#", "6.#", "nobody"] {
        bench.store.remove_pairing(Telegram, "main", sender).await.unwrap();
    }
    let left = bench.store.pairing(Telegram, "main").await.unwrap().paired;
    assert_eq!(left.into_keys().collect::<Vec<_>>(), ["5"]);
    bench.store.remove_pairing(Telegram, "never", "5").await.unwrap();
}

#[tokio::test]
async fn so_many_are_paired_and_no_more() {
    let bench = Bench::new().await;
    for number in 0..MAX_PAIRED {
        let code = number.to_string();
        bench.store.offer_pairing(Telegram, "main", &code, NOW + VALID).await.unwrap();
        bench.store.redeem_pairing(Telegram, "main", &code, &code, NOW).await.unwrap();
    }
    assert_eq!(bench.store.offer_pairing(Telegram, "main", "d", NOW + VALID).await.unwrap(), Offered::Full);
    assert_eq!(bench.store.pairing(Telegram, "main").await.unwrap().paired.len(), MAX_PAIRED);
}

#[tokio::test]
async fn golden() {
    let bench = waiting("d1").await;
    bench.store.redeem_pairing(Telegram, "main", "1000001", "d1", NOW).await.unwrap();
    bench.store.offer_pairing(Telegram, "main", "d2", NOW + VALID).await.unwrap();
    golden::is_written(&bench, "pairing", keys::pairing(Telegram, "main")).await;
    let read = golden::with("pairing").await.store.pairing(Telegram, "main").await.unwrap();
    assert!(read.waits_for("d2", NOW) && !read.waits_for("d2", NOW + VALID) && !read.waits_for("d1", NOW));
    assert_eq!(read.paired["1000001"].at, NOW);
    assert!(!Pairing::default().waits_for("", NOW));
}
