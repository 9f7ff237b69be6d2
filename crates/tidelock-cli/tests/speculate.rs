//! The main job on the example: which tokens come out, that they depend on what they should, and how they are printed.

mod common;

use common::{root, tidelock, tidelock_with};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

/// The tokens of each request, one line a request, and the acceptance rate.
fn tokens(arguments: &str) -> String {
    let report = tidelock(&format!("speculate --device cpu --format json {arguments}")).json();
    let requests = report["requests"].as_array().unwrap();
    let lines = requests.iter().map(|request| format!("{} {}\n", request["accepted"], request["tokens"]));
    lines.chain([format!("acceptance rate {}", report["acceptance_rate"])]).collect()
}

#[test]
fn the_same_seed_gives_these_tokens() {
    insta::assert_snapshot!("tokens_f32", tokens("--seed 0"));
    insta::assert_snapshot!("tokens_f64", tokens("--seed 0 --use-fp64-gumbel"));
    insta::assert_snapshot!("tokens_greedy", tokens("--seed 0 --greedy"));
    insta::assert_snapshot!("tokens_synthetic", tokens("--seed 0 --synthetic-rates 0.9,0.8,0.5,0.2"));
    insta::assert_snapshot!("tokens_without_draft_probs", tokens("--seed 0 --no-draft-probs"));
    insta::assert_snapshot!("tokens_sampled", tokens("--seed 0 --verify sampled"));
}

#[test]
fn tokens_are_a_function_of_the_seed() {
    assert_eq!(tokens("--seed 7"), tokens("--seed 7 --repeat 3"));
    assert_ne!(tokens("--seed 7"), tokens("--seed 8"));
    assert_eq!(tokens("--greedy --seed 7"), tokens("--temperature 0 --seed 8"));
    assert_ne!(tokens("--seed -9223372036854775808"), tokens("--seed 9223372036854775807"));
}

#[test]
fn tokens_are_accepted_drafts_and_one_more() {
    let report = tidelock("speculate --device cpu --format json --seed 3").json();
    for request in report["requests"].as_array().unwrap() {
        let (drafted, tokens) = (request["drafted"].as_array().unwrap(), request["tokens"].as_array().unwrap());
        let accepted = request["accepted"].as_u64().unwrap() as usize;
        assert_eq!(tokens.len(), accepted + 1);
        assert_eq!(tokens[..accepted], drafted[..accepted]);
        assert_eq!(request["bonus"].is_null(), accepted < drafted.len());
        assert_eq!(request["recovered"].is_null(), accepted == drafted.len());
    }
}

/// Request 5 of the batch of seed 0 has seed 5: alone in a batch of that seed, it gets the same tokens.
#[test]
fn a_request_owns_its_noise() {
    let bytes = std::fs::read(root().join("examples/data/speculation.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("alone.safetensors");
    for request in [0, 5, 15] {
        let alone = |name: &'static str, rows: usize| {
            let tensor = file.tensor(name).unwrap();
            let bytes = tensor.data().len() / tensor.shape()[0] * rows;
            let shape = [&[rows], &tensor.shape()[1..]].concat();
            (name, TensorView::new(tensor.dtype(), shape, &tensor.data()[bytes * request..][..bytes]).unwrap())
        };
        let ends = ("cu_num_draft_tokens", TensorView::new(Dtype::I32, vec![1], &[4, 0, 0, 0]).unwrap());
        let tokens = [alone("target_logits", 4), alone("draft_logits", 4), alone("draft_token_ids", 4)];
        let tensors = tokens.into_iter().chain([alone("bonus_logits", 1), ends]);
        std::fs::write(&path, safetensors::serialize(tensors, None).unwrap()).unwrap();
        for how in ["", "--use-fp64-gumbel", "--no-draft-probs", "--verify sampled"] {
            let options = format!("speculate --device cpu --format json --temperature 0.8 {how} --seed");
            let batch = tidelock(&format!("{options} 0")).json();
            let alone = tidelock_with(&format!("{options} {request}"), &[&path]).json();
            assert_eq!(alone["requests"][0]["tokens"], batch["requests"][request]["tokens"], "{request} {how}");
        }
    }
}

#[test]
fn synthetic_rates_of_0_and_1_are_never_and_always() {
    let accepted = |arguments: &str| {
        let report = tidelock(&format!("speculate --device cpu --format json {arguments}")).json();
        report["requests"]
            .as_array()
            .unwrap()
            .iter()
            .map(|request| request["accepted"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    for how in ["", "--greedy", "--no-draft-probs", "--use-fp64-gumbel"] {
        assert_eq!(accepted(&format!("{how} --synthetic-rates 0,0,0,0")), [0; 16], "{how}");
        assert_eq!(accepted(&format!("{how} --synthetic-rates 1,1,1,1")), [4; 16], "{how}");
        assert_eq!(accepted(&format!("{how} --synthetic-rates 1,1,0,1")), [2; 16], "{how}");
    }
}

/// The mean over many seeds is what the two distributions say: 0.285 of the drafts if each is kept with probability 0.558
/// and only those before the first rejected one count.
#[test]
fn the_acceptance_rate_is_that_of_the_models() {
    let rate = |seed: i32| {
        let report = tidelock(&format!("speculate --device cpu --format json --seed {}", seed * 100)).json();
        report["acceptance_rate"].as_f64().unwrap()
    };
    let mean = (0..40).map(rate).sum::<f64>() / 40.0;
    assert!((0.25..0.33).contains(&mean), "{mean}");
}

#[test]
fn drafts_keep_the_temperature_they_were_drawn_at() {
    let temperatures = |arguments: &str| {
        let report = tidelock(&format!("speculate --device cpu --format json {arguments}")).json();
        (report["temperature"].clone(), report["draft_temperature"].clone())
    };
    assert_eq!(temperatures(""), (Value::from(0.8), Value::from(0.8)));
    assert_eq!(temperatures("--temperature 0.5"), (Value::from(0.5), Value::from(0.8)));
    assert_eq!(temperatures("--draft-temperature 0.5"), (Value::from(0.8), Value::from(0.5)));
    assert_eq!(temperatures("--no-draft-probs"), (Value::from(0.8), Value::Null));
    assert_eq!(temperatures("--greedy"), (Value::from(0.0), Value::Null));
}

#[test]
fn the_table_is_for_people() {
    let table = tidelock("speculate --device cpu --use-fp64-gumbel").ok();
    let (before, _) = table.split_once("\ntime ").unwrap();
    insta::assert_snapshot!("table", before);
    let (_, time) = table.rsplit_once("ms ").unwrap();
    assert_eq!(time, "by the host's clock, launches and synchronisation (1 run, which loads the kernels too)\n");
    let repeated = tidelock("speculate --device cpu --greedy --repeat 4").ok();
    assert!(repeated.ends_with("launches and synchronisation (median of 4 runs)\n"), "{repeated}");
}

#[test]
fn the_keys_of_the_json_are_stable() {
    let json = tidelock("speculate --device cpu --format json").ok();
    let keys: Vec<_> = json.lines().filter_map(|line| line.strip_prefix("  \"")?.split('"').next()).collect();
    let expected = "file device verification greedy noise seed temperature draft_temperature synthetic_rates requests drafted accepted \
                    acceptance_rate mean_tokens time";
    assert_eq!(keys.join(" "), expected);
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((report["device"].as_str(), report["noise"].as_str()), (Some("cpu"), Some("f32")));
    let keys: Vec<_> = report["requests"][0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys.join(" "), "accepted bonus drafted drafted_text recovered request text tokens"); // sorted by Value
}
