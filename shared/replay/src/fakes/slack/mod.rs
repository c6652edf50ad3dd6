//! A Slack in memory: the Web API methods that a chat agent calls, with Slack's limits and error names
//! (docs.slack.dev/reference/methods). A failure is HTTP 200 with `ok: false`, as there.
//!
//! Every channel exists and takes us; a direct message to a user opens one. Not here: streams, uploads, views; a method
//! outside the list is `unknown_method`.

mod blocks;
mod content;
mod methods;
mod text;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use turnlock_channels::http::PlatformRequest;
use turnlock_domain::event::Channel;
use turnlock_domain::time::Millis;

use super::answers::{Call, Reply};
use super::budgets::{A_SECOND, Budget, Limit};
use super::chats::{ChatId, Chats};

/// The method that stands for the download of a file.
const FILE: &str = "file";

/// The tiers of methods (docs.slack.dev, "Rate limits"): so many calls a minute by an app in a workspace, of each method
/// alone. Slack promises them as the least that it takes.
const TIER_3: Budget = Budget::a_minute(50);
const TIER_4: Budget = Budget::a_minute(100);

/// One of our apps, as the platform knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlackApp {
    /// The app's id.
    pub app_id: String,
    /// The workspace it belongs to.
    pub team_id: String,
    /// Its bot's user id.
    pub bot_user_id: String,
    /// Its bot's id.
    pub bot_id: String,
    /// The bot token by which it is known; none = every token is taken.
    pub token: Option<String>,
    /// The tokens of further workspaces in which it is installed: token to workspace.
    pub other_teams: BTreeMap<String, String>,
}

/// The platform's own state, beside the chats.
#[derive(Debug, Default)]
pub(super) struct Slack {
    pub(super) apps: BTreeMap<String, SlackApp>,
    /// Files by their id.
    pub(super) files: BTreeMap<String, Bytes>,
    /// The last time stamp that was given out, in microseconds: each is later than the one before.
    last_stamp: i64,
}

/// A mass mention that rang, or would have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rung {
    pub(super) chat: ChatId,
    pub(super) mention: String,
}

/// The error's name.
type Outcome = Result<Value, &'static str>;

/// What a method works on.
struct Context<'a> {
    account: &'a str,
    app: &'a SlackApp,
    team: &'a str,
    arguments: &'a Value,
    chats: &'a mut Chats,
    pings: &'a mut Vec<Rung>,
    now: Millis,
}

impl Slack {
    /// What is asked of whom. The account is the token's, as on the platform; where no app has that token, the caller's.
    pub(super) fn call(&self, request: &PlatformRequest) -> Call {
        let mut arguments = super::arguments(request);
        let token = token(request, &arguments);
        let account = self.apps.iter().find(|(_, app)| app.has(&token)).map(|(account, _)| account.clone());
        let account = account.unwrap_or_else(|| request.account.clone());
        if let Some(object) = arguments.as_object_mut() {
            object.remove("token");
        }
        let path = request.url.split(['?', '#']).next().unwrap_or_default();
        let file =
            path.split('/').find_map(|part| self.file_of(part)).or_else(|| path.contains("/files-").then_some(path));
        let method = match file {
            Some(file) => {
                arguments = json!({ "file": file });
                FILE.to_owned()
            }
            None => path.rsplit('/').next().unwrap_or_default().to_owned(),
        };
        let team = self.apps.get(&account).map(|app| (app.team_id.clone(), app.team_of(&token)));
        let chat = channel(&arguments).map(|channel| match &team {
            Some((own, team)) => chat_name(own, team, &channel),
            None => channel,
        });
        Call { channel: Channel::Slack, account, method, chat, arguments }
    }

    /// The budgets that a call draws on: a channel's for posts, else the method's by its tier.
    pub(super) fn limits(&self, call: &Call, request: &PlatformRequest) -> Vec<Limit> {
        let (account, method) = (&call.account, &call.method);
        let budget = match method.as_str() {
            "chat.postMessage" => {
                let channel = call.chat.iter();
                return channel.map(|chat| Limit { name: format!("{account} {chat}"), budget: A_SECOND }).collect();
            }
            "chat.update"
            | "chat.delete"
            | "conversations.history"
            | "conversations.open"
            | "conversations.replies"
            | "agents.sessions.setStatus" => TIER_3,
            "chat.postEphemeral" | "files.info" | "users.info" => TIER_4,
            _ => return Vec::new(),
        };
        let token = token(request, &super::arguments(request));
        let team = self.apps.get(account).map(|app| app.team_of(&token)).unwrap_or_default();
        vec![Limit { name: format!("{account} {team} {method}"), budget }]
    }

    /// Carries a call out.
    pub(super) fn apply(
        &mut self,
        call: &Call,
        request: &PlatformRequest,
        chats: &mut Chats,
        pings: &mut Vec<Rung>,
        now: Millis,
    ) -> Reply {
        let token = token(request, &super::arguments(request));
        let Some(app) = self.apps.get(&call.account).cloned().filter(|app| app.takes(&token)) else {
            return reply(Err(if token.is_empty() { "not_authed" } else { "invalid_auth" }));
        };
        if call.method == FILE {
            let file = call.arguments["file"].as_str().and_then(|file| self.files.get(file));
            // Without the file, or without the scope, Slack shows its sign-in page with a 200.
            return file.map_or_else(sign_in_page, |bytes| Reply::bytes(bytes.clone()));
        }
        let team = app.team_of(&token);
        if call.method == "files.info" {
            return reply(self.file_info(&team, call, request));
        }
        let context =
            Context { account: &call.account, app: &app, team: &team, arguments: &call.arguments, chats, pings, now };
        reply(methods::run(self, &call.method, context))
    }

