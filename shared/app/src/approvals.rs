//! The card of a call that waits for a person, and what the card becomes when that is over.
//!
//! It shows exactly what will run: the arguments are whole, as JSON in a code block, in which no markup is read and nobody
//! is called; what cannot be seen, or would turn what stands beside it around, is written as JSON's own escape, which
//! means the same. A card and its settled form are revisions of one thing: they share a ledger, so the second replaces
//! the messages of the first, and takes its buttons away.

use serde_json::{Map, Value};
use turnlock_domain::event::{ASKED_BY, ContentBlock, InboundEvent, MessageKind, OutboundEvent, Revision, SCHEMA};
use turnlock_domain::session::SessionKey;
use turnlock_domain::text::is_invisible;
use turnlock_domain::time::Millis;
use turnlock_store::approvals::Approval;

use crate::buttons;
use crate::words::Language;

/// How many characters of an approval's id a person types: enough to tell the few that may be open apart, and no secret,
/// since who types them is checked.
const CODE: usize = 6;

/// The longest call that a person is asked about, in bytes as its card shows it: a few messages of a chat.
pub(crate) const MAX_SHOWN: usize = 12 * 1024;

/// The card that asks for `approval`, as an answer to the event whose turn waits. Made again it is the same.
#[must_use]
pub(crate) fn card(language: Language, event: &InboundEvent, approval: &Approval) -> OutboundEvent {
    let (text, suffix) = (card_text(language, approval), format!("approval.{}", approval.id));
    let card = OutboundEvent::answering(event, &suffix, MessageKind::ApprovalRequest, text);
    OutboundEvent { is_final: false, buttons: buttons::decide(language, approval.place.channel, &approval.id), ..card }
}

/// What the card that asks for `approval` says.
#[must_use]
pub(crate) fn card_text(language: Language, approval: &Approval) -> String {
    let has_buttons = !buttons::decide(language, approval.place.channel, &approval.id).is_empty();
    let how = language.how_to_decide(&code(&approval.id), &minute(approval.closes_at), has_buttons);
    text(language, approval, &how)
}

/// What replaces the card when `approval` is decided or over, as its state says.
#[must_use]
pub(crate) fn settled_card(language: Language, approval: &Approval) -> OutboundEvent {
    let card = card_id(approval);
    let said = language.settled(approval.state, approval.decided_by.as_deref());
    let place = approval.place.clone();
    // Where the card went to who asked alone, what became of it does, too.
    let user = SessionKey::from_text(&*approval.asked_by).last_part();
    let metadata = Map::from_iter([(ASKED_BY.to_owned(), Value::from(user))]);
    OutboundEvent {
        schema: SCHEMA,
        event_id: format!("{card}.settled"),
        channel: place.channel,
        account: place.account,
        chat_id: place.chat_id,
        content: vec![ContentBlock::text(text(language, approval, &said))],
        reply_to_id: None,
        thread_id: place.thread_id,
        edit_message_id: None,
        edits: Some(card),
        buttons: Vec::new(),
        is_final: false,
        message_kind: MessageKind::ApprovalRequest,
        caused_by: Some(approval.event_id.clone()),
        turn: None,
        part: 0,
        // Later than the card, whose revision is the least.
        revision: Revision { fence: 0, sequence: 1 },
        task_id: None,
        workflow_id: None,
        metadata,
        trace: None,
    }
}

/// The id of the card of `approval`.
fn card_id(approval: &Approval) -> String {
    approval.event_id.caused(&format!("approval.{}", approval.id))
}

/// What a person types to name the approval `id`.
#[must_use]
pub fn code(id: &str) -> String {
    let start = id.char_indices().rev().nth(CODE - 1).map_or(0, |(at, _)| at);
    id[start..].to_ascii_uppercase()
}

/// The card's text; `last` is what changes when it is settled.
fn text(language: Language, approval: &Approval, last: &str) -> String {
    let (shown, asked_by) = (shown(&approval.tool, &approval.input), language.asked_by(&approval.asked_by));
    format!("{}\n\n```\n{shown}\n```\n\n{asked_by}\n{last}", language.may_i())
}

/// Whether a card shows all of a call: indented and with what cannot be seen written out it is much longer than its JSON.
#[must_use]
pub(crate) fn can_show(tool: &str, input: &str) -> bool {
    input.len() <= MAX_SHOWN && shown(tool, input).len() <= MAX_SHOWN
}

/// A call as a card shows it.
fn shown(tool: &str, input: &str) -> String {
    format!("{}\n{}", visible(tool), visible(&pretty(input)))
}

/// The input with a line for each field; what is no JSON as a JSON text.
fn pretty(input: &str) -> String {
    let value = serde_json::from_str(input).unwrap_or_else(|_| Value::String(input.to_owned()));
    format!("{value:#}")
}

/// JSON in which everything can be seen. Rows of backticks, which would end a code block, are escaped too.
fn visible(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    let mut before = None;
    let mut rest = json.chars().peekable();
    while let Some(c) = rest.next() {
        let in_row = c == '`' && (before == Some('`') || rest.peek() == Some(&'`'));
        if in_row || is_invisible(c) && !matches!(c, ' ' | '\n') {
            let mut units = [0; 2];
            shown.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            shown.push(c);
        }
        before = Some(c);
    }
    shown
}

