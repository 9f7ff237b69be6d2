//! `tidelock sample`: which tokens come out, that they follow the options, and how they are printed.

mod common;

use std::fs;
use std::path::PathBuf;

use common::{Run, root, tidelock, tidelock_with};
use safetensors::tensor::TensorView;
use serde_json::Value;
use tempfile::TempDir;

fn sample(arguments: &str) -> Value {
    tidelock(&format!("sample --device cpu --format json {arguments}")).json()
}

/// The tokens of every row, draw after draw.
fn tokens(arguments: &str) -> Vec<Vec<i64>> {
    let ids = |row: &Value| row["tokens"].as_array().unwrap().iter().map(|id| id.as_i64().unwrap()).collect();
    sample(arguments)["rows"].as_array().unwrap().iter().map(ids).collect()
}

/// A line a row, as JSON.
fn lines(arguments: &str) -> String {
    let report = sample(arguments);
    report["rows"].as_array().unwrap().iter().map(|row| format!("{row}\n")).collect()
}

/// Logits of two rows and four tokens in a file of its own.
fn small(values: &[f32; 8]) -> (TempDir, PathBuf) {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.safetensors");
    let view = TensorView::new(safetensors::Dtype::F32, vec![2, 4], &bytes).unwrap();
    fs::write(&path, safetensors::serialize([("logits", view)], None).unwrap()).unwrap();
    (folder, path)
}

fn run_small(values: &[f32; 8], arguments: &str) -> Run {
    let (_folder, path) = small(values);
    let run = tidelock_with(&format!("sample --device cpu {arguments}"), &[&path]);
    let replace = |text: String| text.replace(&path.display().to_string(), "FILE");
    Run { stdout: replace(run.stdout), stderr: replace(run.stderr), ..run }
}

#[test]
fn the_same_seed_gives_these_tokens() {
    let first = "--rows 0..16 --seed 0";
    insta::assert_snapshot!("tokens_f32", lines(first));
    insta::assert_snapshot!("tokens_f64", lines(&format!("{first} --use-fp64-gumbel")));
    insta::assert_snapshot!("tokens_greedy", lines(&format!("{first} --greedy")));
    insta::assert_snapshot!("tokens_filtered", lines(&format!("{first} --top-k 20 --top-p 0.9")));
    let logprobs = "--rows 0..4 --seed 0 --top-k 20 --logprobs 3";
    insta::assert_snapshot!("logprobs_raw", lines(logprobs));
    insta::assert_snapshot!("logprobs_processed", lines(&format!("{logprobs} --logprobs-mode processed")));
}

#[test]
fn tokens_are_a_function_of_seed_and_position() {
    assert_eq!(tokens("--seed 7"), tokens("--seed 7"));
    assert_ne!(tokens("--seed 7"), tokens("--seed 8"));
    assert_ne!(tokens("--seed 7"), tokens("--seed 7 --position 1"));
    assert_eq!(tokens("--rows 4..9"), tokens("--seed 0")[4..9], "a part of the rows has the tokens of the whole");
    assert_eq!(
        tokens("--rows 0..2 --seed 5,-9"),
        [tokens("--rows 0..1 --seed 5"), tokens("--rows 1..2 --seed -10")].concat()
    );
    let draws = tokens("--rows 0..8 --samples 5 --position 3");
    for (draw, position) in (3..8).enumerate() {
        let single = tokens(&format!("--rows 0..8 --position {position}"));
        assert_eq!(draws.iter().map(|row| row[draw]).collect::<Vec<_>>(), single.concat());
    }
}

#[test]
fn one_token_is_the_most_likely_one() {
    let greedy = tokens("--greedy");
    assert_eq!(tokens("--top-k 1"), greedy);
    assert_eq!(tokens("--top-p 0 --use-fp64-gumbel"), greedy);
    assert_eq!(tokens("--temperature 0 --seed 9"), greedy);
    let mixed = tokens("--rows 0..2 --temperature 0,1");
    assert_eq!(mixed, [&greedy[0], &tokens("--rows 1..2")[0]].map(Clone::clone), "rows do not change each other");
    let report = sample("--greedy --rows 0..1");
    assert!(report["noise"].is_null());
}

