//! Every channel from its HTTP route to what a reader sees.

use http::StatusCode;
use serde_json::json;
use tokio::join;

use crate::kit::{Kit, WITHIN};

#[tokio::test(flavor = "multi_thread")]
async fn every_channel_answers() {
    let kit = Kit::start("", &[]).await;
    join!(telegram_private(&kit), telegram_group(&kit));
    kit.end().await;
}

async fn telegram_private(kit: &Kit) {
    kit.say(1_000_001, "hello").await;
    assert_eq!(kit.finals("telegram:main:1000001", 1, WITHIN).await, ["echo: hello"]);
}

async fn telegram_group(kit: &Kit) {
    assert_eq!(kit.update(&kit.group(-100, "who is on call?")).await, StatusCode::OK);
    let texts = kit.finals("telegram:main:-100", 1, WITHIN).await;
    assert_eq!(json!(texts), json!(["echo: @echo_bot who is on call?"]));
}
