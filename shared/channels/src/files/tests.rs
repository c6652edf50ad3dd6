//! Files as the platforms give them, and do not.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use http::HeaderMap;
use secrecy::SecretString;
use serde_json::{Value, json};

use super::*;
use crate::http::{PlatformHttp, PlatformRequest, PlatformResponse};

const PNG: &[u8] = b"\x89PNG\r\n\x1A\n....";

/// Answers in order, and keeps what it was asked: method, address, authorization.
#[derive(Default)]
struct Scripted {
    answers: Mutex<VecDeque<Result<PlatformResponse, PlatformError>>>,
    asked: Mutex<Vec<(String, String, String)>>,
}

#[async_trait]
impl PlatformHttp for Scripted {
    async fn send(&self, request: PlatformRequest, _: Duration) -> Result<PlatformResponse, PlatformError> {
        let authorization = request.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
        self.asked.lock().unwrap().push((request.method, request.url, authorization.unwrap_or_default()));
        self.answers.lock().unwrap().pop_front().expect("no more than was expected is asked")
    }
}

fn answer(status: u16, content_type: &str, body: impl Into<Bytes>) -> Result<PlatformResponse, PlatformError> {
    let headers = HeaderMap::from_iter([(http::header::CONTENT_TYPE, content_type.parse().unwrap())]);
    Ok(PlatformResponse { status, headers, body: body.into() })
}

fn said(status: u16, body: &Value) -> Result<PlatformResponse, PlatformError> {
    answer(status, "application/json", body.to_string())
}

type Asked = Vec<(String, String, String)>;

async fn read(
    channel: Channel,
    reference: &str,
    answers: impl IntoIterator<Item = Result<PlatformResponse, PlatformError>>,
) -> (Result<Bytes, FileError>, Asked) {
    let scripted = Arc::new(Scripted { answers: Mutex::new(answers.into_iter().collect()), ..Scripted::default() });
    let http: Arc<dyn PlatformHttp> = scripted.clone();
    let token = || SecretString::from("1:planted-token");
    let files = Files::new()
        .with_telegram(telegram::Client::new(http.clone(), "main", token(), "https://api.telegram.org/"))
        .with_slack(slack::Client::new(http, "main", token(), "https://slack.com/api"));
    let found = files.read(channel, "main", reference).await;
    assert!(!format!("{found:?} {files:?}").contains("planted"));
    let asked = scripted.asked.lock().unwrap().clone();
    (found, asked)
}

fn path(path: &str, size: usize) -> Result<PlatformResponse, PlatformError> {
    said(200, &json!({ "ok": true, "result": { "file_id": "F", "file_path": path, "file_size": size } }))
}

#[tokio::test]
async fn a_telegram_file_is_looked_up_and_read() {
    let answers = [path("photos/file_1.jpg", 12), answer(200, "application/octet-stream", PNG)];
    let (found, asked) = read(Channel::Telegram, "telegram-file:F", answers).await;
    assert_eq!(found.unwrap(), PNG);
    let addresses: Vec<_> = asked.iter().map(|(method, url, _)| (method.as_str(), url.as_str())).collect();
    let base = "https://api.telegram.org";
    assert_eq!(
        addresses,
        [
            ("getFile", &*format!("{base}/bot1:planted-token/getFile")),
            ("file", &*format!("{base}/file/bot1:planted-token/photos/file_1.jpg"))
        ]
    );
}

#[tokio::test]
async fn what_telegram_does_not_give() {
    let refusal = |code: u16, text: &str| said(code, &json!({ "ok": false, "error_code": code, "description": text }));
    let lost = |source: Box<dyn std::error::Error + Send + Sync>| Err(PlatformError::AnswerLost(source));
    let table = [
        (vec![refusal(400, "Bad Request: file is too big")], FileError::TooLarge),
        (vec![refusal(400, "Bad Request: wrong file_id or the file is temporarily unavailable")], FileError::Gone),
        (vec![refusal(401, "Unauthorized: 1:planted-token")], FileError::Unavailable("status 401".into())),
        (vec![refusal(429, "Too Many Requests")], FileError::Unavailable("status 429".into())),
        (vec![answer(502, "text/html", "<html>planted</html>")], FileError::Unavailable("status 502".into())),
        (vec![path("photos/f.jpg", MAX_BYTES + 1)], FileError::TooLarge),
        (vec![path("/var/lib/telegram-bot-api/1:planted-token/f.jpg", 1)], FileError::Gone),
        (vec![path("../getMe", 1)], FileError::Gone),
        (vec![path("f.jpg", 1), answer(404, "text/plain", "")], FileError::Gone),
        (vec![path("f.jpg", 1), lost(TooLarge.into())], FileError::TooLarge),
        (vec![path("f.jpg", 1), answer(200, "image/png", vec![0; MAX_BYTES + 1])], FileError::TooLarge),
        (vec![lost("late".into())], FileError::Unavailable("no answer".into())),
        (vec![Err(PlatformError::Unreachable("refused".into()))], FileError::Unavailable("unreachable".into())),
    ];
    for (answers, want) in table {
        let (found, _) = read(Channel::Telegram, "telegram-file:F", answers).await;
        assert_eq!(found.unwrap_err(), want);
    }
}

fn info(address: &str) -> Result<PlatformResponse, PlatformError> {
    said(200, &json!({ "ok": true, "file": { "id": "F1", "size": 12, "url_private": address } }))
}

