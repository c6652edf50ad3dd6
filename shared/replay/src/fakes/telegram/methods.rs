//! The methods, one function each, and the list in which they are entered.

use serde_json::{Value, json};
use turnlock_domain::time::Millis;

use super::content::{self, Content};
use super::settings;
use super::{
    Context, FILE, FIRST_MESSAGE, MAX_DOWNLOAD, Outcome, Refused, Telegram, bad_request, chat, chat_of, id_text, object,
};
use crate::fakes::chats::{Chat, Message};

const METHODS: [&str; 17] = [
    "answerCallbackQuery",
    "deleteMessage",
    "deleteMessages",
    "deleteMyCommands",
    "deleteWebhook",
    "editMessageReplyMarkup",
    "editMessageText",
    "getChat",
    "getFile",
    "getMe",
    "getMyCommands",
    "getWebhookInfo",
    "sendChatAction",
    "sendMessage",
    "setMessageReaction",
    "setMyCommands",
    "setWebhook",
];

/// What `sendChatAction` may say.
const ACTIONS: [&str; 11] = [
    "typing",
    "upload_photo",
    "record_video",
    "upload_video",
    "record_voice",
    "upload_voice",
    "upload_document",
    "choose_sticker",
    "find_location",
    "record_video_note",
    "upload_video_note",
];

const NOT_MODIFIED: &str = "message is not modified: specified new message content and reply markup are exactly the \
                            same as a current content and reply markup of the message";

/// The method's own spelling: Telegram does not look at the case.
pub(super) fn canonical(method: &str) -> String {
    let known = METHODS.iter().chain([&FILE]).find(|known| known.eq_ignore_ascii_case(method));
    known.map_or_else(|| method.to_owned(), |known| (*known).to_owned())
}

/// Carries a method out.
pub(super) fn run(telegram: &mut Telegram, method: &str, mut context: Context<'_>) -> Outcome {
    match method {
        "getMe" => Ok(me(&context)),
        "sendMessage" => send_message(&mut context),
        "editMessageText" => edit_message_text(telegram, &mut context),
        "editMessageReplyMarkup" => edit_message_reply_markup(telegram, &mut context),
        "deleteMessage" => delete_message(&mut context),
        "deleteMessages" => delete_messages(&mut context),
        "sendChatAction" => send_chat_action(&mut context),
        "answerCallbackQuery" => answer_callback_query(telegram, &context),
        "getFile" => get_file(telegram, &context),
        "getChat" => named_chat(&context).map(|chat| chat_json(&mut context, &chat)),
        "setWebhook" => settings::set_webhook(telegram, &context),
        "getWebhookInfo" => Ok(settings::webhook_info(telegram, &context)),
        "deleteWebhook" => Ok(settings::delete_webhook(telegram, &context)),
        "getMyCommands" => Ok(settings::commands(telegram, &context)),
        "setMyCommands" => settings::set_commands(telegram, &context),
        "deleteMyCommands" => Ok(settings::delete_commands(telegram, &context)),
        "setMessageReaction" => Ok(json!(true)),
        _ => Err(Refused(404, "Not Found: method not found".to_owned())),
    }
}

fn me(context: &Context<'_>) -> Value {
    let mut me = user(context);
    me["can_join_groups"] = json!(true);
    me["can_read_all_group_messages"] = json!(false);
    me["supports_inline_queries"] = json!(false);
    me["can_connect_to_business"] = json!(true);
    me["has_topics_enabled"] = json!(false);
    me
}

fn user(context: &Context<'_>) -> Value {
    let name = &context.bot.username;
    json!({ "id": context.bot.bot_id, "is_bot": true, "first_name": name, "username": name })
}

fn named_chat(context: &Context<'_>) -> Result<String, Refused> {
    let Some(chat) = chat_of(context.arguments) else { return Err(bad_request("chat_id is empty")) };
    // A name (`@channel`) cannot be looked up here; zero is nobody's number.
    if chat == "0" { Err(bad_request("chat not found")) } else { Ok(chat) }
}

fn chat_json(context: &mut Context<'_>, name: &str) -> Value {
    let kind = context.chats.open(&chat(context.account, name)).kind.clone();
    let id = name.rsplit('/').next().unwrap_or_default();
    let number = id.parse::<i64>();
    let guess = match &number {
        Ok(number) if *number > 0 => "private",
        Ok(_) => "supergroup",
        Err(_) => "channel",
    };
    json!({ "id": number.map_or_else(|_| json!(id), |id| json!(id)), "type": kind.unwrap_or_else(|| guess.to_owned()) })
}

