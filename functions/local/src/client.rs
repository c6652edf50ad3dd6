//! A running host as `chat`, `send` and `pair` see it: its HTTP routes over loopback.

mod events;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::data::{Announcement, DataDirectory};
use crate::http::{PAIRINGS, Question};
use crate::pair::{Account, Asked, Pairings};

pub(crate) use events::{Events, News};

/// How long a starting host may take to say where it listens.
const ANNOUNCED_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// A host on this machine accepts a connection at once or not at all.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// A running host.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    data: DataDirectory,
    /// As it announced itself; shared, so that all follow when it is started again.
    host: Arc<Mutex<Announcement>>,
}

/// A message that was accepted.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Accepted {
    links: Links,
}

#[derive(Debug, Clone, Deserialize)]
struct Links {
    #[serde(rename = "self")]
    event: String,
    stream: String,
}

/// What came of posting a message.
pub(crate) enum Posted {
    /// It will be answered.
    Accepted(Accepted),
    /// Not now.
    Later(Duration),
}

impl Client {
    /// The host that runs over `data`; `None` if none does.
    pub(crate) async fn find(data: &DataDirectory) -> anyhow::Result<Option<Self>> {
        let until = tokio::time::Instant::now() + ANNOUNCED_WITHIN;
        while data.is_in_use() {
            if let Some(host) = data.announcement() {
                return Self::new(data, host).map(Some);
            }
            if tokio::time::Instant::now() > until {
                return Err(data.in_use().into());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(None)
    }

    /// The host over `data`, at the announced address.
    pub(crate) fn new(data: &DataDirectory, host: Announcement) -> anyhow::Result<Self> {
        // Whatever proxy the environment names, this stays on the machine.
        let client = reqwest::Client::builder()
            .no_proxy()
            .connect_timeout(CONNECT_WITHIN)
            .build()
            .context("the HTTP client cannot be set up")?;
        Ok(Self { http: client, data: data.clone(), host: Arc::new(Mutex::new(host)) })
    }

    /// Where it is.
    pub(crate) fn host(&self) -> Announcement {
        self.announced().clone()
    }

    fn announced(&self) -> MutexGuard<'_, Announcement> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the host was started again since it was `known`; from here on it is asked where it is now.
    pub(crate) fn follow_restart(&self, known: &Announcement) -> bool {
        let mut host = self.announced();
        if let Some(announced) = self.data.announcement() {
            *host = announced;
        }
        host.token != known.token
    }

    /// Posts one message of the operator's. The same `key` again is the same message.
    pub(crate) async fn post_message(&self, session: &str, text: &str, key: &str) -> anyhow::Result<Posted> {
        let body = json!({ "text": text, "session": session });
        let request = self.post("/v1/messages").bearer_auth(self.host().token).header("idempotency-key", key);
        let response = self.send(request.json(&body)).await?;
        let status = response.status();
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            return Ok(Posted::Later(retry_after(&response)));
        }
        let body = response.text().await.unwrap_or_default();
        if !status.is_success() {
            bail!("the host refused the message: {}", sentence(status, &body));
        }
        let accepted = serde_json::from_str(&body).context("the host's answer is not one of a turnlock")?;
        Ok(Posted::Accepted(accepted))
    }

    /// The frames and the final of an accepted message.
    pub(crate) fn events(&self, accepted: &Accepted) -> Events {
        Events::new(self.clone(), accepted.links.stream.clone())
    }

    /// The id of the approval that the turn of an accepted message waits for.
    pub(crate) async fn asks(&self, accepted: &Accepted) -> anyhow::Result<Option<String>> {
        let event = self.get(&accepted.links.event).await?.unwrap_or_default();
        let waits = event["status"] == "waiting_for_approval";
        Ok(event["approval"].as_str().filter(|_| waits).map(str::to_owned))
    }

    /// Plays one delivery, as the platform would.
    pub(crate) async fn deliver(
        &self,
        path: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> anyhow::Result<(StatusCode, String)> {
        let response = self.send(self.post(path).headers(headers).body(body)).await?;
        let status = response.status();
        Ok((status, response.text().await.unwrap_or_default()))
    }

    /// A JSON document of the host; `None` where there is nothing.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Option<Value>> {
        let response = self.send(self.http.get(self.url(path)).bearer_auth(self.host().token)).await?;
        match response.status() {
            StatusCode::OK => Ok(Some(response.json().await.context("the host's answer cannot be read")?)),
            StatusCode::NOT_FOUND => Ok(None),
            status => {
                let body = response.text().await.unwrap_or_default();
                Err(anyhow!("the host refused: {}", sentence(status, &body)))
            }
        }
    }

    /// What the host says about an account's pairings.
    pub(crate) async fn pairings(&self, account: &Account, asked: &Asked) -> anyhow::Result<Pairings> {
        let Account { channel, name } = account.clone();
        let question = Question { channel, account: name, asked: asked.clone() };
        let response = self.send(self.post(PAIRINGS).bearer_auth(self.host().token).json(&question)).await?;
        let status = response.status();
        if !status.is_success() {
            let body = response.text().await.unwrap_or_default();
            bail!("the host refused: {}", sentence(status, &body));
        }
        response.json().await.context("the host's answer cannot be read")
    }

    fn post(&self, path: &str) -> RequestBuilder {
        self.http.post(self.url(path))
    }

    async fn stream(&self, path: &str, seen: Option<&str>) -> anyhow::Result<Response> {
        let request = self.http.get(self.url(path)).bearer_auth(self.host().token);
        let request = seen.into_iter().fold(request, |request, seen| request.header("last-event-id", seen));
        self.send(request).await
    }

    async fn send(&self, request: RequestBuilder) -> anyhow::Result<Response> {
        request.send().await.map_err(|error| {
            let address = self.host().address;
            anyhow::Error::from(error.without_url()).context(format!("the host at {address} does not answer"))
        })
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.host().address)
    }
}

/// The sentence in a refusal, else its status.
pub(crate) fn sentence(status: StatusCode, body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    match body["message"].as_str() {
        Some(message) => format!("{} ({message})", status.as_u16()),
        None => status.to_string(),
    }
}

fn retry_after(response: &Response) -> Duration {
    let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1))
}
