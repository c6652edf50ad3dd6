//! The rules of the fake, as platforms.md states them.

use bytes::Bytes;
use http::HeaderMap;

use super::*;

struct Fixture {
    telegram: Telegram,
    chats: Chats,
}

impl Fixture {
    fn new() -> Self {
        let bot = TelegramBot { bot_id: 1, username: "echo_bot".into(), token: Some("1:secret".into()) };
        let telegram = Telegram { bots: [("main".to_owned(), bot)].into(), ..Telegram::default() };
        Self { telegram, chats: Chats::default() }
    }

    fn send_to(&mut self, url: &str, body: &Value) -> (u16, Value) {
        let (call, address) = self.telegram.call(&request(url, body));
        let reply = self.telegram.apply(&call, &address, &mut self.chats, Millis(1_767_603_600_500));
        (reply.status, serde_json::from_slice(&reply.body).unwrap_or_default())
    }

    fn call(&mut self, method: &str, body: Value) -> Value {
        self.send_to(&format!("https://api.telegram.org/bot1:secret/{method}"), &body).1
    }

    fn error(&mut self, method: &str, body: Value) -> String {
        let answer = self.call(method, body);
        assert_eq!(answer["ok"], false, "{answer}");
        answer["description"].as_str().unwrap_or_default().to_owned()
    }

    fn update(&mut self, update: Value) {
        self.telegram.note("main", &update, &mut self.chats);
    }

    fn shown(&self, key: &str) -> Value {
        serde_json::to_value(&self.chats.shown()[key]).unwrap()
    }
}

fn request(url: &str, body: &Value) -> PlatformRequest {
    PlatformRequest {
        channel: Channel::Telegram,
        account: "main".into(),
        method: "sendMessage".into(),
        url: url.into(),
        headers: HeaderMap::new(),
        body: Bytes::from(body.to_string()),
    }
}

#[test]
fn a_message_is_shown_edited_and_deleted() {
    let mut fixture = Fixture::new();
    let sent = fixture.call("sendMessage", json!({ "chat_id": 1, "text": " <b>a</b> &amp; b ", "parse_mode": "HTML" }));
    assert_eq!(sent["result"]["message_id"], 1001);
    assert_eq!(sent["result"]["date"], 1_767_603_600);
    let edit = json!({ "chat_id": 1, "message_id": 1001, "text": "more", "reply_markup": {
        "inline_keyboard": [[{ "text": "Allow", "callback_data": "ap:1:ok" }], [{ "text": "Deny", "callback_data": "ap:1:no" }]],
    } });
    assert_eq!(fixture.call("editMessageText", edit.clone())["ok"], true);
    assert!(fixture.error("editMessageText", edit).starts_with("Bad Request: message is not modified"));
    fixture.call("SENDMESSAGE", json!({ "chat_id": "1", "text": "second" }));
    fixture.call("deleteMessage", json!({ "chat_id": 1, "message_id": 1002 }));
    fixture.call("sendChatAction", json!({ "chat_id": 1, "action": "typing" }));
    assert_eq!(
        fixture.shown("telegram:main:1"),
        json!({
            "messages": [
                { "id": 1001, "text": "more", "markup": null, "buttons": ["Allow", "Deny"], "edits": 1,
                  "reply_to": null, "deleted": false },
                { "id": 1002, "text": "second", "markup": null, "buttons": [], "edits": 0,
                  "reply_to": null, "deleted": true },
            ],
            "actions": ["typing"],
        })
    );
}

#[test]
fn markup_is_applied_and_kept_as_sent() {
    let mut fixture = Fixture::new();
    fixture.call("sendMessage", json!({ "chat_id": 1, "text": "<b>a</b> &lt; b", "parse_mode": "HTML" }));
    let entities = json!([{ "type": "bold", "offset": 0, "length": 2 }]);
    fixture.call("sendMessage", json!({ "chat_id": 1, "text": "😀 b", "entities": entities }));
    let shown = fixture.shown("telegram:main:1");
    assert_eq!((&shown["messages"][0]["text"], &shown["messages"][0]["markup"]), (&json!("a < b"), &json!("HTML")));
    assert_eq!((&shown["messages"][1]["text"], &shown["messages"][1]["markup"]), (&json!("😀 b"), &entities));
}

