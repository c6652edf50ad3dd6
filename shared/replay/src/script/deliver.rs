//! `deliver`: HTTP requests as platforms and callers send them.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::text::Text;
use super::{Problem, read as read_value};

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct Deliver {
    /// What is sent.
    pub request: Request,
    /// Headers of its own, beside those of the signature. Of a repetition: those that change.
    pub headers: BTreeMap<String, String>,
    /// How it is signed.
    pub sign: Sign,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// A request of its own.
    New {
        /// The path, with a query if there is one.
        route: String,
        /// The method.
        method: String,
        /// The body.
        body: Body,
    },
    /// The request of an earlier entry of `deliveries`, signed anew.
    Again(usize),
}

/// A body.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// None.
    Empty,
    /// JSON.
    Json(Value),
    /// Text, as it is.
    Text(String),
    /// Bytes, as they are.
    Bytes(Bytes),
}

impl Body {
    /// The bytes that are sent.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        match self {
            Self::Empty => Bytes::new(),
            Self::Json(value) => value.to_string().into(),
            Self::Text(text) => text.clone().into(),
            Self::Bytes(bytes) => bytes.clone(),
        }
    }
}

/// How a request is signed, each channel in its own way.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Sign {
    /// With the configured secret, now.
    #[default]
    Configured,
    /// Not at all.
    Unsigned,
    /// With another secret.
    With(String),
    /// With the configured secret, so many seconds ago; before zero = in the future.
    Aged(f64),
}

impl<'de> Deserialize<'de> for Sign {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let only = |key: &str| value.as_object().filter(|fields| fields.len() == 1).and_then(|fields| fields.get(key));
        match &value {
            Value::Bool(true) => return Ok(Self::Configured),
            Value::Bool(false) => return Ok(Self::Unsigned),
            _ => {}
        }
        if let Some(secret) = only("secret").and_then(Value::as_str) {
            return Ok(Self::With(secret.to_owned()));
        }
        only("age").and_then(Value::as_f64).map(Self::Aged).ok_or_else(|| {
            D::Error::custom(format_args!(
                "{value} is no signature; allowed: true, false, {{\"secret\": text}} or {{\"age\": seconds}}"
            ))
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    route: Option<String>,
    method: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<Value>,
    body_text: Option<Text>,
    body_base64: Option<String>,
    sign: Option<Sign>,
    again: Option<usize>,
}

/// Reads one request, or a list of requests at the same moment.
pub(super) fn read(key: &str, json: &str) -> Result<Vec<Deliver>, Problem> {
    if !json.starts_with('[') {
        let fields = read_value::<Fields>(key, json)?;
        return Ok(vec![fields.checked(key)?]);
    }
    let list: Vec<Fields> = read_value(key, json)?;
    let numbered = list.into_iter().enumerate();
    numbered.map(|(index, fields)| fields.checked(&format!("{key}[{index}]"))).collect()
}

impl Fields {
    fn checked(self, key: &str) -> Result<Deliver, Problem> {
        let (headers, sign) = (self.headers.clone(), self.sign.clone().unwrap_or_default());
        let request = match self.again {
            Some(_) if self.has_request() => {
                return Err(Problem::new(format!("{key}.again"), "allowed beside it: `sign`, `headers`"));
            }
            Some(index) => Request::Again(index),
            None => self.request(key)?,
        };
        Ok(Deliver { request, headers, sign })
    }

    fn has_request(&self) -> bool {
        self.route.is_some() || self.method.is_some() || self.bodies() > 0
    }

    fn bodies(&self) -> usize {
        [self.body.is_some(), self.body_text.is_some(), self.body_base64.is_some()].into_iter().filter(|it| *it).count()
    }

    fn request(self, key: &str) -> Result<Request, Problem> {
        if self.bodies() > 1 {
            return Err(Problem::new(key, "allowed: one of `body`, `body_text` and `body_base64`"));
        }
        let route = self.route.ok_or_else(|| Problem::new(key, "`route` is missing, or `again`"))?;
        if !route.starts_with('/') {
            return Err(Problem::new(format!("{key}.route"), "allowed: a path that starts with `/`"));
        }
        let body = match (self.body, self.body_text, self.body_base64) {
            (Some(value), _, _) => Body::Json(value),
            (None, Some(text), _) => Body::Text(text.0),
            (None, None, Some(encoded)) => Body::Bytes(base64(&encoded, &format!("{key}.body_base64"))?),
            (None, None, None) => Body::Empty,
        };
        let method = self.method.unwrap_or_else(|| "POST".to_owned());
        Ok(Request::New { route, method, body })
    }
}

/// Bytes that are written in base64.
pub(super) fn base64(encoded: &str, field: &str) -> Result<Bytes, Problem> {
    let decoded = STANDARD.decode(encoded).map_err(|error| Problem::new(field, format!("not base64: {error}")))?;
    Ok(decoded.into())
}
