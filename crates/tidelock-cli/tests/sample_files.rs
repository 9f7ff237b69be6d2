//! Files that `tidelock sample` reads: what they may hold, and what it says of one that it cannot read.

mod common;

use std::fs;
use std::path::PathBuf;

use common::{root, tidelock, tidelock_with};
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use tempfile::TempDir;

/// The example's logits as NumPy would save them, in a format and with a type.
fn npy(format: u8, half: bool) -> (TempDir, PathBuf) {
    let bytes = fs::read(root().join("examples/data/speculation.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let logits = file.tensor("target_logits").unwrap();
    let wide = |bytes: &[u8; 2]| tidelock::f16::from_le_bytes(*bytes).to_f32().to_le_bytes();
    let data = if half { logits.data().to_vec() } else { logits.data().as_chunks().0.iter().flat_map(wide).collect() };
    let descr = if half { "<f2" } else { "<f4" };
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (64, 8192), }}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("logits.npy");
    fs::write(&path, npy_bytes(format, &header, &data)).unwrap();
    (folder, path)
}

fn npy_bytes(format: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{header:<117}\n");
    let length = (header.len() as u32).to_le_bytes();
    let length = if format == 1 { &length[..2] } else { &length[..] };
    [b"\x93NUMPY", &[format, 0][..], length, header.as_bytes(), data].concat()
}

#[test]
fn npy_and_safetensors_of_the_same_data_agree() {
    for (format, half) in [(1, false), (1, true), (2, false), (2, true)] {
        let (_folder, path) = npy(format, half);
        for how in ["", "--use-fp64-gumbel --rows 10..20", "--top-k 9 --min-p 0.1 --logprobs 2"] {
            let report = tidelock_with(&format!("sample --device cpu --format json {how}"), &[&path]).json();
            let tokenizer = root().join("examples/data/tokenizer.json");
            let with_text = format!("sample --device cpu --format json {how} --tokenizer");
            let same = tidelock_with(&with_text, &[&tokenizer, &path]).json();
            let own = tidelock(&format!("sample --device cpu --format json {how}")).json();
            assert_eq!(same["rows"], own["rows"], "{how}");
            assert_eq!(report["rows"][0]["tokens"], same["rows"][0]["tokens"]);
            assert_eq!(report["rows"][0].get("text"), None);
        }
    }
}

#[test]
fn npy_files_that_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let error = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let error = tidelock_with("sample --device cpu", &[&path]).error();
        error.replace(&path.display().to_string(), "FILE")
    };
    let header = |descr: &str, order: &str, shape: &str| {
        format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}")
    };
    let with = |header: &str, data: usize| error(&npy_bytes(1, header, &vec![0; data]));
    assert_eq!(error(b"PK"), "error: FILE: expected a .npy file, got one that begins otherwise");
    let ends = "error: FILE: expected a whole .npy header, got a file that ends in it";
    assert_eq!(error(b"\x93NUMPY\x01"), ends);
    assert_eq!(error(b"\x93NUMPY\x01\0\x76"), ends);
    assert_eq!(error(b"\x93NUMPY\x01\0\x76\0{"), ends);
    assert_eq!(error(b"\x93NUMPY\x03\0\x76\0\0\0{"), "error: FILE: expected .npy format 1.0 or 2.0, got 3.0");
    assert_eq!(
        with("{'descr': '<f4', 'shape': (1, 4), }", 16),
        "error: FILE: expected a header with descr, fortran_order and shape, got \"{'descr': '<f4', 'shape': (1, 4), }\""
    );
    for descr in ["'>f4'", "'<f8'", "[('a', '<f4')]"] {
        assert_eq!(
            with(&header(descr, "False", "(1, 4)"), 16),
            format!("error: FILE: expected type '<f4' or '<f2' (f32 or f16, little-endian), got {descr}")
        );
    }
    assert_eq!(
        with(&header("'<f4'", "True", "(1, 4)"), 16),
        "error: FILE: expected C order (fortran_order False), got fortran_order True"
    );
    assert_eq!(
        with(&header("'<f4'", "False", "(1, -4)"), 16),
        "error: FILE: expected a shape such as (64, 8192), got (1, -4)"
    );
    assert_eq!(
        with(&header("'<f4'", "False", "(1, 4)"), 15),
        "error: FILE: expected 16 bytes of data for shape [1, 4], got 15"
    );
    assert_eq!(
        with(&header("'<f4'", "False", "(4294967296, 4294967296)"), 0),
        "error: FILE: expected too many bytes of data for shape [4294967296, 4294967296], got 0"
    );
    for (shape, shown, bytes) in [("(4,)", "[4]", 16), ("()", "[]", 4), ("(1, 2, 2)", "[1, 2, 2]", 16)] {
        assert_eq!(
            with(&header("'<f4'", "False", shape), bytes),
            format!("error: FILE: array: expected shape [rows, V], got {shown}")
        );
    }
    assert_eq!(
        with(&header("'<f4'", "False", "(0, 4)"), 0),
        "error: FILE: array: expected at least one row and one token, got shape [0, 4]"
    );
    fs::write(&path, npy_bytes(1, &header("'<f4'", "False", "(1, 4)"), &[0; 16])).unwrap();
    let named = tidelock_with("sample --device cpu --tensor logits", &[&path]).error();
    assert!(named.ends_with(".npy: --tensor cannot be honoured: the array in a .npy file has no name"), "{named}");
}

#[test]
fn files_that_are_none() {
    assert_eq!(
        tidelock("sample --device cpu nowhere.npy").error(),
        "error: cannot read nowhere.npy: No such file or directory (os error 2)"
    );
    assert_eq!(
        tidelock("sample --device cpu Cargo.toml").error(),
        "error: Cargo.toml: expected a file named .safetensors or .npy"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    let error = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let error = tidelock_with("sample --device cpu", &[&path]).error();
        error.replace(&path.display().to_string(), "FILE")
    };
    assert_eq!(error(&[0; 3]), "error: FILE: expected a safetensors file, got one with header too small");
    let example = "examples/data/speculation.safetensors";
    assert_eq!(
        tidelock(&format!("sample --device cpu {example}")).error(),
        format!(
            "error: {example}: tensor `logits`: expected it, or another by --tensor NAME, got only bonus_logits, \
             cu_num_draft_tokens, draft_logits, draft_token_ids, target_logits"
        )
    );
    assert_eq!(
        tidelock("sample --device cpu --tensor draft_token_ids").error().rsplit_once(": tensor").unwrap().1,
        " `draft_token_ids`: expected shape [rows, V], got [64]"
    );
    let view = TensorView::new(safetensors::Dtype::F64, vec![1, 1], &[0; 8]).unwrap();
    assert_eq!(
        error(&safetensors::serialize([("logits", view)], None).unwrap()),
        "error: FILE: tensor `logits`: expected type F16, BF16 or F32, got F64"
    );
}
