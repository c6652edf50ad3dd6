//! The tools of an agent: those that every agent has, and those that its configuration names.

use std::sync::Arc;
use std::time::Duration;

use secrecy::ExposeSecret;
use turnlock_config::{ApprovalRule, Config, LocalTarget, ToolSettings, ToolTarget};
use turnlock_store::Store;
use turnlock_tools::configured::{Command, Endpoint};
use turnlock_tools::{Registry, Risk, ToolHandler, ToolInfo, ToolSpec, WebFetch};

/// How much longer an invocation must last than any call may take, in seconds: one starts only if the commit behind it has
/// time, too, and the turn is looked up before it.
const MARGIN: u32 = 30;

/// Makes the tool of the first name that invokes the function on AWS of the second.
pub type Functions<'f> = &'f dyn Fn(&str, &str) -> Arc<dyn ToolHandler>;

/// Why the configured tools cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ToolsError {
    /// The name is taken.
    #[error("tools.{0}: every agent has a tool of this name; choose another")]
    Taken(String),
    /// A command, on AWS.
    #[error("tools.{0}: a Lambda function runs no commands; use `function`, with the command as its `local`, or `url`")]
    CommandOnAws(String),
    /// A function on AWS alone, in one process.
    #[error(
        "tools.{0}: a function on AWS is not invoked from here; add what stands in for it: local = {{ url = \"http://…\" }} or \
         local = {{ command = [\"…\"] }}"
    )]
    FunctionHere(String),
    /// No call of it would ever start.
    #[error(
        "tools.{name}.timeout: no call starts that may take longer than an invocation has time for; it must be at most {most}, \
         or agent.limits.turn_seconds (on AWS the parameter TurnSeconds) at least {least}"
    )]
    NeverStarts {
        /// The tool.
        name: String,
        /// The longest timeout, in seconds.
        most: u32,
        /// The shortest invocation, in seconds.
        least: u32,
    },
    /// A rule about calls of a tool that there is not.
    #[error("approvals.rules[{index}].tool: there is no tool `{tool}`; there are {known}")]
    NoSuchTool {
        /// The rule's place in the list.
        index: usize,
        /// The tool that it names.
        tool: String,
        /// The tools that there are.
        known: String,
    },
    /// The HTTP client could not be made, or its token is none.
    #[error("tools.{0}: an HTTP client cannot be made")]
    Client(String, #[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The tools that `config` gives the agent. With `functions` it runs on AWS; without, in one process, where what stands in
/// for a function takes its place.
///
/// # Errors
/// [`ToolsError`] says which tool cannot be, and what to do.
pub fn tools(config: &Config, store: &Store, functions: Option<Functions<'_>>) -> Result<Registry, ToolsError> {
    let mut registry = turnlock_tools::builtin(store);
    registry.register(WebFetch::default());
    for (name, settings) in &config.tools {
        check_timeout(name, settings, config.agent.limits.turn_seconds)?;
        let handler = match (&settings.target, functions) {
            (ToolTarget::Function { function, .. }, Some(functions)) => functions(name, function),
            (ToolTarget::Function { local: Some(local), .. }, None) => local_tool(name, local, settings)?,
            (ToolTarget::Function { local: None, .. }, None) => return Err(ToolsError::FunctionHere(name.clone())),
            (ToolTarget::Local(LocalTarget::Command(_)), Some(_)) => {
                return Err(ToolsError::CommandOnAws(name.clone()));
            }
            (ToolTarget::Local(local), _) => local_tool(name, local, settings)?,
        };
        if registry.register_handler(info(name, settings), handler).is_some() {
            return Err(ToolsError::Taken(name.clone()));
        }
    }
    check_rules(config, &registry)?;
    Ok(registry)
}

/// Here and not where the file is read: of the functions on AWS only the agent knows how long its invocations last.
fn check_timeout(name: &str, settings: &ToolSettings, turn_seconds: u32) -> Result<(), ToolsError> {
    let (most, least) = (turn_seconds.saturating_sub(MARGIN), settings.timeout.saturating_add(MARGIN));
    if settings.timeout <= most { Ok(()) } else { Err(ToolsError::NeverStarts { name: name.to_owned(), most, least }) }
}

/// A rule with a typing error would be silently none.
fn check_rules(config: &Config, registry: &Registry) -> Result<(), ToolsError> {
    let named = |(index, rule): (usize, &ApprovalRule)| Some((index, rule.tool.clone()?));
    let mut named = config.approvals.rules.iter().enumerate().filter_map(named);
    let Some((index, tool)) = named.find(|(_, tool)| registry.get(tool).is_none()) else { return Ok(()) };
    let known: Vec<String> = registry.specs().into_iter().map(|spec| spec.name).collect();
    Err(ToolsError::NoSuchTool { index, tool, known: known.join(", ") })
}

fn local_tool(name: &str, target: &LocalTarget, settings: &ToolSettings) -> Result<Arc<dyn ToolHandler>, ToolsError> {
    match target {
        LocalTarget::Url(url) => {
            let bearer = settings.bearer.as_ref().map(ExposeSecret::expose_secret);
            let endpoint = Endpoint::new(name, url, bearer);
            Ok(Arc::new(endpoint.map_err(|cause| ToolsError::Client(name.to_owned(), cause))?))
        }
        LocalTarget::Command(words) => {
            let (program, arguments) =
                words.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
            Ok(Arc::new(Command::new(name, program, arguments)))
        }
    }
}

fn info(name: &str, settings: &ToolSettings) -> ToolInfo {
    ToolInfo {
        spec: ToolSpec {
            name: name.to_owned(),
            description: settings.description.clone(),
            schema: settings.schema.clone(),
        },
        // The reader of the configuration let no other word through.
        risk: Risk::from_word(&settings.risk).unwrap_or(Risk::Dangerous),
        keyed: settings.keyed,
        timeout: Duration::from_secs(settings.timeout.into()),
        foreign: true,
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use serde_json::Value;
    use turnlock_clock::Clock;
    use turnlock_embedded::EmbeddedDynamoDb;
    use turnlock_tools::{ToolContext, ToolError, ToolOutput};

    use super::*;

    struct Nothing;

    #[async_trait]
    impl ToolHandler for Nothing {
        async fn call(&self, _: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
            Ok(ToolOutput::default())
        }
    }

    /// The tools of a configuration with this one, on AWS or in one process.
    fn with(name: &str, target: &str, on_aws: bool) -> Result<Registry, String> {
        let text = format!(
            "[tools.{name}]\ndescription = \"d\"\nschema = {{ type = \"object\" }}\nrisk = \"dangerous\"\n{target}"
        );
        of(&text, on_aws)
    }

    /// The tools of the configuration `text`, on AWS or in one process.
    fn of(text: &str, on_aws: bool) -> Result<Registry, String> {
        let config = Config::parse(text, &|_| Some("7:planted".to_owned())).expect("parses");
        let database = EmbeddedDynamoDb::memory().expect("a database");
        let clock = Clock::starting_at("2026-01-05T09:00:00Z".parse().expect("a time"));
        let store = Store::embedded(database.http_client(), "turnlock", clock, 1);
        let function = |_: &str, _: &str| -> Arc<dyn ToolHandler> { Arc::new(Nothing) };
        let functions: Functions<'_> = &function;
        tools(&config, &store, on_aws.then_some(functions)).map_err(|error| error.to_string())
    }

    #[test]
    fn each_place_has_the_tools_that_it_can_reach() {
        for (target, on_aws, here) in [
            ("function = \"f\"", true, false),
            ("function = \"f\"\nlocal = { url = \"http://x\" }", true, true),
            ("function = \"f\"\nlocal = { command = [\"x\"] }", true, true),
            ("url = \"http://x\"", true, true),
            ("command = [\"x\"]", false, true),
        ] {
            let can = |on_aws| with("orders", target, on_aws).is_ok();
            assert_eq!((can(true), can(false)), (on_aws, here), "{target}");
        }
        let registry = with("orders", "url = \"http://x\"", true).expect("tools");
        let orders = registry.get("orders").expect("registered");
        assert_eq!((orders.risk, orders.keyed, orders.foreign), (Risk::Dangerous, false, true));
        let names: Vec<String> = registry.specs().into_iter().map(|spec| spec.name).collect();
        assert_eq!(names, ["current_time", "orders", "read_result", "recall", "remember", "web_fetch"]);
    }

    #[test]
    fn what_cannot_be_says_what_to_do() {
        let refused = |name, target, on_aws| with(name, target, on_aws).expect_err("refused");
        for (refused, start) in [
            (refused("recall", "url = \"http://x\"", true), "tools.recall: every agent has a tool of this name"),
            (
                refused("orders", "command = [\"x\"]", true),
                "tools.orders: a Lambda function runs no commands; use `function`",
            ),
            (
                refused("orders", "function = \"f\"", false),
                "tools.orders: a function on AWS is not invoked from here; add what stands in for it: local = { url = \"http://…\" }",
            ),
        ] {
            assert!(refused.starts_with(start), "{refused}");
        }
    }

    /// A tool that is never started is one that nobody has.
    #[test]
    fn a_call_fits_into_an_invocation() {
        let timed = |timeout: u32, seconds: u32| {
            let target = format!("url = \"http://x\"\ntimeout = {timeout}\n[agent.limits]\nturn_seconds = {seconds}");
            with("orders", &target, true).map(drop)
        };
        for (timeout, seconds) in [(270, 300), (60, 90), (300, 330)] {
            assert_eq!(timed(timeout, seconds), Ok(()), "{timeout} {seconds}");
        }
        for (timeout, seconds, most, least) in [(271, 300, 270, 301), (61, 90, 60, 91), (300, 300, 270, 330)] {
            let refused = timed(timeout, seconds).expect_err("refused");
            let end = format!(
                "it must be at most {most}, or agent.limits.turn_seconds (on AWS the parameter TurnSeconds) at least {least}"
            );
            assert!(
                refused.starts_with("tools.orders.timeout: no call starts") && refused.ends_with(&end),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_rule_is_about_a_tool_that_there_is() {
        let ruled = |tool: &str| {
            let rules = format!(
                "[[approvals.rules]]\nrisk = \"read\"\naction = \"allow\"\n[[approvals.rules]]\ntool = \"{tool}\"\naction = \"deny\""
            );
            with("deploy", &format!("url = \"http://x\"\n{rules}"), false).map(drop)
        };
        for tool in ["deploy", "web_fetch", "remember"] {
            assert_eq!(ruled(tool), Ok(()), "{tool}");
        }
        let known = "current_time, deploy, read_result, recall, remember, web_fetch";
        let want = format!("approvals.rules[1].tool: there is no tool `deploi`; there are {known}");
        assert_eq!(ruled("deploi"), Err(want));
    }

    #[test]
    fn the_example_starts_in_one_process_and_on_aws() {
        let example = include_str!("../../config/turnlock.example.toml");
        for on_aws in [false, true] {
            assert!(of(example, on_aws).expect("tools").get("deploy").is_some());
        }
    }
}
