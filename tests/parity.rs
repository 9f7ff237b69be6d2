//! Both arms of every kernel of the registry give the same bits.
//!
//! Without a GPU the CPU arm is compared with `records/`, which `tidelock record` makes on one; with a GPU, with that GPU as
//! well. The cases come from the registry, so no kernel has to be named here.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

use tidelock::{DType, Device, REGISTRY};
use tidelock_parity::{Case, Record, Survey, Verdict, compare, standard, survey, verify_survey};

/// The standard cases on the CPU arm: none panics, writes outside its tensors, or gives two results.
fn cpu() -> &'static Survey {
    static SURVEY: OnceLock<Survey> = OnceLock::new();
    SURVEY.get_or_init(|| survey(REGISTRY, &Device::Cpu, &|_| {}).unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn the_cpu_arm_is_total() {
    let run: BTreeSet<_> = cpu().cases.iter().map(|surveyed| surveyed.case.kernel.name).collect();
    assert_eq!(run, REGISTRY.iter().map(|kernel| kernel.name).collect());
}

#[test]
fn the_cpu_arm_gives_what_a_gpu_gave() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("records");
    let families: BTreeSet<_> = REGISTRY.iter().map(|kernel| kernel.family).collect();
    let records = families.iter().map(|family| Record::load(&folder, family).unwrap_or_else(|error| panic!("{error}")));
    let records: Vec<_> = records.collect();
    if records.iter().all(Option::is_none) {
        eprintln!("no records: nothing holds the CPU arm to the GPU arm here; run `tidelock record` on a GPU");
        return;
    }
    let (mut wrong, mut stale) = (Vec::new(), BTreeSet::new());
    for (family, record) in families.iter().zip(records) {
        let Some(record) = record else {
            wrong.push(format!("records/{family}.json is missing; run `tidelock record` on a GPU"));
            continue;
        };
        for outcome in verify_survey(&record, cpu()) {
            match outcome.verdict {
                Verdict::Agrees => {}
                Verdict::Stale => {
                    _ = stale.insert(outcome.case.variant().map_or(outcome.case.kernel.name, |variant| variant.name))
                }
                Verdict::Differs { .. } | Verdict::Missing => wrong.push(outcome.to_string()),
            }
        }
    }
    for name in stale {
        eprintln!("the record of `{name}` is older than its PTX and was not compared; run `tidelock record` on a GPU");
    }
    assert!(
        wrong.is_empty(),
        "{} cases, the smallest of each kernel first:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}

/// What the example of `crates/tidelock-cust` recorded; it cannot be built without CUDA, so its record is held to here.
#[test]
fn the_cpu_arm_gives_what_a_gpu_gave_through_cust() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/tidelock-cust/records");
    let Some(record) = Record::load(&folder, "softmax").unwrap_or_else(|error| panic!("{error}")) else {
        return eprintln!("no record of cust: run the example of crates/tidelock-cust on a GPU");
    };
    let ran = |case: &Case| case.kernel.name == "softmax" && case.types == [DType::F32];
    let cases = cpu().cases.iter().filter(|surveyed| ran(&surveyed.case)).cloned().collect();
    for outcome in verify_survey(&record, &Survey { cases }) {
        assert!(outcome.verdict == Verdict::Agrees, "{outcome}: this one was made by `{}`", record.made.command);
    }
}

#[test]
fn both_arms_agree_where_there_is_a_gpu() {
    let gpu = match Device::cuda(0) {
        Ok(gpu) => gpu,
        Err(error) => return eprintln!("not compared with a GPU: {error}"),
    };
    for kernel in REGISTRY {
        for case in standard(kernel) {
            let difference = compare(&case, &Device::Cpu, &gpu).unwrap_or_else(|error| panic!("{error}"));
            assert!(difference.is_none(), "the smallest case that differs: {}", difference.unwrap());
        }
    }
}
