//! The standard set: the cases of a kernel whose outputs a record keeps.
//!
//! Every choice of types and optional tensors meets every length of [`COLUMNS`]. Layouts and kinds of values are crossed with
//! them in full where block loops, tails and alignment show, and take turns at a vocabulary's size. Rows are few where they
//! are long, so that the set is run in seconds and its record stays small; many rows are what a sweep is for.

use std::collections::HashSet;

use tidelock::kernel::ParamKind;
use tidelock::{DType, Kernel};

use crate::case::{Case, Layout, Values, given, optional};
use crate::random::Random;
use crate::sizes;
use crate::sweep::random_case;

/// Lengths of a kernel's rows: next to nothing, around block sizes, and the vocabularies of GPT-2, Llama 3 and Qwen 2.5.
pub const COLUMNS: [i64; 8] = [1, 3, 1000, 8192, 8193, 50257, 128256, 151936];

/// Most rows of cases without columns.
const ROWS: [i64; 10] = [0, 1, 2, 3, 7, 16, 33, 64, 129, 400];

/// Random cases that are tried for a variant that the set would miss.
const TRIES: u64 = 10_000;

/// Types, and which parameters are given.
pub(crate) type Choice = (Vec<DType>, Vec<bool>);

/// Every choice of types and of optional tensors, in the order of the variants.
pub(crate) fn choices(kernel: &'static Kernel) -> Vec<Choice> {
    let mut types = vec![Vec::new()];
    for variable in kernel.types {
        types = types
            .iter()
            .flat_map(|base| variable.choices.iter().map(|&choice| [&base[..], &[choice]].concat()))
            .collect();
    }
    let optional: Vec<usize> = optional(kernel).collect();
    let masks = 0..1_u64 << optional.len();
    let given = masks.map(|mask| {
        given(kernel, |param| {
            optional.iter().rev().position(|&other| other == param).is_some_and(|bit| mask >> bit & 1 != 0)
        })
    });
    let given: Vec<_> = given.collect();
    types.iter().flat_map(|types| given.iter().map(|given| (types.clone(), given.clone()))).collect()
}

/// The cases of `kernel` that a record keeps, small to large.
pub fn standard(kernel: &'static Kernel) -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, choice) in choices(kernel).iter().enumerate() {
        if sizes::columns(kernel).is_empty() {
            for rows in ROWS {
                let layouts: &[_] = if rows < 33 { &[Layout::Packed, Layout::Misaligned] } else { &[Layout::Packed] };
                for (layout, values) in
                    layouts.iter().flat_map(|&layout| [(layout, Values::Declared), (layout, Values::Hostile)])
                {
                    cases.push(case(kernel, choice, 0, rows, layout, values));
                }
            }
        } else {
            cases.push(case(kernel, choice, 0, 3, Layout::Packed, Values::Hostile));
            for (place, length) in COLUMNS.into_iter().enumerate() {
                let rows = [33, 33, 17, 7, 7, 3, 3, 3][place];
                let plan = plan(kernel, length, number + place);
                cases.extend(
                    plan.into_iter().map(|(layout, values)| case(kernel, choice, length, rows, layout, values)),
                );
            }
        }
    }
    cases.retain(Case::is_possible);
    complete(kernel, &mut cases);
    cases.sort_by_cached_key(|case| (case.elements(), case.id()));
    let mut seen = HashSet::new();
    cases.retain(|case| seen.insert(case.id()));
    cases
}

/// Layouts and kinds of values for rows of one length; `turn` alternates what does not fit into every one.
fn plan(kernel: &Kernel, length: i64, turn: usize) -> Vec<(Layout, Values)> {
    use Layout::{Misaligned, Packed, Padded, PaddedBy16};
    use Values::{Declared, Hostile};
    let (this, other) = if turn.is_multiple_of(2) { (Declared, Hostile) } else { (Hostile, Declared) };
    let strided = kernel.params.iter().any(|param| matches!(param.kind, ParamKind::Tensor { strided: true, .. }));
    let mut plan = match length {
        ..8 => vec![(Packed, Declared), (Packed, Hostile), (Misaligned, this), (Padded, other)],
        8..50_000 => vec![
            (Packed, Declared),
            (Packed, Hostile),
            (Padded, this),
            (PaddedBy16, other),
            (Misaligned, Declared),
            (Misaligned, Hostile),
        ],
        _ => vec![(Packed, this), (if turn % 4 < 2 { PaddedBy16 } else { Padded }, other), (Misaligned, other)],
    };
    plan.retain(|(layout, _)| strided || !matches!(layout, Padded | PaddedBy16));
    plan
}

