//! A Slack in memory: the Web API methods that a chat agent calls, with Slack's limits and error names
//! (docs.slack.dev/reference/methods). A failure is HTTP 200 with `ok: false`, as there.
//!
//! Every channel exists and takes us; a direct message to a user opens one. Not here: streams, files, views, the rate
//! limits (a script says 429); a method outside the list is `unknown_method`.

mod blocks;
mod content;
mod text;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use turnlock_channels::http::PlatformRequest;
use turnlock_domain::event::Channel;
use turnlock_domain::time::Millis;

use self::content::Content;
use super::answers::{Call, Reply};
use super::chats::{ChatId, Chats, Message};

/// The method that stands for the download of a file.
const FILE: &str = "file";

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
        let file = path
            .split('/')
            .find(|part| self.files.contains_key(*part))
            .or_else(|| path.contains("/files-").then_some(path));
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
        let context =
            Context { account: &call.account, app: &app, team: &team, arguments: &call.arguments, chats, pings, now };
        reply(self.run(&call.method, context))
    }

    fn run(&mut self, method: &str, mut context: Context<'_>) -> Outcome {
        match method {
            "api.test" => Ok(json!({})),
            "auth.test" => Ok(auth_test(&context)),
            "chat.postMessage" => self.post_message(&mut context),
            "chat.update" => update(&mut context),
            "chat.delete" => delete(&mut context),
            "conversations.history" => history(&mut context, None),
            "conversations.replies" => {
                let thread = context.arguments["ts"].as_str().unwrap_or_default().to_owned();
                history(&mut context, Some(thread))
            }
            "conversations.open" => open_conversation(&context),
            "users.info" => Ok(user_info(&context)),
            "assistant.threads.setStatus" | "agents.sessions.setStatus" => set_status(&mut context),
            _ => Err("unknown_method"),
        }
    }

    fn post_message(&mut self, context: &mut Context<'_>) -> Outcome {
        let channel = channel(context.arguments).ok_or("channel_not_found")?;
        let content = Content::read(context.arguments)?;
        let thread = thread(context.arguments)?;
        let ts = self.stamp(context.now);
        let chat = context.chat(&channel);
        let rung = content.visible.pings.iter().map(|mention| Rung { chat: chat.clone(), mention: mention.clone() });
        context.pings.extend(rung);
        let compared = content.compared(context.arguments);
        context.chats.open(&chat).push(Message {
            id: json!(ts),
            reply_to: None,
            thread: thread.clone(),
            text: content.visible.text,
            markup: content.markup,
            buttons: content.buttons,
            edits: 0,
            deleted: false,
            content: compared.clone(),
        });
        let message = message_json(context, &ts, thread.as_deref(), &compared);
        Ok(json!({ "channel": channel, "ts": ts, "message": message }))
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

fn thread(arguments: &Value) -> Result<Option<String>, &'static str> {
    match arguments["thread_ts"].as_str().filter(|ts| !ts.is_empty()) {
        None => Ok(None),
        Some(ts) if ts.split_once('.').is_some_and(|(seconds, rest)| is_number(seconds) && is_number(rest)) => {
            Ok(Some(ts.to_owned()))
        }
        Some(_) => Err("invalid_thread_ts"),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn token(request: &PlatformRequest, arguments: &Value) -> String {
    let header = request.headers.get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = header.and_then(|value| value.strip_prefix("Bearer "));
    bearer.or(arguments["token"].as_str()).unwrap_or_default().trim().to_owned()
}

fn message_json(context: &Context<'_>, ts: &str, thread: Option<&str>, content: &Value) -> Value {
    let mut message = json!({
        "type": "message",
        "user": context.app.bot_user_id,
        "bot_id": context.app.bot_id,
        "app_id": context.app.app_id,
        "team": context.team,
        "text": content["text"],
        "ts": ts,
    });
    if let Some(thread) = thread {
        message["thread_ts"] = json!(thread);
    }
    for field in ["blocks", "metadata"] {
        if !content[field].is_null() {
            message[field] = content[field].clone();
        }
    }
    message
}

fn auth_test(context: &Context<'_>) -> Value {
    json!({
        "url": format!("https://{}.slack.example/", context.team.to_lowercase()),
        "team": context.team,
        "user": context.account,
        "team_id": context.team,
        "user_id": context.app.bot_user_id,
        "bot_id": context.app.bot_id,
        "is_enterprise_install": false,
    })
}

/// The message that `ts` names, if it is there and ours.
fn ours<'a>(context: &'a mut Context<'_>, channel: &str) -> Result<&'a mut Message, &'static str> {
    let chat = context.chat(channel);
    let ts = &context.arguments["ts"];
    context.chats.open(&chat).find(ts).filter(|message| !message.deleted).ok_or("message_not_found")
}

fn update(context: &mut Context<'_>) -> Outcome {
    let channel = channel(context.arguments).ok_or("channel_not_found")?;
    let content = Content::read(context.arguments)?;
    let mut compared = content.compared(context.arguments);
    let message = ours(context, &channel)?;
    if compared["metadata"].is_null() {
        // Left out, the old ones stay.
        compared["metadata"] = message.content["metadata"].clone();
    }
    if message.content != compared {
        message.edits += 1;
    }
    (message.text, message.markup, message.buttons) = (content.visible.text, content.markup, content.buttons);
    message.content = compared;
    let text = message.content["text"].clone();
    Ok(json!({ "channel": channel, "ts": context.arguments["ts"], "text": text }))
}

fn delete(context: &mut Context<'_>) -> Outcome {
    let channel = channel(context.arguments).ok_or("channel_not_found")?;
    ours(context, &channel)?.deleted = true;
    Ok(json!({ "channel": channel, "ts": context.arguments["ts"] }))
}

/// Our messages of a channel, newest first, or of a thread, oldest first.
fn history(context: &mut Context<'_>, thread: Option<String>) -> Outcome {
    let channel = channel(context.arguments).ok_or("channel_not_found")?;
    let chat = context.chat(&channel);
    let with_metadata = context.arguments["include_all_metadata"] == true;
    let known = context.chats.get(&chat);
    let messages = known.into_iter().flat_map(super::chats::Chat::messages).filter(|message| !message.deleted);
    let in_place = messages.filter(|message| match &thread {
        Some(thread) => message.thread.as_ref() == Some(thread) || message.id == json!(thread),
        None => message.thread.is_none(),
    });
    let mut list: Vec<Value> = in_place
        .map(|message| {
            let mut json = message_json(
                context,
                message.id.as_str().unwrap_or_default(),
                message.thread.as_deref(),
                &message.content,
            );
            if let Some(object) = json.as_object_mut().filter(|_| !with_metadata) {
                object.remove("metadata");
            }
            json
        })
        .collect();
    if thread.is_none() {
        list.reverse();
    }
    Ok(json!({ "messages": list, "has_more": false }))
}

fn open_conversation(context: &Context<'_>) -> Outcome {
    let users = context.arguments["users"].as_str().or(context.arguments["channel"].as_str()).unwrap_or_default();
    let id = channel(&json!({ "channel": users })).ok_or("users_list_not_supplied")?;
    Ok(json!({ "channel": { "id": id } }))
}

fn user_info(context: &Context<'_>) -> Value {
    let user = context.arguments["user"].as_str().unwrap_or_default();
    let team = context.team;
    json!({ "user": { "id": user, "team_id": team, "name": user.to_lowercase(), "real_name": user, "is_bot": false } })
}

fn set_status(context: &mut Context<'_>) -> Outcome {
    let channel = channel(context.arguments).ok_or("channel_not_found")?;
    let thread = thread(context.arguments)?;
    let status = context.arguments["status"].as_str().unwrap_or_default().to_owned();
    let chat = context.chat(&channel);
    context.chats.open(&chat).act(thread, status);
    Ok(json!({}))
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
