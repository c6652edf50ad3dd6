//! The manifest that makes an app out of nothing (docs.slack.dev, "App manifest reference", version 2): what it is
//! called, what it may do, where its events go.
//!
//! Events and scopes stand here once, by what the code hears and calls: [`EVENTS`] and [`CALLS`].

use http::uri::Uri;
use serde_json::{Value, json};

use crate::Groups;

/// An event that is asked for, the scope that it needs, and where what it tells is said. A thread that the app opened goes
/// on without a mention, so an app that answers mentions hears all messages of its channels.
const EVENTS: [(&str, Option<&str>, Place); 7] = [
    ("message.im", Some("im:history"), Place::Anywhere),
    ("app_mention", Some("app_mentions:read"), Place::Channel),
    ("message.channels", Some("channels:history"), Place::Channel),
    ("message.groups", Some("groups:history"), Place::Channel),
    ("message.mpim", Some("mpim:history"), Place::Channel),
    ("app_uninstalled", None, Place::Anywhere),
    ("tokens_revoked", None, Place::Anywhere),
];

/// Whether an app needs an event that answers nobody in channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Anywhere,
    Channel,
}

/// The scopes of what is called: posts and their edits, also where the slash command is typed in a public channel that the
/// app was not invited to; files that people send; the slash command.
const CALLS: [&str; 4] = ["chat:write", "chat:write.public", "files:read", "commands"];

/// An app to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// What it is called, by people too.
    pub name: String,
    /// What it is, in a sentence.
    pub description: String,
    /// What can be said behind its slash command, which is its name.
    pub hint: String,
    /// Where all requests go.
    pub url: Uri,
    /// Which messages of channels it hears.
    pub groups: Groups,
}

/// What Slack would not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// Slack calls HTTPS addresses alone.
    #[error("Slack sends events to an https address alone")]
    NotHttps,
    /// A text is empty or too long.
    #[error("{field} must have 1 to {most} characters, not {is}")]
    Length {
        /// The manifest's field.
        field: &'static str,
        /// The most that Slack takes.
        most: usize,
        /// What it has.
        is: usize,
    },
}

impl Manifest {
    /// The slash command: the app's name as Slack takes one, since `/status` and `/help` are Slack's own and every app
    /// has a `/stop`.
    #[must_use]
    pub fn command(&self) -> String {
        let letters = self.name.chars().filter_map(|c| match c {
            'a'..='z' | '0'..='9' | '-' | '_' => Some(c),
            'A'..='Z' => Some(c.to_ascii_lowercase()),
            c if c.is_whitespace() => Some('-'),
            _ => None,
        });
        let name: String = letters.collect::<String>().trim_matches(['-', '_']).chars().take(31).collect();
        format!("/{}", if name.is_empty() { "agent" } else { &name })
    }

    /// The manifest.
    ///
    /// # Errors
    /// [`ManifestError`].
    pub fn json(&self) -> Result<Value, ManifestError> {
        if self.url.scheme_str() != Some("https") {
            return Err(ManifestError::NotHttps);
        }
        within("the name", &self.name, 35)?;
        within("the description", &self.description, 140)?;
        within("the slash command's hint", &self.hint, 1_000)?;
        let url = self.url.to_string();
        let hears_channels = self.groups != Groups::Never;
        let needed = EVENTS.into_iter().filter(|(_, _, place)| hears_channels || *place == Place::Anywhere);
        let (events, reading): (Vec<&str>, Vec<Option<&str>>) = needed.map(|(event, scope, _)| (event, scope)).unzip();
        let scopes: Vec<&str> = CALLS.into_iter().chain(reading.into_iter().flatten()).collect();
        Ok(json!({
            "_metadata": { "major_version": 2, "minor_version": 1 },
            "display_information": { "name": self.name, "description": self.description },
            "features": {
                "app_home": {
                    "home_tab_enabled": false,
                    "messages_tab_enabled": true,
                    "messages_tab_read_only_enabled": false,
                },
                "bot_user": { "display_name": self.name, "always_online": true },
                "slash_commands": [{
                    "command": self.command(),
                    "url": url,
                    "description": self.description,
                    "usage_hint": self.hint,
                    "should_escape": true,
                }],
            },
            "oauth_config": { "scopes": { "bot": scopes } },
            "settings": {
                "event_subscriptions": { "request_url": url, "bot_events": events },
                "interactivity": { "is_enabled": true, "request_url": url },
                "org_deploy_enabled": false,
                "socket_mode_enabled": false,
                "token_rotation_enabled": false,
            },
        }))
    }
}

