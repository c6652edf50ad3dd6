//! The response stage never calls the model or a tool: it does not even name their crates.

use std::path::Path;

use syn::visit::Visit;

/// Collects the first segment of every path and import.
#[derive(Default)]
struct Names(Vec<String>);

impl<'ast> Visit<'ast> for Names {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.extend(path.segments.first().map(|segment| segment.ident.to_string()));
        syn::visit::visit_path(self, path);
    }

    fn visit_use_tree(&mut self, tree: &'ast syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => self.0.push(path.ident.to_string()),
            syn::UseTree::Name(name) => self.0.push(name.ident.to_string()),
            syn::UseTree::Rename(rename) => self.0.push(rename.ident.to_string()),
            syn::UseTree::Glob(_) | syn::UseTree::Group(_) => {}
        }
        syn::visit::visit_use_tree(self, tree);
    }
}

fn names(source: &str) -> Vec<String> {
    let mut names = Names::default();
    names.visit_file(&syn::parse_file(source).expect("it parses"));
    names.0
}

#[test]
fn the_response_stage_names_neither_models_nor_tools_nor_queues() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/app/src/turn/response.rs");
    let names = names(&std::fs::read_to_string(path).expect("the response stage"));
    for forbidden in ["turnlock_models", "turnlock_tools", "turnlock_queue", "inference", "send"] {
        assert!(!names.iter().any(|name| name == forbidden), "the response stage names {forbidden}");
    }
    assert!(names.iter().any(|name| name == "turnlock_domain"), "the check reads imports");
}

#[test]
fn the_check_sees_imports_and_paths() {
    assert!(names("use turnlock_models::Model;").contains(&"turnlock_models".to_owned()));
    assert!(names("fn f() { turnlock_tools::builtin(); }").contains(&"turnlock_tools".to_owned()));
}
