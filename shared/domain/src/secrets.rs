//! Secrets that stand in a text, by their known shapes: what leaves us, or is shown to a model, has none of them.
//!
//! A shape is only taken for a secret where its issuer's prefix or punctuation and its length fit, so that prose, code,
//! hashes, ids and data in base64 stay as they are. What has no such shape (a password, a key of 32 random letters)
//! cannot be told from them and is not found. The time is in proportion to the text, whatever stands in it.
//!
//! Shapes, from their issuers' documentation: AWS access keys ("Reference IAM identifiers"), Slack ("Tokens"), Telegram
//! ("Authorizing your bot"), GitHub ("About authentication to GitHub"), JWT (RFC 7519), PEM (RFC 7468), bearer tokens
//! (RFC 6750).

use std::borrow::Cow;
use std::ops::Range;

/// What stands where a secret stood.
pub const REMOVED: &str = "[secret removed]";

/// How far from an AWS access key its secret is looked for, in bytes.
const BESIDE: usize = 200;
/// The most of a private key that has no end, in bytes; whole ones are far shorter.
const PEM_MAX: usize = 16 * 1024;

/// `text` with [`REMOVED`] in place of every secret whose shape is known.
#[must_use]
pub fn mask(text: &str) -> Cow<'_, str> {
    replaced(text, &found(text))
}

/// [`mask`] for a text that goes on, such as a reply that is still being written: a last word that begins as a secret does
/// is left out until it is known what it is.
#[must_use]
pub fn mask_unfinished(text: &str) -> Cow<'_, str> {
    let last = text
        .rfind(|c: char| !c.is_ascii() || !is_word_byte(c as u8))
        .map_or(0, |at| at + text[at..].chars().next().map_or(0, char::len_utf8));
    let word = &text[last..];
    let bot_id = word.trim_start_matches(|c: char| !c.is_ascii_digit());
    let begins = PREFIXES.iter().any(|(prefix, _)| word.starts_with(prefix))
        || word.starts_with("eyJ")
        || bot_id
            .split_once(':')
            .is_some_and(|(id, _)| (8..=10).contains(&id.len()) && all(id, |b| b.is_ascii_digit()))
        || (!word.is_empty() && ends_with_bearer(&text[..last]));
    mask(if begins { &text[..last] } else { text })
}

/// A shape: whether what stands behind the prefix, up to the end of the word, makes it a secret.
type Fits = fn(&str) -> bool;

/// The secrets that begin a word, by what they begin with.
const PREFIXES: &[(&str, Fits)] = &[
    ("AKIA", is_access_key),
    ("ASIA", is_access_key),
    ("xoxa-", is_long),
    ("xoxb-", is_long),
    ("xoxe-", is_long),
    ("xoxe.", is_long),
    ("xoxp-", is_long),
    ("xoxr-", is_long),
    ("xoxs-", is_long),
    ("xapp-", is_long),
    ("sk-", is_model_key),
    ("github_pat_", is_long),
    ("ghp_", is_github_token),
    ("gho_", is_github_token),
    ("ghu_", is_github_token),
    ("ghs_", is_github_token),
    ("ghr_", is_github_token),
];

fn is_access_key(rest: &str) -> bool {
    rest.len() == 16 && all(rest, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

fn is_long(rest: &str) -> bool {
    rest.len() >= 16 && any(rest, |byte| byte.is_ascii_digit())
}

/// Model providers' keys begin like many a class name in a style sheet; those have no capitals and digits.
fn is_model_key(rest: &str) -> bool {
    is_long(rest) && rest.len() >= 20 && any(rest, |byte| byte.is_ascii_uppercase())
}

fn is_github_token(rest: &str) -> bool {
    rest.len() >= 36 && all(rest, |byte| byte.is_ascii_alphanumeric())
}

fn all(text: &str, is: fn(u8) -> bool) -> bool {
    text.bytes().all(is)
}

fn any(text: &str, is: fn(u8) -> bool) -> bool {
    text.bytes().any(is)
}

/// What tokens are made of.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// What tokens and their punctuation are made of.
fn is_word_byte(byte: u8) -> bool {
    is_token_byte(byte) || matches!(byte, b':' | b'.' | b'/' | b'+' | b'=' | b'~')
}

/// How many bytes at the start of `text` are `is`.
fn run(text: &str, is: fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| is(*byte)).count()
}

/// Where secrets stand in `text`: in order, and apart from each other.
fn found(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let begins_word = at == 0 || !is_token_byte(bytes[at - 1]);
        let length = match bytes[at] {
            b'-' if text[at..].starts_with("-----BEGIN ") => private_key(&text[at..]),
            b':' => {
                // The bot's id stands before it, in a URL behind the word `bot`.
                let id = bytes[..at].iter().rev().take(11).take_while(|byte| byte.is_ascii_digit()).count();
                let token = run(&text[at + 1..], is_token_byte);
                if (8..=10).contains(&id) && token == 35 {
                    found.push(at - id..at + 1 + token);
                    at += 1 + token;
                    continue;
                }
                0
            }
            b'A'..=b'Z' | b'a'..=b'z' if begins_word => word(&text[at..]),
            _ => 0,
        };
        if length > 0 {
            found.push(at..at + length);
            at += length;
        } else if begins_word && bytes[at].eq_ignore_ascii_case(&b'b') && is_bearer(&text[at..]) {
            let token = at + BEARER.len();
            let length = bearer(&text[token..]);
            if length > 0 {
                found.push(token..token + length);
            }
            at = token + length;
        } else {
            at += 1;
        }
    }
    let keys = found.iter().filter(|span| is_access_key(text[(**span).clone()].get(4..).unwrap_or_default()));
    let secrets: Vec<Range<usize>> = keys.flat_map(|key| beside(text, key)).collect();
    found.extend(secrets);
    merged(found)
}

