//! `tidelock bench` on the CPU: every workload is right while it is timed, and peers are told and asked as the README says.

mod common;

use std::path::Path;

use common::{Run, tidelock_with};
use serde_json::Value;

/// A small run, with more arguments and then `paths`, whose spaces are kept.
fn bench(arguments: &str, paths: &[&str]) -> Run {
    let paths: Vec<_> = paths.iter().map(Path::new).collect();
    tidelock_with(&format!("bench --device cpu --vocab-size 300 --batch 1,5 --replays 2 --json {arguments}"), &paths)
}

#[test]
fn every_workload_gives_what_the_cpu_arm_gives() {
    let run = bench("", &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let record: Value = serde_json::from_str(&run.stdout).expect("it is JSON");
    assert_eq!(record["format"], 1);
    assert!(record["bandwidth_bytes_per_s"].as_f64().is_some_and(|bandwidth| bandwidth > 0.0));
    let results = record["results"].as_array().expect("there are results");
    assert!(results.len() >= 20 && results.len().is_multiple_of(2), "{}", results.len());
    for result in results {
        let us = |key: &str| result[key].as_f64().expect("it is a number");
        assert!(0.0 < us("p10_us") && us("p10_us") <= us("median_us") && us("median_us") <= us("p90_us"), "{result}");
        assert!(us("limit_us") > 0.0 && result["bytes"].as_u64().is_some_and(|bytes| bytes >= 300), "{result}");
    }
}

#[test]
fn peers_are_told_the_cases_and_answer() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let inputs = folder.path().to_str().expect("it is text");
    let answer = r#"printf '{"versions":{"cat":"9"},"skipped":[],"results":[{"workload":"verify","batch":5,"vocab_size":300,"peer":"cat",
        "median_us":7.5,"p10_us":7,"p90_us":8}]}'; cp "$0/cases.json" "$0/told.json"; true"#;
    let run = bench("verify", &["--inputs", inputs, "--peers", answer]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let record: Value = serde_json::from_str(&run.stdout).expect("it is JSON");
    assert_eq!(record["peer_versions"]["cat"], "9");
    assert_eq!(record["results"][0]["peers"], Value::Array(vec![]));
    assert_eq!(record["results"][1]["peers"][0]["median_us"], 7.5);
    let told = std::fs::read(folder.path().join("told.json")).expect("the command was given the folder");
    let told: Value = serde_json::from_slice(&told).expect("it is JSON");
    let case = &told["cases"][1];
    assert_eq!((&case["rows"], &case["layer"]), (&20.into(), &"verify".into()));
    for (name, file) in case["files"].as_object().expect("there are files") {
        let length = std::fs::metadata(folder.path().join(file.as_str().expect("a name"))).expect("it is there").len();
        assert_eq!(length, if name == "draft_token_ids" { 20 * 4 } else { 20 * 300 * 4 }, "{name}");
    }
}

#[test]
fn each_size_of_the_vocabulary_is_a_case_with_its_own_peers() {
    let answer = r#"printf '{"versions":{},"skipped":[],"results":[{"workload":"argmax","batch":2,"vocab_size":301,
        "peer":"cat","median_us":7.5,"p10_us":7,"p90_us":8}]}'; true"#;
    let sizes = "bench argmax --device cpu --vocab-size 300,301 --batch 2 --replays 2 --flush read --json --peers";
    let run = tidelock_with(sizes, &[Path::new(answer)]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let record: Value = serde_json::from_str(&run.stdout).expect("it is JSON");
    let results = record["results"].as_array().expect("there are results");
    let its = |result: &Value| (result["vocab_size"].as_u64(), result["peers"].as_array().map(Vec::len));
    assert_eq!(results.iter().map(its).collect::<Vec<_>>(), [(Some(300), Some(0)), (Some(301), Some(1))]);
    assert_eq!(record["flush"], "written", "a CPU's cache holds what was written last");
}

#[test]
fn sizes_of_nothing_are_refused() {
    for option in ["--batch", "--vocab-size"] {
        let run = tidelock_with(&format!("bench argmax --device cpu --replays 2 {option} 4,0"), &[]);
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains(&format!("invalid value '0' for '{option} <N>'")), "{}", run.stderr);
    }
}

#[test]
fn a_command_that_fails_is_an_error() {
    let run = bench("argmax --peers", &["exit 3;"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("error: the peers' command `exit 3;` failed: exit status: 3"), "{}", run.stderr);
}
