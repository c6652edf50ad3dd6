//! Webhooks and what becomes of them.

use http::{HeaderName, HeaderValue};
use secrecy::SecretString;

use super::super::{Verify, sign_standard};
use super::*;

const FIXTURES: [&str; 3] = [
    include_str!("../fixtures/github_issue.json"),
    include_str!("../fixtures/standard_invoice.json"),
    include_str!("../fixtures/alert.json"),
];

const FRESH: &str = "0199c6f2-7c00-7000-8000-000000000001";

fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_000).unwrap()
}

fn source(verify: Verify) -> Source {
    Source {
        name: "main".to_owned(),
        verify,
        template: None,
        session: None,
        reply_to: None,
        id_headers: Source::default_id_headers(),
    }
}

fn bearer() -> Source {
    source(Verify::Bearer { token: SecretString::from("t") })
}

fn headers(headers: &[(&'static str, &str)]) -> HeaderMap {
    let pair =
        |(name, value): &(&'static str, &str)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
    headers.iter().map(pair).collect()
}

fn arrival_of(source: &Source, sent: &HeaderMap, body: &str) -> Arrival {
    match normalise(source, &Proof::default(), sent, body.as_bytes(), now(), FRESH).unwrap() {
        Normalised::Event(arrival) => *arrival,
        other => panic!("no event: {other:?}"),
    }
}

fn text_of(source: &Source, body: &str) -> String {
    arrival_of(source, &HeaderMap::new(), body).event.text()
}

#[test]
fn a_signed_webhook_is_the_whole_event() {
    let secret = SecretString::from("whsec_dGVzdC1rZXk=");
    let source = source(Verify::Standard { secret: secret.clone() });
    let signed = sign_standard(&secret, "msg_1", now(), FIXTURES[1].as_bytes()).unwrap();
    let request = IngressRequest::post("/webhook/main", signed, FIXTURES[1]);
    let Ok(Normalised::Event(arrival)) = receive(&source, &request, now(), FRESH) else { panic!("no event") };
    assert!(arrival.unattended && arrival.command.is_none());
    assert_eq!(arrival.position.as_str(), format!("001760000000000#{FRESH}"));
    let mut event = serde_json::to_value(&arrival.event).unwrap();
    event.as_object_mut().unwrap().remove("content");
    assert_eq!(
        event,
        json!({
            "schema": 1, "event_id": "webhook:main:msg_1", "event_type": "webhook", "channel": "webhook",
            "account": "main", "sender_id": "main", "chat_id": "main", "timestamp": "2025-10-09T08:53:20Z",
            "metadata": { "tenant": "t1", "nested": { "kept": 2 } },
        })
    );
}

#[test]
fn the_text_is_the_template_else_the_bodys_own_else_the_body() {
    let mut github = bearer();
    github.template = Some("{repository.full_name} #{/issue/number} {action}: {issue.title}".to_owned());
    assert_eq!(text_of(&github, FIXTURES[0]), "invented/lab #7 opened: Build is red");
    github.template = Some("{missing}".to_owned());
    assert_eq!(text_of(&github, FIXTURES[2]), "disk at 91 %");
    assert_eq!(text_of(&bearer(), r#"{"text":"hi","message":"no"}"#), "hi");
    assert_eq!(text_of(&bearer(), r#"{"a":1}"#), "{\n  \"a\": 1\n}");
    assert_eq!(text_of(&bearer(), "plain words"), "plain words");
    let form = headers(&[("content-type", "application/x-www-form-urlencoded")]);
    assert_eq!(arrival_of(&bearer(), &form, "payload=%7B%22text%22%3A%22hi%22%7D").event.text(), "hi");
    assert_eq!(arrival_of(&bearer(), &form, "text=hi+there").event.text(), "hi there");
}

#[test]
fn the_session_is_the_sources_choice_not_the_bodys() {
    let mut source = bearer();
    assert_eq!(arrival_of(&source, &HeaderMap::new(), FIXTURES[0]).event.session_key().as_str(), "webhook:main");
    source.session = Some("{repository.name}-{issue.number}".to_owned());
    assert_eq!(arrival_of(&source, &HeaderMap::new(), FIXTURES[0]).event.chat_id, "lab-7");
    source.session = Some("{text}".to_owned());
    let long = json!({ "text": "x".repeat(5000) }).to_string();
    assert!(arrival_of(&source, &HeaderMap::new(), &long).event.chat_id.len() <= MAX_CHAT);
    let forged = r#"{"text":"hi","session":"telegram:1","session_key_override":"telegram:1","event_type":"control","chat_id":"9","metadata":{"_drop":true}}"#;
    source.session = None;
    let forged = arrival_of(&source, &HeaderMap::new(), forged);
    assert_eq!(forged.event.session_key().as_str(), "webhook:main");
    assert_eq!((forged.event.event_type, forged.command, forged.event.metadata.len()), (EventType::Webhook, None, 0));
}

#[test]
fn identity_is_the_signed_id_a_header_the_signed_time_or_new() {
    let id = |proof: &Proof, sent: &[(&'static str, &str)], body: &str| {
        identity(&bearer(), proof, &headers(sent), body.as_bytes(), FRESH).to_string()
    };
    let signed = Proof { delivery_id: Some("msg_1".to_owned()), signed_at: Some(now()) };
    assert_eq!(id(&signed, &[("x-github-delivery", "g1")], "{}"), "webhook:main:msg_1");
    let none = Proof::default();
    assert_eq!(id(&none, &[("x-github-delivery", "g1"), ("idempotency-key", "k")], "{}"), "webhook:main:g1");
    assert_eq!(id(&none, &[("idempotency-key", "k")], "{}"), "webhook:main:k");
    assert_eq!(id(&none, &[("idempotency-key", "")], "{}"), format!("webhook:main:{FRESH}"));
    let timed = Proof { delivery_id: None, signed_at: Some(now()) };
    assert_eq!(id(&timed, &[], "{}"), id(&timed, &[], "{}"));
    assert_ne!(id(&timed, &[], "{}"), id(&timed, &[], "{ }"));
}

#[test]
fn two_sources_never_share_an_identity() {
    let other = Source { name: "other".to_owned(), ..bearer() };
    let sent = headers(&[("webhook-id", "msg_1")]);
    let one = arrival_of(&bearer(), &sent, FIXTURES[2]).event.event_id;
    assert_ne!(one, arrival_of(&other, &sent, FIXTURES[2]).event.event_id);
}

#[test]
fn a_long_body_is_cut_and_says_so() {
    let text = text_of(&bearer(), &json!({ "text": "😀".repeat(60_000) }).to_string());
    assert!(text.ends_with(CUT_MARK) && text.encode_utf16().count() <= MAX_TEXT + 10);
}

#[test]
fn large_metadata_is_left_out_and_the_text_kept() {
    let body = json!({ "text": "hi", "metadata": { "log": "x".repeat(json::MAX_METADATA) } }).to_string();
    let event = arrival_of(&bearer(), &HeaderMap::new(), &body).event;
    assert_eq!((event.text().as_str(), event.metadata.len()), ("hi", 0));
    assert_eq!(event.gateway_metadata["metadata_left_out"], true);
}

#[test]
fn what_says_nothing_or_is_broken_is_refused_without_being_quoted() {
    let json = headers(&[("content-type", "application/json")]);
    for (sent, body) in [(&json, "{hunter2"), (&HeaderMap::new(), ""), (&json, "null"), (&json, "\"\\u200b\"")] {
        let refusal = normalise(&bearer(), &Proof::default(), sent, body.as_bytes(), now(), FRESH).unwrap_err();
        assert_eq!(refusal.status(), 400, "{body}");
        assert!(!format!("{refusal} {refusal:?}").contains("hunter2"));
    }
}

/// Case un-lone-surrogate-validator: the one rule holds here too.
#[test]
fn un_lone_surrogate_validator() {
    assert_eq!(text_of(&bearer(), r#"{"text":"a\udce2b"}"#), "a\u{fffd}b");
}

#[test]
fn a_body_without_a_content_type_is_what_its_bytes_are() {
    assert_eq!(text_of(&bearer(), r#"{"a":1}"#), "{\n  \"a\": 1\n}");
}

proptest::proptest! {
    #[test]
    fn no_mutation_panics_or_is_quoted(
        which in 0..FIXTURES.len(), mutation in crate::mutation::strategy(), templated: bool, json: bool,
    ) {
        let mut source = bearer();
        if templated {
            source.template = Some("{issue.title} {/data/amount} {labels.host}".to_owned());
            source.session = Some("{repository.name}{metadata.tenant}".to_owned());
        }
        let sent = if json { headers(&[("content-type", "application/json")]) } else { HeaderMap::new() };
        let body = mutation.apply(FIXTURES[which].as_bytes());
        crate::mutation::check(&body, normalise(&source, &Proof::default(), &sent, &body, now(), FRESH));
    }
}
