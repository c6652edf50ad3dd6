use serde_json::{Value, json};

use super::*;

fn read(event: Value) -> Result<(IngressRequest, Format), &'static str> {
    serde_json::from_value::<Event>(event).unwrap().request()
}

fn request(event: Value) -> IngressRequest {
    read(event).unwrap().0
}

/// An HTTP API's event, payload 2.0.
fn version_two(changes: &Value) -> Value {
    let mut event = json!({
        "version": "2.0", "routeKey": "POST /telegram/{account}", "rawPath": "/telegram/main",
        "rawQueryString": "a=1&a=2%20", "cookies": ["one=1"],
        "headers": { "x-telegram-bot-api-secret-token": "s", "content-type": "application/json" },
        "requestContext": { "stage": "$default", "domainName": "id.execute-api.eu-central-1.amazonaws.com",
            "http": { "method": "POST", "path": "/telegram/main" } },
        "body": "{\"update_id\":1}", "isBase64Encoded": false,
    });
    merge(&mut event, changes);
    event
}

fn merge(into: &mut Value, changes: &Value) {
    match (into, changes) {
        (Value::Object(into), Value::Object(changes)) => {
            for (key, value) in changes {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, value) => *into = value.clone(),
    }
}

#[test]
fn payload_two_of_an_http_api() {
    let (request, format) = read(version_two(&json!({}))).unwrap();
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/telegram/main"));
    assert_eq!((request.query.as_str(), format), ("a=1&a=2%20", Format::Two));
    assert_eq!(request.header("X-Telegram-Bot-Api-Secret-Token"), Some("s"));
    assert_eq!(&request.body[..], b"{\"update_id\":1}");
}

/// Case ag-v1-on-http-api: payload 1.0 selected on an HTTP API; headers whatever their case.
#[test]
fn ag_v1_on_http_api() {
    let (request, format) = read(json!({
        "version": "1.0", "resource": "/telegram", "path": "/telegram", "httpMethod": "POST",
        "headers": { "Content-Type": "application/json" },
        "multiValueHeaders": { "Content-Type": ["application/json"], "X-Two": ["1", "2"] },
        "requestContext": { "httpMethod": "POST", "stage": "$default" },
        "body": "{}", "isBase64Encoded": false,
    }))
    .unwrap();
    assert_eq!((request.method.as_str(), request.path.as_str(), format), ("POST", "/telegram", Format::One));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.headers.get_all("x-two").iter().count(), 2);
    assert_eq!(&request.body[..], b"{}");
}

/// Case ag-v1-on-http-api: the other shapes that are accepted, and those that are not.
#[test]
fn ag_v1_on_http_api_other_shapes() {
    let rest = request(json!({
        "resource": "/{proxy+}", "path": "/v1/sessions/gateway%3Aops%3Aa/messages", "httpMethod": "GET",
        "headers": null, "multiValueHeaders": { "Authorization": ["Bearer k"] },
        "queryStringParameters": { "limit": "5" }, "multiValueQueryStringParameters": { "limit": ["5"], "q": ["a b"] },
        "requestContext": { "stage": "prod", "httpMethod": "GET" }, "body": null, "isBase64Encoded": false,
    }));
    assert_eq!(rest.path, "/v1/sessions/gateway%3Aops%3Aa/messages");
    assert_eq!((rest.query.as_str(), rest.header("authorization")), ("limit=5&q=a+b", Some("Bearer k")));
    assert!(rest.body.is_empty());
    let function_url = request(version_two(&json!({
        "routeKey": "$default", "rawPath": "/v1/events/a%3Ab",
        "requestContext": { "domainName": "id.lambda-url.eu-central-1.on.aws" },
    })));
    assert_eq!(function_url.path, "/v1/events/a%3Ab");
    for odd in [
        json!({}),
        json!([]),
        json!("text"),
        json!(1),
        json!(null),
        json!({ "Records": [] }),
        json!({ "rawPath": "/x" }),
        json!({ "path": "/x" }),
        json!({ "httpMethod": "GET" }),
        json!({ "httpMethod": 5, "path": "/x" }),
        json!({ "httpMethod": "GE T", "path": "/x" }),
        version_two(&json!({ "requestContext": { "http": null } })),
    ] {
        assert!(read(odd.clone()).is_err(), "{odd}");
    }
}

/// Case ag-v2-base64-form: by the flag, not by the content type.
#[test]
fn ag_v2_base64_form() {
    let body = |changes: Value| read(version_two(&changes)).map(|(request, _)| request.body);
    let encoded = body(json!({ "headers": {}, "isBase64Encoded": true, "body": "eyJhIjoxfQ==" }));
    assert_eq!(encoded.unwrap(), "{\"a\":1}");
    let form = json!({ "content-type": "application/x-www-form-urlencoded" });
    assert_eq!(body(json!({ "headers": form, "body": "a=1" })).unwrap(), "a=1");
    // The flag is not there, so these are the signed bytes.
    assert_eq!(body(json!({ "body": "eyJhIjoxfQ==" })).unwrap(), "eyJhIjoxfQ==");
    let bytes = body(json!({ "isBase64Encoded": true, "body": "/wD+" })).unwrap();
    assert_eq!(&bytes[..], [0xff, 0x00, 0xfe]);
    assert!(body(json!({ "isBase64Encoded": true, "body": "no base64!" })).is_err());
}

