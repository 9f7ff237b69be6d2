//! `tidelock doc`: pages whose links lead somewhere, whose text is text, and which a browser shows.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{root, tidelock_with};
use tempfile::TempDir;

/// Every file below `folder`, by its path from there.
fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().into(), fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// The values of an attribute.
fn values<'t>(text: &'t str, attribute: &str) -> Vec<&'t str> {
    let mark = format!(" {attribute}=\"");
    text.split(mark.as_str()).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// `folder/../x` as `x`.
fn resolve(from: &Path, link: &str) -> PathBuf {
    let mut parts: Vec<&str> = from.parent().unwrap().iter().map(|part| part.to_str().unwrap()).collect();
    for part in link.split('/') {
        if part == ".." { _ = parts.pop().expect("the link stays in the site") } else { parts.push(part) }
    }
    parts.iter().collect()
}

fn site(of: &Path) -> (TempDir, BTreeMap<PathBuf, String>) {
    let out = TempDir::new().unwrap();
    let run = tidelock_with("doc --root", &[of, Path::new("--out"), out.path()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let files = files(out.path());
    (out, files)
}

#[test]
fn every_link_leads_to_a_page_and_a_line() {
    for of in [root().to_path_buf(), root().join("examples/own-kernels")] {
        let (_out, files) = site(&of);
        let mut linked = BTreeSet::from([PathBuf::from("index.html")]);
        for (path, text) in files.iter().filter(|(path, _)| path.extension().is_some_and(|ending| ending == "html")) {
            for link in values(text, "href") {
                let (page, anchor) = link.split_once('#').map_or((link, None), |(page, anchor)| (page, Some(anchor)));
                let page = if page.is_empty() { path.clone() } else { resolve(path, page) };
                let target = files.get(&page).unwrap_or_else(|| panic!("{link} in {} leads nowhere", path.display()));
                if let Some(anchor) = anchor {
                    assert!(values(target, "id").contains(&anchor), "{link} in {} has no such line", path.display());
                }
                linked.insert(page);
            }
            assert!(!text.contains("<script"), "{} needs no JavaScript", path.display());
        }
        assert_eq!(linked, files.keys().cloned().collect(), "every page can be reached");
    }
}

#[test]
fn a_page_says_what_the_registry_says() {
    let (_out, files) = site(&root().join("examples/own-kernels"));
    let page = &files[Path::new("kernel/dequantize_rows.html")];
    for part in [
        "Turns rows of 8-bit integers into numbers",
        "kernels/quantize.cu",
        "cpu/quantize.cpp",
        "dequantize_rows_f64",
        "Quantization",
        "row stride of input",
        "read, optional",
        "f32 | f64 by T",
        "dequantize_rows-f64-no_ceilings",
        "registers (sm_80)",
        "locked",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let source = &files[Path::new("source/cpu/quantize.h.html")];
    assert!(source.contains("const int8_t *input"));
}

/// A copy of the example crate, with one edit.
fn edited(path: &str, from: &str, to: &str) -> TempDir {
    let copy = TempDir::new().unwrap();
    let own = root().join("examples/own-kernels");
    for folder in ["signatures", "kernels", "ptx", "cpu", "src"] {
        for (path, text) in files(&own.join(folder)) {
            let path = copy.path().join(folder).join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
    fs::copy(own.join("bindings.rs"), copy.path().join("bindings.rs")).unwrap();
    let path = copy.path().join(path);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from));
    fs::write(path, text.replace(from, to)).unwrap();
    copy
}

#[test]
fn what_authors_write_is_text_and_never_markup() {
    let copy = edited("signatures/blend.yaml", "doc: The sums.", "doc: '<script>alert(\"&\")</script> \"sums\"'");
    let (_out, files) = site(copy.path());
    let text: String = files.values().cloned().collect();
    assert!(!text.contains("<script"));
    assert!(
        files[Path::new("kernel/add_scaled.html")]
            .contains("&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt; &quot;sums&quot;")
    );
}

#[test]
fn drift_is_shown_and_bad_registries_are_refused() {
    let copy = edited("kernels/blend.py", "BLOCK_SIZE: tl.constexpr", "size_of_block: tl.constexpr");
    let (_out, files) = site(copy.path());
    assert!(files[Path::new("kernel/add_scaled.html")].contains("drifted: TL0"));
    assert!(files[Path::new("index.html")].contains("What has drifted apart"));

    let copy = edited("signatures/blend.yaml", "tensor: f32", "tensor: f31");
    let run = tidelock_with("doc --root", &[copy.path()]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("error[TL0118]") && run.stderr.contains("signatures/blend.yaml"), "{}", run.stderr);
    let run = tidelock_with("doc --root", &[Path::new("/nowhere")]);
    assert!(run.stderr.starts_with("error: /nowhere/signatures: expected a folder"), "{}", run.stderr);
}

#[test]
fn list_reads_a_folder() {
    let list = tidelock_with("list --format json --root", &[&root().join("examples/own-kernels")]).json();
    let names: Vec<_> = list.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["add_scaled", "dequantize_rows"]);
    assert_eq!((list[1]["params"].as_u64(), list[1]["variants"].as_u64()), (Some(6), Some(4)));
    // What is compiled in and what its folder says are the same.
    let compiled_in = common::tidelock("list --format json").json();
    assert_eq!(tidelock_with("list --format json --root", &[root()]).json(), compiled_in);
}

#[test]
fn header_prints_what_is_committed() {
    let own = root().join("examples/own-kernels");
    let run = tidelock_with("header quantize --print --root", &[&own]);
    assert_eq!(run.ok(), fs::read_to_string(own.join("ptx/quantize.h")).unwrap());
    let run = tidelock_with("header quantise --root", &[&own]);
    assert_eq!(run.error(), "error: no family with CUDA C++ kernels is called `quantise`; did you mean `quantize`?");
}

/// A browser that can run without a window, if there is one.
fn browser() -> Option<&'static str> {
    ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success()))
}

#[test]
fn a_browser_shows_it() {
    let Some(browser) = browser() else {
        return eprintln!("not opened in a browser: there is no chromium or google-chrome on this machine");
    };
    let (out, _) = site(&root().join("examples/own-kernels"));
    let profile = TempDir::new().unwrap();
    let page = out.path().join("kernel/dequantize_rows.html");
    let output = Command::new(browser)
        .args(["--headless", "--disable-gpu", "--disable-background-networking", "--virtual-time-budget=1000"])
        .args(std::env::var("CHROMIUM_FLAGS").unwrap_or_default().split_whitespace())
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--dump-dom", &format!("file://{}", page.display())])
        .output()
        .unwrap();
    let (dom, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() && stderr.contains("Running as root without") {
        return eprintln!(
            "not opened in a browser: it does not run as root without a flag, which CHROMIUM_FLAGS can give"
        );
    }
    assert!(output.status.success(), "{stderr}");
    // A row a parameter, constant and variant, and three headers: what the browser made of the page is whole.
    assert_eq!(dom.matches("<tr>").count(), 3 + 6 + 2 + 4, "{dom}");
    assert!(dom.trim_end().ends_with("</html>"));
}
