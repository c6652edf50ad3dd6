//! The configured model.

use std::sync::Arc;

use turnlock_config::{Capability, ModelSettings, Provider};
use turnlock_models::Timeouts;
use turnlock_models::{Capabilities, Model, OpenAi, OpenAiSettings, Scripted};

/// Why the configured model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// This build has no client for the provider.
    #[error(
        "models: the provider `bedrock` runs on AWS; use `openai` (any OpenAI-compatible endpoint) or `scripted` here"
    )]
    Bedrock,
    /// The HTTP client could not be made.
    #[error("models: {0}")]
    Client(String),
}

/// The first configured model; the scripted stand-in if none is.
///
/// # Errors
/// [`ModelError`] says which and what to do.
pub fn model(settings: &[ModelSettings]) -> Result<Arc<dyn Model>, ModelError> {
    let Some(first) = settings.first() else { return Ok(Arc::new(Scripted::stand_in())) };
    let capabilities = capabilities(first);
    match first.provider {
        Provider::Scripted => Ok(Arc::new(Scripted::stand_in().with_capabilities(capabilities))),
        Provider::Bedrock => Err(ModelError::Bedrock),
        Provider::Openai => {
            let settings = OpenAiSettings {
                base_url: first.base_url.clone(),
                api_key: first.api_key.clone(),
                model: first.model.clone(),
                capabilities,
                max_tokens: first.max_tokens,
                timeouts: Timeouts::default(),
            };
            let client = OpenAi::new(settings).map_err(|error| ModelError::Client(error.to_string()))?;
            Ok(Arc::new(client))
        }
    }
}

/// What a configured model can do.
#[must_use]
pub fn capabilities(model: &ModelSettings) -> Capabilities {
    Capabilities {
        tools: model.can(Capability::Tools),
        images: model.can(Capability::Images),
        documents: model.can(Capability::Documents),
        cache: model.can(Capability::Cache),
        results_alone: model.can(Capability::ResultsAlone),
        starts_in_reasoning: model.can(Capability::StartsInReasoning),
        context_tokens: model.context_tokens,
    }
}