fn send_message(context: &mut Context<'_>) -> Outcome {
    let name = named_chat(context)?;
    let content = content::read(context.arguments)?;
    let thread = thread(context, &name)?;
    let reply_to = reply_to(context, &name)?;
    let chat = context.chats.open(&chat(context.account, &name));
    let id = chat.next_number(FIRST_MESSAGE);
    let message = Message {
        id: json!(id),
        thread,
        text: content.text,
        markup: content.markup,
        buttons: content.buttons,
        edits: 0,
        reply_to: reply_to.map(|id| json!(id)),
        deleted: false,
        content: content.compared,
    };
    chat.push(message.clone());
    Ok(message_json(context, &name, &message))
}

/// The topic of a message. A chat of which we heard has the topics that we heard of; the General topic is the chat
/// itself and is never named.
fn thread(context: &mut Context<'_>, name: &str) -> Result<Option<String>, Refused> {
    let Some(thread) = id_text(&context.arguments["message_thread_id"]).filter(|thread| thread != "0") else {
        return Ok(None);
    };
    let known = context.chats.open(&chat(context.account, name));
    let is_missing = known.kind.is_some() && !known.threads.contains(&thread);
    if thread == "1" || is_missing { Err(bad_request("message thread not found")) } else { Ok(Some(thread)) }
}

/// The message that is answered; one that is gone is an error or, if the caller says so, nothing.
fn reply_to(context: &mut Context<'_>, name: &str) -> Result<Option<i64>, Refused> {
    let parameters = object(context.arguments, "reply_parameters");
    let (id, lenient) = match &parameters {
        Some(given) => (given.get("message_id"), given.get("allow_sending_without_reply")),
        None => (context.arguments.get("reply_to_message_id"), context.arguments.get("allow_sending_without_reply")),
    };
    let Some(id) = id.and_then(|id| id_text(id)?.parse::<i64>().ok()) else { return Ok(None) };
    let known = context.chats.open(&chat(context.account, name));
    if known.kind.is_none() || known.has(id) {
        return Ok(Some(id));
    }
    if lenient == Some(&json!(true)) { Ok(None) } else { Err(bad_request("message to be replied not found")) }
}

fn message_json(context: &mut Context<'_>, name: &str, message: &Message) -> Value {
    let mut json = json!({
        "message_id": message.id,
        "from": user(context),
        "chat": chat_json(context, name),
        "date": seconds(context.now),
        "text": message.text,
    });
    if let Some(connection) = context.arguments.get("business_connection_id") {
        json["business_connection_id"] = connection.clone();
    }
    if let Some(thread) = message.thread.as_ref().and_then(|thread| thread.parse::<i64>().ok()) {
        json["message_thread_id"] = json!(thread);
    }
    if let Some(id) = &message.reply_to {
        json["reply_to_message"] = json!({ "message_id": id });
    }
    for (field, value) in
        [("entities", &message.content["entities"]), ("reply_markup", &message.content["reply_markup"])]
    {
        if !value.is_null() && value != &json!([]) {
            json[field] = value.clone();
        }
    }
    if message.edits > 0 {
        json["edit_date"] = json!(seconds(context.now));
    }
    json
}

fn seconds(now: Millis) -> i64 {
    now.0.div_euclid(1000)
}

/// Changes one message of ours by `change`, unless that changes nothing. A message that was posted by way of us into a
/// chat which we do not see is known by a pressed button alone, and nothing of it is kept.
fn edit(
    telegram: &Telegram,
    context: &mut Context<'_>,
    change: impl FnOnce(&Value, &mut Message) -> Result<Value, Refused>,
) -> Outcome {
    if let Some(inline) = context.arguments["inline_message_id"].as_str() {
        let known = telegram.inline.iter().any(|(account, id)| account == context.account && id == inline);
        return if known { Ok(json!(true)) } else { Err(bad_request("MESSAGE_ID_INVALID")) };
    }
    let name = named_chat(context)?;
    let arguments = context.arguments;
    let chat = context.chats.open(&chat(context.account, &name));
    let id = message_id(arguments)?;
    let theirs = chat.sees(id);
    let message = match chat.find(&json!(id)) {
        Some(message) if !message.deleted => message,
        None if theirs => return Err(bad_request("message can't be edited")),
        Some(_) | None => return Err(bad_request("message to edit not found")),
    };
    let compared = change(arguments, message)?;
    if compared == message.content {
        return Err(bad_request(NOT_MODIFIED));
    }
    message.content = compared;
    message.edits += 1;
    let message = message.clone();
    Ok(message_json(context, &name, &message))
}

