//! How calls end, with tools that misbehave on purpose.

use std::time::Duration;

use async_trait::async_trait;
use insta::assert_snapshot;
use serde_json::json;

use super::*;
use crate::context::example;
use crate::tool::Risk;

/// A tool that does what its input says.
struct Puppet;

#[async_trait]
impl ToolHandler for Puppet {
    async fn call(&self, input: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        match input["do"].as_str().unwrap_or_default() {
            "panic" => panic!("with a secret"),
            "hang" => std::future::pending().await,
            "refuse" => Err(ToolError::for_model("Say which one.")),
            "transient" => Err(ToolError::Transient("secret: down".into())),
            "fail" => Err(ToolError::Failed("secret: broken".into())),
            said => Ok(ToolOutput::text(said)),
        }
    }
}

fn info(name: &str, keyed: bool) -> ToolInfo {
    let spec = ToolSpec { name: name.to_owned(), description: String::new(), schema: json!({"type": "object"}) };
    ToolInfo { spec, risk: Risk::Execute, keyed, timeout: Duration::from_secs(30) }
}

fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.register_handler(info("pay", false), Arc::new(Puppet));
    registry.register_handler(info("look", true), Arc::new(Puppet));
    registry
}

/// Outcome and text of one call, in one line.
async fn line(registry: &Registry, name: &str, action: &str) -> String {
    let run = registry.run(name, json!({ "do": action }), example()).await;
    let texts = run.content.iter().map(|block| if let Block::Text { text } = block { text.as_str() } else { "media" });
    format!("{}: {}", run.outcome.as_str(), texts.collect::<Vec<_>>().join(" | "))
}

#[tokio::test(start_paused = true)]
async fn every_call_ends_in_something_the_model_can_read() {
    let registry = registry();
    let mut lines = Vec::new();
    for (name, action) in [
        ("pay", "done"),
        ("pay", ""),
        ("pay", "refuse"),
        ("pay", "transient"),
        ("pay", "fail"),
        ("pay", "panic"),
        ("look", "panic"),
        ("pay", "hang"),
        ("look", "hang"),
        ("pya", "done"),
    ] {
        lines.push(format!("{name} {action} -> {}", line(&registry, name, action).await));
    }
    let lines = lines.join("\n");
    assert!(!lines.contains("secret"), "causes are for the log: {lines}");
    assert_snapshot!(lines, @r"
    pay done -> ok: done
    pay  -> ok: (The tool gave no output.)
    pay refuse -> error: Say which one.
    pay transient -> error: The tool `pay` cannot be reached now. Try again later, or go on without it.
    pay fail -> error: The tool `pay` failed. Go on without it.
    pay panic -> unknown: The tool `pay` failed in the middle of the call. It may have taken effect all the same: do not assume that it did not.
    look panic -> error: The tool `look` failed in the middle of the call.
    pay hang -> unknown: The tool `pay` gave no answer within 30 seconds. It may have taken effect all the same: do not assume that it did not.
    look hang -> error: The tool `look` gave no answer within 30 seconds.
    pya done -> error: There is no tool `pya`. The tools are: look, pay.
    ");
}

#[tokio::test]
async fn an_unknown_name_lists_what_there_is() {
    assert_eq!(
        line(&registry(), "de\u{0}lete", "").await,
        "error: There is no tool `delete`. The tools are: look, pay."
    );
    let empty = line(&Registry::default(), &"x".repeat(500), "").await;
    assert!(empty.contains("there are no tools here") && empty.len() < 200, "{empty}");
}

#[tokio::test]
async fn a_handler_that_takes_a_name_says_whose_it_was() {
    let mut registry = registry();
    let replaced = registry.register_handler(info("pay", true), Arc::new(Puppet));
    assert_eq!(replaced, Some(info("pay", false)));
    assert!(registry.get("pay").is_some_and(|info| info.keyed));
    let names: Vec<String> = registry.specs().into_iter().map(|spec| spec.name).collect();
    assert_eq!(names, ["look", "pay"]);
}
