//! `[[models]]`.

use serde_json::Value;

use super::table::{Context, Table};
use super::values::{address, amount, flag, one_of, whole, word};
use crate::{Capability, Guardrail, ModelSettings, Price, Provider, Thinking};

const PROVIDERS: &[(&str, Provider)] =
    &[("bedrock", Provider::Bedrock), ("openai", Provider::Openai), ("scripted", Provider::Scripted)];
const CAPABILITIES: &[(&str, Capability)] = &[
    ("tools", Capability::Tools),
    ("images", Capability::Images),
    ("documents", Capability::Documents),
    ("cache", Capability::Cache),
    ("results_alone", Capability::ResultsAlone),
    ("starts_in_reasoning", Capability::StartsInReasoning),
];
/// The least that a model may be told to think (Anthropic, "Extended thinking").
const THINKING_MIN: u32 = 1024;
const OPENAI_URL: &str = "https://api.openai.com/v1";

/// A list replaces the one before as a whole: an order of preference cannot be merged.
pub(super) fn read_all(root: &mut Table, context: &mut Context<'_>, models: &mut Vec<ModelSettings>) {
    let items = match root.take("models") {
        None => return,
        Some(Value::Array(items)) if !items.is_empty() => items,
        Some(_) => return context.problem("models", "must be a list of at least one model, each under [[models]]"),
    };
    models.clear();
    for (index, item) in items.into_iter().enumerate() {
        let path = format!("models[{index}]");
        match item {
            Value::Object(fields) => models.push(read(Table::new(path, fields), context)),
            _ => context.problem(&path, "must be a table with provider and model"),
        }
    }
}

fn read(mut table: Table, context: &mut Context<'_>) -> ModelSettings {
    if !table.has("provider") {
        context.problem(&table.path_of("provider"), "is missing: \"bedrock\", \"openai\" or \"scripted\"");
    }
    let mut provider = Provider::Scripted;
    table.read(context, "provider", &mut provider, one_of(PROVIDERS));
    let mut model = blank(provider);
    table.read(context, "model", &mut model.model, word);
    if model.model.is_empty() {
        context.problem(&table.path_of("model"), "is missing: the model's name at its provider");
    }
    table.read(context, "capabilities", &mut model.capabilities, capabilities);
    table.read_optional(context, "context_tokens", &mut model.context_tokens, whole(1000..=100_000_000));
    table.read_optional(context, "max_tokens", &mut model.max_tokens, whole(1..=10_000_000));
    if model.can(Capability::Cache) && provider != Provider::Bedrock {
        // Cache points are sent to nobody else.
        let message = "\"cache\" is for models of bedrock; other endpoints cache by themselves, or not at all";
        context.problem(&table.path_of("capabilities"), message);
    }
    table.table(context, "price", |table, context| model.price = Some(price(table, context)));
    match provider {
        Provider::Openai => {
            table.read(context, "base_url", &mut model.base_url, address);
            table.optional_secret(context, "api_key", &mut model.api_key);
        }
        Provider::Bedrock => {
            table.read_optional(context, "region", &mut model.region, word);
            table.read(context, "stream", &mut model.streams, flag);
            table.table(context, "guardrail", |table, context| model.guardrail = guardrail(table, context));
            table.table(context, "thinking", |table, context| {
                model.thinking = thinking(table, context, model.max_tokens);
            });
        }
        Provider::Scripted => {}
    }
    table.finish(context);
    model
}

/// A model of `provider` before anything of it is read.
fn blank(provider: Provider) -> ModelSettings {
    let scripted = ModelSettings::default();
    match provider {
        Provider::Scripted => scripted,
        Provider::Bedrock | Provider::Openai => ModelSettings {
            provider,
            model: String::new(),
            base_url: if provider == Provider::Openai { OPENAI_URL.to_owned() } else { String::new() },
            capabilities: vec![Capability::Tools],
            ..scripted
        },
    }
}

fn price(table: &mut Table, context: &mut Context<'_>) -> Price {
    let mut price = Price::default();
    table.read(context, "input", &mut price.input, amount);
    table.read(context, "output", &mut price.output, amount);
    // What a cache holds is read all the same.
    (price.cache_read, price.cache_write) = (price.input, price.input);
    table.read(context, "cache_read", &mut price.cache_read, amount);
    table.read(context, "cache_write", &mut price.cache_write, amount);
    price
}

fn guardrail(table: &mut Table, context: &mut Context<'_>) -> Option<Guardrail> {
    let (mut id, mut version) = (String::new(), String::new());
    table.read(context, "id", &mut id, word);
    table.read(context, "version", &mut version, word);
    for (key, value) in [("id", &id), ("version", &version)] {
        if value.is_empty() {
            context.problem(&table.path_of(key), "is missing: guardrail = { id = \"…\", version = \"1\" }");
        }
    }
    Some(Guardrail { id, version })
}

/// The budget is a part of the answer (Anthropic, "Extended thinking"): an answer that is no longer leaves nothing to say.
fn thinking(table: &mut Table, context: &mut Context<'_>, max_tokens: Option<u32>) -> Option<Thinking> {
    let (mut budget, mut adaptive) = (None, false);
    table.read_optional(context, "budget_tokens", &mut budget, whole(THINKING_MIN..=10_000_000));
    table.read(context, "adaptive", &mut adaptive, flag);
    match (budget, adaptive) {
        (None, false) => None,
        (None, true) => Some(Thinking::Adaptive),
        (Some(budget), false) => {
            if max_tokens.is_none_or(|max_tokens| max_tokens <= budget) {
                context.problem(&table.path_of("budget_tokens"), "must be less than the model's max_tokens");
            }
            Some(Thinking::Budget(budget))
        }
        (Some(_), true) => {
            context.problem(&table.path_of("adaptive"), "is instead of budget_tokens, not beside it");
            None
        }
    }
}

fn capabilities(value: Value) -> Result<Vec<Capability>, String> {
    let Value::Array(items) = value else {
        let names: Vec<String> = CAPABILITIES.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        return Err(format!("must be a list of {}", names.join(", ")));
    };
    items.into_iter().map(one_of(CAPABILITIES)).collect()
}
