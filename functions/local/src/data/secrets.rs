//! The secrets of the demo: made once, kept in the data directory, known to nobody but its owner.

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use turnlock_config::DemoSecrets;

use super::{DataDirectory, Durable, random_bytes, random_text, write_private};

/// The file, as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    telegram_bot_token: String,
    telegram_secret_token: String,
    slack_bot_token: String,
    slack_signing_secret: String,
    webhook_secret: String,
    gateway_key: String,
}

impl DataDirectory {
    /// The demo's secrets, made at the first start.
    pub(crate) fn demo_secrets(&self) -> anyhow::Result<DemoSecrets> {
        if let Some(secrets) = self.stored_demo_secrets()? {
            return Ok(secrets);
        }
        let stored = Stored {
            // The demo's bot has the id 1, and a bot's token begins with its id.
            telegram_bot_token: format!("1:{}", random_text(16)?),
            telegram_secret_token: random_text(16)?,
            slack_bot_token: format!("xoxb-{}", random_text(16)?),
            slack_signing_secret: random_text(16)?,
            webhook_secret: format!("whsec_{}", STANDARD.encode(random_bytes(24)?)),
            gateway_key: random_text(16)?,
        };
        let path = self.file("secrets.json");
        write_private(&path, &serde_json::to_vec_pretty(&stored)?, Durable::Yes)
            .with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(stored.into())
    }

    /// The demo's secrets, if it has been started here before.
    pub(crate) fn stored_demo_secrets(&self) -> anyhow::Result<Option<DemoSecrets>> {
        let path = self.file("secrets.json");
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read.with_context(|| format!("{} cannot be read", path.display()))?,
        };
        // The parser's own words could repeat a secret.
        let stored = serde_json::from_slice::<Stored>(&text).map_err(|error| {
            let (path, line) = (path.display(), error.line());
            anyhow::anyhow!("{path}, line {line}, is not what was written: delete the file to have new secrets made")
        })?;
        Ok(Some(stored.into()))
    }
}

impl From<Stored> for DemoSecrets {
    fn from(stored: Stored) -> Self {
        Self {
            telegram_bot_token: SecretString::from(stored.telegram_bot_token),
            telegram_secret_token: SecretString::from(stored.telegram_secret_token),
            slack_bot_token: SecretString::from(stored.slack_bot_token),
            slack_signing_secret: SecretString::from(stored.slack_signing_secret),
            webhook_secret: SecretString::from(stored.webhook_secret),
            gateway_key: SecretString::from(stored.gateway_key),
        }
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn secrets_are_made_once() {
        let temporary = tempfile::tempdir().unwrap();
        let data = DataDirectory::new(temporary.path().to_owned());
        assert!(data.stored_demo_secrets().unwrap().is_none());
        let made = data.demo_secrets().unwrap();
        let read = data.demo_secrets().unwrap();
        assert_eq!(made.webhook_secret.expose_secret(), read.webhook_secret.expose_secret());
        assert!(made.telegram_bot_token.expose_secret().starts_with("1:"));
    }

    #[test]
    fn a_damaged_file_is_named_and_not_repeated() {
        let temporary = tempfile::tempdir().unwrap();
        let data = DataDirectory::new(temporary.path().to_owned());
        std::fs::write(data.file("secrets.json"), r#"{"webhook_secret": planted"#).unwrap();
        let error = format!("{:#}", data.demo_secrets().unwrap_err());
        assert!(error.contains("secrets.json") && error.contains("delete") && !error.contains("planted"), "{error}");
    }
}
