//! Templates that break a rule each: a check that cannot fail would be none.

use serde_json::{Value, json};
use turnlock_tests::template::read;

use super::findings;

/// Where a template is changed, as a JSON pointer, to what, and what is then found.
type Break = (&'static str, Value, &'static [&'static str]);

fn breaks() -> Vec<Break> {
    vec![
        // Case sqs-visibility-six, in its figures and in ours.
        (
            "/Resources/ControlQueue/Properties/VisibilityTimeout",
            json!(60),
            &["ControlQueue: 60 s out of sight, Control takes 60 s"],
        ),
        (
            "/Mappings/Visibility/300/Seconds",
            json!(300),
            &[
                "InboundQueue: 300 s out of sight, Agent takes 300 s",
                "DeadLetterQueue: 300 s out of sight, DeadLetter takes 300 s",
                "JobDeadLetterQueue: 300 s out of sight, DeadLetter takes 300 s",
            ],
        ),
        (
            "/Resources/ReviewQueue/Properties/VisibilityTimeout",
            json!(1800),
            &["ReviewQueue: 1800 s out of sight, Review takes 840 s"],
        ),
        (
            "/Resources/Consolidate/Properties/Timeout",
            json!(300),
            &[
                "ConsolidateQueue: 5040 s out of sight, Consolidate takes 300 s",
                "Consolidate: no time for 4 answers in 300 s",
            ],
        ),
        (
            "/Resources/JobDeadLetterQueue/Properties/MaximumMessageSize",
            json!(262_144),
            &["JobDeadLetterQueue: a message has 262144 bytes at most, not 1048576"],
        ),
        (
            "/Resources/InboundQueue/Properties/DeduplicationScope",
            json!("queue"),
            &["InboundQueue: DeduplicationScope is not \"messageGroup\""],
        ),
        // Case sqs-dedup-content.
        (
            "/Resources/OutboundQueue/Properties/ContentBasedDeduplication",
            json!(true),
            &["OutboundQueue: ContentBasedDeduplication is not false"],
        ),
        (
            "/Resources/InboundQueue/Properties/RedrivePolicy/maxReceiveCount",
            json!(3),
            &["InboundQueue: maxReceiveCount is not Some(1000)"],
        ),
        (
            "/Resources/ControlQueue/Properties/RedrivePolicy/deadLetterTargetArn",
            json!({ "Fn::GetAtt": ["JobDeadLetterQueue", "Arn"] }),
            &["ControlQueue: JobDeadLetterQueue is of another kind"],
        ),
        (
            "/Resources/ReviewQueue/Properties/RedrivePolicy",
            Value::Null,
            &["ReviewQueue: nothing becomes of what it gives up"],
        ),
        (
            "/Resources/DeadLetterQueue/Properties/MessageRetentionPeriod",
            json!(22 * 24 * 3600),
            &[
                "DeadLetterQueue: its messages are deleted early, after 1900800 s",
                "ControlQueue: its messages outlive their markers",
                "InboundQueue: its messages outlive their markers",
                "OutboundQueue: its messages outlive their markers",
            ],
        ),
        (
            "/Resources/Agent/Properties/Events/Events/Properties/FunctionResponseTypes",
            json!([]),
            &["Agent from InboundQueue: a batch fails as a whole"],
        ),
        (
            "/Resources/Agent/Properties/Events/Events/Properties/BatchSize",
            json!(10),
            &["Agent from InboundQueue: records wait for each other"],
        ),
        (
            "/Parameters/JobConcurrency/Default",
            json!(1),
            &[
                "Consolidate from ConsolidateQueue: MaximumConcurrency 1, not 2 to 1000",
                "Review from ReviewQueue: MaximumConcurrency 1, not 2 to 1000",
            ],
        ),
        (
            "/Resources/Review/Properties/Events/Jobs/Properties/Queue",
            json!({ "Fn::GetAtt": ["ConsolidateQueue", "Arn"] }),
            &[
                "ConsolidateQueue: 2 functions drain it",
                "ReviewQueue: 0 functions drain it",
                "Review: it may not receive what it drains",
                "Review: it may not delete what it drains",
            ],
        ),
        (
            "/Resources/Agent/Properties/ReservedConcurrentExecutions",
            json!(9),
            &["Agent: 10 at once from InboundQueue, reserved are Some(9)"],
        ),
        ("/Resources/Gateway/Properties/Timeout", json!(30), &["Gateway: a timeout of 30 s"]),
        ("/Resources/Gateway/Properties/Architectures", json!(["x86_64"]), &["Gateway: another architecture"]),
        ("/Resources/Gateway/Properties/LoggingConfig", json!({}), &["Gateway: its log group is None"]),
        (
            "/Resources/Gateway/Properties/Events/Health/Properties/Path",
            json!("/health"),
            &["the routes are [(\"Gateway\", \"ANY\", \"/v1/{proxy+}\"), (\"Gateway\", \"GET\", \"/health\"), \
             (\"IngressSlack\", \"POST\", \"/slack/{account}\"), (\"IngressTelegram\", \"POST\", \
             \"/telegram/{account}\"), (\"IngressWebhook\", \"POST\", \"/webhook/{source}\")]"],
        ),
        ("/Resources/HttpApi/Properties/StageName", json!("prod"), &["another stage would be part of every path"]),
        ("/Resources/AgentLogs/Properties/RetentionInDays", Value::Null, &["AgentLogs: logs are kept for ever"]),
        (
            "/Resources/ControlRole/Properties/Policies/0/PolicyDocument/Statement/0/Action",
            json!(["logs:PutLogEvents", "logs:Create*"]),
            &["ControlRole: logs:Create* is no single action"],
        ),
        (
            "/Resources/ControlRole/Properties/Policies/0/PolicyDocument/Statement/4/Resource",
            json!("*"),
            &[
                "ControlRole: Store on \"*\"",
                "Control: it may use {\"ControlQueue\", \"DeadLetterQueue\", \"InboundQueue\", \"OutboundQueue\"}, its \
             environment names {\"ControlQueue\", \"DeadLetterQueue\", \"InboundQueue\", \"OutboundQueue\", \"Table\"}",
            ],
        ),
        (
            "/Resources/UseModels/Properties/PolicyDocument/Statement/0/Resource",
            json!("arn:aws:bedrock:*"),
            &[
                "AgentRole: InvokeModels on \"arn:aws:bedrock:*\"",
                "ConsolidateRole: InvokeModels on \"arn:aws:bedrock:*\"",
                "ReviewRole: InvokeModels on \"arn:aws:bedrock:*\"",
            ],
        ),
        (
            "/Resources/UseModels/Properties/PolicyDocument/Statement/1/Fn::If/1/Resource",
            json!("*"),
            &[
                "AgentRole: ApplyGuardrail on \"*\"",
                "ConsolidateRole: ApplyGuardrail on \"*\"",
                "ReviewRole: ApplyGuardrail on \"*\"",
            ],
        ),
        ("/Parameters/ToolFunctionArns/Default", json!("*"), &["AgentRole: InvokeTools on \"*\""]),
        (
            "/Resources/Review/Properties/Role/Fn::GetAtt/0",
            json!("ConsolidateRole"),
            &[
                "Review: its role is ConsolidateRole",
                "Review: it may use {\"ConsolidateQueue\", \"JobDeadLetterQueue\", \"Table\"}, its environment names \
             {\"JobDeadLetterQueue\", \"ReviewQueue\", \"Table\"}",
                "Review: it may not receive what it drains",
                "Review: it may not delete what it drains",
                "Review: it logs elsewhere",
                "Review: it may use {\"ConsolidateQueue\", \"JobDeadLetterQueue\", \"ModelSecret\", \"Table\"}, its \
             environment names {\"JobDeadLetterQueue\", \"ModelSecret\", \"ReviewQueue\", \"Table\"}",
            ],
        ),
        (
            "/Resources/AgentRole/Properties/AssumeRolePolicyDocument/Statement/0/Principal",
            json!({ "AWS": "*" }),
            &["Agent: its role is not Lambda's alone"],
        ),
        (
            "/Resources/Agent/Properties/Environment/Variables/TURNLOCK_OUTBOUND_QUEUE/Ref",
            json!("ReviewQueue"),
            &[
                "Agent: it may use {\"ConsolidateQueue\", \"DeadLetterQueue\", \"InboundQueue\", \"OutboundQueue\", \
             \"ReviewQueue\", \"Table\"}, its environment names {\"ConsolidateQueue\", \"DeadLetterQueue\", \
             \"InboundQueue\", \"ReviewQueue\", \"Table\"}",
                "Agent: a variable names another queue",
                "Agent: it may use {\"ConsolidateQueue\", \"DeadLetterQueue\", \"FilesSecret\", \"InboundQueue\", \
             \"ModelSecret\", \"OutboundQueue\", \"ReviewQueue\", \"Table\"}, its environment names \
             {\"ConsolidateQueue\", \"DeadLetterQueue\", \"FilesSecret\", \"InboundQueue\", \"ModelSecret\", \
             \"ReviewQueue\", \"Table\"}",
            ],
        ),
        (
            "/Resources/Control/Properties/Environment/Variables/TURNLOCK_SECRETS",
            json!({ "Ref": "GatewaySecret" }),
            &[
                "Control: it may use {\"ControlQueue\", \"DeadLetterQueue\", \"InboundQueue\", \"OutboundQueue\", \"Table\"}, its \
             environment names {\"ControlQueue\", \"DeadLetterQueue\", \"GatewaySecret\", \"InboundQueue\", \"OutboundQueue\", \
             \"Table\"}",
                "GatewaySecret: its readers are Some([\"Control\", \"Gateway\"])",
            ],
        ),
        (
            "/Parameters/SlackBotToken/NoEcho",
            Value::Null,
            &["SlackBotToken: DeliverySecret shows it", "SlackBotToken: FilesSecret shows it"],
        ),
        ("/Parameters/ModelApiKey/Default", json!(""), &["ModelApiKey: nobody can answer it"]),
        (
            "/Resources/Table/Properties/KeySchema/1/AttributeName",
            json!("sort"),
            &["Table: its key is not the store's"],
        ),
        (
            "/Resources/Table/Properties/TimeToLiveSpecification/AttributeName",
            json!("ttl"),
            &["Table: its TTL is not the store's"],
        ),
        ("/Resources/Table/Properties/PointInTimeRecoverySpecification", Value::Null, &["Table: there is no way back"]),
        ("/Resources/Table/Properties/BillingMode", json!("PROVISIONED"), &["Table: it costs without users"]),
        ("/Parameters/DeletionProtection/Default", json!("false"), &["Table: nothing protects it"]),
        ("/Resources/DeadItems/Properties/MetricName", json!("dead"), &["no alarm for dead items of DeadLetter"]),
        (
            "/Resources/DeadLettersWait/Properties/Namespace",
            json!("Turnlock"),
            &["no alarm for what waits in DeadLetterQueue"],
        ),
        ("/Resources/EventsWait/Properties/Threshold", json!(600), &["no alarm for who waits for a turn"]),
        ("/Resources/EventsWait/Properties/Namespace", json!("AWS/SQS"), &["no alarm for who waits for a turn"]),
        (
            "/Resources/EventsUnread/Properties/Metrics/2/MetricStat/Period",
            json!(900),
            &["no alarm for events that nobody receives"],
        ),
        // CloudWatch knows a metric by all of its dimensions.
        (
            "/Resources/UndeliveredSlack/Properties/Dimensions",
            json!([{ "Name": "channel", "Value": "slack" }]),
            &["an alarm for undelivered replies on slack: false"],
        ),
        ("/Resources/AgentErrors/Properties/TreatMissingData", json!("ignore"), &["no alarm for errors of Agent"]),
        (
            "/Resources/GatewayErrors/Properties/AlarmDescription/Fn::Sub",
            json!("Something is wrong."),
            &["GatewayErrors: whoever is told does not know where to look"],
        ),
        (
            "/Resources/RepliesWait/Properties/AlarmActions",
            Value::Null,
            &["RepliesWait: whoever is told does not know where to look"],
        ),
        ("/Outputs/ModelSecretName/Value/Ref", json!("GatewaySecret"), &["ModelSecret: no output names it"]),
        ("/Resources/Schedule/Properties/Target/Input/Fn::Sub", json!("{}"), &["Schedule: its input is another"]),
        (
            "/Resources/Schedule/Properties/FlexibleTimeWindow/Mode",
            json!("FLEXIBLE"),
            &["Schedule: it comes when it likes"],
        ),
        (
            "/Resources/Schedule/Properties/Target/Arn/Fn::GetAtt/0",
            json!("Agent"),
            &["Schedule: it starts Some(\"Agent\")", "Schedule: its role starts another"],
        ),
        (
            "/Outputs/SlackRequestUrl/Value/Fn::Sub",
            json!("${HttpApi.ApiEndpoint}/slack"),
            &["SlackRequestUrl: it is Some(\"${HttpApi.ApiEndpoint}/slack\")"],
        ),
        (
            "/Outputs/RedriveEnvironment/Value/Fn::Join/1/1/Fn::Sub",
            json!("TABLE=${Table}"),
            &["RedriveEnvironment: redrive asks for other variables"],
        ),
    ]
}

#[test]
fn each_rule_is_broken_by_a_template() {
    for (place, value, wanted) in breaks() {
        let mut document = read();
        put(&mut document, place, value);
        assert_eq!(findings(&document), wanted, "{place}");
    }
}

/// Puts `value` at a place whose parent is there.
fn put(document: &mut Value, place: &str, value: Value) {
    let (parent, name) = place.rsplit_once('/').unwrap();
    let parent = document.pointer_mut(parent).unwrap_or_else(|| panic!("there is no {parent}"));
    match parent {
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
        parent => parent[name] = value,
    }
}

/// A function without a target, a folder or an alarm, a target without a function: what is left out is found as well.
#[test]
fn what_is_left_out_is_found() {
    let mut document = read();
    let function = document["Resources"].as_object_mut().unwrap().remove("Control").unwrap();
    assert_eq!(findings(&document), ["ControlQueue: 0 functions drain it", "functions/control is not deployed"]);
    document["Resources"]["Other"] = function;
    let found = findings(&document);
    for missing in ["Other: there is no functions/other", "Other: the Makefile does not build it"] {
        assert!(found.iter().any(|finding| finding == missing), "{found:?}");
    }
}
