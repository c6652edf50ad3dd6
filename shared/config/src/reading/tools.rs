//! `[tools.<name>]`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::accounts::{Entry, named};
use super::approvals::RISKS;
use super::table::{Context, Table};
use super::values::{address, flag, one_of, text, texts, whole, word};
use crate::settings::object_schema;
use crate::{LocalTarget, ToolSettings, ToolTarget};

/// How long a call may take unless the file says otherwise, in seconds.
const TIMEOUT: u32 = 30;

pub(super) fn read_all(root: &mut Table, context: &mut Context<'_>, tools: &mut BTreeMap<String, ToolSettings>) {
    let blank = ToolSettings {
        description: String::new(),
        schema: Value::Null,
        schema_file: None,
        target: ToolTarget::Local(LocalTarget::Command(Vec::new())),
        bearer: None,
        risk: "execute".to_owned(),
        keyed: false,
        timeout: TIMEOUT,
    };
    named(root, context, "tools", tools, &blank, read);
}

fn read(entry: &mut Entry<'_, ToolSettings>, context: &mut Context<'_>) {
    let Entry { table, is_new, into: tool, .. } = entry;
    table.read(context, "description", &mut tool.description, word);
    if tool.description.is_empty() {
        context
            .problem(&table.path_of("description"), "is missing: what the tool does and when to use it, for the model");
    }
    read_schema(table, context, *is_new, tool);
    table.read(context, "risk", &mut tool.risk, |value| one_of(RISKS)(value).map(str::to_owned));
    table.read(context, "keyed", &mut tool.keyed, flag);
    table.read(context, "timeout", &mut tool.timeout, whole(1..=300));
    read_target(table, context, *is_new, tool);
    read_bearer(table, context, tool);
}

/// The schema itself, or the path of the file that has it.
fn read_schema(table: &mut Table, context: &mut Context<'_>, is_new: bool, tool: &mut ToolSettings) {
    let path = table.path_of("schema");
    match table.take("schema") {
        None if is_new => {
            context.problem(&path, "is missing: a JSON Schema as a table, or the path of a file that has one")
        }
        None => {}
        Some(Value::String(file)) if !file.trim().is_empty() => tool.schema_file = Some(file),
        Some(schema) => match object_schema(schema) {
            Ok(schema) => (tool.schema, tool.schema_file) = (schema, None),
            Err(problem) => context.problem(&path, format!("{problem}; or the path of a file that has one")),
        },
    }
}

/// Exactly one of `function`, `url` and `command`; beside a function, what stands in for it in one process.
fn read_target(table: &mut Table, context: &mut Context<'_>, is_new: bool, tool: &mut ToolSettings) {
    let mut function = None;
    table.read_optional(context, "function", &mut function, word);
    let given = local_target(table, context);
    let mut local = None;
    table.table(context, "local", |table, context| {
        let mut stand_ins = local_target(table, context);
        if stand_ins.len() != 1 {
            context.problem(table.path(), "must have either url or command");
        }
        local = stand_ins.pop();
    });
    match (function, given.as_slice()) {
        (Some(function), []) => tool.target = ToolTarget::Function { function, local },
        (None, [target]) if local.is_none() => tool.target = ToolTarget::Local(target.clone()),
        (None, []) if !is_new && local.is_none() => {}
        (None, []) => context.problem(table.path(), "must say what does it: one of function, url and command"),
        (None, [_]) => context.problem(&table.path_of("local"), "stands in for a function, and there is none"),
        _ => context.problem(table.path(), "must have only one of function, url and command"),
    }
}

/// What an address is shown; nothing else is shown anything.
fn read_bearer(table: &mut Table, context: &mut Context<'_>, tool: &mut ToolSettings) {
    let has_url = matches!(
        &tool.target,
        ToolTarget::Local(LocalTarget::Url(_)) | ToolTarget::Function { local: Some(LocalTarget::Url(_)), .. }
    );
    if !has_url && table.has("bearer") {
        context.problem(&table.path_of("bearer"), "is shown to a url, and there is none");
    }
    table.optional_secret(context, "bearer", &mut tool.bearer);
}

/// What `url` and `command` say.
fn local_target(table: &mut Table, context: &mut Context<'_>) -> Vec<LocalTarget> {
    let (mut url, mut command) = (None, None);
    // As it is written: a slash at its end may matter.
    table.read_optional(context, "url", &mut url, |value| address(value.clone()).and_then(|_| text(value)));
    table.read_optional(context, "command", &mut command, |value| {
        let words = texts(value)?;
        if words.is_empty() {
            Err("must name a program, e.g. [\"python3\", \"tool.py\"]".to_owned())
        } else {
            Ok(words)
        }
    });
    url.map(LocalTarget::Url).into_iter().chain(command.map(LocalTarget::Command)).collect()
}

#[cfg(test)]
mod tests {
    use secrecy::{ExposeSecret, SecretString};
    use serde_json::json;

    use super::*;
    use crate::Config;

    /// `[tools.orders]` with a description, a schema and `more`.
    fn parse(more: &str) -> Result<ToolSettings, String> {
        let start = "[tools.orders]\ndescription = \"Looks orders up.\"\nschema = { type = \"object\" }\n";
        let lookup = |name: &str| (name == "ORDERS_TOKEN").then(|| "t0ken".to_owned());
        let config = Config::parse(&format!("{start}{more}"), &lookup).map_err(|error| error.to_string())?;
        Ok(config.tools["orders"].clone())
    }

