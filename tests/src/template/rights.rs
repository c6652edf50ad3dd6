//! Who may do what: the statements of a function's role.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Template, read, target};

/// What Lambda does in a function's name: its logs, what an event source mapping asks of its queue, and what it does
/// with an event that could not be handled.
const LAMBDAS_OWN: [&str; 3] = ["Log", "Receive", "ReportFailure"];

/// A statement of a role's policies.
#[derive(Debug, Clone)]
pub struct Statement<'t> {
    /// Its name.
    pub sid: &'t str,
    /// What it allows.
    pub actions: Vec<&'t str>,
    /// On what: references and ARNs.
    pub resources: Vec<&'t Value>,
}

impl Statement<'_> {
    /// The logical ids among its resources.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        self.resources.iter().filter_map(|resource| target(resource))
    }
}

impl Template {
    /// The statements of a role, those of the policies that it shares included.
    #[must_use]
    pub fn statements(&self, role: &str) -> Vec<Statement<'_>> {
        let properties = self.properties(role);
        let own = items(&properties["Policies"]).map(|policy| &policy["PolicyDocument"]);
        let shared = items(&properties["ManagedPolicyArns"])
            .map(|policy| &self.properties(target(policy).unwrap_or_default())["PolicyDocument"]);
        own.chain(shared).flat_map(|document| items(&document["Statement"])).map(statement).collect()
    }

    /// The role of a function.
    #[must_use]
    pub fn role(&self, function: &str) -> &str {
        target(&self.properties(function)["Role"]).unwrap_or_default()
    }
}

/// The IAM actions that a function (by its logical id) may call itself, with every parameter set; what Lambda does in its
/// name is left out. DynamoDB has no right of its own for a transaction: its parts need `PutItem`, `UpdateItem` and so on.
#[must_use]
pub fn granted_actions(function: &str) -> BTreeSet<String> {
    let template = Template::new(&read(), super::EVERYTHING);
    let statements = template.statements(template.role(function));
    let own = statements.iter().filter(|statement| !LAMBDAS_OWN.contains(&statement.sid));
    own.flat_map(|statement| &statement.actions).map(|action| (*action).to_owned()).collect()
}

fn statement(value: &Value) -> Statement<'_> {
    Statement {
        sid: value["Sid"].as_str().unwrap_or_default(),
        actions: items(&value["Action"]).filter_map(Value::as_str).collect(),
        resources: items(&value["Resource"]).collect(),
    }
}

/// The items of a list; what is no list is one item.
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    match value {
        Value::Null => &[],
        Value::Array(items) => items.as_slice(),
        one => std::slice::from_ref(one),
    }
    .iter()
}
