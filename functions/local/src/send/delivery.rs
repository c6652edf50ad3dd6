//! A recorded body as the request that the platform would send: the route, the signature, and a new identity where one
//! is wanted.

use anyhow::{Context, anyhow};
use jiff::Timestamp;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use turnlock_channels::{slack, telegram, webhook};
use turnlock_config::Config;

use crate::arguments::{Send, SendChannel};
use crate::failure::Misuse;

/// A request that its route accepts.
pub(super) struct Delivery {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// The request. `fresh` is a webhook's or API message's identity; the others' stands in their bodies.
pub(super) fn signed(
    send: &Send,
    config: &Config,
    token: &str,
    fresh: &str,
    body: Vec<u8>,
) -> anyhow::Result<Delivery> {
    let account = &send.account;
    let missing = |what: &str| Misuse(format!("--account: the host's configuration has no {what}"));
    let (path, mut headers) = match send.channel {
        SendChannel::Telegram => {
            let bot = config.telegram.get(account).ok_or_else(|| missing(&format!("[telegram.{account}]")))?;
            let secret = bot.secret_token.as_ref().ok_or_else(|| missing("secret token for it"))?;
            (format!("/telegram/{account}"), telegram::sign_headers(secret))
        }
        SendChannel::Slack => {
            let app = config.slack.get(account).ok_or_else(|| missing(&format!("[slack.{account}]")))?;
            let secret = app.signing_secret.as_ref().ok_or_else(|| missing("signing secret for it"))?;
            (format!("/slack/{account}"), slack::sign(secret, Timestamp::now(), &body))
        }
        SendChannel::Webhook => {
            let source = config.webhook.get(account).ok_or_else(|| missing(&format!("[webhook.{account}]")))?;
            let source = turnlock_app::ingress::source(account, source)?;
            let headers = webhook::sign(&source, fresh, Timestamp::now(), &body);
            (format!("/webhook/{account}"), headers.map_err(|error| anyhow!("{error}"))?)
        }
        SendChannel::Gateway => {
            let mut headers = bearer(token)?;
            headers.insert(HeaderName::from_static("idempotency-key"), HeaderValue::from_str(fresh)?);
            ("/v1/messages".to_owned(), headers)
        }
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type(&body)));
    Ok(Delivery { path, headers, body })
}

fn bearer(token: &str) -> anyhow::Result<HeaderMap> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).context("the secret is no header value")?;
    value.set_sensitive(true);
    Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
}

/// JSON begins with a brace or a bracket; what Slack sends beside it is a form.
fn content_type(body: &[u8]) -> &'static str {
    match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{' | b'[') => "application/json",
        _ => "application/x-www-form-urlencoded",
    }
}

/// The same body under an identity that the host has not seen.
pub(super) fn renewed(channel: SendChannel, body: &[u8], fresh: &str) -> anyhow::Result<Vec<u8>> {
    match channel {
        // The identity is a header, new for every `send`.
        SendChannel::Webhook | SendChannel::Gateway => Ok(body.to_vec()),
        SendChannel::Telegram | SendChannel::Slack => {
            let refused = |_| Misuse("--as-new: the file is not JSON, so its identity cannot be changed".to_owned());
            let mut document: Value = serde_json::from_slice(body).map_err(refused)?;
            let now = Timestamp::now();
            match channel {
                SendChannel::Telegram => renew_update(&mut document, now),
                _ => renew_event(&mut document, now, fresh),
            }
            Ok(serde_json::to_vec(&document)?)
        }
    }
}

fn renew_update(update: &mut Value, now: Timestamp) {
    update["update_id"] = json!(now.as_millisecond() % 1_000_000_000_000);
    if let Some(message) = update.get_mut("message") {
        message["message_id"] = json!(now.as_millisecond() / 100 % 1_000_000_000);
        message["date"] = json!(now.as_second());
    }
}

fn renew_event(request: &mut Value, now: Timestamp, fresh: &str) {
    let ts = format!("{}.{:06}", now.as_second(), now.as_microsecond().rem_euclid(1_000_000));
    request["event_id"] = json!(format!("Ev{}", fresh.to_uppercase()));
    request["event_time"] = json!(now.as_second());
    if let Some(event) = request.get_mut("event") {
        event["ts"] = json!(ts);
        event["event_ts"] = json!(ts);
        event["client_msg_id"] = json!(fresh);
    }
}