    /// Takes notice of an event that was sent to us: its message is there, and somebody else's.
    pub(super) fn note(&self, account: &str, envelope: &Value, chats: &mut Chats) {
        let Some(app) = self.apps.get(account) else { return };
        let team = envelope.pointer("/authorizations/0/team_id").or(envelope.get("team_id")).and_then(Value::as_str);
        let (Some(channel), Some(ts)) = (channel(&envelope["event"]), micros(&envelope["event"]["ts"])) else { return };
        let chat = chat_name(&app.team_id, team.unwrap_or(&app.team_id), &channel);
        let chat = chats.open(&ChatId { channel: Channel::Slack, account: account.to_owned(), chat });
        // Our own messages come back as events; they are here already.
        if chat.find(&envelope["event"]["ts"]).is_none() {
            chat.see(ts);
        }
    }

    /// The file that a part of an address means: `F1`, or `T0TEAM-F1`.
    fn file_of<'a>(&self, part: &'a str) -> Option<&'a str> {
        let id = part.rsplit('-').next()?;
        self.files.contains_key(id).then_some(id)
    }

    /// A file that nobody put here has an address all the same: behind it is the sign-in page, as for an app without the
    /// scope.
    fn file_info(&self, team: &str, call: &Call, request: &PlatformRequest) -> Outcome {
        let id = call.arguments["file"].as_str().filter(|id| !id.is_empty()).ok_or("file_not_found")?;
        // Where it is asked, it lies; a server is asked by its path, and knows its name from the header.
        let base = request.url.split("/files.info").next().unwrap_or_default();
        let host = request.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
        let origin = host.filter(|_| base.starts_with('/')).map(|host| format!("http://{host}")).unwrap_or_default();
        let mut file = json!({ "id": id, "url_private": format!("{origin}{base}/files-pri/{team}-{id}/{id}") });
        if let Some(bytes) = self.files.get(id) {
            file["size"] = json!(bytes.len());
        }
        Ok(json!({ "file": file }))
    }

    /// A time stamp that no message has had: the present in microseconds, or the next one.
    fn stamp(&mut self, now: Millis) -> String {
        self.last_stamp = (now.0 * 1_000).max(self.last_stamp + 1);
        format!("{}.{:06}", self.last_stamp.div_euclid(1_000_000), self.last_stamp.rem_euclid(1_000_000))
    }
}

impl SlackApp {
    fn has(&self, token: &str) -> bool {
        self.token.as_deref() == Some(token) || self.other_teams.contains_key(token)
    }

    fn takes(&self, token: &str) -> bool {
        self.token.is_none() || self.has(token)
    }

    fn team_of(&self, token: &str) -> String {
        self.other_teams.get(token).unwrap_or(&self.team_id).clone()
    }
}

impl Context<'_> {
    fn chat(&self, channel: &str) -> ChatId {
        let chat = chat_name(&self.app.team_id, self.team, channel);
        ChatId { channel: Channel::Slack, account: self.account.to_owned(), chat }
    }
}

/// A channel's name in the output: with its workspace where that is not the app's own.
fn chat_name(own_team: &str, team: &str, channel: &str) -> String {
    if own_team == team { channel.to_owned() } else { format!("{team}/{channel}") }
}

/// The channel that a call names. A user is the direct messages with them.
fn channel(arguments: &Value) -> Option<String> {
    let named = arguments["channel"].as_str().or(arguments["channel_id"].as_str())?;
    match named.as_bytes().first()? {
        b'C' | b'D' | b'G' => Some(named.to_owned()),
        b'U' | b'W' => Some(format!("D{}", &named[1..])),
        _ => None,
    }
}

/// A time stamp as a number: what a chat remembers of other people's messages.
fn micros(ts: &Value) -> Option<i64> {
    let (seconds, rest) = ts.as_str()?.split_once('.').filter(|(_, rest)| rest.len() == 6)?;
    seconds.parse::<i64>().ok()?.checked_mul(1_000_000)?.checked_add(rest.parse().ok()?)
}

fn token(request: &PlatformRequest, arguments: &Value) -> String {
    let header = request.headers.get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = header.and_then(|value| value.strip_prefix("Bearer "));
    bearer.or(arguments["token"].as_str()).unwrap_or_default().trim().to_owned()
}

fn reply(outcome: Outcome) -> Reply {
    match outcome {
        Ok(Value::Object(result)) => {
            let body: Map<String, Value> = [("ok".to_owned(), json!(true))].into_iter().chain(result).collect();
            Reply::json(200, &Value::Object(body), true)
        }
        Ok(_) => Reply::json(200, &json!({ "ok": true }), true),
        Err(error) => Reply::json(200, &json!({ "ok": false, "error": error }), false),
    }
}

fn sign_in_page() -> Reply {
    let headers = [("content-type".to_owned(), "text/html; charset=utf-8".to_owned())].into();
    let body = Bytes::from_static(b"<!DOCTYPE html><html><title>Sign in | Slack</title></html>");
    Reply { status: 200, headers, body, applied: false }
}

#[cfg(test)]
mod tests;
