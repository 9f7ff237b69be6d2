//! What `tidelock prove-precision` prints, draws and returns.

mod common;

use common::{tidelock, tidelock_with};

/// A short run, in JSON.
const SHORT: &str = "prove-precision --device cpu --trials 400 --format json";

/// The report, without the progress on the standard error.
fn report(arguments: &str) -> serde_json::Value {
    let run = tidelock(arguments);
    assert_eq!(run.code, 0, "{}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn our_noise_holds_and_naive_noise_does_not() {
    // A long tail, so that few races tell: 4,000,000 tokens, of which 24-bit noise lets none win at gap 20.
    let report = report("prove-precision --device cpu --trials 400 --tail 4000000 --format json");
    assert_eq!(report["holds"], true);
    let verdicts = |key: &str| -> Vec<_> {
        let findings = report[key].as_array().unwrap().iter();
        findings.map(|finding| (finding["noise"].as_str().unwrap(), finding["verdict"].as_str().unwrap())).collect()
    };
    assert_eq!(verdicts("lower_tail"), [("naive-f32", "fails"), ("f32", "holds"), ("f64", "holds")]);
    assert_eq!(verdicts("races")[1..3], [("f32", "holds"), ("f64", "holds")], "gap 18");
}

#[test]
fn counts_are_a_function_of_the_seed() {
    let counts = |arguments: &str| {
        let mut report = report(arguments);
        report["seconds"] = 0.into();
        report
    };
    let negative = format!("{SHORT} --seed -1");
    assert_eq!(counts(&negative), counts(&negative));
    assert_ne!(counts(&negative), counts(SHORT));
}

#[test]
fn the_picture_stands_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("proof.svg");
    assert_eq!(tidelock_with(&format!("{SHORT} --plot"), &[&path]).code, 0);
    let svg = std::fs::read_to_string(path).unwrap();
    assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"));
    assert!(["naive f32", "tidelock f64", "gap 20.5"].iter().all(|text| svg.contains(text)));
}

#[test]
fn bad_numbers_are_refused() {
    for wrong in ["--trials 0", "--tail 0", "--tail 5000000", "--seed x"] {
        assert_eq!(tidelock(&format!("prove-precision {wrong}")).code, 2, "{wrong}");
    }
}
