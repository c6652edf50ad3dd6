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
/// The most of a private key between its first and last line, in bytes; real ones are far shorter.
const PEM_MAX: usize = 16 * 1024;
/// What is shorter, without a space, is a word and no line of a private key, unless it is the last.
const PEM_LINE: usize = 16;
/// How every first line in PEM begins.
const PEM: &str = "-----BEGIN ";
/// How a JSON object begins in base64.
const WEB_TOKEN: &str = "eyJ";
/// Characters of an AWS access key behind its prefix, and of its secret.
const ACCESS_KEY: usize = 16;
const AWS_SECRET: usize = 40;
/// Characters of a bot's token behind the colon.
const BOT_TOKEN: usize = 35;
/// As much of a token as is looked at to tell whether it is one, in bytes: a bound, so that a text full of beginnings
/// costs no more than another.
const LOOK: usize = 64;

/// `text` with [`REMOVED`] in place of every secret whose shape is known.
#[must_use]
pub fn mask(text: &str) -> Cow<'_, str> {
    replaced(text, &found(text))
}

/// [`mask`] for a text that goes on, such as a reply that is still being written: where it ends in the middle of what may
/// become a secret, that is left out until it is known what it is.
#[must_use]
pub fn mask_unfinished(text: &str) -> Cow<'_, str> {
    let mut spans = found(text);
    let mut end = begun(text, &spans);
    if let Some(open) = spans.iter().find(|span| span.end > end) {
        end = end.min(open.start);
    }
    spans.retain(|span| span.end <= end);
    replaced(&text[..end], &spans)
}

/// How long the secret is of which the text begins with what stands behind the prefix; 0 if it is none.
type Length = fn(&str) -> usize;

/// The secrets that begin a word, by what they begin with.
const PREFIXES: &[(&str, Length)] = &[
    ("AKIA", access_key),
    ("ASIA", access_key),
    ("xoxa-", long),
    ("xoxb-", long),
    ("xoxe-", long),
    ("xoxe.", long),
    ("xoxp-", long),
    ("xoxr-", long),
    ("xoxs-", long),
    ("xapp-", long),
    ("sk-", model_key),
    ("github_pat_", long),
    ("ghp_", github_token),
    ("gho_", github_token),
    ("ghu_", github_token),
    ("ghs_", github_token),
    ("ghr_", github_token),
];

fn access_key(rest: &str) -> usize {
    let length = run(start(rest, ACCESS_KEY + 1), |byte| byte.is_ascii_alphanumeric());
    let is_key =
        length == ACCESS_KEY && all(start(rest, length), |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    if is_key { length } else { 0 }
}

fn long(rest: &str) -> usize {
    let looked_at = token(start(rest, LOOK));
    if looked_at.len() >= 16 && any(looked_at, |byte| byte.is_ascii_digit()) { token(rest).len() } else { 0 }
}

/// Model providers' keys begin like many a class name in a style sheet; those have no capitals and digits.
fn model_key(rest: &str) -> usize {
    let looked_at = token(start(rest, LOOK));
    if looked_at.len() >= 20 && any(looked_at, |byte| byte.is_ascii_uppercase()) { long(rest) } else { 0 }
}

fn github_token(rest: &str) -> usize {
    let length = run(rest, |byte| byte.is_ascii_alphanumeric());
    if length >= 36 { length } else { 0 }
}

fn all(text: &str, is: fn(u8) -> bool) -> bool {
    text.bytes().all(is)
}

fn any(text: &str, is: fn(u8) -> bool) -> bool {
    text.bytes().any(is)
}

/// The first `max` bytes of `text`, or a little less.
fn start(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// What tokens are made of.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// What tokens and their punctuation are made of.
fn is_word_byte(byte: u8) -> bool {
    is_token_byte(byte) || matches!(byte, b':' | b'.' | b'/' | b'+' | b'=' | b'~')
}

/// What AWS makes the secrets of access keys of.
fn is_aws_secret_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'/' || byte == b'+'
}

/// How many bytes at the start of `text` are `is`.
fn run(text: &str, is: fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| is(*byte)).count()
}

/// How many bytes at the end of `text` are `is`.
fn run_back(text: &[u8], is: fn(u8) -> bool) -> usize {
    text.iter().rev().take_while(|byte| is(**byte)).count()
}

fn token(text: &str) -> &str {
    &text[..run(text, is_token_byte)]
}