/// The sampler's own word: the tokens of f32 and f64 noise differ too rarely to tell.
#[test]
fn the_precision_of_the_noise_is_the_samplers() {
    assert_eq!(sample("--rows 0..1")["noise"], "f32");
    assert_eq!(sample("--rows 0..1 --use-fp64-gumbel")["noise"], "f64");
}

#[test]
fn filters_that_filter_nothing_change_nothing() {
    assert_eq!(tokens("--rows 0..8 --top-k 0 --top-p 1 --min-p 0"), tokens("--rows 0..8"));
    assert_eq!(tokens("--rows 0..8 --top-k -1 --top-p 1.5 --min-p -2"), tokens("--rows 0..8"));
}

const EVEN: [f32; 8] = [1.0; 8];

/// The tokens that come up in 200 draws of both rows.
fn support(values: &[f32; 8], arguments: &str) -> Vec<Vec<i64>> {
    let report = run_small(values, &format!("--format json --samples 200 {arguments}")).json();
    let ids = |row: &Value| {
        let counts = row["counts"].as_array().unwrap();
        assert_eq!(counts.iter().map(|count| count["count"].as_u64().unwrap()).sum::<u64>(), 200);
        let mut ids: Vec<_> = counts.iter().map(|count| count["token"].as_i64().unwrap()).collect();
        ids.sort_unstable();
        ids
    };
    report["rows"].as_array().unwrap().iter().map(ids).collect()
}

#[test]
fn processors_choose_the_support() {
    let all = vec![0, 1, 2, 3];
    let both = |ids: &[i64]| vec![ids.to_vec(); 2];
    assert_eq!(support(&EVEN, ""), both(&all));
    assert_eq!(support(&EVEN, "--allowed-ids 3,1"), both(&[1, 3]));
    assert_eq!(support(&EVEN, "--bad-words 2;0"), both(&[1, 3]));
    assert_eq!(support(&EVEN, "--min-tokens 2,0 --stop-ids 1"), [vec![0, 2, 3], all.clone()]);
    assert_eq!(support(&EVEN, "--min-tokens 2 --stop-ids 1 --output-ids 0,0"), both(&all));
    assert_eq!(support(&EVEN, "--logit-bias 2:60"), both(&[2]));
    assert_eq!(support(&EVEN, "--logit-bias 2:60,2:-60,1:-inf"), both(&[0, 2, 3]));
    assert_eq!(support(&EVEN, "--presence-penalty 60,0 --output-ids 1"), [vec![0, 2, 3], all.clone()]);
    assert_eq!(support(&EVEN, "--presence-penalty -60 --output-ids 1"), both(&[1]));
    assert_eq!(support(&EVEN, "--frequency-penalty 30 --output-ids 1,1,2"), both(&[0, 3]));
    let tall = [60.0, 1.0, 1.0, 1.0, 60.0, 1.0, 1.0, 1.0];
    assert_eq!(support(&tall, "--repetition-penalty 60 --prompt-ids 0"), both(&all));
    assert_eq!(support(&tall, "--repetition-penalty 1,60 --output-ids 0"), [vec![0], all.clone()]);
    assert_eq!(support(&tall, "--temperature inf"), both(&all));
    assert_eq!(support(&EVEN, "--top-k 2,0"), [vec![0, 1], all]);
}

#[test]
fn a_bad_word_of_several_ids_needs_the_ones_before() {
    let words = |output: &str| {
        let (_folder, path) = small(&EVEN);
        let (words, path) = (PathBuf::from("0 1 2;3 2"), path.as_path());
        let options = format!("sample --device cpu --format json --samples 200 {output} --bad-words");
        let report = tidelock_with(&options, &[&words, path]).json();
        report["rows"][0]["counts"].as_array().unwrap().iter().any(|count| count["token"] == 2)
    };
    assert!(words(""));
    assert!(words("--output-ids 1,0"));
    assert!(!words("--output-ids 3,0,1"));
    assert!(!words("--output-ids 3"));
}

