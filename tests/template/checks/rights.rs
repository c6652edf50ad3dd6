//! Least privilege: a role a function, actions by name, resources of ours, and nothing that its environment does not name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use turnlock_tests::template::{Statement, Template, environment, sources, substituted, target, targets};

use super::unless;

const SECRETS: &str = "TURNLOCK_SECRETS";
const TABLE: &str = "TURNLOCK_TABLE";
/// The bus of the parameter, in this account and region.
const BUS: &str = "arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:event-bus/${EventBus}";
/// The guardrail of the parameter, likewise.
const GUARDRAIL: &str = "arn:${AWS::Partition}:bedrock:${AWS::Region}:${AWS::AccountId}:guardrail/${BedrockGuardrail}";

/// No `*` in an action.
pub(in super::super) fn actions(template: &Template) -> Vec<String> {
    let statements = roles_of(template).flat_map(|(role, statements)| statements.into_iter().map(move |s| (role, s)));
    let wide = statements.flat_map(|(role, statement)| {
        let wide = statement.actions.into_iter().filter(|action| action.contains('*') || !action.contains(':'));
        wide.map(move |action| format!("{role}: {action} is no single action")).collect::<Vec<_>>()
    });
    wide.collect()
}

/// Resources are ARNs of the template's own; a model, a guardrail, an event bus and a team's function have none of ours, but
/// are named.
pub(in super::super) fn resources(template: &Template) -> Vec<String> {
    let mut found = Vec::new();
    for (role, statements) in roles_of(template) {
        for statement in statements {
            for resource in &statement.resources {
                let ours = target(resource).is_some_and(|id| template.resources.contains_key(id));
                let named = match statement.sid {
                    "InvokeModels" => names_models(resource),
                    "ApplyGuardrail" => substituted(resource) == Some(GUARDRAIL),
                    "PutEvents" => substituted(resource) == Some(BUS),
                    "InvokeTools" => resource.as_str().is_some_and(|arn| arn.starts_with("arn:") && !arn.contains('*')),
                    _ => false,
                };
                let is_fine = ours || named;
                found.extend(unless(is_fine, || format!("{role}: {} on {resource}", statement.sid)));
            }
            let any = !statement.resources.is_empty();
            found.extend(unless(any, || format!("{role}: {} on nothing", statement.sid)));
        }
    }
    found
}

/// Ids after the beginnings of two kinds of ARN; the wildcards stand for a region and for AWS's own account or ours.
fn names_models(resource: &Value) -> bool {
    let template = &resource["Fn::Split"][1]["Fn::Sub"];
    let beginnings = ["arn:aws:bedrock:*::foundation-model/", "arn:aws:bedrock:*:*:inference-profile/"];
    let text = format!("{}${{Models}},{}${{Profiles}}", beginnings[0], beginnings[1]);
    let ids = ["Models", "Profiles"].iter().zip(beginnings).all(|(name, beginning)| {
        let join = &template[1][name]["Fn::Join"];
        join[0] == format!(",{beginning}") && join[1].as_array().is_some_and(|ids| !ids.is_empty())
    });
    template[0] == text && ids
}

/// Nobody shares a role, and only Lambda assumes one.
pub(in super::super) fn roles(template: &Template) -> Vec<String> {
    let functions = template.functions().filter_map(|(id, _)| {
        let role = template.role(id);
        unless(role == format!("{id}Role"), || format!("{id}: its role is {role}"))
    });
    let lambda = functions.chain(template.functions().filter_map(|(id, _)| {
        let assume = &template.properties(template.role(id))["AssumeRolePolicyDocument"]["Statement"];
        let only = assume.as_array().is_some_and(|all| all.len() == 1)
            && assume[0]["Principal"] == serde_json::json!({ "Service": "lambda.amazonaws.com" });
        unless(only, || format!("{id}: its role is not Lambda's alone"))
    }));
    lambda.collect()
}

