//! What `template.yaml` must say, held against the code that runs under it. Each rule is a check that returns what it
//! found; `broken.rs` shows of each that a template can break it.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests, too")]

mod broken;
mod checks;
mod configuration;
mod names;
mod parameters;

use serde_json::Value;
use turnlock_tests::template::{EVERYTHING, Template, granted_actions, read};

/// The template for every choice that changes more than a number: nothing optional, everything, and each turn length.
fn variants(document: &Value) -> Vec<(String, Template)> {
    let mut variants = vec![
        ("the defaults".to_owned(), Template::new(document, &[])),
        ("everything".to_owned(), Template::new(document, EVERYTHING)),
        ("nothing reserved".to_owned(), Template::new(document, &[("ReserveConcurrency", "false")])),
    ];
    let lengths = document["Parameters"]["TurnSeconds"]["AllowedValues"].as_array().unwrap();
    for length in lengths.iter().map(Value::to_string) {
        variants.push((format!("turns of {length} s"), Template::new(document, &[("TurnSeconds", &length)])));
    }
    variants
}

fn findings(document: &Value) -> Vec<String> {
    let variants = variants(document);
    let mut all: Vec<String> = Vec::new();
    for found in variants.iter().flat_map(|(_, template)| checks::ALL.iter().flat_map(move |check| check(template))) {
        if !all.contains(&found) {
            all.push(found);
        }
    }
    all
}

#[test]
fn the_template_keeps_every_rule() {
    assert_eq!(findings(&read()), Vec::<String>::new());
}

/// What a function's code may do: compared with what it does over the whole suite by `tests/aws`.
#[test]
fn rights_are_counted_without_what_lambda_does_itself() {
    let of = |function| granted_actions(function).into_iter().collect::<Vec<_>>();
    assert_eq!(of("IngressCron"), ["sqs:SendMessage"]);
    assert_eq!(
        of("Delivery"),
        [
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "events:PutEvents",
            "secretsmanager:GetSecretValue",
            "sqs:ChangeMessageVisibility"
        ]
    );
    assert!(of("Agent").contains(&"bedrock:InvokeModelWithResponseStream".to_owned()));
}
