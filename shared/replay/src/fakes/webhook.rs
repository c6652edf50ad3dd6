//! The receivers behind webhook sources: they keep what is posted to them, if its signature holds
//! (standardwebhooks.com). A repeated `webhook-id` is acknowledged and not shown again, as the standard asks of them.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use turnlock_channels::http::PlatformRequest;
use turnlock_domain::event::Channel;
use turnlock_domain::time::Millis;

use super::answers::{Call, Reply};
use super::chats::{ChatId, Chats, Message};

/// How far a signature's time may be from the receiver's, in seconds.
const TOLERANCE: i64 = 300;

/// The receiver behind one of our webhook sources.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WebhookReceiver {
    /// The key by which it checks what comes (`whsec_…`); none = it takes everything.
    pub secret: Option<String>,
}

/// All receivers.
#[derive(Debug, Default)]
pub(super) struct Webhook {
    pub(super) receivers: BTreeMap<String, WebhookReceiver>,
}

impl Webhook {
    pub(super) fn call(&self, request: &PlatformRequest) -> Call {
        let arguments = super::arguments(request);
        // Our own events name their chat; for anything else the address is the chat.
        let chat = arguments["chat_id"].as_str().filter(|chat| !chat.is_empty()).unwrap_or(&request.url);
        Call {
            channel: Channel::Webhook,
            account: request.account.clone(),
            method: "post".to_owned(),
            chat: Some(chat.to_owned()),
            arguments,
        }
    }

    pub(super) fn apply(&self, call: &Call, request: &PlatformRequest, chats: &mut Chats, now: Millis) -> Reply {
        let secret = self.receivers.get(&call.account).and_then(|receiver| receiver.secret.as_deref());
        if let Some(Err(reason)) = secret.map(|secret| verify(secret, request, now)) {
            return Reply::json(401, &json!({ "error": reason }), false);
        }
        let chat = call.chat.clone().unwrap_or_default();
        let chat = chats.open(&ChatId { channel: Channel::Webhook, account: call.account.clone(), chat });
        let id = header(request, "webhook-id").map_or(Value::Null, |id| json!(id));
        if id.is_null() || chat.find(&id).is_none() {
            chat.push(Message {
                id,
                thread: call.arguments["thread_id"].as_str().map(str::to_owned),
                text: text(&call.arguments, request),
                markup: None,
                buttons: Vec::new(),
                edits: 0,
                reply_to: call.arguments.get("reply_to_id").cloned(),
                deleted: false,
                content: call.arguments.clone(),
            });
        }
        Reply::json(200, &json!({ "ok": true }), true)
    }
}

/// The texts of an event's content, or the body as it is.
fn text(arguments: &Value, request: &PlatformRequest) -> String {
    let Some(content) = arguments["content"].as_array() else {
        let own = arguments["text"].as_str().map(str::to_owned);
        return own.unwrap_or_else(|| String::from_utf8_lossy(&request.body).into_owned());
    };
    let texts: Vec<&str> =
        content.iter().filter_map(|block| block["text"].as_str()).filter(|it| !it.is_empty()).collect();
    texts.join("\n")
}

fn header<'a>(request: &'a PlatformRequest, name: &str) -> Option<&'a str> {
    request.headers.get(name).and_then(|value| value.to_str().ok())
}

/// The receiver's own check, written from the standard and not with the sender's code.
fn verify(secret: &str, request: &PlatformRequest, now: Millis) -> Result<(), &'static str> {
    let (Some(id), Some(time), Some(signatures)) =
        (header(request, "webhook-id"), header(request, "webhook-timestamp"), header(request, "webhook-signature"))
    else {
        return Err("missing required headers");
    };
    let seconds: i64 = time.parse().map_err(|_| "invalid timestamp")?;
    if (now.0.div_euclid(1000) - seconds).abs() > TOLERANCE {
        return Err("message timestamp out of tolerance");
    }
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap_or(secret)).map_err(|_| "invalid secret")?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|_| "invalid secret")?;
    mac.update(format!("{id}.{time}.").as_bytes());
    mac.update(&request.body);
    let candidates = signatures.split(' ').filter_map(|signature| signature.strip_prefix("v1,"));
    let matches = |candidate: &str| STANDARD.decode(candidate).is_ok_and(|it| mac.clone().verify_slice(&it).is_ok());
    if candidates.into_iter().any(matches) { Ok(()) } else { Err("no matching signature found") }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;

    /// Message and signature of the standard's own example (standardwebhooks.com, reference implementations' tests).
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    const BODY: &str = r#"{"test": 2432232314}"#;
    const AT: i64 = 1_614_265_330;

    fn request(signature: &str, body: &str) -> PlatformRequest {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", signature),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        PlatformRequest {
            channel: Channel::Webhook,
            account: "main".into(),
            method: "post".into(),
            url: "https://receiver.example/hook".into(),
            headers,
            body: Bytes::from(body.to_owned()),
        }
    }

    #[test]
    fn signatures_are_the_standards() {
        let table = [
            (SIGNATURE, BODY, AT, Ok(())),
            (&format!("v1,bm9uc2Vuc2U= {SIGNATURE}"), BODY, AT + TOLERANCE, Ok(())),
            (SIGNATURE, BODY, AT + TOLERANCE + 1, Err("message timestamp out of tolerance")),
            (SIGNATURE, "{}", AT, Err("no matching signature found")),
            ("v2,g0hM9SsE", BODY, AT, Err("no matching signature found")),
        ];
        for (signature, body, at, expected) in table {
            assert_eq!(
                verify(SECRET, &request(signature, body), Millis(at * 1000)),
                expected,
                "{signature} {body} {at}"
            );
        }
    }

    #[test]
    fn what_is_posted_is_shown_once() {
        let receiver = WebhookReceiver { secret: Some(SECRET.into()) };
        let webhook = Webhook { receivers: [("main".to_owned(), receiver)].into() };
        let mut chats = Chats::default();
        for _ in 0..2 {
            let request = request(SIGNATURE, BODY);
            let reply = webhook.apply(&webhook.call(&request), &request, &mut chats, Millis(AT * 1000));
            assert_eq!((reply.status, reply.applied), (200, true));
        }
        let bad = request(SIGNATURE, "{}");
        assert_eq!(webhook.apply(&webhook.call(&bad), &bad, &mut chats, Millis(AT * 1000)).status, 401);
        let shown = chats.shown();
        let chat = &shown["webhook:main:https://receiver.example/hook"];
        assert_eq!(chat.messages.iter().map(|message| message.text.as_str()).collect::<Vec<_>>(), [BODY]);
    }

    #[test]
    fn an_event_of_ours_is_shown_by_its_text_in_its_chat() {
        let webhook = Webhook::default();
        let mut chats = Chats::default();
        let body =
            json!({ "chat_id": "build-7", "content": [{ "type": "text", "text": "done" }], "reply_to_id": "m1" });
        let request = request("", &body.to_string());
        webhook.apply(&webhook.call(&request), &request, &mut chats, Millis(0));
        let shown = chats.shown();
        let message = &shown["webhook:main:build-7"].messages[0];
        assert_eq!((message.text.as_str(), &message.reply_to), ("done", &Some(json!("m1"))));
    }
}