/// A function may use what its environment names, and its environment names nothing that it may not use.
pub(in super::super) fn environment_and_rights(template: &Template) -> Vec<String> {
    let mut found = Vec::new();
    for (id, function) in template.functions() {
        let statements = template.statements(template.role(id));
        let named: BTreeSet<&str> = environment(function).values().flat_map(|value| targets(value)).collect();
        let drained: BTreeSet<&str> = sources(function).map(|source| source.queue).collect();
        let on = |action: &str, but: &str| -> BTreeSet<&str> {
            let allowing = statements.iter().filter(|s| s.actions.contains(&action) && s.sid != but);
            allowing.flat_map(|s| s.resources.iter().filter_map(|resource| target(resource))).collect()
        };
        let mut allowed = on("sqs:SendMessage", "ReportFailure");
        allowed.extend(on("sqs:ChangeMessageVisibility", ""));
        allowed.extend(on("secretsmanager:GetSecretValue", ""));
        allowed.extend(on("dynamodb:UpdateItem", ""));
        found.extend([
            unless(allowed == named, || format!("{id}: it may use {allowed:?}, its environment names {named:?}")),
            unless(on("sqs:ReceiveMessage", "") == drained, || format!("{id}: it may not receive what it drains")),
            unless(on("sqs:DeleteMessage", "") == drained, || format!("{id}: it may not delete what it drains")),
            unless(on("logs:PutLogEvents", "") == BTreeSet::from([&*format!("{id}Logs")]), || {
                format!("{id}: it logs elsewhere")
            }),
            unless(is_variable_of(function, TABLE, "Table"), || format!("{id}: {TABLE} is not the table")),
            unless(queue_variables(function), || format!("{id}: a variable names another queue")),
        ]);
    }
    found.into_iter().flatten().collect()
}

fn is_variable_of(function: &Value, name: &str, resource: &str) -> bool {
    environment(function).get(name).is_none_or(|value| target(value) == Some(resource))
}

/// `TURNLOCK_DEAD_LETTER_QUEUE` is `DeadLetterQueue`, and so on.
fn queue_variables(function: &Value) -> bool {
    let variables = environment(function);
    let mut queues = variables.iter().filter(|(name, _)| name.ends_with("_QUEUE"));
    queues.all(|(name, value)| {
        let words = name.trim_start_matches("TURNLOCK_").split('_').map(|word| {
            let (first, rest) = word.split_at(1);
            format!("{first}{}", rest.to_ascii_lowercase())
        });
        target(value) == Some(&words.collect::<String>())
    })
}

/// A secret has one reader, or is the models' key; it comes from a parameter that nothing shows, or is made up.
pub(in super::super) fn secrets(template: &Template) -> Vec<String> {
    let mut readers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (id, function) in template.functions() {
        for secret in environment(function).get(SECRETS).into_iter().flat_map(|value| targets(value)) {
            readers.entry(secret).or_default().push(id);
        }
    }
    let wanted = [
        ("DeliverySecret", &["Delivery"][..]),
        ("FilesSecret", &["Agent"]),
        ("GatewaySecret", &["Gateway"]),
        ("ModelSecret", &["Agent", "Consolidate", "Review"]),
        ("SlackSecret", &["IngressSlack"]),
        ("TelegramSecret", &["IngressTelegram"]),
        ("WebhookSourceSecret", &["IngressWebhook"]),
    ];
    let secrets = template.of_kind("AWS::SecretsManager::Secret").map(|(id, _)| id);
    let found = secrets.filter_map(|id| {
        let wanted = wanted.iter().find(|(secret, _)| *secret == id).map(|(_, readers)| *readers);
        let readers = readers.get(id).map(Vec::as_slice);
        unless(wanted.is_some() && readers == wanted, || format!("{id}: its readers are {readers:?}"))
    });
    found.chain(shown(template)).collect()
}

/// Parameters that go into a secret and that CloudFormation shows; hidden ones that `sam deploy --guided` would not stop
/// asking for, since it takes no empty answer to a hidden question.
fn shown(template: &Template) -> Vec<String> {
    let mut found = Vec::new();
    for (id, secret) in template.of_kind("AWS::SecretsManager::Secret") {
        let text = substituted(&secret["SecretString"]).unwrap_or_default();
        for name in text.split("${").skip(1).filter_map(|rest| rest.split('}').next()) {
            let parameter = &template.parameters[name];
            found.extend([
                unless(parameter["NoEcho"] == true, || format!("{name}: {id} shows it")),
                unless(parameter["Default"] != "", || format!("{name}: nobody can answer it")),
            ]);
        }
    }
    found.into_iter().flatten().collect()
}

fn roles_of(template: &Template) -> impl Iterator<Item = (&str, Vec<Statement<'_>>)> {
    template.of_kind("AWS::IAM::Role").map(|(role, _)| (role, template.statements(role)))
}
