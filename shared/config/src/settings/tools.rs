//! Tools of a team's own.

use std::collections::BTreeMap;
use std::path::Path;

use secrecy::SecretString;
use serde_json::Value;

use crate::error::{ConfigError, Problem};

/// A tool that the agent may call beside those that every agent has. Its name is that of its table.
#[derive(Debug, Clone)]
pub struct ToolSettings {
    /// What it does and when to use it, for the model.
    pub description: String,
    /// The JSON Schema of its input: an object's. Where a file has it, `null` until the files are read.
    pub schema: Value,
    /// The file that has the schema, relative to the configuration file.
    pub schema_file: Option<String>,
    /// What does it.
    pub target: ToolTarget,
    /// What the agent shows its `url`, or that of its stand-in, as a bearer token, so that it answers nobody else.
    pub bearer: Option<SecretString>,
    /// What its worst use can do, by its word: `read`, `write`, `execute` or `dangerous`.
    pub risk: String,
    /// Whether it honours the key of a call, so that a call may be made again.
    pub keyed: bool,
    /// How long a call may take, in seconds; an invocation must last longer.
    pub timeout: u32,
}

/// What does the work of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolTarget {
    /// A Lambda function, by name or ARN, and what stands in for it in one process.
    Function {
        /// Its name or ARN.
        function: String,
        /// The stand-in.
        local: Option<LocalTarget>,
    },
    /// What can be reached from everywhere, or is on this machine.
    Local(LocalTarget),
}

/// What does the work of a tool without AWS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalTarget {
    /// The address that it is POSTed to.
    Url(String),
    /// A program and its arguments, in one process only.
    Command(Vec<String>),
}

/// Reads the schemas that stand in files relative to `root`.
pub(crate) fn read_schemas(tools: &mut BTreeMap<String, ToolSettings>, root: &Path) -> Result<(), ConfigError> {
    let mut problems = Vec::new();
    for (name, tool) in tools {
        let Some(file) = &tool.schema_file else { continue };
        let path = root.join(file);
        let text = std::fs::read_to_string(&path).map_err(|source| ConfigError::Read { path, source })?;
        match serde_json::from_str(&text).map_err(|error| format!("is no JSON: {error}")).and_then(object_schema) {
            Ok(schema) => tool.schema = schema,
            Err(problem) => problems.push(Problem {
                file: None,
                line: None,
                key: format!("tools.{name}.schema"),
                message: format!("`{file}` {problem}"),
            }),
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(ConfigError::Invalid { problems }) }
}

/// `schema`, if it is that of an object: what tools are called with is one.
pub(crate) fn object_schema(schema: Value) -> Result<Value, String> {
    if schema["type"] == "object" && schema.get("properties").is_none_or(Value::is_object) {
        return Ok(schema);
    }
    Err("must be a JSON Schema with type = \"object\", its fields under properties".to_owned())
}

#[cfg(test)]
mod tests {
    use crate::Config;

    const TOOL: &str = "[tools.orders]\ndescription = \"d\"\nurl = \"http://x\"\nschema = \"orders.json\"\n";

    #[test]
    fn a_schema_may_stand_in_a_file() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("turnlock.toml");
        std::fs::write(&path, TOOL).expect("a file");
        let load = || Config::load_with(&path, &|_| None).map_err(|error| error.to_string());
        let missing = load().expect_err("no such file");
        assert!(missing.contains("orders.json cannot be read"), "{missing}");
        for (text, problem) in [
            ("{", "tools.orders.schema: `orders.json` is no JSON: EOF while parsing an object at line 1 column 1"),
            (
                "[]",
                "tools.orders.schema: `orders.json` must be a JSON Schema with type = \"object\", its fields under properties",
            ),
        ] {
            std::fs::write(root.path().join("orders.json"), text).expect("a file");
            let refused = load().expect_err("refused");
            assert!(refused.ends_with(problem), "{refused}");
        }
        std::fs::write(root.path().join("orders.json"), r#"{"type": "object"}"#).expect("a file");
        assert_eq!(load().expect("read").tools["orders"].schema, serde_json::json!({"type": "object"}));
    }
}