fn case(
    kernel: &'static Kernel,
    (types, given): &Choice,
    length: i64,
    rows: i64,
    layout: Layout,
    values: Values,
) -> Case {
    let mut case = Case {
        kernel,
        types: types.clone(),
        given: given.clone(),
        dims: vec![0; kernel.dims.len()],
        layout,
        values,
        seed: 0,
    };
    // The id, in which the sizes are still 0, tells this case's stream of sizes from others'.
    let mut random =
        Random::new(&["tidelock-parity sizes", kernel.name, &case.id(), &length.to_string(), &rows.to_string()]);
    for _ in 0..16 {
        case.dims = sizes::dims(kernel, length, rows, &mut random);
        if case.is_possible() {
            break;
        }
    }
    case
}

/// Adds random cases for variants that no case runs yet.
fn complete(kernel: &'static Kernel, cases: &mut Vec<Case>) {
    let mut hit: HashSet<usize> = cases.iter().filter_map(Case::variant_index).collect();
    for attempt in 0..TRIES {
        if (0..variant_count(kernel)).all(|variant| hit.contains(&variant)) {
            return;
        }
        let case = random_case(kernel, 0, attempt);
        if case.is_possible() && case.variant_index().is_some_and(|variant| hit.insert(variant)) {
            cases.push(case);
        }
    }
}

/// How many variants a kernel has, whether or not they have been compiled.
pub(crate) fn variant_count(kernel: &'static Kernel) -> usize {
    let alignments = if kernel.params.iter().any(|param| param.divisible_by_16) { 2 } else { 1 };
    let types: usize = kernel.types.iter().map(|variable| variable.choices.len()).product();
    (types * alignments) << optional(kernel).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{COUNTS, DRAWS};

    #[test]
    fn every_variant_is_covered() {
        for kernel in tidelock::REGISTRY {
            let cases = standard(kernel);
            for variant in 0..variant_count(kernel) {
                let name = kernel.variants.get(variant).map_or("not compiled", |variant| variant.name);
                let covered = cases.iter().any(|case| case.variant_index() == Some(variant));
                assert!(covered, "{}: no case runs variant {variant}, {name}", kernel.name);
            }
            assert!(kernel.variants.is_empty() || kernel.variants.len() == variant_count(kernel), "{}", kernel.name);
        }
    }

    #[test]
    fn every_choice_meets_every_length() {
        for kernel in tidelock::REGISTRY {
            let cases = standard(kernel);
            for column in sizes::columns(kernel) {
                for (types, given) in choices(kernel) {
                    // A length that the registry's `max` refuses is tried at no kernel.
                    for length in COLUMNS.into_iter().filter(|&length| sizes::fits(kernel, column, length)) {
                        let same =
                            |case: &&Case| case.types == types && case.given == given && case.dims[column] == length;
                        assert!(cases.iter().any(|case| same(&case)), "{}: {types:?} {length}", kernel.name);
                    }
                }
            }
        }
    }

    #[test]
    fn ids_are_unique_and_name_their_case() {
        for kernel in tidelock::REGISTRY {
            let mut ids = HashSet::new();
            let cases = standard(kernel);
            for case in cases.into_iter().chain(crate::random_cases(kernel, 100, 5)) {
                let again = Case::parse(kernel, &case.id()).unwrap();
                assert_eq!((again.id(), again.dims, again.given), (case.id(), case.dims.clone(), case.given.clone()));
                assert!(ids.insert(case.id()), "{}", case.id());
            }
        }
    }

    /// Should this fail, the set has changed: every record has to be made again.
    #[test]
    fn the_set_is_stable() {
        let cases = [&DRAWS, &COUNTS].map(standard).concat();
        let ids: Vec<_> = cases.iter().map(Case::id).collect();
        let hash = Random::new(&ids.iter().map(String::as_str).collect::<Vec<_>>()).bits();
        assert_eq!((ids.len(), hash), (100, 9429241313255608727), "{}", ids.join("\n"));
    }
}
