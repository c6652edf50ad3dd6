//! Models.

use secrecy::SecretString;

/// One model.
#[derive(Debug, Clone)]
pub struct ModelSettings {
    /// Who provides it.
    pub provider: Provider,
    /// Its name there.
    pub model: String,
    /// The endpoint of an OpenAI-compatible server, without `/chat/completions`.
    pub base_url: String,
    /// The endpoint's key, where it wants one.
    pub api_key: Option<SecretString>,
    /// The AWS region of a Bedrock model; `None` = the function's own.
    pub region: Option<String>,
    /// Whether a Bedrock model is asked to stream; some do not, or not with tools.
    pub streams: bool,
    /// What it can do.
    pub capabilities: Vec<Capability>,
    /// Tokens it takes, question and answer together; `None` = unknown.
    pub context_tokens: Option<u32>,
    /// The most tokens of one answer; `None` = the provider's own limit.
    pub max_tokens: Option<u32>,
    /// The guardrail that a Bedrock model is asked with.
    pub guardrail: Option<Guardrail>,
    /// Whether a Claude model on Bedrock thinks before it answers, and how much.
    pub thinking: Option<Thinking>,
    /// What it costs; `None` = nobody said.
    pub price: Option<Price>,
}

/// Who provides a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Amazon Bedrock.
    Bedrock,
    /// Any OpenAI-compatible endpoint.
    Openai,
    /// The stand-in: offline, no language model.
    Scripted,
}

/// What a model can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// It calls tools.
    Tools,
    /// It sees images.
    Images,
    /// It reads documents.
    Documents,
    /// It takes cache points (Bedrock alone: Claude and Nova).
    Cache,
    /// It refuses anything beside the results of tools (Bedrock: Llama, which is known by its id).
    ResultsAlone,
    /// Its text begins inside the thinking tag.
    StartsInReasoning,
}

/// A guardrail of Bedrock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guardrail {
    /// Its id or ARN.
    pub id: String,
    /// Its version: a number, or `DRAFT`.
    pub version: String,
}

/// How a model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// Up to this many tokens.
    Budget(u32),
    /// As much as it finds right. Newer models know nothing else.
    Adaptive,
}

/// What a million tokens cost, in any one currency.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Price {
    /// Read.
    pub input: f64,
    /// Written.
    pub output: f64,
    /// Read from a cache; what is read costs, where it is not said.
    pub cache_read: f64,
    /// Read and written to a cache; what is read costs, where it is not said.
    pub cache_write: f64,
}

/// An amount of the currency in millionths of it, to the nearest; what is more than can be counted is as much as can be.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates, which is meant")]
pub fn millionths(amount: f64) -> u64 {
    (amount * 1_000_000.0).round() as u64
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            provider: Provider::Scripted,
            model: "scripted".to_owned(),
            base_url: String::new(),
            api_key: None,
            region: None,
            streams: true,
            capabilities: vec![Capability::Tools, Capability::Images],
            context_tokens: None,
            max_tokens: None,
            guardrail: None,
            thinking: None,
            price: None,
        }
    }
}

impl ModelSettings {
    /// Whether it can do this.
    #[must_use]
    pub fn can(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }
}
