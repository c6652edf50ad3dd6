//! The template, deployed: transformed as CloudFormation would, put right where ministack loses something, and read back.
//!
//! What is put right: the routes of an HTTP API, which SAM writes as an OpenAPI body, are resources of their own here.
//! What is left out: alarms over the arithmetic of metrics, which it does not know.
//! What is changed: a function's code is somewhere else (ministack forwards its invocations), and no event source mapping
//! is enabled, as `poller` stands in for them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::cloud::Cloud;

/// Where ministack finds what it forwards an invocation to; a function does not see this variable.
pub(super) const FORWARD: &str = "MINISTACK_LAMBDA_PROXY_URL";

/// A deployed template.
#[derive(Debug)]
pub struct Stack {
    /// Physical by logical ids.
    pub resources: BTreeMap<String, String>,
    /// The template after SAM's transformation, before anything was changed.
    pub template: Value,
}

impl Stack {
    /// Creates the stack from a transformed template.
    pub(super) async fn create(cloud: &Cloud, template: Value, parameters: &[(&str, &str)], forward: &str) -> Self {
        let mut adapted = template.clone();
        adapt(&mut adapted, forward);
        // Inline templates end at 51,200 bytes.
        let address = cloud.object("templates", "template.json", adapted.to_string()).await;
        let numbered = parameters.iter().zip(1..).map(|((name, value), number)| {
            let field = |part| format!("Parameters.member.{number}.Parameter{part}");
            [(field("Key"), *name), (field("Value"), *value)]
        });
        let numbered: Vec<(String, &str)> = numbered.flatten().collect();
        let fixed =
            [("StackName", NAME), ("TemplateURL", address.as_str()), ("Capabilities.member.1", "CAPABILITY_IAM")];
        let fields: Vec<(&str, &str)> =
            fixed.into_iter().chain(numbered.iter().map(|(name, value)| (name.as_str(), *value))).collect();
        cloud.cloudformation("CreateStack", &fields).await;
        loop {
            let stacks = cloud.cloudformation("DescribeStacks", &[("StackName", NAME)]).await;
            match values(&stacks, "StackStatus").next() {
                Some("CREATE_COMPLETE") => break,
                Some("CREATE_IN_PROGRESS") => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
                status => {
                    let events = cloud.cloudformation("DescribeStackEvents", &[("StackName", NAME)]).await;
                    let reasons: Vec<&str> = values(&events, "ResourceStatusReason").collect();
                    panic!("the stack is {status:?}: {reasons:?}");
                }
            }
        }
        let listed = cloud.cloudformation("DescribeStackResources", &[("StackName", NAME)]).await;
        let logical = values(&listed, "LogicalResourceId").map(str::to_owned);
        let resources = logical.zip(values(&listed, "PhysicalResourceId").map(str::to_owned)).collect();
        Self { resources, template }
    }

    /// The physical id of a resource.
    #[must_use]
    pub fn physical(&self, logical: &str) -> &str {
        self.resources.get(logical).unwrap_or_else(|| panic!("the stack has no {logical}: {:?}", self.resources))
    }

    /// The logical ids and properties of the resources of a type.
    pub fn of_type<'s>(&'s self, kind: &'s str) -> impl Iterator<Item = (&'s str, &'s Value)> {
        let resources = self.template["Resources"].as_object().into_iter().flatten();
        let of_type = resources.filter(move |(_, resource)| resource["Type"] == kind);
        of_type
            .filter(|(logical, _)| self.resources.contains_key(*logical))
            .map(|(logical, resource)| (logical.as_str(), &resource["Properties"]))
    }
}

/// Every deployment has a ministack of its own.
const NAME: &str = "turnlock";

