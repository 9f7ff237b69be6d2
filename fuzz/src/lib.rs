//! What every target does: it puts one file of a small project in place of the committed one and makes all of the project
//! that a build makes. The answer may be an error; it may not be a panic, and every place that it names is in its file.

use std::path::Path;
use std::sync::LazyLock;

use tidelock_codegen::Project;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/tidelock-codegen/tests/fixtures/pick");

static COMMITTED: LazyLock<Project> = LazyLock::new(|| Project::read(Path::new(ROOT)).expect("the fixture is readable"));

/// Generates from the project with `content` at `path`.
pub fn generate_with(path: &str, content: &[u8]) {
    let mut project = COMMITTED.clone();
    project.insert(path.to_string(), content.to_vec());
    let Err(diagnostics) = project.generate() else { return };
    let sources = project.sources();
    for diagnostic in &diagnostics.0 {
        for label in std::iter::once(&diagnostic.primary).chain(&diagnostic.others) {
            let text = sources[&label.span.file].get(label.span.start..label.span.end);
            assert!(text.is_some(), "{label:?} of {} is not in the file", diagnostic.code);
        }
    }
    diagnostics.render(&sources, false);
    diagnostics.to_json(&sources);
}