#[test]
fn logprobs_are_of_the_logits_that_were_asked_for() {
    let values = [0.0, 0.0, 0.0, 0.0, 2.0, 1.0, f32::NEG_INFINITY, 0.0];
    let row = |arguments: &str, row: usize| {
        run_small(&values, &format!("--format json {arguments}")).json()["rows"][row].clone()
    };
    let close = |value: &Value, probability: f64| (value.as_f64().unwrap() - probability.ln()).abs() < 1e-6;
    let raw = row("--logprobs 4 --allowed-ids 1", 0);
    assert!(close(&raw["logprobs"][0], 0.25), "{raw}");
    assert_eq!((&raw["tokens"][0], &raw["ranks"][0]), (&Value::from(1), &Value::from(4)), "ties have their last rank");
    let processed = row("--logprobs 4 --logprobs-mode processed --allowed-ids 1", 0);
    assert!(close(&processed["logprobs"][0], 1.0), "{processed}");
    assert_eq!(processed["top_logprobs"].as_array().unwrap().len(), 1, "no token is left beside it");
    let likely = row("--logprobs 9", 1);
    let ids: Vec<_> = likely["top_logprobs"].as_array().unwrap().iter().map(|likely| likely["token"].clone()).collect();
    assert_eq!(ids, [0, 1, 3]);
    let none = row("--logprobs 0", 1);
    assert_eq!((none["logprobs"].as_array().unwrap().len(), &none["top_logprobs"]), (1, &Value::Array(vec![])));
}

#[test]
fn a_row_without_a_token_is_told() {
    let nan = [f32::NAN, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0];
    for how in ["", "--greedy", "--top-k 2", "--use-fp64-gumbel", "--logit-bias 0:1"] {
        let run = run_small(&nan, &format!("--logprobs 2 {how}"));
        assert_eq!((run.code, run.stderr.as_str()), (0, "no token can be drawn in 1 of 2 rows\n"), "{how}");
        assert!(run.stdout.contains("\n  0     -1  no token can be drawn        -     -  -\n"), "{}", run.stdout);
        let run = run_small(&nan, &format!("--logprobs 2 --format json {how}"));
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!((&report["rows_without_token"], &report["rows"][0]["tokens"][0]), (&1.into(), &(-1).into()));
        assert_eq!((&report["rows"][0]["logprobs"][0], &report["rows"][0]["ranks"][0]), (&Value::Null, &Value::Null));
    }
    let several = run_small(&nan, "--samples 3");
    assert!(several.stdout.contains("\n  0      3       0  -1, no token can be drawn\n"), "{}", several.stdout);
    let none = run_small(&[f32::NEG_INFINITY; 8], "");
    assert_eq!((none.code, none.stderr.as_str()), (0, "no token can be drawn in 2 of 2 rows\n"));
    let tokenizer = root().join("examples/data/tokenizer.json");
    let (_folder, path) = small(&nan);
    let run = tidelock_with("sample --device cpu --format json --tokenizer", &[&tokenizer, &path]);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["rows"][0]["text"], Value::Array(vec![Value::Null]));
}

#[test]
fn the_table_is_for_people() {
    let filter = "sample --device cpu --rows 0..6 --top-k 50";
    insta::assert_snapshot!("table", tidelock(filter).ok());
    insta::assert_snapshot!("table_logprobs", tidelock(&format!("{filter} --logprobs 3")).ok());
    insta::assert_snapshot!("table_samples", tidelock(&format!("{filter} --samples 100 --logprobs 2")).ok());
}

#[test]
fn the_keys_of_the_json_are_stable() {
    let json = tidelock("sample --device cpu --format json --rows 0..1 --samples 2 --logprobs 1").ok();
    let keys = |indent: &str| -> Vec<String> {
        let begins = format!("{indent}\"");
        json.lines().filter_map(|line| Some(line.strip_prefix(&begins)?.split_once("\":")?.0.into())).collect()
    };
    assert_eq!(keys("  ").join(" "), "file device noise logprobs_mode vocab_size samples rows rows_without_token");
    let expected = "row seed position temperature top_k top_p min_p tokens text logprobs ranks top_logprobs counts";
    assert_eq!(keys("      ").join(" "), expected);
}

