//! Many sessions at once.

use std::ops::RangeInclusive;
use std::time::Duration;

use futures_util::future::join_all;
use turnlock_tests::aws::bedrock::Turn;

use crate::kit::Kit;

/// A hundred people write while four turns run at once: everybody is answered once, nothing becomes a dead letter.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_sessions_and_four_turns_at_once() {
    let kit = Kit::start("", &[("Concurrency", "4")]).await;
    let chats: Vec<i64> = (1_001..=1_100).collect();
    let say = async |chat: &i64| kit.say(*chat, &format!("I am {chat}")).await;
    join_all(chats.iter().map(say)).await;
    for chat in chats {
        kit.shows(&format!("telegram:main:{chat}"), &[&format!("echo: I am {chat}")]).await;
    }
    assert!(kit.aws.lambda.started("Agent") <= 4, "{}", kit.aws.lambda.started("Agent"));
    kit.end().await;
}

/// Every function is replaced, one after the other, while people write: each message is answered once, by the old
/// version or the new one.
#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_replacement_under_load() {
    let kit = Kit::start("", &[("Concurrency", "4")]).await;
    let pause = Duration::from_millis(100);
    for chat in 1_001..=1_020 {
        let slow = |text: String| Turn::text(&text).after(Duration::from_millis(200));
        kit.aws.bedrock.on(&format!("first {chat}."), [slow(format!("one {chat}"))]);
    }
    let configuration = kit.aws.configuration.replace("Echo", "Other");
    let write = async |chats: RangeInclusive<i64>| {
        for chat in chats {
            kit.say(chat, &format!("first {chat}.")).await;
            tokio::time::sleep(pause).await;
            kit.say(chat, "second").await;
        }
    };
    write(1_001..=1_005).await;
    tokio::join!(kit.aws.replace_all(&configuration, pause), write(1_006..=1_020));
    for chat in 1_001..=1_020 {
        kit.shows(&format!("telegram:main:{chat}"), &[&format!("one {chat}"), "echo: second"]).await;
    }
    kit.say(1_021, "who are you?").await;
    kit.shows("telegram:main:1021", &["echo: who are you?"]).await;
    let asked = kit.aws.bedrock.asked();
    assert!(asked.iter().any(|asked| asked.body["system"].to_string().contains("Echo")), "{asked:?}");
    assert!(asked.last().is_some_and(|asked| asked.body["system"].to_string().contains("Other")), "{asked:?}");
    kit.end().await;
}
