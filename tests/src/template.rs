//! `template.yaml` as values: what it says for given parameters, and who may do what by it.
//!
//! It is read as CloudFormation reads it, as far as the template goes: tags in their long form, parameters, mappings,
//! conditions and SAM's globals filled in. References to resources stay what they are.

mod document;
mod rights;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

pub use document::{read, repository};
pub use rights::{Statement, granted_actions};

/// A template with its parameters filled in.
#[derive(Debug, Clone)]
pub struct Template {
    /// Resources by logical id; those whose condition is false are left out.
    pub resources: BTreeMap<String, Resource>,
    /// The parameters, as they are declared.
    pub parameters: Value,
    /// Outputs by name; those whose condition is false are left out.
    pub outputs: BTreeMap<String, Value>,
}

/// A resource.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Its type, e.g. `AWS::SQS::Queue`.
    pub kind: String,
    /// Its properties, SAM's globals included.
    pub properties: Value,
}

/// What an event source mapping of a function says.
#[derive(Debug, Clone, Copy)]
pub struct Source<'t> {
    /// The queue's logical id.
    pub queue: &'t str,
    /// The event's properties.
    pub properties: &'t Value,
}

impl Template {
    /// The template in `document` for these parameters, and the defaults of all others.
    #[must_use]
    pub fn new(document: &Value, parameters: &[(&str, &str)]) -> Self {
        let values = Values::new(document, parameters);
        let mut resources = BTreeMap::new();
        for (id, resource) in values.existing(&document["Resources"]) {
            let kind = resource["Type"].as_str().unwrap_or_default().to_owned();
            let mut properties = values.fill(&resource["Properties"]).unwrap_or_default();
            if kind == FUNCTION {
                let mut whole = values.fill(&document["Globals"]["Function"]).unwrap_or_default();
                merge(&mut whole, properties);
                properties = whole;
            }
            resources.insert(id.clone(), Resource { kind, properties });
        }
        let outputs = values.existing(&document["Outputs"]);
        let outputs = outputs.filter_map(|(name, output)| Some((name.clone(), values.fill(output)?))).collect();
        Self { resources, parameters: document["Parameters"].clone(), outputs }
    }

    /// The resources of one type, with their properties.
    pub fn of_kind<'t>(&'t self, kind: &'t str) -> impl Iterator<Item = (&'t str, &'t Value)> {
        self.resources
            .iter()
            .filter(move |(_, resource)| resource.kind == kind)
            .map(|(id, resource)| (id.as_str(), &resource.properties))
    }

    /// The functions.
    pub fn functions(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.of_kind(FUNCTION)
    }

    /// The queues.
    pub fn queues(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.of_kind("AWS::SQS::Queue")
    }

    /// The properties of a resource; null if there is none.
    #[must_use]
    pub fn properties(&self, id: &str) -> &Value {
        self.resources.get(id).map_or(&Value::Null, |resource| &resource.properties)
    }
}

/// Parameters with which everything optional is there.
pub const EVERYTHING: &[(&str, &str)] = &[
    ("ModelApiKey", "k"),
    ("TelegramBotToken", "1:t"),
    ("SlackBotToken", "xoxb-1"),
    ("SlackSigningSecret", "5"),
    ("WebhookSecret", "w"),
    ("ReadFiles", "true"),
    ("EventBus", "replies"),
    ("BedrockGuardrail", "g1"),
    (
        "ToolFunctionArns",
        "arn:aws:lambda:us-east-1:000000000000:function:orders,arn:aws:lambda:us-east-1:000000000000:function:refund",
    ),
    ("CronExpression", "rate(1 hour)"),
    ("AlarmEmail", "ops@example.org"),
];

const FUNCTION: &str = "AWS::Serverless::Function";

/// A function's variables.
#[must_use]
pub fn environment(function: &Value) -> BTreeMap<&str, &Value> {
    let variables = function["Environment"]["Variables"].as_object();
    variables.into_iter().flatten().map(|(name, value)| (name.as_str(), value)).collect()
}

/// The queues that a function drains.
pub fn sources(function: &Value) -> impl Iterator<Item = Source<'_>> {
    events(function, "SQS").map(|properties| Source { queue: target(&properties["Queue"]).unwrap_or(""), properties })
}