/// An HTTP API decodes the path before we see it: what was one part stays one part.
#[test]
fn a_decoded_path_is_encoded_again() {
    let path = |raw: &str| request(version_two(&json!({ "rawPath": raw }))).path;
    assert_eq!(path("/v1/sessions/gateway:ops:a%20b/messages"), "/v1/sessions/gateway%3Aops%3Aa%2520b/messages");
    assert_eq!(path("/v1/events/é?x#y"), "/v1/events/%C3%A9%3Fx%23y");
    assert_eq!(path("/telegram/main"), "/telegram/main");
}

#[test]
fn a_stage_is_no_part_of_the_path() {
    let path = |stage: &str, raw: &str| {
        request(version_two(&json!({ "rawPath": raw, "requestContext": { "stage": stage } }))).path
    };
    assert_eq!(path("prod", "/prod/telegram/main"), "/telegram/main");
    assert_eq!(path("prod", "/production/x"), "/production/x");
    assert_eq!(path("$default", "/prod/telegram/main"), "/prod/telegram/main");
}

#[test]
fn an_answer_in_both_formats() {
    let response = IngressResponse::json(429, &json!({ "error": "limited" }))
        .with_header("retry-after", "3")
        .with_header("set-cookie", "a=1")
        .with_header("set-cookie", "b=2");
    let two = serde_json::to_value(Answer::new(response.clone(), Format::Two)).unwrap();
    assert_eq!(two["statusCode"], 429);
    assert_eq!((&two["headers"]["retry-after"], &two["headers"]["cache-control"]), (&json!("3"), &json!("no-store")));
    assert_eq!((&two["body"], &two["isBase64Encoded"]), (&json!("{\"error\":\"limited\"}"), &json!(false)));
    assert!(two.get("multiValueHeaders").is_none());
    let one = serde_json::to_value(Answer::new(response, Format::One)).unwrap();
    assert_eq!(one["multiValueHeaders"]["set-cookie"], json!(["a=1", "b=2"]));
    let binary = IngressResponse { status: 200, headers: Vec::new(), body: Bytes::from_static(&[0xff, 0x00]) };
    let binary = serde_json::to_value(Answer::new(binary, Format::Two)).unwrap();
    assert_eq!((&binary["body"], &binary["isBase64Encoded"]), (&json!("/wA="), &json!(true)));
}

#[tokio::test]
async fn a_stream_answers_what_there_is() {
    let events = |pieces: &[&'static str]| {
        let pieces: Vec<Bytes> = pieces.iter().map(|piece| Bytes::from_static(piece.as_bytes())).collect();
        futures_util::stream::iter(pieces).boxed()
    };
    let first =
        what_there_is(events(&["retry: 1000\n\n", ": waiting\n\n", "id: 1.1\ndata: a\n\n", "id: 1.2\n\n"])).await;
    assert_eq!(first.body, "retry: 1000\n\n: waiting\n\nid: 1.1\ndata: a\n\n");
    assert!(first.headers.contains(&("content-type", "text/event-stream".to_owned())));
    let nothing = what_there_is(events(&["retry: 1000\n\n"])).await;
    assert_eq!((nothing.status, &nothing.body[..]), (200, &b"retry: 1000\n\n"[..]));
}

/// Whoever signs with a secret that was just replaced is let in with the new one; whoever has neither is not.
#[tokio::test(start_paused = true)]
async fn a_new_secret_lets_its_holder_in_at_once() {
    let rotation = crate::reload::tests::rotation(true).await;
    let says = async |secret: &str| {
        let answer = async |known: &String, request: IngressRequest| {
            let status = if request.body == known.as_bytes() { 200 } else { 401 };
            ApiResponse::Full(IngressResponse::empty(status))
        };
        let request = IngressRequest::post("/telegram/main", HeaderMap::new(), secret.to_owned());
        match with_newest_secrets(&rotation.use_case, answer, request).await {
            ApiResponse::Full(response) => response.status,
            ApiResponse::Events(_) => 0,
        }
    };
    tokio::time::sleep(std::time::Duration::from_secs(31)).await;
    rotation.secret.replace(Some("two".to_owned()));
    assert_eq!((says("one").await, says("two").await, says("one").await), (200, 200, 401));
    rotation.secret.replace(Some("three".to_owned()));
    assert_eq!(says("three").await, 401, "the last look was a moment ago");
    tokio::time::sleep(std::time::Duration::from_secs(31)).await;
    assert_eq!((says("wrong").await, says("three").await), (401, 200));
}