fn message_id(arguments: &Value) -> Result<i64, Refused> {
    let id = id_text(&arguments["message_id"]).and_then(|id| id.parse().ok());
    id.filter(|id| *id != 0).ok_or_else(|| bad_request("message identifier is not specified"))
}

fn edit_message_text(telegram: &Telegram, context: &mut Context<'_>) -> Outcome {
    let Content { text, markup, buttons, compared } = content::read(context.arguments)?;
    edit(telegram, context, move |_, message| {
        if compared != message.content {
            (message.text, message.markup, message.buttons) = (text, markup, buttons);
        }
        Ok(compared)
    })
}

fn edit_message_reply_markup(telegram: &Telegram, context: &mut Context<'_>) -> Outcome {
    edit(telegram, context, |arguments, message| {
        let keyboard = object(arguments, "reply_markup").map_or(Value::Null, |it| Value::Object(it.into_owned()));
        message.buttons = content::buttons(&keyboard)?;
        let mut compared = message.content.clone();
        compared["reply_markup"] = keyboard;
        Ok(compared)
    })
}

fn delete_message(context: &mut Context<'_>) -> Outcome {
    let name = named_chat(context)?;
    let id = message_id(context.arguments)?;
    let chat = context.chats.open(&chat(context.account, &name));
    if delete(chat, id) { Ok(json!(true)) } else { Err(bad_request("message to delete not found")) }
}

/// What is not there any more is skipped.
fn delete_messages(context: &mut Context<'_>) -> Outcome {
    let name = named_chat(context)?;
    let chat = context.chats.open(&chat(context.account, &name));
    for id in context.arguments["message_ids"].as_array().into_iter().flatten().filter_map(Value::as_i64) {
        delete(chat, id);
    }
    Ok(json!(true))
}

fn delete(chat: &mut Chat, id: i64) -> bool {
    let theirs = chat.sees(id);
    match chat.find(&json!(id)) {
        Some(message) if !message.deleted => {
            message.deleted = true;
            true
        }
        Some(_) => false,
        None => theirs,
    }
}

fn send_chat_action(context: &mut Context<'_>) -> Outcome {
    let name = named_chat(context)?;
    let thread = thread(context, &name)?;
    let action = context.arguments["action"].as_str().unwrap_or_default();
    if !ACTIONS.contains(&action) {
        return Err(bad_request("wrong parameter action in request"));
    }
    context.chats.open(&chat(context.account, &name)).act(thread, action.to_owned());
    Ok(json!(true))
}

fn answer_callback_query(telegram: &mut Telegram, context: &Context<'_>) -> Outcome {
    if context.arguments["text"].as_str().is_some_and(|text| text.chars().count() > 200) {
        return Err(bad_request("MESSAGE_TOO_LONG"));
    }
    let id = context.arguments["callback_query_id"].as_str().unwrap_or_default();
    let waiting = telegram.queries.iter().position(|(account, query)| account == context.account && query == id);
    match waiting.and_then(|at| telegram.queries.remove(at)) {
        Some(_) => Ok(json!(true)),
        None => Err(bad_request("query is too old and response timeout expired or query ID is invalid")),
    }
}

fn get_file(telegram: &Telegram, context: &Context<'_>) -> Outcome {
    let file = context.arguments["file_id"].as_str().unwrap_or_default();
    match telegram.files.get(file) {
        None => Err(bad_request("wrong file_id or the file is temporarily unavailable")),
        Some(bytes) if bytes.len() > MAX_DOWNLOAD => Err(bad_request("file is too big")),
        Some(bytes) => Ok(json!({
            "file_id": file,
            "file_unique_id": format!("u{file}"),
            "file_size": bytes.len(),
            "file_path": format!("files/file_{file}"),
        })),
    }
}
