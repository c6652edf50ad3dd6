//! Topics and business connections.

use super::*;

/// Case tg-topic-general (inbound half): General is the chat itself.
#[test]
fn tg_topic_general() {
    let update = message(&json!({
        "chat": { "id": -1001000000001_i64, "type": "supergroup", "title": "Lab", "is_forum": true },
        "text": "@echo_bot hi", "entities": [{ "type": "mention", "offset": 0, "length": 9 }], "message_thread_id": 1,
    }));
    let event = arrival(of_update(&update)).event;
    assert_eq!((&event.thread_id, event.session_key().as_str()), (&None, "telegram:-1001000000001"));
    let reply = arrival(of("forum_general_reply")).event;
    assert_eq!((&reply.thread_id, reply.session_key().as_str()), (&None, "telegram:-1001000000001"));
}

/// Case tg-topic-turned-off: a thread id without a forum or a topic is left over.
#[test]
fn tg_topic_turned_off() {
    let update = message(&json!({
        "text": "@echo_bot hello", "entities": [{ "type": "mention", "offset": 0, "length": 9 }],
        "message_thread_id": 42,
    }));
    let event = arrival(of_update(&update)).event;
    assert_eq!((&event.thread_id, event.session_key().as_str()), (&None, "telegram:-1001000000001"));
}

#[test]
fn a_topic_and_a_business_connection_are_sessions_of_their_own() {
    let topic = arrival(of("forum_topic")).event;
    assert_eq!(topic.thread_id.as_deref(), Some("5"));
    assert_eq!(topic.session_key().as_str(), "telegram:-1001000000001:5");
    let business = arrival(of("business_message")).event;
    assert_eq!(business.chat_id, "bc77Conn/1000002");
    assert_eq!(business.session_key().as_str(), "telegram:bc77Conn%2F1000002");
    let other = Bot { account: "other".to_owned(), ..bot() };
    let topic = arrival(normalise(&other, fixture("forum_topic").as_bytes(), now()).unwrap()).event;
    assert_eq!(topic.session_key().as_str(), "telegram:other:-1001000000001:5");
}
