//! Whatever is wrong with the input of a step is said in one whole message, and nothing else happens.

mod common;

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use common::{Run, tidelock, tidelock_with};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use tempfile::TempDir;

/// A file that can be spoilt before it is written: two requests with 2 and 1 drafts, three tokens in the vocabulary.
struct File {
    tensors: Vec<(&'static str, Dtype, Vec<usize>, Vec<u8>)>,
    temperature: Option<&'static str>,
}

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn i32s(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

impl File {
    fn new() -> File {
        let tokens = f32s(&[0.5, 1.0, -1.0, 2.0, 0.0, 1.0, 0.0, 0.0, f32::NEG_INFINITY]);
        let tensors = vec![
            ("target_logits", Dtype::F32, vec![3, 3], tokens.clone()),
            ("draft_logits", Dtype::F32, vec![3, 3], tokens),
            ("bonus_logits", Dtype::F32, vec![2, 3], f32s(&[1.0, 2.0, 3.0, 3.0, 2.0, 1.0])),
            ("draft_token_ids", Dtype::I32, vec![3], i32s(&[1, 0, -1])),
            ("cu_num_draft_tokens", Dtype::I32, vec![2], i32s(&[2, 3])),
        ];
        File { tensors, temperature: Some("0.7") }
    }

    /// With another type, shape and bytes of one tensor, or one more.
    fn with(mut self, name: &'static str, dtype: Dtype, shape: &[usize], bytes: Vec<u8>) -> File {
        self.tensors.retain(|tensor| tensor.0 != name);
        self.tensors.push((name, dtype, shape.to_vec(), bytes));
        self
    }

    fn without(mut self, name: &str) -> File {
        self.tensors.retain(|tensor| tensor.0 != name);
        self
    }

    fn temperature(self, temperature: Option<&'static str>) -> File {
        File { temperature, ..self }
    }

    fn write(&self) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a file.safetensors");
        let views = self
            .tensors
            .iter()
            .map(|(name, dtype, shape, bytes)| (*name, TensorView::new(*dtype, shape.clone(), bytes).unwrap()));
        let metadata = self.temperature.map(|value| HashMap::from([("temperature".to_string(), value.to_string())]));
        fs::write(&path, safetensors::serialize(views, metadata).unwrap()).unwrap();
        (folder, path)
    }

    fn run(&self, arguments: &str) -> Run {
        let (_folder, path) = self.write();
        let run = tidelock_with(&format!("speculate --device cpu {arguments}"), &[&path]);
        let replace = |text: String| text.replace(&path.display().to_string(), "FILE");
        Run { stdout: replace(run.stdout), stderr: replace(run.stderr), ..run }
    }

    fn error(&self) -> String {
        self.run("").error()
    }
}

#[test]
fn a_small_file_is_run() {
    let report = File::new().run("--format json").json();
    assert_eq!(report["temperature"], 0.7);
    assert_eq!(report["requests"][1]["accepted"], 0, "a placeholder is never accepted");
    assert_eq!(report["requests"][0].get("text"), None);
    let half =
        |bytes: Vec<f32>| bytes.iter().flat_map(|&value| tidelock::bf16::from_f32(value).to_le_bytes()).collect();
    let bonus = half(vec![1.0, 2.0, 3.0, 3.0, 2.0, 1.0]);
    let mixed = File::new().with("bonus_logits", Dtype::BF16, &[2, 3], bonus).run("--format json").json();
    assert_eq!(mixed["requests"], report["requests"], "these values are the same in bf16");
}

#[test]
fn a_file_without_drafts_is_run() {
    let file = File::new()
        .with("target_logits", Dtype::F32, &[0, 3], vec![])
        .with("draft_logits", Dtype::F32, &[0, 3], vec![])
        .with("draft_token_ids", Dtype::I32, &[0], vec![])
        .with("cu_num_draft_tokens", Dtype::I32, &[2], i32s(&[0, 0]));
    for arguments in ["", "--greedy", "--use-fp64-gumbel"] {
        let report = file.run(&format!("--format json {arguments}")).json();
        assert_eq!(report["acceptance_rate"], serde_json::Value::Null);
        assert_eq!(report["mean_tokens"], 1.0);
    }
    assert!(file.run("").ok().contains("acceptance rate  -, 0 of 0 drafted tokens"));
}

#[test]
fn draft_logits_are_optional() {
    let report = File::new().without("draft_logits").run("--format json").json();
    assert_eq!(report["draft_temperature"], serde_json::Value::Null);
    assert_eq!(
        File::new().without("draft_logits").run("--draft-temperature 1").error(),
        "error: FILE: --draft-temperature cannot be honoured: there are no `draft_logits`"
    );
}

#[test]
fn no_file_or_no_safetensors() {
    assert_eq!(
        tidelock("speculate --device cpu nowhere.safetensors").error(),
        "error: cannot read nowhere.safetensors: No such file or directory (os error 2)"
    );
    assert_eq!(
        tidelock("speculate --device cpu Cargo.toml").error(),
        "error: Cargo.toml: expected a safetensors file, got one with header too large"
    );
    let (_folder, path) = File::new().write();
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let error = tidelock_with("speculate --device cpu", &[&path]).error();
    assert!(
        error.ends_with(": expected a safetensors file, got one with incomplete metadata, file not fully covered"),
        "{error}"
    );
}

#[test]
fn tensors_that_are_missing_or_unknown() {
    for name in ["target_logits", "bonus_logits", "draft_token_ids", "cu_num_draft_tokens"] {
        let expected = format!("error: FILE: tensor `{name}`: expected it, got none");
        assert_eq!(File::new().without(name).error(), expected);
    }
    assert_eq!(
        File::new().with("draft_logit", Dtype::F32, &[1], f32s(&[1.0])).error(),
        "error: FILE: tensor `draft_logit`: expected only target_logits, draft_logits, bonus_logits, draft_token_ids, \
         cu_num_draft_tokens"
    );
}

#[test]
fn wrong_types() {
    for name in ["draft_token_ids", "cu_num_draft_tokens"] {
        let file = File::new().with(name, Dtype::I64, &[1], vec![0; 8]);
        assert_eq!(file.error(), format!("error: FILE: tensor `{name}`: expected type I32, got I64"));
    }
    for (name, shape) in [("target_logits", [3, 3]), ("draft_logits", [3, 3]), ("bonus_logits", [2, 3])] {
        let file = File::new().with(name, Dtype::F64, &shape, vec![0; shape[0] * 24]);
        assert_eq!(file.error(), format!("error: FILE: tensor `{name}`: expected type F16, BF16 or F32, got F64"));
    }
}

#[test]
fn shapes_that_disagree() {
    let zeros = |count: usize| f32s(&vec![0.0; count]);
    assert_eq!(
        File::new().with("target_logits", Dtype::F32, &[2, 3], zeros(6)).error(),
        "error: FILE: tensor `target_logits`: expected shape [3, V]: a row for each of draft_token_ids, got [2, 3]"
    );
    assert_eq!(
        File::new().with("target_logits", Dtype::F32, &[9], zeros(9)).error(),
        "error: FILE: tensor `target_logits`: expected shape [3, V]: a row for each of draft_token_ids, got [9]"
    );
    assert_eq!(
        File::new().with("draft_logits", Dtype::F32, &[3, 4], zeros(12)).error(),
        "error: FILE: tensor `draft_logits`: expected shape [3, 3]: that of target_logits, got [3, 4]"
    );
    assert_eq!(
        File::new().with("bonus_logits", Dtype::F32, &[3, 3], zeros(9)).error(),
        "error: FILE: tensor `bonus_logits`: expected shape [2, 3]: a row for each of cu_num_draft_tokens, as long as those of \
         target_logits, got [3, 3]"
    );
    assert_eq!(
        File::new().with("target_logits", Dtype::F32, &[3, 0], vec![]).error(),
        "error: FILE: tensor `target_logits`: expected at least one token in the vocabulary, got shape [3, 0]"
    );
    assert_eq!(
        File::new().with("draft_token_ids", Dtype::I32, &[3, 1], i32s(&[0; 3])).error(),
        "error: FILE: tensor `draft_token_ids`: expected one axis, got shape [3, 1]"
    );
}

#[test]
fn cumulative_counts_that_are_none() {
    let counts = |ends: &[i32]| File::new().with("cu_num_draft_tokens", Dtype::I32, &[ends.len()], i32s(ends)).error();
    let name = "error: FILE: tensor `cu_num_draft_tokens`";
    assert_eq!(counts(&[]), format!("{name}: expected at least one request, got none"));
    assert_eq!(counts(&[-1, 3]), format!("{name}, request 0: expected at least 0, where its drafts begin, got -1"));
    assert_eq!(counts(&[3, 2]), format!("{name}, request 1: expected at least 3, where its drafts begin, got 2"));
    assert_eq!(counts(&[2, 4]), format!("{name}: expected to end with 3, the number of draft_token_ids, got 4"));
    assert_eq!(counts(&[2, 2]), format!("{name}: expected to end with 3, the number of draft_token_ids, got 2"));
}

#[test]
fn values_that_no_kernel_should_see() {
    let ids = |ids: &[i32]| File::new().with("draft_token_ids", Dtype::I32, &[3], i32s(ids)).error();
    let name = "error: FILE: tensor `draft_token_ids`";
    assert_eq!(ids(&[0, 3, 0]), format!("{name}, token 1: expected -1 (no draft) or 0 to 2, got 3"));
    assert_eq!(ids(&[0, 0, -2]), format!("{name}, token 2: expected -1 (no draft) or 0 to 2, got -2"));
    let bonus = |row: [f32; 3]| {
        let values = [[0.0; 3], row].concat();
        File::new().with("bonus_logits", Dtype::F32, &[2, 3], f32s(&values)).error()
    };
    let (name, none) = ("error: FILE: tensor `bonus_logits`", f32::NEG_INFINITY);
    assert_eq!(
        bonus([0.0, f32::NAN, 0.0]),
        format!("{name}: row 1, token 1: expected a finite logit or -inf, got NaN")
    );
    assert_eq!(
        bonus([0.0, 0.0, f32::INFINITY]),
        format!("{name}: row 1, token 2: expected a finite logit or -inf, got inf")
    );
    assert_eq!(bonus([none; 3]), format!("{name}: row 1: expected at least one finite logit, got only -inf"));
}

#[test]
fn temperatures_that_are_none() {
    for (text, shown) in [("warm", "\"warm\""), ("-0.5", "\"-0.5\""), ("inf", "\"inf\""), ("NaN", "\"NaN\"")] {
        let expected = format!("expected a finite number of at least 0, got {shown}");
        let error = File::new().temperature(Some(text)).error();
        assert_eq!(error, format!("error: FILE: metadata `temperature`: {expected}"));
        let run = tidelock(&format!("speculate --temperature {text}"));
        let usage = format!("error: invalid value '{text}' for '--temperature <T>': {expected}\n");
        assert_eq!((run.code, run.stderr.starts_with(&usage)), (2, true), "{}", run.stderr);
    }
    assert_eq!(File::new().temperature(None).run("--format json").json()["temperature"], 1.0);
}

#[test]
fn options_that_cannot_be_honoured() {
    assert_eq!(
        File::new().run("--synthetic-rates 0.5").error(),
        "error: FILE: --synthetic-rates: expected 2, one for each drafted position, got 1"
    );
    assert_eq!(
        File::new().run("--greedy --draft-temperature 1").error(),
        "error: FILE: --draft-temperature cannot be honoured: greedy verification uses no draft probabilities"
    );
    for usage in
        ["--greedy --temperature 1", "--no-draft-probs --draft-temperature 1", "--synthetic-rates 1.5,0", "--repeat 0"]
    {
        assert_eq!(tidelock(&format!("speculate {usage}")).code, 2, "{usage}");
    }
    assert_eq!(
        tidelock("speculate --device tpu").error(),
        "error: device `tpu`: expected `auto`, `cpu`, `cuda` or `cuda:N`"
    );
}

#[test]
fn tokenizers_that_are_none() {
    assert_eq!(
        tidelock("speculate --device cpu --tokenizer nowhere.json").error(),
        "error: cannot read the tokenizer nowhere.json: No such file or directory (os error 2)"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    let error = |text: &str| {
        fs::write(&path, text).unwrap();
        let error = tidelock_with("speculate --device cpu --tokenizer", &[&path]).error();
        error.replace(&path.display().to_string(), "FILE")
    };
    assert_eq!(
        error("{}"),
        "error: FILE: expected a tokenizer with a BPE vocabulary: missing field `model` at line 1 column 2"
    );
    assert_eq!(
        error(r#"{"model": {"vocab": {"a": 0}}, "decoder": {"type": "WordPiece"}}"#),
        "error: FILE: expected a decoder of type ByteLevel, got WordPiece"
    );
}
