//! `{placeholders}` in a source's configuration. A placeholder is a JSON Pointer (`{/repository/name}`, RFC 6901) or its
//! short form (`{repository.name}`, `{commits.0.id}`); what the body has no value for becomes nothing. What a body puts
//! in is never looked at again, so it cannot bring placeholders of its own.

use serde_json::Value;

/// `template` with its placeholders filled from `body`. Braces around anything but a path stay as they are.
pub(super) fn fill(template: &str, body: &Value) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        match after.split_once('}').filter(|(path, _)| is_path(path)) {
            Some((path, tail)) => {
                filled.push_str(&look_up(body, path));
                rest = tail;
            }
            None => {
                filled.push('{');
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    filled
}

fn is_path(path: &str) -> bool {
    !path.is_empty() && path.chars().all(|c| c.is_alphanumeric() || "_-./~@$".contains(c))
}

fn look_up(body: &Value, path: &str) -> String {
    let value = if path.starts_with('/') {
        body.pointer(path)
    } else {
        path.split('.').try_fold(body, |value, step| match value {
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            _ => value.get(step),
        })
    };
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn placeholders_are_filled_once() {
        let body = json!({
            "action": "opened", "issue": { "title": "{action} {/secret}", "number": 7 },
            "labels": ["bug", { "name": "p1" }], "a/b": 1, "none": null,
        });
        let table = [
            ("{action} #{issue.number}: {issue.title}", "opened #7: {action} {/secret}"),
            ("{/issue/number} {/a~1b}", "7 1"),
            ("{labels.0} {labels.1.name} {labels.9}", "bug p1 "),
            ("{labels}", r#"["bug",{"name":"p1"}]"#),
            ("[{none}{missing}]", "[]"),
            ("{ not a path } {} {unclosed", "{ not a path } {} {unclosed"),
            ("plain", "plain"),
        ];
        for (template, wanted) in table {
            assert_eq!(fill(template, &body), wanted, "{template}");
        }
    }
}
