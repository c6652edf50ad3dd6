//! `current_time`: models do not know the time and guess it when they are not told.

use jiff::tz::{TimeZone, db};
use schemars::JsonSchema;
use serde::Deserialize;
use turnlock_domain::text::{clean, cut};

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::tool::{Risk, Tool};

/// As much of an unknown zone's name as is repeated to the model.
const ZONE_MAX: usize = 64;

/// Tells the time of the call.
pub(crate) struct CurrentTime;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// The IANA name of a time zone, such as `Europe/Berlin`. Without it the time is in UTC.
    #[serde(default)]
    zone: Option<String>,
}

impl Tool for CurrentTime {
    type Input = Input;

    const NAME: &'static str = "current_time";
    const DESCRIPTION: &'static str = "Tells the current date, time and day of the week, in UTC or in a time zone.";
    const RISK: Risk = Risk::Read;
    const KEYED: bool = true;

    async fn run(&self, input: Input, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let zone = zone(input.zone.as_deref().map(str::trim).unwrap_or_default())?;
        let now = context.now.to_zoned(zone);
        Ok(ToolOutput::text(now.strftime("%Y-%m-%dT%H:%M:%S%:z (%A, %Q)").to_string()))
    }
}

fn zone(name: &str) -> Result<TimeZone, ToolError> {
    if name.is_empty() || name.eq_ignore_ascii_case("utc") {
        return Ok(TimeZone::UTC);
    }
    db().get(name).map_err(|_| {
        let name = clean(cut(name, ZONE_MAX)).into_owned();
        ToolError::ForModel(format!(
            "There is no time zone `{name}`. Use an IANA name such as `Europe/Berlin` or `America/New_York`."
        ))
    })
}

#[cfg(test)]
mod tests {
    use turnlock_domain::message::Block;

    use super::*;
    use crate::context::example;

    async fn told(zone: Option<&str>) -> Result<String, String> {
        let input = Input { zone: zone.map(str::to_owned) };
        let output = CurrentTime.run(input, example()).await.map_err(|error| error.to_string())?;
        match output.content.as_slice() {
            [Block::Text { text }] => Ok(text.clone()),
            other => panic!("one text, not {other:?}"),
        }
    }

    #[tokio::test]
    async fn the_time_is_told_in_utc_and_in_zones() {
        assert_eq!(told(None).await.as_deref(), Ok("2026-01-05T09:00:00+00:00 (Monday, UTC)"));
        assert_eq!(told(Some(" ")).await, told(Some("UTC")).await);
        assert_eq!(
            told(Some("Europe/Berlin")).await.as_deref(),
            Ok("2026-01-05T10:00:00+01:00 (Monday, Europe/Berlin)")
        );
        assert_eq!(
            told(Some("Asia/Kathmandu")).await.as_deref(),
            Ok("2026-01-05T14:45:00+05:45 (Monday, Asia/Kathmandu)")
        );
    }

    #[tokio::test]
    async fn an_unknown_zone_is_explained_to_the_model() {
        let error = told(Some("Atlantis/Capital")).await.expect_err("there is none");
        assert!(error.starts_with("There is no time zone `Atlantis/Capital`."), "{error}");
    }
}
