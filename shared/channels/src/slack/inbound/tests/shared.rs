//! What is passed on, threads of ours, and news for an operator.

use super::*;

fn texts(event: &Value) -> Vec<String> {
    let content = arrival(of_event(event)).event.content;
    content.into_iter().filter(|block| block.kind == ContentType::Text).map(|block| block.text).collect()
}

/// A message that was passed on is a quotation before the person's own words; its files are references.
#[test]
fn a_message_that_was_passed_on_is_quoted() {
    let event = arrival(of("forwarded_message.json")).event;
    let texts: Vec<_> = event.content.iter().map(|block| block.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "[shared: a message of Ben Bell]\n> the build is red\n> see @U0OTHER & the log (https://ci.example/1)",
            "is that so?",
            ""
        ]
    );
    assert_eq!(event.content[0].metadata["context"], "forward");
    assert_eq!(event.media_urls(), ["slack-file:F0LOG"]);
    let whole = serde_json::to_string(&event).unwrap();
    assert!(!whole.contains("files.slack.com") && !whole.contains("url_private"), "{whole}");
}

#[test]
fn what_was_passed_on_is_enough_and_bounded() {
    let shared = |extra: Value| {
        let mut shared = json!({ "is_share": true, "text": "old news", "author_name": "Ben" });
        shared.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        shared
    };
    let dm =
        |attachments: Value| json!({ "channel": "D0DM", "channel_type": "im", "text": "", "attachments": attachments });
    assert_eq!(texts(&dm(json!([shared(json!({}))]))), ["[shared: a message of Ben]\n> old news"]);
    assert_eq!(texts(&dm(json!([shared(json!({ "author_id": "U0BOT" }))]))), ["[shared: your message]\n> old news"]);
    assert_eq!(
        texts(&dm(json!([shared(json!({ "author_name": "]", "text": null, "fallback": "old" }))]))),
        ["[shared: a message]\n> old"]
    );
    assert_eq!(texts(&dm(json!(vec![shared(json!({})); 50]))).len(), 5);
    // The preview of a link says nothing, and an empty message stays one.
    for none in [json!([{ "title": "a page", "text": "its words" }]), json!([shared(json!({ "text": " " }))]), json!(5)]
    {
        assert_eq!(reason(&of_event(&dm(none.clone()))), "blank", "{none}");
    }
    // A quotation is no command, and hides none.
    let mut stop = dm(json!([shared(json!({ "text": "/new" }))]));
    assert_eq!(arrival(of_event(&stop)).command, None);
    stop["text"] = json!("/stop");
    assert_eq!(arrival(of_event(&stop)).command, Some(Command::Stop));
}

/// A thread that a message of ours opened is a talk with us; another's is not.
#[test]
fn a_reply_in_a_thread_of_ours_needs_no_mention() {
    let event = arrival(of("reply_to_our_thread.json")).event;
    assert_eq!(event.session_key().as_str(), "slack:C0CHAN:1760000020.000300");
    let other = json!({ "text": "and now?", "thread_ts": "1760000000.000001", "parent_user_id": "U0OTHER" });
    assert_eq!(reason(&of_event(&other)), "not_addressed");
}