/// Whether a secret may begin behind `before`: what ends there is no part of a token, or only looks like one because it
/// is written as an escape.
fn begins_word(before: &[u8]) -> bool {
    match before {
        [] | [.., b'_'] | [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'%', first, second] if first.is_ascii_hexdigit() && second.is_ascii_hexdigit() => true,
        [.., last] => !is_token_byte(*last),
    }
}

/// How much of an escape stands at `at` whose sign stands before it.
fn escape(bytes: &[u8], at: usize) -> usize {
    match (at.checked_sub(1).map(|before| bytes[before]), &bytes[at..]) {
        (Some(b'\\'), [b'n' | b'r' | b't', ..]) => 1,
        (Some(b'%'), [first, second, ..]) if first.is_ascii_hexdigit() && second.is_ascii_hexdigit() => 2,
        _ => 0,
    }
}

/// Where secrets stand in `text`: in order, and apart from each other.
fn found(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    // Up to where no web token begins: the rest of a header begins none where the whole of it did not.
    let mut no_web_token = 0;
    while at < bytes.len() {
        let begins_word = begins_word(&bytes[..at]);
        let length = match bytes[at] {
            b'-' if text[at..].starts_with(PEM) => private_key(&text[at..]).map_or(0, |key| key.length),
            b':' => {
                let id = bot_id(&bytes[..at]);
                let length = if id > 0 { bot_token(&text[at + 1..]) } else { 0 };
                if length > 0 {
                    found.push(at - id..at + 1 + length);
                    at += 1 + length;
                    continue;
                }
                0
            }
            b'e' if begins_word && at >= no_web_token && text[at..].starts_with(WEB_TOKEN) => {
                no_web_token = at + token(&text[at..]).len();
                web_token(&text[at..])
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
    let secrets: Vec<Range<usize>> = access_keys(text, &found).flat_map(|key| beside(text, key)).collect();
    found.extend(secrets);
    merged(found)
}

/// Those of the secrets that are AWS access keys.
fn access_keys<'s>(text: &'s str, found: &'s [Range<usize>]) -> impl Iterator<Item = &'s Range<usize>> {
    found.iter().filter(|span| span.len() == 4 + ACCESS_KEY && access_key(&text[span.start + 4..span.end]) > 0)
}

/// Where a secret may begin of which the end of `text` is a part; the end itself, if none may. `found` is what was found.
fn begun(text: &str, found: &[Range<usize>]) -> usize {
    let (bytes, end) = (text.as_bytes(), text.len());
    let last = end - run_back(bytes, is_token_byte);
    let mut begun = end;

    let mut candidates = (last..end).filter(|at| begins_word(&bytes[..*at]));
    if let Some(at) = candidates.find(|at| PREFIXES.iter().any(|(prefix, _)| text[*at..].starts_with(prefix))) {
        begun = begun.min(at);
    }

    // Header, body and signature.
    let mut part = last;
    for _ in 0..2 {
        if bytes[..part].ends_with(b".") {
            part -= 1 + run_back(&bytes[..part - 1], is_token_byte);
        }
    }
    // A prefix may end in a full stop, too.
    let mut candidates = (part..end).filter(|at| begins_word(&bytes[..*at]));
    if let Some(at) = candidates.find(|at| text[*at..].starts_with(WEB_TOKEN) || text[*at..].starts_with("xoxe.")) {
        begun = begun.min(at);
    }

    if bytes[..last].ends_with(b":") {
        let id = bot_id(&bytes[..last - 1]);
        if id > 0 {
            begun = begun.min(last - 1 - id);
        }
    }

    let word = end - run_back(bytes, is_word_byte);
    if word < end && ends_with_bearer(&text[..word]) {
        begun = begun.min(word);
    }

    let secret = end - run_back(bytes, is_aws_secret_byte);
    let is_near = |key: &Range<usize>| key.end <= secret && secret <= key.end + BESIDE;
    if end - secret <= AWS_SECRET && access_keys(text, found).any(is_near) {
        begun = begun.min(secret);
    }

    match text.rfind(PEM) {
        Some(at) if private_key(&text[at..]).is_some_and(|key| key.is_open) => begun.min(at),
        _ => begun,
    }
}

/// The length of the bot's id that `before` ends with; in a URL it stands behind the word `bot`. 0 if there is none.
fn bot_id(before: &[u8]) -> usize {
    let id = before.iter().rev().take(11).take_while(|byte| byte.is_ascii_digit()).count();
    if (8..=10).contains(&id) { id } else { 0 }
}

/// The length of what stands behind a bot's id and makes it a token.
fn bot_token(text: &str) -> usize {
    let looked_at = token(start(text, LOOK));
    let is_token = looked_at.len() >= BOT_TOKEN && looked_at.trim_end_matches(['_', '-']).len() <= BOT_TOKEN;
    if is_token { BOT_TOKEN } else { 0 }
}

/// The length of the secret that begins with the word at the start of `text`; 0 if none does.
fn word(text: &str) -> usize {
    let Some((prefix, length)) = PREFIXES.iter().find(|(prefix, _)| text.starts_with(prefix)) else { return 0 };
    let length = length(&text[prefix.len()..]);
    if length > 0 { prefix.len() + length } else { 0 }
}

/// A JSON Web Token: a header and a body, both objects in base64, and a signature.
fn web_token(text: &str) -> usize {
    let header = token(text).len();
    let Some(body) = text[header..].strip_prefix('.').filter(|body| body.starts_with(WEB_TOKEN)) else { return 0 };
    let body_length = token(body).len();
    let Some(signature) = body[body_length..].strip_prefix('.') else { return 0 };
    let signature = token(signature).len();
    if header >= 12 && body_length >= 8 && signature >= 16 { header + 1 + body_length + 1 + signature } else { 0 }
}

/// A private key in PEM.
struct PrivateKey {
    /// 0 where nothing of the key itself stands there.
    length: usize,
    /// Whether the text ends in the middle of it, or of what may be one.
    is_open: bool,
}

/// The private key at the start of `text`, with its first and last line. Without a last line it ends where something
/// comes that is in no key. A sentence about keys has no line of one in it.
fn private_key(text: &str) -> Option<PrivateKey> {
    let rest = text.strip_prefix(PEM)?;
    let label = &rest[..run(rest, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ')];
    let inside = rest[label.len()..].strip_prefix("-----").filter(|_| label.ends_with("PRIVATE KEY"))?;
    let first = text.len() - inside.len();
    let inside = start(inside, PEM_MAX);
    let inside = inside.find(PEM).map_or(inside, |next| &inside[..next]);
    let last = format!("-----END {label}-----");
    if let Some(end) = inside.find(&last) {
        let is_key =
            inside[..end].split(|c: char| !c.is_ascii() || !is_base64_byte(c as u8)).any(|run| run.len() >= PEM_LINE);
        return Some(PrivateKey { length: if is_key { first + end + last.len() } else { 0 }, is_open: false });
    }
    let (key, read) = key_lines(inside);
    let length = if key > 0 { first + key } else { 0 };
    Some(PrivateKey { length, is_open: last.starts_with(&text[first + read..]) })
}

/// Up to where `text`, the inside of a private key that has no last line, is a key (0 if nothing of it is), and how far
/// it may go on as one.
fn key_lines(text: &str) -> (usize, usize) {
    let (mut key, mut at) = (0, 0);
    // A line that is shorter is the last.
    let mut is_last = false;
    while let Some(next) = text.as_bytes().get(at) {
        let rest = &text[at..];
        let line = run(rest, is_base64_byte);
        let behind = rest.as_bytes().get(line);
        if rest.starts_with("Proc-Type:") || rest.starts_with("DEK-Info:") {
            at += rest.find(['\n', '\r', '\\']).unwrap_or(rest.len());
        } else if line >= PEM_LINE && !is_last {
            at += line;
            key = at;
        } else if line > 0 {
            let ends_line = behind.is_none_or(|byte| matches!(byte, b'\n' | b'\r' | b'\\' | b'"' | b'\''));
            if is_last || !ends_line || (key == 0 && behind.is_some()) {
                break;
            }
            is_last = true;
            at += line;
            key = if key > 0 { at } else { 0 };
        } else if *next == b'\\' {
            at += 1 + usize::from(matches!(rest.as_bytes().get(1), Some(b'n' | b'r' | b't')));
        } else if next.is_ascii_whitespace() || matches!(next, b'"' | b'\'' | b'>' | b'|') {
            at += 1;
        } else {
            break;
        }
    }
    (key, at)
}

fn is_base64_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
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
    let (from, to) = (key.start.saturating_sub(BESIDE), (key.end + BESIDE).min(text.len()));
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = from;
    while at < to {
        let escape = escape(bytes, at);
        at += escape;
        let length = bytes[at.min(to)..to].iter().take_while(|byte| is_aws_secret_byte(**byte)).count();
        let starts = at == 0 || escape > 0 || !is_aws_secret_byte(bytes[at - 1]);
        let ends = bytes.get(at + length).is_none_or(|byte| !is_aws_secret_byte(*byte));
        if length == AWS_SECRET && starts && ends {
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
mod tests;
