//! Functions: how they run, how many at once, at which routes, and where they log.

use serde_json::{Value, json};
use turnlock_tests::template::{Template, events, repository, sources, target};

use super::{seconds, unless};

/// What the HTTP functions serve, as the one process does under the same paths.
const ROUTES: [(&str, &str, &str); 5] = [
    ("Gateway", "ANY", "/v1/{proxy+}"),
    ("Gateway", "GET", "/healthz"),
    ("IngressSlack", "POST", "/slack/{account}"),
    ("IngressTelegram", "POST", "/telegram/{account}"),
    ("IngressWebhook", "POST", "/webhook/{source}"),
];
/// API Gateway gives up after 30 s.
const LONGEST_REQUEST: i64 = 29;
/// How often a job asks its model, and how long it waits for an answer, in seconds (`turnlock_app::jobs`).
const ASKS: i64 = 4;
const LONGEST_ANSWER: i64 = 120;
/// Lambda's own limit.
const LONGEST: i64 = 900;

/// Every function of the workspace is deployed, by a target of the Makefile, for the runtime that it is built for.
pub(in super::super) fn runtime(template: &Template) -> Vec<String> {
    let makefile = std::fs::read_to_string(repository().join("Makefile")).unwrap();
    let mut binaries: Vec<String> = std::fs::read_dir(repository().join("functions"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "local")
        .collect();
    binaries.sort();
    let mut found = Vec::new();
    for (id, function) in template.functions() {
        let binary = turnlock_tests::template::binary(id);
        let longest = if events(function, "HttpApi").next().is_some() { LONGEST_REQUEST } else { LONGEST };
        let timeout = seconds(&function["Timeout"]);
        let is_ours = binaries.iter().position(|name| *name == binary).map(|at| binaries.remove(at)).is_some();
        let target = format!("\nbuild-{id}: BINARY = {binary}\n");
        found.extend([
            unless(is_ours, || format!("{id}: there is no functions/{binary}")),
            unless(makefile.contains(&target), || format!("{id}: the Makefile does not build it")),
            unless((1..=longest).contains(&timeout), || format!("{id}: a timeout of {timeout} s")),
            unless(function["Runtime"] == "provided.al2023", || format!("{id}: another runtime")),
            unless(function["Handler"] == "bootstrap", || format!("{id}: another handler")),
            unless(function["Architectures"] == json!(["arm64"]), || format!("{id}: another architecture")),
        ]);
    }
    found.extend(binaries.iter().map(|binary| Some(format!("functions/{binary} is not deployed"))));
    found.into_iter().flatten().collect()
}

/// A job that asks its model as often as it may gets through, or it would be begun again and again.
pub(in super::super) fn jobs(template: &Template) -> Vec<String> {
    let jobs = ["Consolidate", "Review"].iter().filter_map(|id| {
        let timeout = seconds(&template.properties(id)["Timeout"]);
        unless(timeout > ASKS * LONGEST_ANSWER, || format!("{id}: no time for {ASKS} answers in {timeout} s"))
    });
    jobs.collect()
}

/// Reserved concurrency alone would burn receive counts, and less of it than the mapping may use would, too.
pub(in super::super) fn concurrency(template: &Template) -> Vec<String> {
    let functions = template.functions().flat_map(|(id, function)| {
        let reserved = function["ReservedConcurrentExecutions"].as_i64();
        sources(function).filter_map(move |source| {
            let most = seconds(&source.properties["ScalingConfig"]["MaximumConcurrency"]);
            let enough = reserved.is_none_or(|reserved| reserved >= most);
            unless(enough, || format!("{id}: {most} at once from {}, reserved are {reserved:?}", source.queue))
        })
    });
    functions.collect()
}

pub(in super::super) fn routes(template: &Template) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut routes: Vec<(String, String, String)> = Vec::new();
    let mut found = Vec::new();
    for (id, function) in template.functions() {
        for event in events(function, "HttpApi") {
            let path = text(&event["Path"]);
            found.extend(unless(target(&event["ApiId"]) == Some("HttpApi"), || format!("{path} is of no API of ours")));
            routes.push((id.to_owned(), text(&event["Method"]), path));
        }
    }
    routes.sort();
    let wanted = ROUTES.map(|(id, method, path)| (id.to_owned(), method.to_owned(), path.to_owned()));
    found.extend(unless(routes == wanted, || format!("the routes are {routes:?}")));
    let api = template.properties("HttpApi");
    found.extend(unless(api["StageName"] == "$default", || "another stage would be part of every path".to_owned()));
    found
}

/// Each has a log group of its own, which forgets.
pub(in super::super) fn logs(template: &Template) -> Vec<String> {
    let functions = template.functions().filter_map(|(id, function)| {
        let group = target(&function["LoggingConfig"]["LogGroup"]);
        unless(group == Some(&format!("{id}Logs")), || format!("{id}: its log group is {group:?}"))
    });
    let groups = template.of_kind("AWS::Logs::LogGroup").filter_map(|(id, group)| {
        unless(seconds(&group["RetentionInDays"]) > 0, || format!("{id}: logs are kept for ever"))
    });
    functions.chain(groups).collect()
}