    /// All that can be compared of it.
    fn shown(tool: &ToolSettings) -> String {
        format!("{tool:?}")
    }

    fn local(url: &str) -> LocalTarget {
        LocalTarget::Url(url.to_owned())
    }

    #[test]
    fn a_tool_is_a_function_an_address_or_a_command() {
        let plain = ToolSettings {
            description: "Looks orders up.".to_owned(),
            schema: json!({"type": "object"}),
            schema_file: None,
            target: ToolTarget::Local(local("http://127.0.0.1:8080/orders/")),
            bearer: None,
            risk: "execute".to_owned(),
            keyed: false,
            timeout: 30,
        };
        let read = |text: &str| shown(&parse(text).expect(text));
        assert_eq!(read("url = \"http://127.0.0.1:8080/orders/\""), shown(&plain));
        let function = |local| ToolTarget::Function { function: "orders".to_owned(), local };
        let command = LocalTarget::Command(vec!["python3".to_owned(), "orders.py".to_owned()]);
        let table = [
            ("command = [\"python3\", \"orders.py\"]", ToolTarget::Local(command.clone())),
            ("function = \"orders\"", function(None)),
            ("function = \"orders\"\nlocal = { url = \"http://x\" }", function(Some(local("http://x")))),
            ("function = \"orders\"\nlocal.command = [\"python3\", \"orders.py\"]", function(Some(command))),
        ];
        for (text, target) in table {
            assert_eq!(read(text), shown(&ToolSettings { target, ..plain.clone() }), "{text}");
        }
        let more = parse("url = \"http://x\"\nrisk = \"read\"\nkeyed = true\ntimeout = 300").expect("parses");
        assert_eq!((more.risk.as_str(), more.keyed, more.timeout), ("read", true, 300));
    }

    #[test]
    fn what_an_address_is_shown_is_a_secret() {
        for target in ["url = \"http://x\"", "function = \"f\"\nlocal.url = \"http://x\""] {
            let tool = parse(&format!("bearer = \"env:ORDERS_TOKEN\"\n{target}")).expect(target);
            assert_eq!(tool.bearer.as_ref().map(ExposeSecret::expose_secret), Some("t0ken"));
            assert!(!shown(&tool).contains("t0ken"));
        }
    }

    #[test]
    fn a_mistake_says_what_is_allowed() {
        let table = [
            ("", "line 1: tools.orders: must say what does it: one of function, url and command"),
            ("url = \"x\"", "line 4: tools.orders.url: must be an address that begins with https:// or http://"),
            ("command = []", "line 4: tools.orders.command: must name a program"),
            (
                "url = \"http://x\"\nfunction = \"f\"",
                "line 1: tools.orders: must have only one of function, url and command",
            ),
            (
                "url = \"http://x\"\nlocal.url = \"http://y\"",
                "tools.orders.local: stands in for a function, and there is none",
            ),
            ("url = \"http://x\"\nbearer = \"t0ken\"", "line 5: tools.orders.bearer: a secret is never written out"),
            (
                "url = \"http://x\"\nbearer = \"env:ABSENT\"",
                "line 5: tools.orders.bearer: the environment variable ABSENT is not there",
            ),
            (
                "command = [\"x\"]\nbearer = \"env:ORDERS_TOKEN\"",
                "line 5: tools.orders.bearer: is shown to a url, and there is none",
            ),
            ("function = \"f\"\nlocal = {}", "line 5: tools.orders.local: must have either url or command"),
            ("function = \"f\"\ntimeout = 301", "line 5: tools.orders.timeout: must be a whole number from 1 to 300"),
            ("function = \"f\"\nrisk = \"high\"", "line 5: tools.orders.risk: must be one of \"read\""),
            ("function = \"f\"\nkeys = true", "line 5: tools.orders.keys: is not a known key; did you mean `keyed`?"),
        ];
        for (text, problem) in table {
            let refused = parse(text).expect_err(text);
            assert!(refused.contains(problem), "{text}: {refused}");
        }
        let bare = Config::parse("[tools.Orders]\nschema = []\nurl = \"http://x\"", &|_| None).expect_err("refused");
        assert_eq!(
            bare.to_string().lines().collect::<Vec<_>>(),
            [
                "line 1: tools.Orders: a name here is a small letter and up to 31 of a-z, 0-9, _ and -",
                "line 1: tools.Orders.description: is missing: what the tool does and when to use it, for the model",
                "line 2: tools.Orders.schema: must be a JSON Schema with type = \"object\", its fields under properties; or the \
                 path of a file that has one",
            ]
        );
    }

    #[test]
    fn our_own_json_changes_what_it_names() {
        let text = "[tools.orders]\ndescription = \"d\"\nschema = { type = \"object\" }\nurl = \"http://x\"";
        let base = Config::parse(text, &|_| None).expect("parses");
        let json = json!({"tools": {"orders": {"risk": "read"}}});
        let merged = Config::from_json_merge(base, json, &|_| SecretString::from("")).expect("merges");
        let tool = &merged.tools["orders"];
        assert_eq!((tool.risk.as_str(), &tool.target), ("read", &ToolTarget::Local(local("http://x"))));
    }
}