fn within(field: &'static str, text: &str, most: usize) -> Result<(), ManifestError> {
    let is = text.chars().count();
    if (1..=most).contains(&is) { Ok(()) } else { Err(ManifestError::Length { field, most, is }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(groups: Groups) -> Manifest {
        Manifest {
            name: "Echo".into(),
            description: "An assistant.".into(),
            hint: "[stop | new]".into(),
            url: Uri::from_static("https://bot.example.org/slack/main"),
            groups,
        }
    }

    #[test]
    fn the_manifest_is_what_slack_reads() {
        let url = "https://bot.example.org/slack/main";
        let events = [
            "message.im",
            "app_mention",
            "message.channels",
            "message.groups",
            "message.mpim",
            "app_uninstalled",
            "tokens_revoked",
        ];
        let scopes = [
            "chat:write",
            "chat:write.public",
            "files:read",
            "commands",
            "im:history",
            "app_mentions:read",
            "channels:history",
            "groups:history",
            "mpim:history",
        ];
        let expected = json!({
            "_metadata": { "major_version": 2, "minor_version": 1 },
            "display_information": { "name": "Echo", "description": "An assistant." },
            "features": {
                "app_home": {
                    "home_tab_enabled": false, "messages_tab_enabled": true, "messages_tab_read_only_enabled": false,
                },
                "bot_user": { "display_name": "Echo", "always_online": true },
                "slash_commands": [{
                    "command": "/echo", "url": url, "description": "An assistant.", "usage_hint": "[stop | new]",
                    "should_escape": true,
                }],
            },
            "oauth_config": { "scopes": { "bot": scopes } },
            "settings": {
                "event_subscriptions": { "request_url": url, "bot_events": events },
                "interactivity": { "is_enabled": true, "request_url": url },
                "org_deploy_enabled": false,
                "socket_mode_enabled": false,
                "token_rotation_enabled": false,
            },
        });
        assert_eq!(manifest(Groups::Mention).json().unwrap(), expected);
    }

    #[test]
    fn an_app_hears_no_more_than_it_answers() {
        let events = |groups| manifest(groups).json().unwrap()["settings"]["event_subscriptions"]["bot_events"].clone();
        assert_eq!(events(Groups::Never), json!(["message.im", "app_uninstalled", "tokens_revoked"]));
        let all: Vec<&str> = EVENTS.iter().map(|(event, _, _)| *event).collect();
        assert_eq!(events(Groups::Always), json!(all));
    }

    /// What is asked for is known: none of it ends as an unknown event.
    #[test]
    fn every_event_is_heard() {
        let app = super::super::App {
            account: "main".into(),
            app_id: "A0APP".into(),
            team_id: "T0TEAM".into(),
            bot_user_id: "U0BOT".into(),
            bot_id: "B0BOT".into(),
            allowed_bots: Vec::new(),
            groups: Groups::Always,
        };
        for (event, _, _) in EVENTS {
            let kind = event.split('.').next().unwrap();
            let event = json!({ "type": kind, "channel": "C1", "user": "U1", "ts": "1760000000.000100", "text": "hi" });
            let body = json!({ "type": "event_callback", "event_id": "Ev1", "event": event }).to_string();
            let read =
                super::super::normalise(&app, &http::HeaderMap::new(), body.as_bytes(), jiff::Timestamp::UNIX_EPOCH);
            let read = format!("{:?}", read.unwrap());
            assert!(!read.contains("unknown_event"), "{kind}: {read}");
        }
    }

    #[test]
    fn slacks_limits_are_kept() {
        let with = |change: fn(&mut Manifest)| {
            let mut manifest = manifest(Groups::Mention);
            change(&mut manifest);
            manifest.json().err()
        };
        let length = |field, most, is| Some(ManifestError::Length { field, most, is });
        assert_eq!(with(|it| it.name = "é".repeat(35)), None);
        assert_eq!(with(|it| it.name = "é".repeat(36)), length("the name", 35, 36));
        assert_eq!(with(|it| it.name = String::new()), length("the name", 35, 0));
        assert_eq!(with(|it| it.description = "d".repeat(141)), length("the description", 140, 141));
        assert_eq!(with(|it| it.url = Uri::from_static("http://b.example/")), Some(ManifestError::NotHttps));
    }

    #[test]
    fn the_slash_command_is_the_name() {
        let command = |name: &str| Manifest { name: name.into(), ..manifest(Groups::Mention) }.command();
        assert_eq!(command("Echo"), "/echo");
        assert_eq!(command("My Über Bot!"), "/my-ber-bot");
        assert_eq!(command("助手"), "/agent");
        assert_eq!(command(&"x".repeat(35)).len(), 32);
    }
}
