//! Writes the JSON Schemas of the event contract, generated from the types, into `schema/`:
//! `cargo run -p turnlock-domain --example schema`. A test holds them fresh.

use std::path::{Path, PathBuf};

use schemars::{Schema, schema_for};
use serde_json::{Map, Value, json};
use turnlock_domain::event::{InboundEvent, OutboundEvent};

fn main() -> std::io::Result<()> {
    for (path, schema) in schemas() {
        std::fs::write(path, schema)?;
    }
    Ok(())
}

/// Each schema's file and its text.
pub(crate) fn schemas() -> [(PathBuf, String); 2] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema");
    [
        (folder.join("inbound-event.v1.json"), print(schema_for!(InboundEvent))),
        (folder.join("outbound-event.v1.json"), print(schema_for!(OutboundEvent))),
    ]
}

fn print(schema: Schema) -> String {
    let mut schema = schema.to_value();
    for definition in schema["$defs"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        open(definition);
    }
    if let Some(timestamp) = schema["properties"].get_mut("timestamp") {
        timestamp["format"] = json!("date-time");
    }
    format!("{schema:#}\n")
}

/// Opens an enum: the contract is additive, so whoever holds a schema of today must accept a value of tomorrow.
fn open(definition: &mut Value) {
    let Some(Value::Array(mut values)) = definition.as_object_mut().and_then(|object| object.remove("oneOf")) else {
        return;
    };
    values.retain(|value| value["const"] != "unknown");
    values.push(json!({"type": "string", "description": "A value that this version does not know."}));
    definition["anyOf"] = Value::Array(values);
}
