//! The configured models.

use std::sync::Arc;

use turnlock_config::{Capability, ModelSettings, Provider, millionths};
use turnlock_models::Timeouts;
use turnlock_models::{Capabilities, Model, OpenAi, OpenAiSettings, Price, Route, Router, Scripted};

/// Why a configured model cannot be used.
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

/// The configured models in their order; the scripted stand-in if there is none. `bedrock` makes the client of a model of
/// Bedrock, where there is one.
///
/// # Errors
/// [`ModelError`] says which and what to do.
pub fn models(
    settings: &[ModelSettings],
    bedrock: impl Fn(&ModelSettings) -> Option<Arc<dyn Model>>,
) -> Result<Router, ModelError> {
    let route = |settings: &ModelSettings| {
        let model: Arc<dyn Model> = match settings.provider {
            Provider::Scripted => Arc::new(Scripted::stand_in().with_capabilities(capabilities(settings))),
            Provider::Bedrock => bedrock(settings).ok_or(ModelError::Bedrock)?,
            Provider::Openai => openai(settings)?,
        };
        Ok(self::route(settings, model))
    };
    Ok(Router::new(settings.iter().map(route).collect::<Result<_, _>>()?))
}

/// `model` as the settings have it.
#[must_use]
pub fn route(settings: &ModelSettings, model: Arc<dyn Model>) -> Route {
    Route { model, price: price(settings), max_tokens: settings.max_tokens }
}

fn openai(model: &ModelSettings) -> Result<Arc<dyn Model>, ModelError> {
    let settings = OpenAiSettings {
        base_url: model.base_url.clone(),
        api_key: model.api_key.clone(),
        model: model.model.clone(),
        capabilities: capabilities(model),
        max_tokens: model.max_tokens,
        timeouts: Timeouts::default(),
    };
    let client = OpenAi::new(settings).map_err(|error| ModelError::Client(error.to_string()))?;
    Ok(Arc::new(client))
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

/// What a configured model costs; nothing, where nobody said.
fn price(model: &ModelSettings) -> Price {
    let price = model.price.unwrap_or_default();
    Price {
        input: millionths(price.input),
        output: millionths(price.output),
        cache_read: millionths(price.cache_read),
        cache_write: millionths(price.cache_write),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_of_the_list_is_a_route_in_its_order() {
        let openai = ModelSettings {
            provider: Provider::Openai,
            model: "first".into(),
            base_url: "http://127.0.0.1:1/v1".into(),
            context_tokens: Some(8000),
            max_tokens: Some(500),
            price: Some(turnlock_config::Price { input: 0.5, output: 1.5, cache_read: 0.05, cache_write: 0.6 }),
            ..ModelSettings::default()
        };
        let bedrock = ModelSettings { provider: Provider::Bedrock, model: "second".into(), ..ModelSettings::default() };
        let settings = [openai, bedrock, ModelSettings::default()];
        let client = |settings: &ModelSettings| -> Option<Arc<dyn Model>> {
            Some(Arc::new(Scripted::stand_in().with_name(settings.model.clone())))
        };
        let router = models(&settings, client).expect("models");
        let routes = router.candidates(tokio::time::Instant::now());
        let names: Vec<&str> = routes.iter().map(|route| route.model.name()).collect();
        assert_eq!(names, ["first", "second", "scripted"]);
        let price = Price { input: 500_000, output: 1_500_000, cache_read: 50_000, cache_write: 600_000 };
        assert_eq!((routes[0].price, routes[0].max_tokens), (price, Some(500)));
        assert!(matches!(models(&settings, |_| None), Err(ModelError::Bedrock)), "there is no client here");
    }
}
