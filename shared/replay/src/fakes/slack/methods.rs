//! The methods, one function each, and the list in which they are entered.

use serde_json::{Value, json};

use super::content::{self, Content};
use super::{Context, Outcome, Rung, Slack, channel, micros};
use crate::fakes::chats::{Chat, Message};

/// What marks the content of a message that one person alone sees, and whose it is.
const EPHEMERAL: &str = "ephemeral";

/// Carries a method out.
pub(super) fn run(slack: &mut Slack, method: &str, mut context: Context<'_>) -> Outcome {
    match method {
        "api.test" => Ok(json!({})),
        "auth.test" => Ok(auth_test(&context)),
        "chat.postMessage" => post_message(slack, &mut context),
        "chat.update" => update(&mut context),
        "chat.delete" => delete(&mut context),
        "chat.postEphemeral" => post_ephemeral(slack, &mut context),
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

fn post_message(slack: &mut Slack, context: &mut Context<'_>) -> Outcome {
    let channel = channel(context.arguments).ok_or("channel_not_found")?;
    let links_names = content::links_names(context.arguments, "none");
    let content = Content::read(context.arguments, content::MAX_POST, links_names)?;
    let thread = thread(context.arguments)?;
    let ts = slack.stamp(context.now);
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

/// A message that one person alone sees. It is shown in its chat and cannot be changed.
fn post_ephemeral(slack: &mut Slack, context: &mut Context<'_>) -> Outcome {
    let channel = channel(context.arguments).ok_or("channel_not_found")?;
    let user = context.arguments["user"].as_str().filter(|user| user.starts_with(['U', 'W']));
    let user = user.ok_or("user_not_in_channel")?.to_owned();
    let links_names = content::links_names(context.arguments, "none");
    let content = Content::read(context.arguments, content::MAX_POST, links_names)?;
    let thread = thread(context.arguments)?;
    let ts = slack.stamp(context.now);
    let chat = context.chat(&channel);
    context.chats.open(&chat).push(Message {
        id: json!(ts),
        reply_to: None,
        thread,
        text: content.visible.text,
        markup: content.markup,
        buttons: content.buttons,
        edits: 0,
        deleted: false,
        content: json!({ EPHEMERAL: user }),
    });
    Ok(json!({ "message_ts": ts }))
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

/// The message that `ts` names, if it is there and ours; `foreign` = the error if it is somebody else's. What one person
/// alone saw is no message that could be changed.
fn ours<'a>(
    context: &'a mut Context<'_>,
    channel: &str,
    foreign: &'static str,
) -> Result<&'a mut Message, &'static str> {
    let chat = context.chat(channel);
    let ts = &context.arguments["ts"];
    let chat = context.chats.open(&chat);
    if micros(ts).is_some_and(|ts| chat.sees(ts)) {
        return Err(foreign);
    }
    chat.find(ts).filter(|message| !message.deleted && message.content[EPHEMERAL].is_null()).ok_or("message_not_found")
}

fn update(context: &mut Context<'_>) -> Outcome {
    let channel = channel(context.arguments).ok_or("channel_not_found")?;
    // Other than for a post, `parse` is `client` where it is left out (docs.slack.dev, `chat.update`).
    let links_names = content::links_names(context.arguments, "client");
    let mut arguments = context.arguments.clone();
    if arguments["blocks"].is_null()
        && let Ok(message) = ours(context, &channel, "cant_update_message")
    {
        // Whether an update without blocks keeps the old ones has changed over the years: the fake takes the worse for true.
        arguments["blocks"] = message.content["blocks"].clone();
    }
    let content = Content::read(&arguments, content::MAX_EDIT, links_names)?;
    let chat = context.chat(&channel);
    if links_names {
        // Whether an edit rings for the names that it links is not documented: the fake takes the worse for true.
        let rung = content.visible.pings.iter().map(|mention| Rung { chat: chat.clone(), mention: mention.clone() });
        context.pings.extend(rung);
    }
    let mut compared = content.compared(&arguments);
    let message = ours(context, &channel, "cant_update_message")?;
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
    ours(context, &channel, "cant_delete_message")?.deleted = true;
    Ok(json!({ "channel": channel, "ts": context.arguments["ts"] }))
}

/// Our messages of a channel, newest first, or of a thread, oldest first.
fn history(context: &mut Context<'_>, thread: Option<String>) -> Outcome {
    let channel = channel(context.arguments).ok_or("channel_not_found")?;
    let chat = context.chat(&channel);
    let with_metadata = context.arguments["include_all_metadata"] == true;
    let known = context.chats.get(&chat);
    let messages = known.into_iter().flat_map(Chat::messages);
    let messages = messages.filter(|message| !message.deleted && message.content[EPHEMERAL].is_null());
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
