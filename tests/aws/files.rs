//! Pictures on the local AWS: from the platform's server through the agent to the model.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;
use turnlock_domain::event::Channel;

use crate::kit::Kit;

const PNG: &[u8] = b"\x89PNG\r\n\x1A\nplanted pixels";

/// The agent has the tokens and uses them; what it fetched is in the model's request and in no log.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_sees_is_shown_pictures() {
    let kit = Kit::start("", &[]).await;
    let sees = kit.aws.configuration.replace(r#"capabilities = ["tools"]"#, r#"capabilities = ["tools", "images"]"#);
    kit.aws.replace_all(&sees, Duration::ZERO).await;
    kit.aws.platforms.add_file(Channel::Telegram, "P1", Bytes::from_static(PNG));
    kit.aws.platforms.add_file(Channel::Slack, "F1", Bytes::from_static(PNG));
    let mut update = kit.private(31, "");
    let message = update["message"].as_object_mut().unwrap();
    message.remove("text");
    message.insert("caption".to_owned(), json!("what is this"));
    message.insert("photo".to_owned(), json!([{ "file_id": "P1", "file_unique_id": "u", "width": 9, "height": 9 }]));
    assert_eq!(kit.update(&update).await, StatusCode::OK);
    kit.shows("telegram:main:31", &["echo: what is this"]).await;
    let direct = include_str!("../../shared/channels/src/slack/fixtures/dm.json");
    let files = json!({ "channel": "D31", "ts": "1767603600.000100", "text": "and this", "subtype": "file_share",
        "files": [{ "id": "F1", "mimetype": "image/png", "name": "a.png" }] });
    assert_eq!(kit.slack(direct, &files).await, StatusCode::OK);
    kit.shows("slack:main:D31", &["echo: and this"]).await;
    let image = json!({ "image": { "format": "png", "source": { "bytes": aws_smithy_types::base64::encode(PNG) } } });
    let shown =
        kit.aws.bedrock.asked().iter().filter(|asked| asked.body.to_string().contains(&image.to_string())).count();
    assert_eq!(shown, 2, "{}", kit.aws.log("Agent"));
    for deployed in kit.aws.lambda.deployed() {
        let log = kit.aws.log(&deployed.id);
        assert!(!log.contains("telegram-bot-token\"") && !log.contains("xoxb-1") && !log.contains("pixels"), "{log}");
    }
    kit.end().await;
}
