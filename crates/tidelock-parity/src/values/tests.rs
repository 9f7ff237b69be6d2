//! Declared values keep to their domains and reach what matters in them.

use super::*;
use crate::standard::standard;
use crate::testing::DRAWS;
use tidelock::{DType, Element};

/// Values of declared cases that are small enough, row by row, of every parameter in a domain.
fn rows(mut look: impl FnMut(&Case, Domain, DType, Vec<f64>)) {
    for kernel in tidelock::REGISTRY.iter().copied().chain([&DRAWS]) {
        for case in standard(kernel).iter().filter(|case| case.values == Values::Declared && case.elements() < 20_000) {
            for (param, entry) in kernel.params.iter().enumerate() {
                let (Some(placement), ParamKind::Tensor { access, .. }) = (case.placement(param), &entry.kind) else {
                    continue;
                };
                if *access == Access::Write {
                    continue;
                }
                let dtype = case.dtype(param);
                for row in 0..placement.rows {
                    let values = with_dtype!(dtype, T => {
                        let buffer = tensor::<T>(case, param, placement);
                        buffer[placement.row(row)].iter().map(|value| float(value.to_scalar())).collect()
                    });
                    look(case, entry.domain, dtype, values);
                }
            }
        }
    }
}

fn float(scalar: Scalar) -> f64 {
    match scalar {
        Scalar::F16(value) => value.into(),
        Scalar::BF16(value) => value.into(),
        Scalar::F32(value) => value.into(),
        Scalar::F64(value) => value,
        Scalar::Bool(value) => f64::from(u8::from(value)),
        integer => integer.as_integer().unwrap() as f64,
    }
}

#[test]
fn declared_values_keep_their_domain() {
    let mut seen = 0;
    rows(|case, domain, dtype, row| {
        seen += 1;
        let all = |holds: &dyn Fn(f64) -> bool| row.iter().all(|&value| holds(value));
        let kept = match domain {
            Domain::Any => true,
            Domain::Range(low, high) => {
                let (low, high) = (evaluate(low, &case.dims).unwrap(), evaluate(high, &case.dims).unwrap());
                high <= low || all(&|value| value >= low as f64 && value < high as f64)
            }
            Domain::TokenIds => all(&|value| value >= -1.0),
            Domain::InclusiveCumsum(total) => {
                row.is_sorted()
                    && row.first().is_none_or(|&first| first >= 0.0)
                    && row.last().is_none_or(|&last| last == case.dims[total] as f64)
            }
            Domain::Probabilities => {
                let sum: f64 = row.iter().sum();
                all(&|value| (0.0..=1.0).contains(&value)) && (row.is_empty() || (sum - 1.0).abs() < 1e-3)
            }
            Domain::Positive => all(&|value| value > 0.0),
            Domain::NonNegative => all(&|value| (0.0..f64::INFINITY).contains(&value)),
            Domain::Unit => all(&|value| (0.0..=1.0).contains(&value)),
            Domain::OpenUnit => all(&|value| value > 0.0 && value < 1.0),
            Domain::Logits => all(&|value| value < f64::INFINITY),
        };
        assert!(kept, "{} {}: {domain:?} of {dtype} does not hold {row:?}", case.kernel.name, case.id());
    });
    assert!(seen > 100);
}

/// What a kernel is most likely to get wrong is there.
#[test]
fn declared_values_reach_the_edges() {
    let mut seen = std::collections::BTreeSet::new();
    rows(|_, domain, dtype, row| {
        let mut note = |name: &'static str, there: bool| {
            if there {
                _ = seen.insert(name)
            }
        };
        match domain {
            Domain::Probabilities if row.len() > 2 => {
                note("one-hot", row.contains(&1.0));
                note("zeros among others", row.contains(&0.0) && !row.contains(&1.0));
                note("no zeros", !row.contains(&0.0));
            }
            Domain::InclusiveCumsum(_) => note("empty request", row.windows(2).any(|ends| ends[0] == ends[1])),
            Domain::TokenIds => note("placeholder", row.contains(&-1.0)),
            Domain::Range(..) if row.len() > 2 => note("low end", row.iter().any(|&value| value <= 0.0)),
            Domain::Positive => {
                note("infinite noise", row.contains(&f64::INFINITY));
                note("tiny noise", row.iter().any(|&value| value < 1e-37));
            }
            Domain::OpenUnit if dtype == DType::F64 => {
                note("uniform next to 0", row.contains(&(f64::EPSILON / 2.0)));
                note("uniform next to 1", row.contains(&(1.0 - f64::EPSILON / 2.0)));
            }
            Domain::NonNegative => note("temperature 0", row.contains(&0.0)),
            Domain::Logits if row.len() > 2 => {
                note("all equal", row.windows(2).all(|pair| pair[0] == pair[1]));
                note("masked by -inf", row.contains(&f64::NEG_INFINITY));
                note("masked by the least value", row.contains(&f64::from(f32::MIN)));
            }
            _ => {}
        }
    });
    for edge in [
        "one-hot",
        "zeros among others",
        "no zeros",
        "empty request",
        "placeholder",
        "low end",
        "infinite noise",
        "tiny noise",
        "uniform next to 0",
        "uniform next to 1",
        "temperature 0",
        "all equal",
        "masked by -inf",
        "masked by the least value",
    ] {
        assert!(seen.contains(edge), "no standard case has: {edge}");
    }
}

/// Should this fail, count [`GENERATION`] up: every record has to be made again.
#[test]
fn values_are_stable() {
    let mut hash = Vec::new();
    for id in ["f32/rows=40,length=50/padded/hostile", "bf16/rows=40,length=50/packed/declared"] {
        let (kernel, case) = (&DRAWS, Case::parse(&DRAWS, id).unwrap());
        for (param, placement) in (0..kernel.params.len()).filter_map(|param| Some((param, case.placement(param)?))) {
            let mut bytes = Vec::new();
            with_dtype!(case.dtype(param), T => T::append_bytes(&tensor::<T>(&case, param, placement), &mut bytes));
            hash.push(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        }
    }
    assert_eq!(Random::new(&hash.iter().map(String::as_str).collect::<Vec<_>>()).bits(), 1449482253862173658);
}