/// The properties of a function's events of one type.
pub fn events<'t>(function: &'t Value, kind: &'t str) -> impl Iterator<Item = &'t Value> {
    let events = function["Events"].as_object().into_iter().flatten();
    events.filter(move |(_, event)| event["Type"] == kind).map(|(_, event)| &event["Properties"])
}

/// The name of a function's binary: its logical id in small letters.
#[must_use]
pub fn binary(function: &str) -> String {
    let mut name = String::new();
    for character in function.chars() {
        if character.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(character.to_ascii_lowercase());
    }
    name
}

/// The resource that a `Ref` or `Fn::GetAtt` names.
#[must_use]
pub fn target(reference: &Value) -> Option<&str> {
    reference["Ref"].as_str().or_else(|| reference["Fn::GetAtt"][0].as_str())
}

/// The resources that a value names: one, or those of an `Fn::Join`.
pub fn targets(value: &Value) -> impl Iterator<Item = &str> {
    let joined = value["Fn::Join"][1].as_array().into_iter().flatten();
    target(value).into_iter().chain(joined.filter_map(target))
}

/// The text of an `Fn::Sub`, in either form.
#[must_use]
pub fn substituted(value: &Value) -> Option<&str> {
    let text = &value["Fn::Sub"];
    text.as_str().or_else(|| text[0].as_str())
}

/// What fills a template in.
struct Values<'t> {
    document: &'t Value,
    parameters: BTreeMap<&'t str, Value>,
}

impl<'t> Values<'t> {
    fn new(document: &'t Value, given: &[(&str, &str)]) -> Self {
        let declared = document["Parameters"].as_object().expect("the template has parameters");
        let unknown = given.iter().find(|(name, _)| !declared.contains_key(*name));
        assert!(unknown.is_none(), "there is no parameter {unknown:?}");
        let parameters = declared.iter().map(|(name, parameter)| {
            let given = given.iter().find(|(given, _)| given == name).map(|(_, value)| json!(value));
            (name.as_str(), typed(&parameter["Type"], given.as_ref().unwrap_or(&parameter["Default"])))
        });
        let parameters = parameters.collect();
        Self { document, parameters }
    }

    /// The entries of a section whose condition is true or absent.
    fn existing(&self, section: &'t Value) -> impl Iterator<Item = (&'t String, &'t Value)> {
        let entries = section.as_object().into_iter().flatten();
        entries.filter(|(_, entry)| entry["Condition"].as_str().is_none_or(|name| self.holds(name)))
    }

    /// `value` with everything filled in; nothing for `AWS::NoValue`.
    fn fill(&self, value: &Value) -> Option<Value> {
        let Value::Object(fields) = value else {
            let Value::Array(items) = value else { return Some(value.clone()) };
            return Some(items.iter().filter_map(|item| self.fill(item)).collect());
        };
        if let Some(name) = value["Ref"].as_str() {
            return (name != "AWS::NoValue").then(|| self.parameters.get(name).unwrap_or(value).clone());
        }
        if let [condition, yes, no] = arguments(value, "Fn::If") {
            return self.fill(if self.holds(condition.as_str()?) { yes } else { no });
        }
        if let [mapping, key, name] = arguments(value, "Fn::FindInMap") {
            let key = self.fill(key).map(|key| key.as_str().map_or_else(|| key.to_string(), str::to_owned))?;
            return Some(self.document["Mappings"][mapping.as_str()?][key][name.as_str()?].clone());
        }
        let filled = fields.iter().filter_map(|(name, field)| Some((name.clone(), self.fill(field)?)));
        Some(Value::Object(filled.collect::<Map<_, _>>()))
    }

    fn holds(&self, condition: &str) -> bool {
        let value = &self.document["Conditions"][condition];
        assert!(!value.is_null(), "there is no condition {condition}");
        self.is_true(value)
    }

    fn is_true(&self, value: &Value) -> bool {
        if let Some(name) = value["Condition"].as_str() {
            return self.holds(name);
        }
        if let [one, other] = arguments(value, "Fn::Equals") {
            return self.fill(one).map(joined) == self.fill(other).map(joined);
        }
        if let [one] = arguments(value, "Fn::Not") {
            return !self.is_true(one);
        }
        let (any, all) = (arguments(value, "Fn::Or"), arguments(value, "Fn::And"));
        assert!(!any.is_empty() || !all.is_empty(), "a condition that is not understood: {value}");
        any.iter().any(|one| self.is_true(one)) || (!all.is_empty() && all.iter().all(|one| self.is_true(one)))
    }
}

