"""aiogram as the other side of the Bot API.

First line: nothing is asked, updates are answered, each made from aiogram's types. Second line: calls of ours, each is
read by aiogram's model of its method; what it does not take, or does not know, is answered.
"""

import datetime
import json
import sys

from aiogram import methods, types
from pydantic import ValidationError

DATE = datetime.datetime(2026, 1, 5, 9, 0, tzinfo=datetime.timezone.utc)
ANN = types.User(id=1000001, is_bot=False, first_name="Ann", language_code="en")
BOT = types.User(id=1, is_bot=True, first_name="Echo", username="echo_bot")
PRIVATE = types.Chat(id=1000001, type="private", first_name="Ann")
GROUP = types.Chat(id=-1001, type="supergroup", title="Friends", is_forum=True)
CHANNEL = types.Chat(id=-1002, type="channel", title="News")


def message(number, chat=PRIVATE, **fields):
    fields.setdefault("from_user", ANN)
    return types.Message(message_id=number, date=DATE, chat=chat, **fields)


def mention(text):
    name = "@echo_bot"
    offset = len(text[: text.index(name)].encode("utf-16-le")) // 2
    return {"text": text, "entities": [types.MessageEntity(type="mention", offset=offset, length=len(name))]}


def member(status):
    if status == "kicked":
        return types.ChatMemberBanned(user=BOT, until_date=datetime.datetime.fromtimestamp(0, datetime.timezone.utc))
    return types.ChatMemberMember(user=BOT)


def updates():
    photo = [types.PhotoSize(file_id="P1", file_unique_id="u1", width=90, height=90, file_size=1200)]
    document = types.Document(file_id="D1", file_unique_id="u2", file_name="a.txt", mime_type="text/plain", file_size=3)
    voice = types.Voice(file_id="V1", file_unique_id="u3", duration=3, mime_type="audio/ogg")
    sticker = types.Sticker(
        file_id="S1", file_unique_id="u4", type="regular", width=1, height=1, is_animated=False, is_video=False, emoji="👍"
    )
    location = types.Location(latitude=52.5, longitude=13.4)
    contact = types.Contact(phone_number="+491", first_name="Bo")
    origin = types.MessageOriginUser(date=DATE, sender_user=ANN)
    ours = message(50, from_user=BOT, text="Hello")
    tap = {"id": "q1", "from_user": ANN, "chat_instance": "c", "data": "ap:1:ok"}
    changed = {"chat": PRIVATE, "from_user": ANN, "date": DATE}
    return {
        "text": {"message": message(11, text="hi 👋")},
        "photo": {"message": message(12, photo=photo, caption="what is this?")},
        "document": {"message": message(13, document=document)},
        "voice": {"message": message(14, voice=voice)},
        "sticker": {"message": message(15, sticker=sticker)},
        "location": {"message": message(16, location=location)},
        "contact": {"message": message(17, contact=contact)},
        "forward": {"message": message(18, text="passed on", forward_origin=origin)},
        "reply": {"message": message(19, text="why?", reply_to_message=ours)},
        "command": {"message": message(20, text="/status", entities=[types.MessageEntity(type="bot_command", offset=0, length=7)])},
        "mention": {
            "message": message(21, GROUP, message_thread_id=5, is_topic_message=True, **mention("👋👋 @echo_bot hello"))
        },
        "chatter": {"message": message(22, GROUP, text="lunch?")},
        "channel": {"channel_post": message(23, CHANNEL, from_user=None, sender_chat=CHANNEL, **mention("@echo_bot news?"))},
        "business": {"business_message": message(24, business_connection_id="bc1", text="are you open?")},
        "edited": {"edited_message": message(11, text="hi there", edit_date=1767603601)},
        "button": {"callback_query": types.CallbackQuery(message=ours, **tap)},
        "inline": {"callback_query": types.CallbackQuery(**{**tap, "id": "q2"}, inline_message_id="in1")},
        "blocked": {
            "my_chat_member": types.ChatMemberUpdated(
                old_chat_member=member("member"), new_chat_member=member("kicked"), **changed
            )
        },
    }


def dump(number, fields):
    update = types.Update(update_id=number, **fields)
    return update.model_dump(mode="json", by_alias=True, exclude_none=True)


def unix(value):
    """The Bot API's dates are seconds; aiogram dumps its own as text."""
    if isinstance(value, dict):
        return {key: date(inner) if key.endswith("date") else unix(inner) for key, inner in value.items()}
    return [unix(inner) for inner in value] if isinstance(value, list) else value


def date(value):
    if not isinstance(value, str):
        return value
    return int(datetime.datetime.fromisoformat(value).timestamp())


def refused(call):
    """Why aiogram does not take a call; none = it does."""
    name = call["method"][0].upper() + call["method"][1:]
    model = getattr(methods, name, None)
    if model is None:
        return "unknown method"
    unknown = [field for field in call["arguments"] if field not in model.model_fields]
    if unknown:
        return f"unknown arguments {unknown}"
    try:
        model.model_validate(call["arguments"])
    except ValidationError as error:
        return str(error)
    return None


def answer(line):
    print(json.dumps(line), flush=True)


def main():
    json.loads(sys.stdin.readline())
    answer({name: unix(dump(100 + at, fields)) for at, (name, fields) in enumerate(updates().items())})
    calls = json.loads(sys.stdin.readline())
    problems = [{"call": call, "problem": refused(call)} for call in calls]
    answer({"checked": len(problems), "refused": [problem for problem in problems if problem["problem"]]})


main()