#[test]
fn refusals_have_telegrams_words() {
    let mut fixture = Fixture::new();
    fixture.update(json!({ "update_id": 1, "message": { "message_id": 7, "chat": { "id": 1, "type": "private" } } }));
    let text = |text: String| json!({ "chat_id": 1, "text": text });
    let table = [
        ("sendMessage", text("x".repeat(4097)), "Bad Request: message is too long"),
        // Case tg-utf16-count: characters outside the basic plane count twice.
        ("sendMessage", text("😀".repeat(2049)), "Bad Request: message is too long"),
        ("sendMessage", text(" \n".to_owned()), "Bad Request: message text is empty"),
        ("sendMessage", json!({ "text": "x" }), "Bad Request: chat_id is empty"),
        (
            "sendMessage",
            json!({ "chat_id": 1, "text": "a < b", "parse_mode": "HTML" }),
            "Bad Request: can't parse entities: Unsupported start tag \"\" at byte offset 2",
        ),
        (
            "sendMessage",
            json!({ "chat_id": 1, "text": "x", "parse_mode": "Wiki" }),
            "Bad Request: unsupported parse_mode",
        ),
        (
            "sendMessage",
            json!({ "chat_id": 1, "text": "😀", "entities": [{ "type": "bold", "offset": 0, "length": 1 }] }),
            "Bad Request: entity beginning at UTF-16 offset 0 ends in a middle of a UTF-16 symbol at UTF-16 offset 1",
        ),
        (
            "sendMessage",
            json!({ "chat_id": 1, "text": "x", "message_thread_id": 1 }),
            "Bad Request: message thread not found",
        ),
        (
            "sendMessage",
            json!({ "chat_id": 1, "text": "x", "message_thread_id": 5 }),
            "Bad Request: message thread not found",
        ),
        (
            "sendMessage",
            json!({ "chat_id": 1, "text": "x", "reply_parameters": { "message_id": 8 } }),
            "Bad Request: message to be replied not found",
        ),
        (
            "editMessageText",
            json!({ "chat_id": 1, "message_id": 9, "text": "x" }),
            "Bad Request: message to edit not found",
        ),
        (
            "editMessageText",
            json!({ "chat_id": 1, "message_id": 7, "text": "x" }),
            "Bad Request: message can't be edited",
        ),
        ("deleteMessage", json!({ "chat_id": 1, "message_id": 9 }), "Bad Request: message to delete not found"),
        (
            "sendChatAction",
            json!({ "chat_id": 1, "action": "sleeping" }),
            "Bad Request: wrong parameter action in request",
        ),
        (
            "sendMessage",
            json!({ "chat_id": 1, "text": "x", "reply_markup": { "inline_keyboard": [[{ "text": "x", "callback_data": "d".repeat(65) }]] } }),
            "Bad Request: BUTTON_DATA_INVALID",
        ),
        (
            "getFile",
            json!({ "file_id": "nothing" }),
            "Bad Request: wrong file_id or the file is temporarily unavailable",
        ),
        ("sendRichMessage", json!({ "chat_id": 1 }), "Not Found: method not found"),
    ];
    for (method, arguments, description) in table {
        assert_eq!(fixture.error(method, arguments.clone()), description, "{method} {arguments}");
    }
    assert!(fixture.chats.shown().is_empty(), "nothing of it was shown");
}

#[test]
fn a_reply_needs_its_message_unless_the_sender_says_otherwise() {
    let mut fixture = Fixture::new();
    fixture.update(json!({ "update_id": 1, "message": { "message_id": 7, "chat": { "id": 1, "type": "private" } } }));
    for (message, expected) in [(7, json!(7)), (8, json!(null))] {
        let parameters = json!({ "message_id": message, "allow_sending_without_reply": true });
        let sent = fixture.call("sendMessage", json!({ "chat_id": 1, "text": "x", "reply_parameters": parameters }));
        assert_eq!(sent["result"]["reply_to_message"]["message_id"], expected);
    }
}

#[test]
fn a_topic_is_a_chat_of_its_own_once_an_update_named_it() {
    let mut fixture = Fixture::new();
    let chat = json!({ "id": -100, "type": "supergroup", "is_forum": true });
    fixture.update(json!({ "update_id": 1, "message": {
        "message_id": 7, "chat": chat, "message_thread_id": 5, "is_topic_message": true,
    } }));
    fixture.call("sendMessage", json!({ "chat_id": -100, "text": "in the topic", "message_thread_id": 5 }));
    assert_eq!(fixture.shown("telegram:main:-100:5")["messages"][0]["text"], "in the topic");
}

#[test]
fn a_business_chat_is_not_the_bots_own() {
    let mut fixture = Fixture::new();
    fixture.call("sendMessage", json!({ "business_connection_id": "bc", "chat_id": 1, "text": "x" }));
    assert_eq!(fixture.chats.shown().into_keys().collect::<Vec<_>>(), ["telegram:main:bc/1"]);
}

#[test]
fn a_pressed_button_is_answered_exactly_once() {
    let mut fixture = Fixture::new();
    fixture.update(json!({ "update_id": 1, "callback_query": { "id": "q1", "data": "ap:1:ok" } }));
    let answer = json!({ "callback_query_id": "q1" });
    assert_eq!(fixture.call("answerCallbackQuery", answer.clone())["ok"], true);
    assert!(fixture.error("answerCallbackQuery", answer).starts_with("Bad Request: query is too old"));
}

#[test]
fn a_message_that_was_posted_elsewhere_is_known_by_its_button() {
    let mut fixture = Fixture::new();
    fixture
        .update(json!({ "update_id": 1, "callback_query": { "id": "q1", "inline_message_id": "in-1", "data": "x" } }));
    assert_eq!(fixture.call("editMessageReplyMarkup", json!({ "inline_message_id": "in-1" }))["ok"], true);
    let unknown = fixture.error("editMessageReplyMarkup", json!({ "inline_message_id": "in-2" }));
    assert_eq!(unknown, "Bad Request: MESSAGE_ID_INVALID");
}

