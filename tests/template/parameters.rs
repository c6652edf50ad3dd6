//! Parameters: what CloudFormation refuses before it creates anything, and what it takes.

use serde_json::{Value, json};
use turnlock_tests::template::{Template, environment, read, targets};

/// The assertions of the template's rules that do not hold for these parameters. A rule's functions are those of
/// conditions, so each is put in the place of one and asked for.
fn refusals(parameters: &[(&str, &str)]) -> Vec<String> {
    let document = read();
    let holds = |condition: &Value| {
        let mut document = document.clone();
        document["Conditions"]["Asked"] = condition.clone();
        document["Resources"]["Asked"] = json!({ "Type": "Asked", "Condition": "Asked", "Properties": {} });
        Template::new(&document, parameters).resources.contains_key("Asked")
    };
    let rules = document["Rules"].as_object().unwrap().values();
    let applied = rules.filter(|rule| holds(&rule["RuleCondition"]));
    let assertions = applied.flat_map(|rule| rule["Assertions"].as_array().unwrap());
    let broken = assertions.filter(|assertion| !holds(&assertion["Assert"]));
    broken.map(|assertion| assertion["AssertDescription"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn half_of_slack_is_refused() {
    let (token, secret) = (("SlackBotToken", "xoxb-1"), ("SlackSigningSecret", "5"));
    assert_eq!(refusals(&[token]), ["Slack needs SlackSigningSecret as well as SlackBotToken"]);
    assert_eq!(refusals(&[secret]), ["Slack needs SlackBotToken as well as SlackSigningSecret"]);
    assert!(refusals(&[token, secret]).is_empty() && refusals(&[]).is_empty());
}

/// A schedule that somebody adds by hand finds its role, and a table that a failed first deployment made can be deleted.
#[test]
fn what_is_always_there() {
    let document = read();
    assert!(Template::new(&document, &[]).resources.contains_key("SchedulerRole"));
    assert_eq!(document["Resources"]["Table"]["DeletionPolicy"], "Retain");
}

/// Without a bus nobody may put events anywhere, and the function is told of none.
#[test]
fn an_event_bus_is_off_by_default() {
    let document = read();
    for (given, put) in [(&[][..], false), (&[("EventBus", "replies")], true)] {
        let template = Template::new(&document, given);
        let delivery = template.functions().find(|(id, _)| *id == "Delivery").unwrap().1;
        let bus = if put { "replies" } else { "" };
        assert_eq!(environment(delivery)["TURNLOCK_EVENT_BUS"], bus);
        let roles = template.of_kind("AWS::IAM::Role").flat_map(|(role, _)| template.statements(role));
        let may: Vec<&str> = roles.filter(|it| it.actions.contains(&"events:PutEvents")).map(|it| it.sid).collect();
        assert_eq!(may, if put { vec!["PutEvents"] } else { vec![] });
    }
}

/// Without functions of a team's own the agent invokes none; with some it invokes these.
#[test]
fn functions_of_a_team_are_off_by_default() {
    let document = read();
    let may = |given: &[(&str, &str)]| {
        let template = Template::new(&document, given);
        let statements = template.of_kind("AWS::IAM::Role").flat_map(|(role, _)| {
            let all = template.statements(role).into_iter();
            all.map(move |statement| (role, statement))
        });
        let invoke = statements
            .filter(|(_, it)| it.sid == "InvokeTools")
            .map(|(role, it)| (role.to_owned(), json!(it.resources)));
        invoke.collect::<Vec<_>>()
    };
    assert_eq!(may(&[]), []);
    let arns = [
        "arn:aws:lambda:eu-central-1:123456789012:function:orders",
        "arn:aws:lambda:eu-central-1:123456789012:function:refund:live",
    ];
    assert_eq!(may(&[("ToolFunctionArns", &arns.join(","))]), [("AgentRole".to_owned(), json!(arns))]);
}

/// Without a guardrail nobody applies one; with it everybody who asks a model does.
#[test]
fn a_guardrail_is_off_by_default() {
    let document = read();
    let who = |given: &[(&str, &str)]| {
        let template = Template::new(&document, given);
        let roles = template.of_kind("AWS::IAM::Role").map(|(role, _)| role);
        let applying = roles.filter(|role| template.statements(role).iter().any(|it| it.sid == "ApplyGuardrail"));
        applying.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(who(&[]).is_empty());
    assert_eq!(who(&[("BedrockGuardrail", "g1")]), ["AgentRole", "ConsolidateRole", "ReviewRole"]);
}

/// The agent gets the bots' tokens when it is told to read pictures, and there is a bot.
#[test]
fn pictures_are_off_by_default() {
    let document = read();
    let bot = ("TelegramBotToken", "1:t");
    let reads = |given: &[(&str, &str)]| {
        let template = Template::new(&document, given);
        let agent = template.functions().find(|(id, _)| *id == "Agent").unwrap().1;
        let named = targets(environment(agent)["TURNLOCK_SECRETS"]).any(|secret| secret == "FilesSecret");
        (named, template.resources.contains_key("FilesSecret"))
    };
    assert_eq!(reads(&[]), (false, false));
    assert_eq!(reads(&[bot]), (false, false));
    assert_eq!(reads(&[("ReadFiles", "true")]), (false, false));
    assert_eq!(reads(&[bot, ("ReadFiles", "true")]), (true, true));
}