#[test]
fn values_that_no_row_can_have() {
    let error = |arguments: &str| run_small(&EVEN, arguments).error();
    for flag in ["--temperature", "--top-k", "--top-p", "--min-p", "--seed", "--position"] {
        let expected = format!("error: FILE: {flag}: expected 1 value or 2, one a row, got 3");
        assert_eq!(error(&format!("{flag} 1,2,3")), expected);
    }
    for flag in ["--repetition-penalty", "--frequency-penalty", "--presence-penalty"] {
        let expected = format!("error: FILE: {flag}: expected 1 value or 2, one a row, got 3");
        assert_eq!(error(&format!("{flag} 1,2,3 --output-ids 1")), expected);
    }
    assert_eq!(
        error("--min-tokens 1,2,3 --stop-ids 1"),
        "error: FILE: --min-tokens: expected 1 value or 2, one a row, got 3"
    );
    for (flag, value) in
        [("--prompt-ids", "0,4"), ("--output-ids", "4"), ("--bad-words", "4"), ("--allowed-ids", "0,4")]
    {
        assert_eq!(error(&format!("{flag} {value}")), format!("error: FILE: {flag}: expected ids from 0 to 3, got 4"));
    }
    assert_eq!(error("--logit-bias -1:2"), "error: FILE: --logit-bias: expected ids from 0 to 3, got -1");
    assert_eq!(error("--min-tokens 1 --stop-ids 9"), "error: FILE: --stop-ids: expected ids from 0 to 3, got 9");
    assert_eq!(error("--rows 1..3"), "error: FILE: --rows: expected a part of 0..2, got 1..3");
    assert_eq!(
        error("--repetition-penalty 2"),
        "error: FILE: --repetition-penalty cannot be honoured: there are neither --prompt-ids nor --output-ids"
    );
    for flag in ["--frequency-penalty", "--presence-penalty"] {
        let expected = format!("error: FILE: {flag} cannot be honoured: there are no --output-ids");
        assert_eq!(error(&format!("{flag} 2 --prompt-ids 1")), expected);
    }
    assert_eq!(
        tidelock("sample --device tpu").error(),
        "error: device `tpu`: expected `auto`, `cpu`, `cuda` or `cuda:N`"
    );
}

#[test]
fn texts_that_no_flag_can_have() {
    let wrong = |flag: &str, name: &str, value: &str, expected: &str| {
        let run = tidelock(&format!("sample {flag} {value}"));
        let item = value.rsplit(',').next().unwrap();
        let message =
            format!("error: invalid value '{item}' for '{flag} <{name}>': expected {expected}, got {item:?}\n");
        assert_eq!((run.code, run.stderr.starts_with(&message)), (2, true), "{message}{}", run.stderr);
    };
    for value in ["warm", "NaN", "-1", "1,-0.5"] {
        wrong("--temperature", "T,..", value, "a number of at least 0");
    }
    for flag in ["--top-k", "--seed", "--position", "--min-tokens"] {
        let bits = if matches!(flag, "--top-k" | "--min-tokens") { 32 } else { 64 };
        let name = if flag == "--top-k" { "K,.." } else { "N,.." };
        for value in ["1.5", "3,x", "99999999999999999999"] {
            wrong(flag, name, value, &format!("a whole number of {bits} bits"));
        }
    }
    for flag in ["--top-p", "--min-p"] {
        wrong(flag, "P,..", "0.5,NaN", "a number");
        wrong(flag, "P,..", "much", "a number");
    }
    for value in ["0", "-1", "inf", "NaN"] {
        wrong("--repetition-penalty", "P,..", value, "a finite number above 0");
    }
    for flag in ["--frequency-penalty", "--presence-penalty"] {
        wrong(flag, "P,..", "0,inf", "a finite number");
    }
    for flag in ["--prompt-ids", "--output-ids", "--allowed-ids", "--stop-ids"] {
        wrong(flag, "ID,..", "1,a", "a token id");
    }
    for value in ["1;;2", "a", "1,2"] {
        let run = tidelock(&format!("sample --bad-words {value}"));
        let message = format!(
            "error: invalid value '{value}' for '--bad-words <WORDS>': expected words of token ids such as \"12 5;7\", \
             got {value:?}\n"
        );
        assert_eq!((run.code, run.stderr.starts_with(&message)), (2, true), "{}", run.stderr);
    }
    for value in ["17", "17:NaN", "3:1,a:1"] {
        wrong("--logit-bias", "ID:B,..", value, "ID:BIAS, a token id and a number");
    }
    for value in ["3", "4..4", "5..4", "a..b"] {
        wrong("--rows", "A..B", value, "A..B with A below B");
    }
    for usage in [
        "--greedy --temperature 1",
        "--samples 0",
        "--logprobs 1025",
        "--logprobs-mode raw",
        "--min-tokens 1",
        "--stop-ids 1",
    ] {
        assert_eq!(tidelock(&format!("sample {usage}")).code, 2, "{usage}");
    }
}
