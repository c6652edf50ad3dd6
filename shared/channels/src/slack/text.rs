//! Slack's text to what a reader sees (docs.slack.dev, "Formatting message text", "Retrieving messages"): only `&`, `<`
//! and `>` are escaped, and what stands between `<` and `>` is a mention, a channel, a broadcast or a link.

/// A message's text as a person reads it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Readable {
    /// The text, without our own mention.
    pub(super) text: String,
    /// Whether it mentioned us.
    pub(super) mentions_us: bool,
}

/// Reads `raw`; `bot_user` is our own user id.
pub(super) fn readable(raw: &str, bot_user: &str) -> Readable {
    let mut text = String::with_capacity(raw.len());
    let mut mentions_us = false;
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(&unescape(before));
        let Some((token, tail)) = after.split_once('>') else {
            // Slack escapes every other `<`: this one is not from Slack, and stays.
            text.push('<');
            rest = after;
            break;
        };
        rest = tail;
        if is_mention_of(token, bot_user) {
            mentions_us = true;
            if text.is_empty() || text.ends_with(char::is_whitespace) {
                rest = rest.trim_start_matches(' ');
            }
        } else {
            text.push_str(&token_text(token));
        }
    }
    text.push_str(&unescape(rest));
    Readable { text: text.trim().to_owned(), mentions_us }
}

fn is_mention_of(token: &str, bot_user: &str) -> bool {
    let user = token.strip_prefix('@').map(|user| user.split('|').next().unwrap_or_default());
    !bot_user.is_empty() && user == Some(bot_user)
}

fn token_text(token: &str) -> String {
    let (target, label) = match token.split_once('|') {
        Some((target, label)) => (target, Some(unescape(label)).filter(|label| !label.is_empty())),
        None => (token, None),
    };
    if let Some(user) = target.strip_prefix('@') {
        format!("@{}", label.as_deref().unwrap_or(user).trim_start_matches('@'))
    } else if let Some(channel) = target.strip_prefix('#') {
        format!("#{}", label.as_deref().unwrap_or(channel).trim_start_matches('#'))
    } else if let Some(special) = target.strip_prefix('!') {
        label.unwrap_or_else(|| format!("@{}", special.trim_start_matches("subteam^")))
    } else {
        link(&unescape(target), label)
    }
}

/// A link as its label and, where that does not say it already, its address.
fn link(target: &str, label: Option<String>) -> String {
    let bare = ["mailto:", "tel:"].iter().find_map(|scheme| target.strip_prefix(scheme)).unwrap_or(target);
    match label {
        None => bare.to_owned(),
        Some(label) if bare == label || bare.split_once("://").is_some_and(|(_, address)| address == label) => label,
        Some(label) => format!("{label} ({bare})"),
    }
}

/// `&amp;` last: an escaped `&lt;` that a person wrote stays what they wrote.
fn unescape(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_become_what_a_reader_sees() {
        let table = [
            ("plain", "plain"),
            ("a &lt;b&gt; &amp;&amp; c &amp;lt;", "a <b> && c &lt;"),
            ("hi <@U1> and <@U2|ann>", "hi @U1 and @ann"),
            ("see <#C1|general> and <#C2>", "see #general and #C2"),
            ("<!here> <!channel|@channel> <!subteam^S1|@ops> <!subteam^S2>", "@here @channel @ops @S2"),
            ("<!date^1392734382^{date_short}|18 Feb>", "18 Feb"),
            ("<https://a.example/x?a=1&amp;b=2>", "https://a.example/x?a=1&b=2"),
            ("<https://a.example|the page>", "the page (https://a.example)"),
            ("<http://a.example|a.example>", "a.example"),
            ("<mailto:ann@a.example|ann@a.example>", "ann@a.example"),
            ("&lt;@U0BOT&gt; literally", "<@U0BOT> literally"),
            ("a < b", "a < b"),
            ("", ""),
        ];
        for (raw, wanted) in table {
            assert_eq!(readable(raw, "U0BOT"), Readable { text: wanted.to_owned(), mentions_us: false }, "{raw}");
        }
    }

    #[test]
    fn our_own_mention_is_taken_out() {
        for (raw, wanted) in [
            ("<@U0BOT> hello", "hello"),
            ("hey <@U0BOT|echo> can you", "hey can you"),
            ("hey, <@U0BOT>!", "hey, !"),
            ("<@U0BOT>", ""),
        ] {
            assert_eq!(readable(raw, "U0BOT"), Readable { text: wanted.to_owned(), mentions_us: true }, "{raw}");
        }
        assert!(!readable("<@>", "").mentions_us);
    }
}
