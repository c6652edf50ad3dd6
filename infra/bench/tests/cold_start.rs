//! `minimal`, once: it starts, shakes hands, is answered, and its figures have the names that others read.

use std::path::Path;

use serde_json::Value;
use turnlock_bench::cold::{Settings, measure};

fn settings(only: &str) -> Settings {
    let binaries = Path::new(env!("CARGO_BIN_EXE_minimal")).parent().map(Path::to_owned).unwrap_or_default();
    Settings { binaries, runs: 1, warm: 1, only: vec![only.to_owned()] }
}

#[tokio::test]
async fn the_figures_have_the_names_that_others_read() {
    let report = serde_json::to_value(measure(&settings("minimal")).await.unwrap()).unwrap();
    assert_eq!(report["runs"], 1);
    let functions = report["functions"].as_array().unwrap();
    let minimal = functions[0].as_object().unwrap();
    let mut names: Vec<&str> = minimal.keys().map(String::as_str).collect();
    names.sort_unstable();
    let expected: &[&str] = if cfg!(target_os = "linux") {
        &["cold_ms", "first_ms", "init_ms", "name", "rss_mb", "warm_ms"]
    } else {
        &["cold_ms", "first_ms", "init_ms", "name", "warm_ms"]
    };
    assert_eq!((functions.len(), minimal["name"].as_str(), &*names), (1, Some("minimal"), expected));
    let figures = minimal.values().filter_map(Value::as_f64);
    assert!(figures.clone().count() + 1 == expected.len() && figures.clone().all(|figure| figure > 0.0), "{minimal:?}");
}

#[tokio::test]
async fn a_name_that_no_target_has_is_an_error() {
    assert!(measure(&settings("maximal")).await.is_err());
}