#[test]
fn webhook_and_commands_are_what_was_set() {
    let mut fixture = Fixture::new();
    let url = "https://bot.example.org:8443/telegram/main";
    let webhook =
        json!({ "url": url, "secret_token": "a-b_C1", "allowed_updates": ["message"], "max_connections": 20 });
    assert_eq!(fixture.call("setWebhook", webhook)["result"], true);
    fixture.call("setWebhook", json!({ "url": url }));
    let info = fixture.call("getWebhookInfo", json!({}))["result"].clone();
    assert_eq!((&info["url"], &info["max_connections"]), (&json!(url), &json!(40)));
    assert_eq!(info["allowed_updates"], json!(["message"]), "left out, it stays");
    let commands = json!([{ "command": "new", "description": "begin anew" }]);
    fixture.call("setMyCommands", json!({ "commands": commands, "language_code": "de" }));
    assert_eq!(fixture.call("getMyCommands", json!({ "language_code": "de" }))["result"], commands);
    assert_eq!(fixture.call("getMyCommands", json!({}))["result"], json!([]));
    let refused = [
        (
            "setWebhook",
            json!({ "url": "http://bot.example.org/" }),
            "bad webhook: An HTTPS URL must be provided for webhook",
        ),
        (
            "setWebhook",
            json!({ "url": "https://bot.example.org:444/" }),
            "bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443",
        ),
        ("setWebhook", json!({ "url": url, "secret_token": "a b" }), "secret token contains unallowed characters"),
        ("setWebhook", json!({ "url": url, "secret_token": "a".repeat(257) }), "secret token is too long"),
        ("setMyCommands", json!({ "commands": [{ "command": "New", "description": "x" }] }), "BOT_COMMAND_INVALID"),
        (
            "setMyCommands",
            json!({ "commands": [{ "command": "new", "description": "" }] }),
            "BOT_COMMAND_DESCRIPTION_INVALID",
        ),
    ];
    for (method, arguments, description) in refused {
        assert_eq!(fixture.error(method, arguments), format!("Bad Request: {description}"));
    }
}

#[test]
fn budgets_are_telegrams() {
    let mut fixture = Fixture::new();
    fixture.update(json!({ "channel_post": { "message_id": 7, "chat": { "id": -5, "type": "channel" } } }));
    let names = |method: &str, arguments: Value| -> Vec<(String, usize)> {
        let call =
            fixture.telegram.call(&request(&format!("https://api.telegram.org/bot1:secret/{method}"), &arguments)).0;
        limits(&call, &fixture.chats).into_iter().map(|limit| (limit.name, limit.budget.calls)).collect()
    };
    let budgets = |list: &[(&str, usize)]| -> Vec<(String, usize)> {
        list.iter().map(|(name, calls)| ((*name).to_owned(), *calls)).collect()
    };
    let private = budgets(&[("main 1", 5), ("main", 30)]);
    for method in ["sendMessage", "editMessageText", "sendChatAction", "editMessageReplyMarkup"] {
        assert_eq!(names(method, json!({ "chat_id": 1 })), private, "{method}");
    }
    let group = budgets(&[("main -100", 5), ("main", 30), ("main -100 a minute", 20)]);
    assert_eq!(names("sendMessage", json!({ "chat_id": -100, "message_thread_id": 5 })), group, "topics are one group");
    assert_eq!(names("sendMessage", json!({ "chat_id": -5 })), budgets(&[("main -5", 5), ("main", 30)]), "a channel");
    for method in ["getChat", "answerCallbackQuery", "deleteMessage"] {
        assert_eq!(names(method, json!({ "chat_id": 1 })), [], "{method}");
    }
}

#[test]
fn a_token_is_checked() {
    let mut fixture = Fixture::new();
    let table = [
        ("https://api.telegram.org/bot2:other/getMe", 401, "Unauthorized"),
        ("https://api.telegram.org/botnonsense/getMe", 401, "Unauthorized: invalid token specified"),
        ("https://api.telegram.org/bot1:secret/", 404, "Not Found: method not found"),
    ];
    for (url, status, description) in table {
        let (answered, answer) = fixture.send_to(url, &json!({}));
        assert_eq!((answered, answer["description"].as_str()), (status, Some(description)), "{url}");
    }
    let (status, answer) = fixture.send_to("http://localhost:9/base/bot1:secret/getMe", &json!({}));
    assert_eq!((status, &answer["result"]["username"]), (200, &json!("echo_bot")));
}

#[test]
fn a_file_is_downloaded_by_the_path_of_get_file() {
    let mut fixture = Fixture::new();
    fixture.telegram.files.insert("DOC1".into(), Bytes::from_static(b"[1]"));
    let answer = fixture.call("getFile", json!({ "file_id": "DOC1" }));
    let path = answer["result"]["file_path"].as_str().unwrap_or_default().to_owned();
    let (status, body) = fixture.send_to(&format!("https://api.telegram.org/file/bot1:secret/{path}"), &json!({}));
    assert_eq!((status, body), (200, json!([1])));
}
