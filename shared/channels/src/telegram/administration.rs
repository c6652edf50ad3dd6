//! What a bot's owner tells the Bot API: where updates go and which commands are listed (Bot API, "setWebhook",
//! "setMyCommands"). All of it may be repeated: the outcome is the same.

use std::sync::Arc;
use std::time::Duration;

use http::uri::Uri;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::UPDATES;
use super::connection::Connection;
use crate::http::{PlatformError, PlatformHttp};
use crate::json;

/// The ports that Telegram calls.
const PORTS: [u16; 4] = [443, 80, 88, 8443];

/// How many updates Telegram may send at the same time; those of one chat come one after another.
const MAX_CONNECTIONS: u8 = 40;

/// As much of a description as is shown.
const LONGEST_DESCRIPTION: usize = 200;

/// Why nothing was set.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdministrationError {
    /// Telegram calls HTTPS addresses alone.
    #[error("Telegram sends updates to an https address alone")]
    NotHttps,
    /// Telegram calls few ports.
    #[error("Telegram sends updates to the ports 443, 80, 88 and 8443 alone, not to {0}")]
    Port(u16),
    /// The secret token would be refused.
    #[error("the secret token must be 1 to 256 of A-Z, a-z, 0-9, _ and -")]
    Secret,
    /// The bot's token is nobody's.
    #[error("Telegram does not know the bot's token")]
    Token,
    /// Too many calls.
    #[error("Telegram asks to wait {} s", .0.as_secs())]
    Wait(Duration),
    /// There was no answer, or none of the Bot API's.
    #[error("Telegram does not answer")]
    NoAnswer,
    /// Anything else, in Telegram's words.
    #[error("Telegram refused {method}: {description}")]
    Refused {
        /// What was asked.
        method: &'static str,
        /// The answer.
        description: String,
    },
}

/// A bot as `getMe` describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its id.
    pub id: i64,
    /// Its name, without `@`.
    pub username: String,
    /// Whether it may be added to groups.
    pub joins_groups: bool,
    /// Whether its privacy mode is off.
    pub reads_groups: bool,
}

/// The webhook as `getWebhookInfo` describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookInfo {
    /// Where updates go; empty = nowhere.
    pub url: String,
    /// How many updates wait.
    pub pending: i64,
    /// Why the newest delivery that failed did so.
    pub last_error: Option<String>,
}

/// The settings of one bot.
#[derive(Debug, Clone)]
pub struct Administration(Connection);

impl Administration {
    /// The settings of the bot called `account`; `base_url` is [`super::DEFAULT_BASE_URL`] or a server of one's own.
    #[must_use]
    pub fn new(http: Arc<dyn PlatformHttp>, account: &str, token: SecretString, base_url: &str) -> Self {
        Self(Connection::new(http, account, token, base_url))
    }

    /// Who the bot is.
    ///
    /// # Errors
    /// [`AdministrationError`].
    pub async fn identity(&self) -> Result<Identity, AdministrationError> {
        let me = self.call("getMe", &json!({})).await?;
        Ok(Identity {
            id: json::integer(&me, "/id").ok_or(AdministrationError::NoAnswer)?,
            username: json::string(&me, "/username").unwrap_or_default().to_owned(),
            joins_groups: json::flag(&me, "/can_join_groups"),
            reads_groups: json::flag(&me, "/can_read_all_group_messages"),
        })
    }

    /// Has updates of the kinds in [`UPDATES`] sent to `url`, with `secret` in their header.
    ///
    /// # Errors
    /// [`AdministrationError`]; what Telegram would refuse anyway is not sent.
    pub async fn set_webhook(&self, url: &Uri, secret: &SecretString) -> Result<(), AdministrationError> {
        check_webhook(url, secret)?;
        let arguments = json!({
            "url": url.to_string(),
            "secret_token": secret.expose_secret(),
            "allowed_updates": UPDATES,
            "max_connections": MAX_CONNECTIONS,
        });
        self.call("setWebhook", &arguments).await.map(|_| ())
    }