#[tokio::test]
async fn a_slack_file_is_read_with_the_bearer_header() {
    let address = "https://files.slack.com/files-pri/T0TEAM-F1/a%20b.png";
    let (found, asked) = read(Channel::Slack, "slack-file:F1", [info(address), answer(200, "image/png", PNG)]).await;
    assert_eq!(found.unwrap(), PNG);
    let bearer = || "Bearer 1:planted-token".to_owned();
    let want = [
        ("files.info".to_owned(), "https://slack.com/api/files.info?file=F1".to_owned(), bearer()),
        ("file".to_owned(), address.to_owned(), bearer()),
    ];
    assert_eq!(asked, want);
}

/// Case sl-file-html-login: a sign-in page is no file, whatever its status, and says which scope is missing.
#[tokio::test]
async fn sl_file_html_login() {
    let address = "https://files.slack.com/files-pri/T0TEAM-F1/a.png";
    let page = "<!DOCTYPE html><html>Sign in</html>";
    for shown in [
        answer(200, "text/html; charset=utf-8", page),
        answer(200, "application/octet-stream", format!("\n {page}")),
        answer(302, "text/plain", ""),
    ] {
        let (found, _) = read(Channel::Slack, "slack-file:F1", [info(address), shown]).await;
        assert_eq!(found.unwrap_err().to_string(), "the app lacks the scope files:read");
    }
    for shown in [said(200, &json!({ "ok": false, "error": "missing_scope" })), answer(200, "text/html", page)] {
        let (found, _) = read(Channel::Slack, "slack-file:F1", [shown]).await;
        assert_eq!(found.unwrap_err(), FileError::MissingScope("files:read"));
    }
}

/// Nothing is asked of another host, and so the token reaches none.
#[tokio::test]
async fn the_token_goes_to_slack_alone() {
    for address in [
        "https://files.slack.com.evil.test/F1",
        "https://evilslack.com/F1",
        "https://evil.test/files.slack.com/F1",
        "https://files.slack.com@evil.test/F1",
        "https://evil.test@files.slack.com/F1",
        "https://evil.test\\@files.slack.com/F1",
        "http://files.slack.com/F1",
        "https://files.slack.com:8443/F1",
        "ftp://files.slack.com/F1",
        "/files-pri/F1",
        "//files.slack.com/F1",
    ] {
        let (found, asked) = read(Channel::Slack, "slack-file:F1", [info(address)]).await;
        assert_eq!((found.unwrap_err(), asked.len()), (FileError::ForeignHost, 1), "{address}");
    }
}

#[tokio::test]
async fn what_slack_does_not_give() {
    let error = |error: &str| said(200, &json!({ "ok": false, "error": error }));
    let at = || info("https://slack.com/files-pri/T0TEAM-F1/a.png");
    let large = json!({ "ok": true, "file": { "size": MAX_BYTES + 1, "url_private": "https://slack.com/f" } });
    let table = [
        (vec![error("file_not_found")], FileError::Gone),
        (vec![error("file_deleted")], FileError::Gone),
        (vec![error("invalid_auth")], FileError::Unavailable("invalid_auth".into())),
        (vec![error("planted: xoxb-1")], FileError::Unavailable("an error without a name".into())),
        (vec![said(429, &json!({}))], FileError::Unavailable("status 429".into())),
        (vec![said(200, &large)], FileError::TooLarge),
        (vec![said(200, &json!({ "ok": true, "file": { "id": "F1" } }))], FileError::Gone),
        (vec![at(), error("invalid_auth")], FileError::Unavailable("invalid_auth".into())),
        (vec![at(), answer(404, "text/plain", "")], FileError::Gone),
        (vec![at(), answer(500, "text/plain", "planted")], FileError::Unavailable("status 500".into())),
    ];
    for (answers, want) in table {
        let (found, _) = read(Channel::Slack, "slack-file:F1", answers).await;
        assert_eq!(found.unwrap_err(), want);
    }
}

/// A reference is its channel's own, and no way to anything else.
#[tokio::test]
async fn only_references_are_read() {
    for (channel, reference, want) in [
        (Channel::Telegram, "slack-file:F1", FileError::NoClient),
        (Channel::Slack, "telegram-file:F1", FileError::NoClient),
        (Channel::Slack, "https://files.slack.com/F1", FileError::NoClient),
        (Channel::Slack, "slack-file:F1&token=x", FileError::Gone),
        (Channel::Slack, "slack-file:", FileError::Gone),
        (Channel::Gateway, "telegram-file:F1", FileError::NoClient),
    ] {
        let (found, asked) = read(channel, reference, []).await;
        assert_eq!((found.unwrap_err(), asked.len()), (want, 0), "{reference}");
    }
}

#[test]
fn an_image_is_known_by_its_first_bytes() {
    let table: [(&[u8], Option<&str>); 8] = [
        (b"\xFF\xD8\xFF\xE0 JFIF", Some("image/jpeg")),
        (PNG, Some("image/png")),
        (b"GIF89a..", Some("image/gif")),
        (b"RIFF....WEBPVP8 ", Some("image/webp")),
        (b"RIFF....WAVEfmt ", None),
        (b"<!DOCTYPE html>", None),
        (b"%PDF-1.7", None),
        (b"", None),
    ];
    for (bytes, want) in table {
        assert_eq!(image_type(bytes), want);
    }
}
