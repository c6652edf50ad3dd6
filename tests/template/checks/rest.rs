//! The table, the schedule and the outputs.

use serde_json::{Value, json};
use turnlock_config::names;
use turnlock_store::keys;
use turnlock_tests::template::{Template, substituted, target};

use super::unless;

/// The key and the TTL that the store writes; what is written can be brought back.
pub(in super::super) fn table(template: &Template) -> Vec<String> {
    let table = template.properties("Table");
    let key = json!([
        { "AttributeName": keys::PK, "KeyType": "HASH" },
        { "AttributeName": keys::SK, "KeyType": "RANGE" },
    ]);
    let ttl = json!({ "AttributeName": keys::TTL, "Enabled": true });
    let recovery = &table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"];
    let checks = [
        unless(table["KeySchema"] == key, || "Table: its key is not the store's".to_owned()),
        unless(table["TimeToLiveSpecification"] == ttl, || "Table: its TTL is not the store's".to_owned()),
        unless(*recovery == true, || "Table: there is no way back".to_owned()),
        unless(table["BillingMode"] == "PAY_PER_REQUEST", || "Table: it costs without users".to_owned()),
        unless(table["DeletionProtectionEnabled"] == "true", || "Table: nothing protects it".to_owned()),
    ];
    checks.into_iter().flatten().collect()
}

/// A schedule says which one it is and for when: that is the event's identity.
pub(in super::super) fn schedule(template: &Template) -> Vec<String> {
    let mut found = Vec::new();
    for (id, schedule) in template.of_kind("AWS::Scheduler::Schedule") {
        let goal = &schedule["Target"];
        let input = goal["Input"]["Fn::Sub"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let wanted = json!({
            "cron": "${CronName}",
            "schedule": "<aws.scheduler.schedule-arn>",
            "scheduled_time": "<aws.scheduler.scheduled-time>",
        });
        let function = target(&goal["Arn"]);
        let role = target(&goal["RoleArn"]).unwrap_or_default();
        let statements = template.statements(role);
        let mut starts = statements.iter().filter(|statement| statement.actions.contains(&"lambda:InvokeFunction"));
        found.extend([
            unless(input == Some(wanted), || format!("{id}: its input is another")),
            unless(schedule["FlexibleTimeWindow"]["Mode"] == "OFF", || format!("{id}: it comes when it likes")),
            unless(function == Some("IngressCron"), || format!("{id}: it starts {function:?}")),
            unless(starts.any(|statement| statement.targets().eq(function)), || {
                format!("{id}: its role starts another")
            }),
        ]);
    }
    found.into_iter().flatten().collect()
}

/// What a person needs after a deployment: an address for every channel, the name of every secret, and what `turnlock
/// redrive` asks for.
pub(in super::super) fn outputs(template: &Template) -> Vec<String> {
    let text = |name: &str| substituted(&template.outputs.get(name)?["Value"]);
    let channels = [
        ("TelegramWebhookUrl", "TelegramSecret", "telegram"),
        ("SlackRequestUrl", "SlackSecret", "slack"),
        ("WebhookUrl", "WebhookSourceSecret", "webhook"),
    ];
    let addresses = channels.iter().filter_map(|(output, secret, channel)| {
        let wanted =
            template.resources.contains_key(*secret).then(|| format!("${{HttpApi.ApiEndpoint}}/{channel}/main"));
        unless(text(output) == wanted.as_deref(), || format!("{output}: it is {:?}", text(output)))
    });
    let variables = template.outputs.get("RedriveEnvironment").map(|output| &output["Value"]["Fn::Join"]);
    let set = variables.and_then(|join| join[1].as_array()).into_iter().flatten().filter_map(substituted);
    let wanted = [
        format!("{}=${{AWS::Region}}", names::AWS_REGION),
        format!("{}=${{Table}}", names::TABLE),
        format!("{}=${{InboundQueue}}", names::INBOUND_QUEUE),
        format!("{}=${{OutboundQueue}}", names::OUTBOUND_QUEUE),
        format!("{}=${{ConsolidateQueue}}", names::CONSOLIDATE_QUEUE),
        format!("{}=${{ReviewQueue}}", names::REVIEW_QUEUE),
    ];
    let named = |secret: &str| template.outputs.values().any(|output| target(&output["Value"]) == Some(secret));
    let secrets = template.of_kind("AWS::SecretsManager::Secret").map(|(id, _)| id);
    let secrets = secrets.filter_map(|id| unless(named(id), || format!("{id}: no output names it")));
    let redrive = unless(set.eq(wanted.iter()), || "RedriveEnvironment: redrive asks for other variables".to_owned());
    addresses.chain(secrets).chain(redrive).collect()
}