    /// What Telegram says of the webhook.
    ///
    /// # Errors
    /// [`AdministrationError`].
    pub async fn webhook(&self) -> Result<WebhookInfo, AdministrationError> {
        let info = self.call("getWebhookInfo", &json!({})).await?;
        Ok(WebhookInfo {
            url: json::string(&info, "/url").unwrap_or_default().to_owned(),
            pending: json::integer(&info, "/pending_update_count").unwrap_or_default(),
            last_error: json::string(&info, "/last_error_message").map(|error| self.shown(error)),
        })
    }

    /// Sets the list of commands: names without their slash, and what they do.
    ///
    /// # Errors
    /// [`AdministrationError`].
    pub async fn set_commands(&self, commands: &[(&str, String)]) -> Result<(), AdministrationError> {
        let commands = commands.iter().map(|(name, does)| json!({ "command": name, "description": does }));
        let arguments = json!({ "commands": commands.collect::<Vec<_>>() });
        self.call("setMyCommands", &arguments).await.map(|_| ())
    }

    async fn call(&self, method: &'static str, arguments: &Value) -> Result<Value, AdministrationError> {
        let response = match self.0.call(method, arguments).await {
            Ok(response) => response,
            Err(PlatformError::Unreachable(_) | PlatformError::AnswerLost(_)) => {
                return Err(AdministrationError::NoAnswer);
            }
        };
        let mut body: Value = serde_json::from_slice(&response.body).map_err(|_| AdministrationError::NoAnswer)?;
        if json::flag(&body, "/ok") {
            return Ok(body["result"].take());
        }
        let seconds = json::integer(&body, "/parameters/retry_after").and_then(|seconds| u64::try_from(seconds).ok());
        Err(match (json::integer(&body, "/error_code"), seconds) {
            // A token of another shape is no address of the API's at all.
            (Some(401 | 404), _) => AdministrationError::Token,
            (Some(429), Some(seconds)) => AdministrationError::Wait(Duration::from_secs(seconds)),
            (Some(_), _) => {
                let description = self.shown(json::string(&body, "/description").unwrap_or_default());
                AdministrationError::Refused { method, description }
            }
            (None, _) => AdministrationError::NoAnswer,
        })
    }

    /// Telegram's words without the token, should they repeat it, and not without end.
    fn shown(&self, text: &str) -> String {
        self.0.without_token(text).chars().take(LONGEST_DESCRIPTION).collect()
    }
}

/// Whether Telegram takes this address and secret token for a webhook (Bot API, "setWebhook").
///
/// # Errors
/// [`AdministrationError::NotHttps`], [`AdministrationError::Port`], [`AdministrationError::Secret`].
pub fn check_webhook(url: &Uri, secret: &SecretString) -> Result<(), AdministrationError> {
    if url.scheme_str() != Some("https") {
        return Err(AdministrationError::NotHttps);
    }
    if let Some(port) = url.port_u16().filter(|port| !PORTS.contains(port)) {
        return Err(AdministrationError::Port(port));
    }
    let secret = secret.expose_secret();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=256).contains(&secret.len()) && secret.bytes().all(is_plain) {
        Ok(())
    } else {
        Err(AdministrationError::Secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_telegram_would_refuse_is_refused_here() {
        let check = |url: &str, secret: &str| check_webhook(&url.parse().unwrap(), &SecretString::from(secret));
        assert_eq!(check("https://bot.example.org/telegram/main", "a_B-9"), Ok(()));
        for port in PORTS {
            assert_eq!(check(&format!("https://bot.example.org:{port}/"), &"x".repeat(256)), Ok(()));
        }
        let table = [
            ("http://bot.example.org/", "a", AdministrationError::NotHttps),
            ("https://bot.example.org:8080/", "a", AdministrationError::Port(8080)),
            ("https://bot.example.org/", "", AdministrationError::Secret),
            ("https://bot.example.org/", "a b", AdministrationError::Secret),
            ("https://bot.example.org/", "ключ", AdministrationError::Secret),
            ("https://bot.example.org/", &"x".repeat(257), AdministrationError::Secret),
        ];
        for (url, secret, error) in table {
            assert_eq!(check(url, secret), Err(error), "{url} {secret}");
        }
    }
}
