//! Buttons: where there are any, what a press brings back, and what it means. The data is a reference that is looked up, never
//! an authority: whoever presses may send anything.

use serde_json::Value;
use turnlock_domain::envelope::Position;
use turnlock_domain::event::{Button, Channel};
use turnlock_store::approvals::Verdict;

use crate::words::Language;

/// What a button does, by its name before what it does it to.
const ALLOW: &str = "approve";
const DENY: &str = "deny";
const STOP: &str = "stop";

/// What a pressed button says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pressed<'a> {
    /// A verdict, and the id of the approval it is about.
    Decide(Verdict, &'a str),
    /// Stop what was sent before this place.
    Stop(Position),
}

/// What a press says, by its metadata. None for what is no button of ours. Some platforms tell the action apart from the
/// rest of the data.
pub(crate) fn pressed(tap: &Value) -> Option<Pressed<'_>> {
    let text = |name: &str| tap.get(name).and_then(Value::as_str);
    let data = text("data")?;
    let (action, named) = data.split_once(':').or_else(|| Some((text("action")?, data)))?;
    match action {
        ALLOW => Some(Pressed::Decide(Verdict::Allow, named)),
        DENY => Some(Pressed::Decide(Verdict::Deny, named)),
        STOP => Position::parse(named).map(Pressed::Stop),
        _ => None,
    }
}

/// The buttons of a card.
pub(crate) fn decide(language: Language, channel: Channel, id: &str) -> Vec<Button> {
    if !has_buttons(channel) {
        return Vec::new();
    }
    [(Verdict::Allow, ALLOW), (Verdict::Deny, DENY)]
        .map(|(verdict, action)| Button { label: language.verdict_button(verdict), data: format!("{action}:{id}") })
        .into()
}

/// The button under the reply to the event at `position` while it is written. It names the place right behind that event,
/// so that a press stops its turn and nothing that was sent later.
pub(crate) fn stop(language: Language, channel: Channel, position: &Position) -> Vec<Button> {
    let data = format!("{STOP}:{}", position.right_behind().as_str());
    if !has_buttons(channel) || data.len() > Button::MAX_DATA {
        return Vec::new();
    }
    vec![Button { label: language.stop_button(), data }]
}

/// Whether buttons can be pressed there.
fn has_buttons(channel: Channel) -> bool {
    match channel {
        Channel::Telegram | Channel::Slack => true,
        Channel::Webhook | Channel::Gateway | Channel::Cron | Channel::Cli | Channel::Unknown => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnlock_domain::time::Millis;

    use super::*;

    #[test]
    fn buttons_are_read_back_and_nothing_else_is() {
        let stop = |text| Position::parse(text).map(Pressed::Stop);
        for (tap, expected) in [
            (json!({ "data": "approve:x" }), Some(Pressed::Decide(Verdict::Allow, "x"))),
            (json!({ "data": "x", "action": "deny" }), Some(Pressed::Decide(Verdict::Deny, "x"))),
            (json!({ "data": "stop:001760000000000#1~" }), stop("001760000000000#1~")),
            (json!({ "data": "001760000000000#1~", "action": "stop" }), stop("001760000000000#1~")),
            (json!({ "data": "stop:" }), None),
            (json!({ "data": "stop:tomorrow" }), None),
            (json!({ "data": "stop", "action": "stop" }), None),
            (json!({ "data": "ap:gone:ok" }), None),
            (json!({ "data": "ap:1:always", "action": "approve" }), None),
            (json!({ "data": "x" }), None),
            (json!({}), None),
        ] {
            assert_eq!(pressed(&tap), expected, "{tap}");
        }
    }

    /// What names the longest place fits, and where a place is longer there is no button.
    #[test]
    fn a_stop_button_names_its_turn_within_what_a_press_brings_back() {
        let at = Millis(999_999_999_999_999);
        for (channel, id) in
            [(Channel::Telegram, i64::MAX.to_string()), (Channel::Slack, "1760000000000100".to_owned())]
        {
            let position = Position::new(at, &id);
            let [button] = <[Button; 1]>::try_from(stop(Language::English, channel, &position)).expect("one");
            assert!(button.label == "Stop" && button.data.len() <= 64, "{button:?}");
            assert_eq!(pressed(&json!({ "data": button.data })), Some(Pressed::Stop(position.right_behind())));
        }
        assert!(stop(Language::English, Channel::Telegram, &Position::new(at, &"x".repeat(60))).is_empty());
        for channel in [Channel::Gateway, Channel::Cli, Channel::Webhook, Channel::Cron, Channel::Unknown] {
            assert!(stop(Language::English, channel, &Position::new(at, "1")).is_empty(), "{channel:?}");
        }
    }
}