/// A list of texts that is to be joined, as the text that it makes.
fn joined(value: Value) -> Value {
    let [delimiter, items] = arguments(&value, "Fn::Join") else { return value };
    let texts = items.as_array().and_then(|items| items.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
    match (delimiter.as_str(), texts) {
        (Some(delimiter), Some(texts)) => Value::String(texts.join(delimiter)),
        _ => value,
    }
}

fn arguments<'v>(value: &'v Value, function: &str) -> &'v [Value] {
    value[function].as_array().map_or(&[], Vec::as_slice)
}

/// A parameter's value, as its type has it.
fn typed(kind: &Value, value: &Value) -> Value {
    match (kind.as_str(), value.as_str()) {
        (Some("Number"), Some(text)) => json!(text.parse::<i64>().expect("a number")),
        (Some("CommaDelimitedList"), Some(text)) => text.split(',').map(str::trim).collect(),
        _ => value.clone(),
    }
}

/// Puts `over` over `base`, tables into tables.
fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (name, value) in over {
                merge(base.entry(name).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Value {
        json!({
            "Parameters": {
                "Size": { "Type": "Number", "Default": 2 },
                "Names": { "Type": "CommaDelimitedList", "Default": "a,b" },
                "Key": { "Type": "String", "Default": "" },
                "None": { "Type": "CommaDelimitedList", "Default": "" },
            },
            "Mappings": { "Sizes": { "2": { "Double": 4 }, "3": { "Double": 6 } } },
            "Conditions": {
                "HasKey": { "Fn::Not": [{ "Fn::Equals": [{ "Ref": "Key" }, ""] }] },
                "Both": { "Fn::And": [{ "Condition": "HasKey" }, { "Fn::Equals": [{ "Ref": "Size" }, 3] }] },
                "HasSome": { "Fn::Not": [{ "Fn::Equals": [{ "Fn::Join": [",", { "Ref": "None" }] }, ""] }] },
                "Either": { "Fn::Or": [{ "Condition": "HasKey" }, { "Fn::Equals": [{ "Ref": "Size" }, 3] }] },
            },
            "Globals": { "Function": { "Runtime": "r", "Environment": { "Variables": { "A": "global" } } } },
            "Resources": {
                "Secret": { "Type": "S", "Condition": "HasKey", "Properties": {} },
                "Other": { "Type": "S", "Condition": "Both", "Properties": {} },
                "Listed": { "Type": "S", "Condition": "HasSome", "Properties": {} },
                "Some": { "Type": "AWS::Serverless::Function", "Properties": {
                    "Size": { "Fn::FindInMap": ["Sizes", { "Ref": "Size" }, "Double"] },
                    "List": { "Ref": "Names" },
                    "Items": [{ "Fn::If": ["Either", "either", { "Ref": "AWS::NoValue" }] }, "always"],
                    "Environment": { "Variables": { "B": { "Ref": "Secret" } } },
                } },
            },
        })
    }

    #[test]
    fn parameters_mappings_conditions_and_globals_are_filled_in() {
        let template = Template::new(&document(), &[]);
        let some = json!({
            "Runtime": "r", "Size": 4, "List": ["a", "b"], "Items": ["always"],
            "Environment": { "Variables": { "A": "global", "B": { "Ref": "Secret" } } },
        });
        assert_eq!(template.properties("Some"), &some);
        assert!(!template.resources.contains_key("Secret"), "its condition is false");
        assert!(!template.resources.contains_key("Listed"), "a list of nothing is one empty text");
        assert!(Template::new(&document(), &[("None", "a")]).resources.contains_key("Listed"));
    }

    #[test]
    fn given_parameters_stand_for_the_defaults() {
        let template = Template::new(&document(), &[("Size", "3"), ("Key", "k"), ("Names", "c")]);
        let some = template.properties("Some");
        assert_eq!(
            (&some["Size"], &some["List"], &some["Items"]),
            (&json!(6), &json!(["c"]), &json!(["either", "always"]))
        );
        assert!(template.resources.contains_key("Secret") && template.resources.contains_key("Other"));
        let template = Template::new(&document(), &[("Key", "k")]);
        assert!(template.resources.contains_key("Secret") && !template.resources.contains_key("Other"));
    }

    #[test]
    fn a_binary_is_called_as_its_function() {
        assert_eq!([binary("Agent"), binary("IngressTelegram")], ["agent", "ingress-telegram"]);
    }
}
