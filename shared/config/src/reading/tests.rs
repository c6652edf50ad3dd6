use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use crate::{
    Allow, ApprovalAction, ApprovalRule, Approvals, Capability, Config, DemoSecrets, Groups, Guardrail, Instruction,
    Provider, ReplyTo, Thinking, Verify, WhileBusy,
};

const EXAMPLE: &str = include_str!("../../turnlock.example.toml");

fn lookup(name: &str) -> Option<String> {
    match name {
        "EMPTY" => Some(" \n".to_owned()),
        "TOKEN" => Some("42:abc\n".to_owned()),
        "secret:prod/token" => Some("43:def".to_owned()),
        "TELEGRAM_BOT_TOKEN" => Some("7:token".to_owned()),
        name if name.ends_with("TOKEN") || name.ends_with("SECRET") || name.ends_with("KEY") => {
            Some(format!("value of {name}"))
        }
        _ => None,
    }
}

fn parse(text: &str) -> Config {
    Config::parse(text, &lookup).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

fn refusal(text: &str) -> String {
    match Config::parse(text, &lookup) {
        Ok(config) => panic!("accepted: {text}\n{config:?}"),
        Err(error) => error.to_string(),
    }
}

/// `[telegram.main]` with everything it needs and `more`.
fn telegram(more: &str) -> String {
    format!("[telegram.main]\nbot_token = \"env:TOKEN\"\nsecret_token = \"env:SECRET\"\nusername = \"@b\"\n{more}")
}

#[test]
fn the_example_parses() {
    let config = parse(EXAMPLE);
    let defaults = Config::default();
    assert_eq!(config.agent.limits, defaults.agent.limits, "the example shows the defaults");
    assert_eq!((config.agent.name, config.agent.language), (defaults.agent.name, defaults.agent.language));
    assert_eq!(config.server, defaults.server);
    assert!(matches!(config.agent.instructions[..], [Instruction::Text(_)]));
    let [model] = &config.models[..] else { panic!("one model") };
    assert_eq!((model.provider, model.context_tokens), (Provider::Openai, Some(131_072)));
    assert_eq!((model.base_url.as_str(), model.max_tokens), ("http://127.0.0.1:11434/v1", Some(4096)));
    assert!(model.can(Capability::Images));
    let bot = &config.telegram["main"];
    assert_eq!((bot.bot_id, bot.username.as_str(), bot.account.groups), (7, "echo_bot", Groups::Mention));
    assert!(bot.account.allow.permits(&["5", "1000001"]) && !bot.account.allow.permits(&["5"]));
    assert_eq!(config.slack["main"].account.allow, Allow::Everybody);
    assert_eq!((config.approvals.approvers.len(), config.approvals.rules[0].action), (2, ApprovalAction::Ask));
    let github = &config.webhook["github"];
    assert_eq!(github.verify, Verify::Hmac { header: "X-Hub-Signature-256".into() });
    assert!(matches!(&github.reply_to, Some(ReplyTo::Chat { chat, .. }) if chat == "1000001"));
}

#[test]
fn an_openai_model_has_tools_and_openais_own_address() {
    let config = parse("[[models]]\nprovider = \"openai\"\nmodel = \"m\"\napi_key = \"env:OPENAI_API_KEY\"");
    let model = &config.models[0];
    assert!(!model.can(Capability::Images) && model.can(Capability::Tools));
    assert_eq!(model.base_url, "https://api.openai.com/v1");
}

#[test]
fn a_bedrock_model_has_a_guardrail_and_thinks() {
    let bedrock = |more: &str| format!("[[models]]\nprovider = \"bedrock\"\nmodel = \"m\"\n{more}");
    let config = parse(&bedrock(
        "capabilities = [\"tools\", \"documents\", \"cache\", \"results_alone\"]\nmax_tokens = 8192\n\
         guardrail = { id = \"g1\", version = \"DRAFT\" }\nthinking = { budget_tokens = 4096 }\n\
         price = { input = 3, output = 15, cache_read = 0.3 }",
    ));
    let model = &config.models[0];
    let can = [Capability::Documents, Capability::Cache, Capability::ResultsAlone].map(|what| model.can(what));
    assert_eq!((can, model.can(Capability::Images)), ([true; 3], false));
    assert_eq!(model.guardrail, Some(Guardrail { id: "g1".into(), version: "DRAFT".into() }));
    assert_eq!(model.thinking, Some(Thinking::Budget(4096)));
    let price = model.price.expect("a price");
    assert_eq!((price.cache_read, price.cache_write), (0.3, 3.0), "else what is read costs");
    let adaptive = parse(&bedrock("thinking = { adaptive = true }"));
    assert_eq!(adaptive.models[0].thinking, Some(Thinking::Adaptive));
    for (more, want) in [
        ("thinking = { budget_tokens = 4096 }", "thinking.budget_tokens: must be less than the model's max_tokens"),
        ("max_tokens = 2000\nthinking = { budget_tokens = 2000 }", "must be less than the model's max_tokens"),
        ("thinking = { budget_tokens = 1000 }", "must be a whole number from 1024 to 10000000"),
        ("max_tokens = 9000\nthinking = { budget_tokens = 2000, adaptive = true }", "is instead of budget_tokens"),
        ("guardrail = { id = \"g1\" }", "models[0].guardrail.version: is missing"),
        ("capabilities = \"cache\"", "must be a list of \"tools\", \"images\", \"documents\", \"cache\""),
    ] {
        let got = refusal(&bedrock(more));
        assert!(got.contains(want), "{more}\nwant {want}\ngot  {got}");
    }
}

#[test]
fn a_daily_cost_is_an_amount_above_nothing() {
    let cost = |value: &str| format!("[agent.limits]\ndaily_cost = {value}");
    assert_eq!(parse("").agent.limits.daily_cost, None);
    for (value, want) in [("20", 20_000_000), ("0.25", 250_000), ("0.000001", 1)] {
        assert_eq!(parse(&cost(value)).agent.limits.daily_cost, Some(want), "{value}");
    }
    for value in ["0", "-1", "0.0000001", "\"20\"", "nan"] {
        let got = refusal(&cost(value));
        assert!(got.contains("agent.limits.daily_cost: must be a number above 0"), "{value}: {got}");
    }
}

/// A cap that no call counts towards is none.
#[test]
fn a_daily_cost_needs_the_price_of_every_model() {
    let cap = "[agent.limits]\ndaily_cost = 20\n";
    let model = |provider: &str, name: &str, more: &str| {
        format!("[[models]]\nprovider = \"{provider}\"\nmodel = \"{name}\"\n{more}\n")
    };
    let dear = model("bedrock", "dear", "price = { input = 3, output = 15 }");
    let free = model("openai", "local", "price = { input = 0, output = 0 }");
    let unknown = model("openai", "cheap", "");
    let stand_in = model("scripted", "scripted", "");
    for accepted in [format!("{cap}{dear}{free}{stand_in}"), format!("{dear}{unknown}"), cap.to_owned()] {
        parse(&accepted);
    }
    let refused = refusal(&format!("{cap}{dear}{unknown}"));
    let want = "line 7: models[1].price: is missing, and agent.limits.daily_cost counts what `cheap` costs: ";
    assert!(refused.starts_with(want) && refused.lines().count() == 1, "{refused}");
}

#[test]
fn cache_points_are_for_models_that_are_sent_any() {
    for provider in ["openai", "scripted"] {
        let refused = refusal(&format!(
            "[[models]]\nprovider = \"{provider}\"\nmodel = \"m\"\ncapabilities = [\"tools\", \"cache\"]"
        ));
        assert!(refused.starts_with("line 4: models[0].capabilities: \"cache\" is for models of bedrock"), "{refused}");
    }
}

#[test]
fn an_amount_is_counted_in_millionths() {
    let table = [
        (0.0, 0),
        (3.0, 3_000_000),
        (0.1 + 0.2, 300_000),
        (0.000_000_4, 0),
        (0.000_000_6, 1),
        (1e300, u64::MAX),
        (f64::NAN, 0),
    ];
    for (amount, want) in table {
        assert_eq!(crate::millionths(amount), want, "{amount}");
    }
}

#[test]
fn approvals_and_steering_are_read() {
    let config = parse(
        r#"
        [agent.while_busy]
        telegram = "steer"
        slack = "queue"
        [approvals]
        approvers = ["telegram:1000001", "gateway:ops"]
        [[approvals.rules]]
        tool = "deploy"
        risk = "dangerous"
        channel = "slack"
        sender = "slack:U1"
        action = "deny"
        [[approvals.rules]]
        action = "ask"
        "#,
    );
    let while_busy = [("slack".to_owned(), WhileBusy::Queue), ("telegram".to_owned(), WhileBusy::Steer)];
    assert_eq!(config.agent.while_busy, while_busy.into());
    let text = |text: &str| Some(text.to_owned());
    let deploy = ApprovalRule {
        tool: text("deploy"),
        risk: text("dangerous"),
        channel: text("slack"),
        sender: text("slack:U1"),
        action: ApprovalAction::Deny,
    };
    let every = ApprovalRule { tool: None, risk: None, channel: None, sender: None, action: ApprovalAction::Ask };
    let approvers = ["telegram:1000001".to_owned(), "gateway:ops".to_owned()].into();
    assert_eq!(config.approvals, Approvals { approvers, rules: vec![deploy, every] });
}

#[test]
fn an_empty_file_is_closed_and_has_the_stand_in() {
    let config = parse("");
    assert_eq!(config.models[0].provider, Provider::Scripted);
    assert!(config.telegram.is_empty() && config.slack.is_empty() && config.webhook.is_empty());
    assert_eq!(parse(&telegram("")).telegram["main"].account.allow, Allow::Only([].into()), "nobody but a pairing");
}

#[test]
fn a_mistake_names_its_line_its_key_and_what_is_allowed() {
    let table = [
        ("[agent\n", "line 1: this is not TOML: unclosed table, expected `]`"),
        (
            "[agent]\nnmae = \"x\"",
            "line 2: agent.nmae: is not a known key; did you mean `name`? Allowed here: name, instructions, language, intro, while_busy, limits",
        ),
        (
            "[agents]\n",
            "line 1: agents: is not a known key; did you mean `agent`? Allowed here: agent, approvals, models, tools, telegram, slack, webhook, cron, gateway, server",
        ),
        ("[server]\nzzzzzz = 1", "line 2: server.zzzzzz: is not a known key; allowed here: directory, listen, hosts"),
        ("[agent]\n\nlimits.rpm = -1", "line 3: agent.limits.rpm: must be a whole number from 0 to 100000"),
        ("[agent.limits]\nburst = 0", "line 2: agent.limits.burst: must be a whole number from 1 to 10000"),
        (
            "[agent.limits]\nturn_seconds = 89",
            "line 2: agent.limits.turn_seconds: must be a whole number from 90 to 900",
        ),
        (
            "[agent.limits]\nlease_seconds = 44",
            "line 2: agent.limits.lease_seconds: must be a whole number from 45 to 900",
        ),
        (
            "[agent.limits]\napproval_expiry = \"8d\"",
            "line 2: agent.limits.approval_expiry: must be a duration such as \"1h\", \"15m\" or \"90s\", from 1 s to 604800 s",
        ),
        (
            "[agent.limits]\nmax_wait = \"30m\"",
            "line 2: agent.limits.max_wait: must be longer than 6 x turn_seconds (1800 s), or a message whose worker died is too old when it comes back",
        ),
        (
            "[agent]\nlanguage = \"English\"",
            "line 2: agent.language: must be a language code of two letters, e.g. \"en\"",
        ),
        (
            "[agent]\nintro = { telegarm = \"x\" }",
            "line 2: agent.intro.telegarm: is not a known key; did you mean `telegram`? Allowed here: telegram, slack, webhook, gateway, cron, cli",
        ),
        (
            "[agent]\nwhile_busy = { telegram = \"interrupt\" }",
            "line 2: agent.while_busy.telegram: must be one of \"queue\", \"steer\"",
        ),
        (
            "[approvals]\napprovers = [\"1000001\"]",
            "line 2: approvals.approvers: names people as \"telegram:1000001\", \"slack:U0123\" or \"gateway:ops\"",
        ),
        (
            "[[approvals.rules]]\ntool = \"deploy\"",
            "approvals.rules[0].action: is missing: \"allow\", \"ask\" or \"deny\"",
        ),
        (
            "[[approvals.rules]]\nrisk = \"high\"\naction = \"ask\"",
            "line 2: approvals.rules[0].risk: must be one of \"read\", \"write\", \"execute\", \"dangerous\"",
        ),
        (
            "[[approvals.rules]]\naction = \"ask\"\nchannel = \"sms\"",
            "line 3: approvals.rules[0].channel: must be one of \"telegram\", \"slack\", \"webhook\", \"gateway\", \"cron\", \"cli\"",
        ),
        ("agent = 1", "line 1: agent: is a table of keys, not a single value"),
        ("models = []", "line 1: models: must be a list of at least one model, each under [[models]]"),
        (
            "[[models]]\nmodel = \"m\"",
            "line 1: models[0].provider: is missing: \"bedrock\", \"openai\" or \"scripted\"",
        ),
        (
            "[[models]]\nprovider = \"anthropic\"\nmodel = \"m\"",
            "line 2: models[0].provider: must be one of \"bedrock\", \"openai\", \"scripted\"",
        ),
        ("[[models]]\nprovider = \"openai\"", "line 1: models[0].model: is missing: the model's name at its provider"),
        (
            "[[models]]\nprovider = \"scripted\"\nbase_url = \"http://x\"",
            "line 3: models[0].base_url: is not a known key; allowed here: provider, model, capabilities, context_tokens, max_tokens, price",
        ),
        (
            "[[models]]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"localhost:11434\"",
            "line 4: models[0].base_url: must be an address that begins with https:// or http://",
        ),
        (
            "[server]\nlisten = \"8787\"",
            "line 2: server.listen: must be an address and a port, e.g. \"127.0.0.1:8787\"",
        ),
    ];
    for (text, want) in table {
        let got = refusal(text);
        assert!(got.contains(want), "{text}\nwant {want}\ngot  {got}");
    }
}

#[test]
fn accounts_are_checked() {
    let twice = format!("{}\n{}", telegram(""), telegram("").replace("main", "other"));
    let table = [
        (twice, "line 6: telegram.other.bot_id: is the bot of telegram.main.bot_id already; each needs its own"),
        (telegram("allow = [\"@bob\"]"), "must be a list of ids, e.g. [1000001], or [\"*\"] for everybody"),
        (telegram("allow = \"*\""), "must be a list of ids"),
        (
            telegram("groups = \"all\""),
            "line 5: telegram.main.groups: must be one of \"mention\", \"always\", \"never\"",
        ),
        (telegram("").replace("main", "Main"), "telegram.Main: a name here is a small letter and up to 31 of a-z"),
        (telegram("").replace("username", "user_name"), "did you mean `username`?"),
        (
            "[telegram.main]\nusername = \"b\"".to_owned(),
            "line 1: telegram.main.bot_token: is missing; without it /telegram/main cannot be served: write bot_token = \"env:NAME\" or \"secret:name\"",
        ),
        (
            "[webhook.ci]\nverify = \"none\"\nsecret = \"env:SECRET\"".to_owned(),
            "line 2: webhook.ci.verify: must be \"standard\", \"slack\"",
        ),
        (
            "[webhook.ci]\nsecret = \"env:SECRET\"\nreply_to = \"slack:C1\"".to_owned(),
            "line 3: webhook.ci.reply_to: there is no [slack.main] to send it",
        ),
        (
            "[gateway.keys.a]\nkey = \"env:KEY\"\n[gateway.keys.b]\nkey = \"env:KEY\"".to_owned(),
            "line 4: gateway.keys.b.key: is the key of gateway.keys.a.key already; each needs its own",
        ),
        (
            "[slack.main]\nbot_token = \"env:TOKEN\"\nsigning_secret = \"env:SECRET\"".to_owned(),
            "slack.main.team_id: is missing: the workspace's id, T…",
        ),
    ];
    for (text, want) in table {
        let got = refusal(&text);
        assert!(got.contains(want), "{text}\nwant {want}\ngot  {got}");
    }
}

#[test]
fn a_secret_is_referred_to_and_never_repeated() {
    let literal = "7999:AAHsecretsecret";
    let written = |value: &str| telegram("").replace("env:TOKEN", value);
    let refer = "line 2: telegram.main.bot_token: a secret is never written out";
    let table = [
        (written(literal), refer),
        (written(&format!("env:{literal}")), refer),
        (written(""), refer),
        (written("env:"), refer),
        (
            written("env:ABSENT"),
            "line 2: telegram.main.bot_token: the environment variable ABSENT is not there; without it /telegram/main cannot be served",
        ),
        (written("env:EMPTY"), "the environment variable EMPTY is empty; without it /telegram/main cannot be served"),
        (written("secret:no/such"), "the secret no/such is not there"),
    ];
    for (text, want) in table {
        let got = refusal(&text);
        assert!(got.contains(want), "{text}\nwant {want}\ngot  {got}");
        assert!(!got.contains("AAHsecret"), "{got}");
    }
    let broken = refusal(&format!("[telegram.main]\nbot_token = \"{literal}\nx"));
    assert!(broken.starts_with("line 3: this is not TOML") && !broken.contains("AAHsecret"), "{broken}");

    let config = parse(&written("secret:prod/token"));
    let token = config.telegram["main"].bot_token.as_ref().expect("a token");
    assert_eq!((token.expose_secret(), config.telegram["main"].bot_id), ("43:def", 43));
    let shown = format!("{config:?}");
    assert!(!shown.contains("def") && !shown.contains("value of"), "{shown}");
}

#[test]
fn a_bearer_webhook_names_its_secret_in_place() {
    let config = parse("[webhook.ci]\nverify = { bearer = \"env:HOOK_TOKEN\" }");
    let ci = &config.webhook["ci"];
    assert_eq!(ci.verify, Verify::Bearer);
    assert_eq!(
        ci.secret.as_ref().map(|secret| secret.expose_secret().to_owned()).as_deref(),
        Some("value of HOOK_TOKEN")
    );
}

#[test]
fn all_mistakes_are_told_together_in_order() {
    let text = "[agent]\nname = \"\"\n[agent.limits]\nrpm = \"many\"\n[agnet]\n";
    let lines: Vec<String> = refusal(text).lines().map(|line| line.chars().take(20).collect()).collect();
    assert_eq!(lines, ["line 2: agent.name: ", "line 4: agent.limits", "line 5: agnet: is no"]);
}

fn demo() -> Config {
    let secret = |text: &str| SecretString::from(text);
    Config::demo(DemoSecrets {
        telegram_bot_token: secret("1:demo"),
        telegram_secret_token: secret("s"),
        slack_bot_token: secret("xoxb"),
        slack_signing_secret: secret("sign"),
        webhook_secret: secret("whsec_AAAA"),
        gateway_key: secret("key"),
    })
}

fn merged(base: Config, json: Value) -> Config {
    Config::from_json_merge(base, json, &|key| SecretString::from(format!("made up for {key}"))).expect("accepted")
}

#[test]
fn json_is_merged_over_what_was_there() {
    let config = merged(
        demo(),
        json!({
            "agent": {"name": "Neo", "limits": {"concurrency": 1, "max_wait": "60s"}},
            "telegram": {"main": {"groups": "always"}, "other": {"bot_id": 2, "username": "other_bot"}},
            "slack": {"two": {"app_id": "A0TWO", "team_id": "T0TEAM", "bot_user_id": "U0B", "signing_secret": "given"}},
        }),
    );
    assert_eq!((config.agent.name.as_str(), config.agent.limits.concurrency, config.agent.limits.rpm), ("Neo", 1, 20));
    let secret = |secret: &Option<SecretString>| secret.as_ref().map(|secret| secret.expose_secret().to_owned());
    let main = &config.telegram["main"];
    assert_eq!((main.account.groups, main.username.as_str()), (Groups::Always, "echo_bot"));
    assert_eq!(secret(&main.bot_token).as_deref(), Some("1:demo"));
    let other = &config.telegram["other"];
    assert_eq!(secret(&other.bot_token).as_deref(), Some("made up for telegram.other.bot_token"));
    assert_eq!(other.account.allow, Allow::Everybody);
    assert_eq!(secret(&config.slack["two"].signing_secret).as_deref(), Some("given"));
}

#[test]
fn json_can_take_away_secrets_and_accounts() {
    let config = merged(
        demo(),
        json!({"telegram": {"main": {"secret_token": "", "bot_token": null}}, "slack": null, "webhook": {"main": null}}),
    );
    assert!(config.telegram["main"].secret_token.is_none() && config.telegram["main"].bot_token.is_none());
    assert!(config.slack.is_empty() && config.webhook.is_empty());
    let later = merged(config, json!({"telegram": {"main": {"stream": false}}}));
    assert!(later.telegram["main"].bot_token.is_none(), "what was taken away is not made up again");
}

#[test]
fn json_is_as_strict_as_the_file() {
    let refused = |json: Value| {
        Config::from_json_merge(demo(), json, &|_| SecretString::from("x")).expect_err("refused").to_string()
    };
    assert_eq!(
        refused(json!({"telegram": {"main": {"grups": "always"}}})),
        "telegram.main.grups: is not a known key; did you mean `groups`? Allowed here: bot_token, secret_token, bot_id, \
         username, base_url, allow, stream, groups"
    );
    assert_eq!(
        refused(json!({"telegram": {"other": {"bot_id": 1, "username": "o"}}})),
        "telegram.other.bot_id: is the bot of telegram.main.bot_id already; each needs its own"
    );
    assert_eq!(refused(json!([])), "a configuration is an object");
}

#[test]
fn the_file_is_read_with_its_instructions() {
    let root = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(root.path().join("agent")).expect("a directory");
    std::fs::write(root.path().join("agent/persona.md"), "You are Echo.\n").expect("a file");
    let path = root.path().join("turnlock.toml");
    std::fs::write(&path, "[agent]\ninstructions = [\"agent/*.md\", \"Be brief.\"]\n").expect("a file");
    let config = Config::load(&path).expect("accepted");
    assert_eq!(config.agent.instruction_text(), "You are Echo.\n\nBe brief.");
    std::fs::write(&path, "[agent]\ninstructions = \"missing.md\"\n").expect("a file");
    let error = Config::load(&path).expect_err("refused").to_string();
    assert!(
        error.starts_with(&format!("{}: agent.instructions: no file fits `missing.md`", path.display())),
        "{error}"
    );
    assert!(Config::load(&root.path().join("none.toml")).expect_err("refused").to_string().ends_with("cannot be read"));
}

#[test]
fn a_function_reads_only_the_secrets_it_needs() {
    let text = "[telegram.main]\nbot_id = 7\nusername = \"echo_bot\"\nbot_token = \"secret:bot-token\"\n\
                secret_token = \"secret:secret-token\"\n[gateway.keys.ops]\nkey = \"secret:ops\"\n";
    let asked = std::cell::RefCell::new(Vec::new());
    let lookup = |name: &str| {
        asked.borrow_mut().push(name.to_owned());
        Some("planted".to_owned())
    };
    let part = crate::Part { needs: &|key| key.ends_with(".secret_token"), turn_seconds: Some(90) };
    let config = Config::parse_part(text, part, &lookup).unwrap();
    assert_eq!(asked.take(), ["secret:secret-token"]);
    let bot = &config.telegram["main"];
    assert!(bot.secret_token.is_some() && bot.bot_token.is_none() && config.gateway.keys["ops"].key.is_none());
    assert_eq!(config.agent.limits.turn_seconds, 90);
    // One that is needed and not there, and one that stands in the file, are still refused.
    let missing = Config::parse_part(text, part, &|_| None).unwrap_err().to_string();
    assert!(missing.contains("telegram.main.secret_token: the secret secret-token is not there"), "{missing}");
    let written = text.replace("secret:bot-token", "7:planted-token");
    let written = Config::parse_part(&written, part, &lookup).unwrap_err().to_string();
    assert!(written.contains("telegram.main.bot_token: a secret is never written out"), "{written}");
    assert!(!written.contains("planted-token"), "{written}");
}

#[test]
fn a_bot_whose_token_is_not_read_says_its_id() {
    let text = "[telegram.main]\nusername = \"echo_bot\"\nbot_token = \"secret:t\"\nsecret_token = \"secret:s\"\n";
    let part = crate::Part { needs: &|key| key.ends_with(".secret_token"), turn_seconds: None };
    let error = Config::parse_part(text, part, &|_| Some("7:planted".to_owned())).unwrap_err().to_string();
    assert!(error.contains("telegram.main.bot_id: is missing: write it out"), "{error}");
    assert_eq!(Config::parse(text, &|_| Some("7:planted".to_owned())).unwrap().telegram["main"].bot_id, 7);
}

#[test]
fn a_schedule_says_what_to_do_and_who_reads_the_answer() {
    let bot = "[telegram.main]\nbot_id = 7\nusername = \"echo_bot\"\nbot_token = \"env:T\"\nsecret_token = \"env:S\"\n";
    let planted = |_: &str| Some("planted".to_owned());
    let config = Config::parse(
        &format!("{bot}[cron.morning]\ntext = \"What is on today?\"\nreply_to = \"telegram:1000001\"\n"),
        &planted,
    )
    .unwrap();
    let morning = &config.cron["morning"];
    assert_eq!(morning.text, "What is on today?");
    assert!(matches!(&morning.reply_to, Some(crate::ReplyTo::Chat { chat, .. }) if chat == "1000001"));
    let refused = |text: &str| Config::parse(text, &planted).unwrap_err().to_string();
    assert!(refused("[cron.morning]\n").contains("cron.morning.text: is missing"));
    let nowhere = refused("[cron.morning]\ntext = \"x\"\nreply_to = \"telegram:1\"\n");
    assert!(nowhere.contains("cron.morning.reply_to: there is no [telegram.main] to send it"), "{nowhere}");
    let address = refused("[cron.morning]\ntext = \"x\"\nreply_to = \"https://example.com/\"\n");
    assert!(address.contains("an answer to a schedule goes to no address"), "{address}");
}
