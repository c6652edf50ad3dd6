//! `turnlock.aws.toml`, which is shipped: as it is, and with everything that it shows opened. Its secrets are entries of
//! those that the template makes.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::Value;
use turnlock_config::{Config, Provider};
use turnlock_tests::template::{EVERYTHING, Template, read, repository, substituted};

fn shipped() -> String {
    std::fs::read_to_string(repository().join("turnlock.aws.toml")).unwrap()
}

/// Every line that is TOML behind its `#`.
fn opened() -> String {
    let text = shipped();
    let lines = text.lines().map(|line| {
        let Some(rest) = line.strip_prefix("# ") else { return line };
        let is_table = rest.starts_with('[') && rest.ends_with(']');
        let is_value =
            rest.split_once(" = ").is_some_and(|(key, _)| key.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
        // The second way to write them.
        let is_other = rest.starts_with("instructions");
        if (is_table || is_value) && !is_other { rest } else { line }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The configuration, and the names of the secrets that it asked for.
fn taken(text: &str) -> (Config, BTreeSet<String>) {
    let asked = RefCell::new(BTreeSet::new());
    let secret = |reference: &str| {
        let name = reference.strip_prefix("secret:")?;
        asked.borrow_mut().insert(name.to_owned());
        // A bot's token begins with its id.
        Some(match name {
            "telegram-bot-token" => "123456789:token".to_owned(),
            "support-bot-token" => "987654321:token".to_owned(),
            _ => format!("value of {name}"),
        })
    };
    let config = Config::parse(text, &secret).unwrap();
    (config, asked.into_inner())
}

#[test]
fn the_shipped_configuration_is_taken_as_it_is_and_with_everything_opened() {
    let (config, _) = taken(&shipped());
    assert_eq!(config.models[0].provider, Provider::Bedrock);
    assert!(config.telegram.is_empty() && config.slack.is_empty() && config.webhook.is_empty());
    let (config, _) = taken(&opened());
    let counts =
        [config.telegram.len(), config.slack.len(), config.webhook.len(), config.cron.len(), config.models.len()];
    assert_eq!(counts, [1, 1, 1, 1, 2]);
}

/// What docs/aws.md shows for a second bot goes behind everything else.
#[test]
fn a_second_bot_is_added_as_documented() {
    let guide = std::fs::read_to_string(repository().join("docs/aws.md")).unwrap();
    let [_, shown] = guide.split("```toml\n").collect::<Vec<_>>()[..] else { panic!("one configuration is shown") };
    let shown = shown.split("```").next().unwrap();
    let (config, named) = taken(&format!("{}\n{shown}", opened()));
    assert_eq!(config.telegram.keys().collect::<Vec<_>>(), ["main", "support"]);
    assert!(named.contains("support-bot-token") && named.contains("support-secret-token"));
}

#[test]
fn its_model_is_one_that_the_template_allows() {
    let allowed = read()["Parameters"]["BedrockModels"]["Default"].as_str().unwrap().to_owned();
    let model = &taken(&shipped()).0.models[0].model;
    assert!(allowed.split(',').any(|id| id == model), "{model} is not among {allowed}");
}

#[test]
fn its_secrets_are_entries_of_the_templates_secrets() {
    let (_, named) = taken(&opened());
    let template = Template::new(&read(), EVERYTHING);
    let mut made = BTreeSet::new();
    for (id, secret) in template.of_kind("AWS::SecretsManager::Secret") {
        let generated = secret["GenerateSecretString"]["GenerateStringKey"].as_str().map(str::to_owned);
        let written = substituted(&secret["SecretString"]);
        let written =
            written.map(|text| serde_json::from_str::<Value>(text).unwrap_or_else(|_| panic!("{id} is no JSON")));
        let written = written.and_then(|value| value.as_object().cloned());
        made.extend(
            generated
                .into_iter()
                .chain(written.into_iter().flat_map(|fields| fields.into_iter().map(|(name, _)| name))),
        );
    }
    assert_eq!(named, made);
}
