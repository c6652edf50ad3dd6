//! Alarms: whatever would be silent otherwise rings, and says where to look.

use serde_json::{Value, json};
use turnlock_tests::template::{Template, substituted, target};

use super::unless;

/// The alarms of the defaults. What a channel's replies need is there with the channel.
pub(in super::super) fn alarms(template: &Template) -> Vec<String> {
    let mut found = Vec::new();
    for function in ["DeadLetter", "Delivery"] {
        let wanted = [("function", json!({ "Ref": function }))];
        found.extend(unless(counts(template, ("Turnlock", "Dead"), &wanted), || {
            format!("no alarm for dead items of {function}")
        }));
    }
    let channels = [("telegram", "TelegramSecret"), ("slack", "SlackSecret"), ("webhook", "WebhookSourceSecret")];
    for (channel, secret) in channels {
        let wanted = [("function", json!({ "Ref": "Delivery" })), ("channel", json!(channel))];
        let rings = counts(template, ("Turnlock", "Undelivered"), &wanted);
        found.extend(unless(rings == template.resources.contains_key(secret), || {
            format!("an alarm for undelivered replies on {channel}: {rings}")
        }));
    }
    for (function, _) in template.functions() {
        let wanted = [("FunctionName", json!({ "Ref": function }))];
        found.extend(unless(counts(template, ("AWS/Lambda", "Errors"), &wanted), || {
            format!("no alarm for errors of {function}")
        }));
    }
    found.extend(unless(waits(template), || "no alarm for who waits for a turn".to_owned()));
    found.extend(unless(unread(template), || "no alarm for events that nobody receives".to_owned()));
    let queues = [("OutboundQueue", 600), ("DeadLetterQueue", 900), ("JobDeadLetterQueue", 900)];
    for (queue, seconds) in queues {
        let mut of = of_metric(template, "AWS/SQS", "ApproximateAgeOfOldestMessage");
        let rings = of.any(|alarm| {
            target(&alarm["Dimensions"][0]["Value"]) == Some(queue)
                && alarm["Statistic"] == "Maximum"
                && rings_from(alarm, seconds)
        });
        found.extend(unless(rings, || format!("no alarm for what waits in {queue}")));
    }
    found.extend(template.of_kind("AWS::CloudWatch::Alarm").filter_map(|(id, alarm)| says_where(template, id, alarm)));
    found
}

/// Whether ten minutes of waiting ring, as the agent counts them: in the queue's own age a turn that waits for a person
/// would ring for days.
fn waits(template: &Template) -> bool {
    of_metric(template, "Turnlock", "waited_ms").any(|alarm| {
        alarm["Dimensions"] == json!([{ "Name": "function", "Value": { "Ref": "Agent" } }])
            && alarm["Statistic"] == "Maximum"
            && rings_from(alarm, 600_000)
    })
}

/// Whether it rings when events wait and nobody receives any for longer than a sleeping message is left alone.
fn unread(template: &Template) -> bool {
    let of_inbound = |metric: &Value| {
        let source = &metric["MetricStat"];
        let name = source["Metric"]["MetricName"].as_str().unwrap_or_default();
        let longer = source["Period"].as_i64().is_some_and(|period| period > 900);
        let inbound = target(&source["Metric"]["Dimensions"][0]["Value"]) == Some("InboundQueue");
        (longer && inbound).then(|| (metric["Id"].clone(), name.to_owned(), source["Stat"].clone()))
    };
    template.of_kind("AWS::CloudWatch::Alarm").any(|(_, alarm)| {
        let sources: Vec<_> = alarm["Metrics"].as_array().into_iter().flatten().filter_map(of_inbound).collect();
        let wanted = [
            (json!("waiting"), "ApproximateNumberOfMessagesVisible".to_owned(), json!("Minimum")),
            (json!("received"), "NumberOfMessagesReceived".to_owned(), json!("Sum")),
        ];
        sources == wanted
            && alarm["Metrics"][0]["Expression"] == "IF(waiting > 0 AND received == 0, 1, 0)"
            && rings_from(alarm, 1)
    })
}

/// Whether the first of what a metric counts rings.
fn counts(template: &Template, (namespace, metric): (&str, &str), dimensions: &[(&str, Value)]) -> bool {
    let dimensions: Value = dimensions.iter().map(|(name, value)| json!({ "Name": name, "Value": value })).collect();
    let mut of = of_metric(template, namespace, metric);
    of.any(|alarm| alarm["Dimensions"] == dimensions && alarm["Statistic"] == "Sum" && rings_from(alarm, 1))
}

fn of_metric<'t>(template: &'t Template, namespace: &'t str, metric: &'t str) -> impl Iterator<Item = &'t Value> {
    let alarms = template.of_kind("AWS::CloudWatch::Alarm").map(|(_, alarm)| alarm);
    alarms.filter(move |alarm| alarm["Namespace"] == namespace && alarm["MetricName"] == metric)
}

/// One period is enough, and silence is no alarm.
fn rings_from(alarm: &Value, threshold: i64) -> bool {
    alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
        && alarm["Threshold"] == threshold
        && alarm["EvaluationPeriods"] == 1
        && alarm["TreatMissingData"] == "notBreaching"
}

/// A description names a log group of ours, and mails go to the topic if there is one.
fn says_where(template: &Template, id: &str, alarm: &Value) -> Option<String> {
    let description = substituted(&alarm["AlarmDescription"]).unwrap_or_default();
    let groups = template.of_kind("AWS::Logs::LogGroup").map(|(group, _)| format!("${{{group}}}"));
    let group = groups.into_iter().any(|group| description.contains(&group));
    let topic = template.resources.contains_key("AlarmTopic");
    let told =
        if topic { alarm["AlarmActions"] == json!([{ "Ref": "AlarmTopic" }]) } else { alarm["AlarmActions"].is_null() };
    unless(group && told, || format!("{id}: whoever is told does not know where to look"))
}