fn adapt(template: &mut Value, forward: &str) {
    let resources = template["Resources"].as_object_mut().unwrap();
    // Alarms over arithmetic are none of ministack's.
    resources.retain(|_, resource| {
        resource["Type"] != "AWS::CloudWatch::Alarm" || !resource["Properties"]["Metrics"].is_array()
    });
    let mut routes = Map::new();
    for (logical, resource) in resources.iter_mut() {
        let kind = resource["Type"].as_str().unwrap_or_default().to_owned();
        let properties = &mut resource["Properties"];
        match kind.as_str() {
            "AWS::Lambda::Function" => {
                properties["Code"] = json!({ "ZipFile": "elsewhere" });
                properties["Environment"]["Variables"][FORWARD] = json!(forward);
            }
            "AWS::Lambda::EventSourceMapping" => properties["Enabled"] = json!(false),
            "AWS::ApiGatewayV2::Api" => routes.append(&mut routes_of(logical, properties)),
            _ => {}
        }
    }
    resources.append(&mut routes);
}

/// Takes an API's OpenAPI body out of its properties; the routes and integrations it means.
fn routes_of(api: &str, properties: &mut Value) -> Map<String, Value> {
    let mut resources = Map::new();
    let Some(body) = properties.as_object_mut().and_then(|properties| properties.remove("Body")) else {
        return resources;
    };
    properties["Name"] = json!(NAME);
    properties["ProtocolType"] = json!("HTTP");
    let paths = body["paths"].as_object().into_iter().flatten();
    let operations = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().into_iter().flatten();
        methods.map(move |(method, operation)| (path, method, &operation["x-amazon-apigateway-integration"]))
    });
    for (number, (path, method, integration)) in operations.filter(|(.., it)| it.is_object()).enumerate() {
        let method = if method == "x-amazon-apigateway-any-method" { "ANY" } else { &method.to_uppercase() };
        let name = format!("{api}Integration{number}");
        let route = json!({
            "ApiId": { "Ref": api },
            "RouteKey": format!("{method} {path}"),
            "Target": { "Fn::Sub": format!("integrations/${{{name}}}") },
        });
        let integration = json!({
            "ApiId": { "Ref": api },
            "IntegrationType": "AWS_PROXY",
            "IntegrationMethod": "POST",
            "IntegrationUri": integration["uri"],
            "PayloadFormatVersion": integration["payloadFormatVersion"],
        });
        resources.insert(name, json!({ "Type": "AWS::ApiGatewayV2::Integration", "Properties": integration }));
        let route = json!({ "Type": "AWS::ApiGatewayV2::Route", "Properties": route });
        resources.insert(format!("{api}Route{number}"), route);
    }
    resources
}

/// The texts of an XML element, wherever it stands; none of those that are read here holds markup.
fn values<'x>(xml: &'x str, element: &str) -> impl Iterator<Item = &'x str> {
    let (open, close) = (format!("<{element}>"), format!("</{element}>"));
    let parts: Vec<&str> = xml.split(open.as_str()).skip(1).collect();
    parts.into_iter().map(move |part| part.split(close.as_str()).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_api_body_becomes_routes() {
        let integration = json!({ "uri": { "Fn::Sub": "arn" }, "payloadFormatVersion": "2.0" });
        let operation = json!({ "x-amazon-apigateway-integration": integration });
        let mut template = json!({ "Resources": { "Api": {
            "Type": "AWS::ApiGatewayV2::Api",
            "Properties": { "Body": { "paths": {
                "/v1/{proxy+}": { "x-amazon-apigateway-any-method": operation },
                "/telegram/{account}": { "post": operation, "parameters": [] },
            } } },
        } } });
        adapt(&mut template, "http://forward");
        let resources = template["Resources"].as_object().unwrap();
        let keys: Vec<&str> = resources.values().filter_map(|it| it["Properties"]["RouteKey"].as_str()).collect();
        assert_eq!(keys, ["POST /telegram/{account}", "ANY /v1/{proxy+}"]);
        let target = json!({ "Fn::Sub": "integrations/${ApiIntegration0}" });
        assert_eq!(resources["ApiRoute0"]["Properties"]["Target"], target);
        assert!(resources["Api"]["Properties"]["Body"].is_null());
    }

    #[test]
    fn texts_of_an_element() {
        let xml = "<a><Id>x</Id></a><a><Id>y</Id><Other>z</Other></a>";
        assert_eq!(values(xml, "Id").collect::<Vec<_>>(), ["x", "y"]);
    }
}