/// The length of the secret that begins with the word at the start of `text`; 0 if none does.
fn word(text: &str) -> usize {
    if let Some((prefix, fits)) = PREFIXES.iter().find(|(prefix, _)| text.starts_with(prefix)) {
        let rest = run(&text[prefix.len()..], is_token_byte);
        return if fits(&text[prefix.len()..prefix.len() + rest]) { prefix.len() + rest } else { 0 };
    }
    if text.starts_with("eyJ") { web_token(text) } else { 0 }
}

/// A JSON Web Token: a header and a body, both objects in base64, and a signature.
fn web_token(text: &str) -> usize {
    let header = run(text, is_token_byte);
    let Some(body) = text[header..].strip_prefix('.').filter(|body| body.starts_with("eyJ")) else { return 0 };
    let body_length = run(body, is_token_byte);
    let Some(signature) = body[body_length..].strip_prefix('.') else { return 0 };
    let signature = run(signature, is_token_byte);
    if header >= 12 && body_length >= 8 && signature >= 16 { header + 1 + body_length + 1 + signature } else { 0 }
}

/// A private key in PEM, with its first and last line; without a last line, all there is of it.
fn private_key(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("-----BEGIN ") else { return 0 };
    let label = &rest[..run(rest, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ')];
    if !label.ends_with("PRIVATE KEY") || !rest[label.len()..].starts_with("-----") {
        return 0;
    }
    let mut end = text.len().min(PEM_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let last = format!("-----END {label}-----");
    text[..end].find(&last).map_or(end, |at| at + last.len())
}

const BEARER: &str = "bearer ";

fn is_bearer(text: &str) -> bool {
    text.get(..BEARER.len()).is_some_and(|start| start.eq_ignore_ascii_case(BEARER))
}

fn ends_with_bearer(text: &str) -> bool {
    text.len().checked_sub(BEARER.len()).and_then(|at| text.get(at..)).is_some_and(is_bearer)
}

/// The length of the token behind the word `Bearer`. A sentence about bearers goes on with a word without digits.
fn bearer(text: &str) -> usize {
    let token = &text[..run(text, is_word_byte)];
    let token = token.trim_end_matches(['.', ':']);
    if token.len() >= 20 && any(token, |byte| byte.is_ascii_digit()) { token.len() } else { 0 }
}

/// The secrets of an AWS access key: 40 characters of base64 near it.
fn beside(text: &str, key: &Range<usize>) -> Vec<Range<usize>> {
    let is_secret_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'/' || byte == b'+';
    let (from, to) = (key.start.saturating_sub(BESIDE), (key.end + BESIDE).min(text.len()));
    let mut found = Vec::new();
    let mut at = from;
    while at < to {
        let length = text.as_bytes()[at..to].iter().take_while(|byte| is_secret_byte(**byte)).count();
        let starts = at == 0 || !is_secret_byte(text.as_bytes()[at - 1]);
        let ends = text.as_bytes().get(at + length).is_none_or(|byte| !is_secret_byte(*byte));
        if length == 40 && starts && ends {
            found.push(at..at + length);
        }
        at += length.max(1);
    }
    found
}

/// Spans in order; those that touch or overlap are one.
fn merged(mut spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
    spans.sort_by_key(|span| span.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => merged.push(span),
        }
    }
    merged
}

fn replaced<'a>(text: &'a str, spans: &[Range<usize>]) -> Cow<'a, str> {
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    for span in spans {
        kept.push_str(&text[at..span.start]);
        kept.push_str(REMOVED);
        at = span.end;
    }
    kept.push_str(&text[at..]);
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Secrets that nobody issued, put together so that no scanner of repositories takes them for real ones.
    fn samples() -> Vec<String> {
        let letters = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6kL9nO2qR5";
        vec![
            format!("AKIA{}", "IOSFODNN7EXAMPLE"),
            format!("ASIA{}", "IOSFODNN7EXAMPLE"),
            format!("xoxb-{}-{}", "1234567890", &letters[..24]),
            format!("xapp-1-{}", &letters[..24]),
            format!("1234567890:{}", &letters[..35]),
            format!("sk-{}", &letters[..40]),
            format!("sk-proj-{}_-x", &letters[..40]),
            format!("ghp_{}", &letters[..36]),
            format!("github_pat_{}_{}", &letters[..22], &letters[..30]),
            format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{}", &letters[..43]),
            format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----", &letters[..40]),
        ]
    }

    #[test]
    fn every_known_shape_is_removed_wherever_it_stands() {
        for secret in samples() {
            for (before, after) in
                [("", ""), ("key=", "\n"), ("(", ")."), ("\"", "\""), ("日本語", "です"), ("a ", " b")]
            {
                assert_eq!(mask(&format!("{before}{secret}{after}")), format!("{before}{REMOVED}{after}"));
            }
        }
        let bot = samples().swap_remove(4);
        let url = format!("https://api.telegram.org/bot{bot}/getMe");
        assert_eq!(mask(&url), format!("https://api.telegram.org/bot{REMOVED}/getMe"));
        assert_eq!(mask("Authorization: Bearer abc123def456ghi789jkl0=="), format!("Authorization: Bearer {REMOVED}"));
        assert_eq!(mask("-----BEGIN PRIVATE KEY-----\nMII"), REMOVED, "a key that was cut off is one all the same");
    }

    #[test]
    fn the_secret_of_an_aws_key_is_removed_beside_it_alone() {
        let (key, secret) = (samples().swap_remove(0), "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        let text = format!("aws_access_key_id = {key}\naws_secret_access_key = {secret}\n");
        assert_eq!(mask(&text), format!("aws_access_key_id = {REMOVED}\naws_secret_access_key = {REMOVED}\n"));
        assert_eq!(mask(&format!("{secret},{key}")), format!("{REMOVED},{REMOVED}"));
        assert_eq!(mask(secret), secret, "alone it may be anything");
    }

    #[test]
    fn what_is_no_secret_stays() {
        let sha = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        let base64 = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
        for text in [
            "The bearer of this letter is authorised. Bearer authentication is described in RFC 6750.",
            "Send `Authorization: Bearer YOUR_ACCESS_TOKEN_GOES_HERE`.",
            "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
            "at 12:30:45, 1234567890:short, 10.0.0.1:8080, [::1]:443",
            "class=\"sk-folding-cube sk-circle-fade-dot-12-long-enough-name\"",
            "task-1234567890ABCDEFGHIJKL risk-AND-2024-reward-MANAGEMENT",
            "AKIA is what they begin with; AKIAIOSFODNN7 is too short",
            "eyJ.eyJ.eyJ and eyJhbGciOiJIUzI1NiJ9 alone",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            "ghp_ is a prefix, xoxb-your-token-goes-here-please is a placeholder",
            "fn mask(text: &str) -> Cow<'_, str> { text.into() }",
            "https://example.org/a?b=c:d#e 他说：你好 שלום",
            sha,
            base64,
        ] {
            assert!(matches!(mask(text), Cow::Borrowed(_)), "{text}: {}", mask(text));
        }
    }

    #[test]
    fn a_text_that_goes_on_shows_no_part_of_a_secret() {
        for secret in samples() {
            let text = format!("Here: {secret}");
            for end in (6..text.len()).filter(|end| text.is_char_boundary(*end)) {
                let shown = mask_unfinished(&text[..end]);
                let leaked = shown.strip_prefix("Here: ").unwrap_or_default();
                let is_harmless = leaked.len() <= 11 || leaked.starts_with("-----BEGIN ");
                assert!(is_harmless || leaked == REMOVED, "{}: {shown}", &text[..end]);
            }
            assert!(!mask_unfinished(&format!("{text} and on")).contains(&secret));
        }
        assert_eq!(mask_unfinished("Bearer abc1"), "Bearer ");
        assert_eq!(mask_unfinished("See https://example.org/a"), "See https://example.org/a");
        assert_eq!(mask_unfinished("Ünï"), "Ünï");
    }

    #[test]
    fn hostile_text_takes_no_longer_than_other_text() {
        for piece in [
            "eyJ.",
            "eyJa.eyJa.",
            "-----BEGIN PRIVATE KEY----- ",
            "-----BEGIN ",
            "AKIA",
            "bearer ",
            "12345678:",
            "sk-A1",
        ] {
            let text = piece.repeat(400_000 / piece.len());
            // It ends: anything worse than linear would take minutes here.
            drop(mask(&text));
        }
        let keys = format!("{} ", samples().swap_remove(0)).repeat(10_000);
        assert_eq!(mask(&keys), format!("{REMOVED} ").repeat(10_000));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn masking_settles_at_once(text in "(AKIA|eyJ|sk-|Bearer |[A-Z0-9]{16}|[a-z0-9:.]{1,40}|é|\n| ){0,20}") {
            let once = mask(&text).into_owned();
            prop_assert!(matches!(mask(&once), Cow::Borrowed(_)), "{once}");
            let _ = mask_unfinished(&text);
        }
    }
}