/// A time that people can read, to the minute.
fn minute(at: Millis) -> String {
    at.timestamp().strftime("%Y-%m-%d %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnlock_store::approvals::ApprovalState;

    use super::*;

    const ID: &str = "019a0b1c2d30123456789abcdef0123456789abcafe";

    fn event(channel: &str) -> InboundEvent {
        let event = json!({ "event_id": "telegram:1:9", "channel": channel, "sender_id": "1000001", "chat_id": "-100",
            "thread_id": "5", "timestamp": "2026-11-30T12:00:00Z", "metadata": { "asked_by": "U1" } });
        serde_json::from_value(event).expect("an event")
    }

    fn approval(channel: &str, input: &str) -> Approval {
        let event = event(channel);
        Approval {
            id: ID.to_owned(),
            session: event.session_key(),
            event_id: event.event_id.clone(),
            step: 1,
            call: 0,
            tool: "deploy".to_owned(),
            input: input.to_owned(),
            digest: "d".to_owned(),
            asked_by: event.person(),
            place: event.place(),
            asked_at: Millis(1_796_040_000_000),
            closes_at: Millis(1_796_043_600_000),
            state: ApprovalState::Open,
            decided_by: None,
        }
    }

    #[test]
    fn a_card_says_what_will_run_who_asked_until_when_and_how_to_answer() {
        let card = card(Language::English, &event("telegram"), &approval("telegram", r#"{"env":"prod","n":[1]}"#));
        assert_eq!(
            card.text(),
            "May I run this?\n\n```\ndeploy\n{\n  \"env\": \"prod\",\n  \"n\": [\n    1\n  ]\n}\n```\n\nAsked for by \
             `telegram:1000001`.\nPress a button, or write `/approve BCAFE` or `/deny BCAFE`, until 2026-11-30 13:00 UTC."
                .replace("BCAFE", "ABCAFE")
        );
        let buttons: Vec<_> = card.buttons.iter().map(|button| (button.label.as_str(), button.data.as_str())).collect();
        let (allow, deny) = (format!("approve:{ID}"), format!("deny:{ID}"));
        assert_eq!(buttons, [("Allow", allow.as_str()), ("Deny", deny.as_str())]);
        assert!(allow.len() <= 64, "callback data of Telegram's");
        assert_eq!((card.event_id, card.is_final, card.turn), (format!("telegram:1:9.approval.{ID}"), false, None));
        assert_eq!((card.thread_id.as_deref(), card.metadata["asked_by"].as_str()), (Some("5"), Some("U1")));
    }

    #[test]
    fn where_no_button_can_be_pressed_the_card_has_none() {
        let card = card(Language::English, &event("gateway"), &approval("gateway", "{}"));
        assert!(card.buttons.is_empty());
        assert!(card.text().contains("Please write `/approve ABCAFE` or `/deny ABCAFE`"), "{}", card.text());
    }

    #[test]
    fn a_settled_card_is_a_later_revision_of_the_card_without_buttons() {
        let open = approval("telegram", "{}");
        let card = card(Language::English, &event("telegram"), &open);
        let decided = Approval { state: ApprovalState::Denied, decided_by: Some("slack:U2".to_owned()), ..open };
        let settled = settled_card(Language::English, &decided);
        assert_eq!(settled.edits.as_deref(), Some(card.event_id.as_str()));
        assert!(settled.revision > card.revision && settled.buttons.is_empty());
        assert_eq!(settled.metadata["asked_by"], "1000001");
        assert_eq!((settled.chat(), &settled.thread_id), (card.chat(), &card.thread_id));
        let (shown, last) = settled.text().rsplit_once('\n').map(|(a, b)| (a.to_owned(), b.to_owned())).expect("lines");
        assert_eq!(last, "Denied by `slack:U2`.");
        assert!(card.text().starts_with(&shown), "what will run stays as it was");
    }

    /// What is shown is JSON that means exactly what will run.
    #[test]
    fn what_cannot_be_seen_is_written_out() {
        let input =
            json!({ "command": "ls \u{202e}gpj\u{200b}\u{e0041} `a` ```\nrm\u{a0}-rf @here <!channel> 👩‍👩‍👧 日本 شكرا" });
        let shown = visible(&pretty(&input.to_string()));
        assert_eq!(
            shown,
            "{\n  \"command\": \"ls \\u202egpj\\u200b\\udb40\\udc41 `a` \\u0060\\u0060\\u0060\\nrm\\u00a0-rf @here \
             <!channel> 👩\\u200d👩\\u200d👧 日本 شكرا\"\n}"
        );
        assert_eq!(serde_json::from_str::<Value>(&shown).expect("JSON"), input);
        assert_eq!(visible(&pretty("no json \u{7}")), "\"no json \\u0007\"");
    }

    /// What is compact as JSON may be endless when it is shown: deep lists are indented, invisible letters written out.
    #[test]
    fn what_is_too_long_as_it_is_shown_is_not_asked_for() {
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        for (input, can) in [
            (json!("x".repeat(MAX_SHOWN - 100)), true),
            (json!("x".repeat(MAX_SHOWN)), false),
            (json!("\u{200b}".repeat(MAX_SHOWN / 3 - 100)), false),
            (json!(vec![1; MAX_SHOWN / 4]), false),
            (serde_json::from_str(&deep).expect("lists"), false),
        ] {
            let input = input.to_string();
            assert_eq!(can_show("deploy", &input), can, "{} bytes", input.len());
        }
    }

    #[test]
    fn a_code_is_what_an_id_ends_in() {
        assert_eq!((code("ab"), code(ID)), ("AB".to_owned(), "ABCAFE".to_owned()));
    }
}
