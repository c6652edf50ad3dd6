//! Slack's `text` as a reader sees it (docs.slack.dev, "Formatting message text"): references in angle brackets are
//! resolved, the three escapes are undone. The marks of bold and code stay as they are: no rule says which of them a
//! client applies.

/// What a reader sees, and who was called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Visible {
    pub(super) text: String,
    /// The mass mentions in it: `@channel`, `@here`, `@everyone`, a user group.
    pub(super) pings: Vec<String>,
}

impl Visible {
    pub(super) fn append(&mut self, other: Self) {
        self.text.push_str(&other.text);
        self.pings.extend(other.pings);
    }
}

/// Reads mrkdwn. A text whose `parse` is `full` (or whose names are linked) also calls whom it names without brackets.
pub(super) fn read(mrkdwn: &str, links_names: bool) -> Visible {
    let mut visible = Visible::default();
    let mut rest = mrkdwn;
    while let Some(start) = rest.find('<') {
        plain(&mut visible, &rest[..start], links_names);
        let after = &rest[start + 1..];
        let reference = after.find('>').map(|end| (&after[..end], &after[end + 1..]));
        match reference.and_then(|(inside, tail)| Some((resolve(inside)?, tail))) {
            Some((resolved, tail)) => {
                visible.append(resolved);
                rest = tail;
            }
            None => {
                visible.text.push('<');
                rest = after;
            }
        }
    }
    plain(&mut visible, rest, links_names);
    visible
}

fn plain(visible: &mut Visible, text: &str, links_names: bool) {
    let text = unescape(text);
    if links_names {
        for name in ["@channel", "@here", "@everyone"] {
            visible.pings.extend(text.matches(name).map(str::to_owned));
        }
    }
    visible.text.push_str(&text);
}

/// The three escapes, each undone once.
pub(super) fn unescape(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// What stands for a reference; none if it is not one.
fn resolve(inside: &str) -> Option<Visible> {
    let (target, label) = inside.split_once('|').map_or((inside, None), |(target, label)| (target, Some(label)));
    let named = |mark: char, id: &str| label.map_or_else(|| format!("{mark}{id}"), |it| format!("{mark}{it}"));
    let said = |text: String| Visible { text: unescape(&text), pings: Vec::new() };
    let rung = |text: String| Visible { text: text.clone(), pings: vec![text] };
    if let Some(special) = target.strip_prefix('!') {
        return Some(match special.split('^').next().unwrap_or_default() {
            "channel" | "here" | "everyone" | "group" => rung(format!("@{special}")),
            "subteam" => rung(label.map_or_else(|| format!("@{}", &special["subteam".len()..]), str::to_owned)),
            _ => said(label.unwrap_or(special).to_owned()),
        });
    }
    if let Some(user) = target.strip_prefix('@') {
        return Some(said(named('@', user)));
    }
    if let Some(channel) = target.strip_prefix('#') {
        return Some(said(named('#', channel)));
    }
    let is_link = target.contains("://") || target.starts_with("mailto:") || target.starts_with("tel:");
    is_link.then(|| said(label.unwrap_or(target).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_labels_and_plain_characters() {
        let table = [
            ("1 &lt; 2 &amp;&amp; 3 &gt; 2 &amp;lt;", "1 < 2 && 3 > 2 &lt;", vec![]),
            (
                "see <https://docs.example|the docs> or <https://e.example/?a=1&amp;b=2>",
                "see the docs or https://e.example/?a=1&b=2",
                vec![],
            ),
            ("<@U1> in <#C1|general>, <@U2|ann>", "@U1 in #general, @ann", vec![]),
            (
                "Done <!channel>, <!here|here> and <!subteam^S1|@ops>",
                "Done @channel, @here and @ops",
                vec!["@channel", "@here", "@ops"],
            ),
            ("<!date^1392734382^{date}|Feb 18>", "Feb 18", vec![]),
            ("a <b> c < d @channel", "a <b> c < d @channel", vec![]),
            ("&lt;!channel&gt;", "<!channel>", vec![]),
        ];
        for (mrkdwn, text, pings) in table {
            let visible = read(mrkdwn, false);
            assert_eq!(
                (visible.text.as_str(), visible.pings),
                (text, pings.iter().map(|ping| (*ping).to_owned()).collect())
            );
        }
        assert_eq!(read("@channel!", true).pings, ["@channel"]);
    }
}
