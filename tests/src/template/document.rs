//! A template's YAML as JSON, with CloudFormation's tags in their long form.

use std::path::{Path, PathBuf};

use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::{Map, Value, json};

/// The folder of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests stand in the repository").to_owned()
}

/// `template.yaml`, as it stands.
#[must_use]
pub fn read() -> Value {
    let path = repository().join("template.yaml");
    parse(&std::fs::read_to_string(&path).expect("the template can be read"))
}

fn parse(text: &str) -> Value {
    let documents = Yaml::load_from_str(text).expect("the template is YAML");
    let [document] = &documents[..] else { panic!("a template is one document") };
    value(document)
}

fn value(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Value(scalar) => match scalar {
            Scalar::Null => Value::Null,
            Scalar::Boolean(flag) => json!(flag),
            Scalar::Integer(number) => json!(number),
            Scalar::FloatingPoint(number) => json!(number.into_inner()),
            Scalar::String(text) => json!(text),
        },
        Yaml::Sequence(items) => items.iter().map(value).collect(),
        Yaml::Mapping(fields) => {
            let mut object = Map::new();
            for (name, field) in fields {
                let name = name.as_str().unwrap_or_else(|| panic!("a name that is no text: {name:?}"));
                object.insert(name.to_owned(), value(field));
            }
            Value::Object(object)
        }
        Yaml::Tagged(tag, inner) => long(&tag.suffix, value(inner)),
        Yaml::Representation(..) | Yaml::Alias(_) | Yaml::BadValue => panic!("not understood: {yaml:?}"),
    }
}

/// The long form of `!Ref x`, `!GetAtt a.b` and all the others.
fn long(tag: &str, inner: Value) -> Value {
    match (tag, &inner) {
        ("Ref" | "Condition", _) => json!({ tag: inner }),
        ("GetAtt", Value::String(path)) => {
            let (resource, attribute) = path.split_once('.').expect("resource.attribute");
            json!({ "Fn::GetAtt": [resource, attribute] })
        }
        _ => json!({ format!("Fn::{tag}"): inner }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_a_long_form() {
        let yaml = "a: !Ref X\nb: !GetAtt X.Y.Z\nc: !If [C, !Ref Y, {d: 1}]\ne: !Not [!Condition C]\nf: ['1', true]\ng: !Sub\n  - ${H}\n  - H: i\n";
        let json = json!({
            "a": { "Ref": "X" },
            "b": { "Fn::GetAtt": ["X", "Y.Z"] },
            "c": { "Fn::If": ["C", { "Ref": "Y" }, { "d": 1 }] },
            "e": { "Fn::Not": [{ "Condition": "C" }] },
            "f": ["1", true],
            "g": { "Fn::Sub": ["${H}", { "H": "i" }] },
        });
        assert_eq!(parse(yaml), json);
    }
}
