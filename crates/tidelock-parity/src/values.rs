//! The values of a case: what each parameter's domain promises, as widely as it allows.
//!
//! Every value follows from (kernel, case id, parameter name) alone. A row is of one style, drawn first, since what makes a
//! kernel fail is rarely one odd value and often a whole row of a kind: one-hot, all equal, everything masked.

use tidelock::Scalar;
use tidelock::kernel::{Access, ByValue, Domain, Draw, Literal, ParamKind, ScalarSource, evaluate};

use crate::case::{Case, Values};
use crate::geometry::Placement;
use crate::hostile;
use crate::random::Random;
use crate::sample::{Sample, with_dtype};
use crate::sizes;

/// Counted up when the values of cases change; then no older record has anything to say.
pub(crate) const GENERATION: &str = "tidelock-parity 1";

/// The value of scalar parameter `param`; `None` for a tensor, for what is derived, and for a default that is left to be.
pub(crate) fn scalar(case: &Case, param: usize) -> Option<Scalar> {
    let ParamKind::Scalar { source, max, .. } = case.kernel.params[param].kind else { return None };
    let mut random = random(case, param);
    match source {
        ScalarSource::Dim(_) | ScalarSource::Stride(_) => return None,
        ScalarSource::Default(_) if random.one_in(2) => return None,
        ScalarSource::Default(_) | ScalarSource::Caller => {}
    }
    let dtype = case.dtype(param);
    let value = with_dtype!(dtype, T => {
        let mut value = [T::default()];
        Fill { case, domain: case.kernel.params[param].domain, random: &mut random }.row(&mut value);
        if case.values == Values::Hostile && random.one_in(4) {
            value = [random.pick(T::WILD)];
        }
        tidelock::Element::to_scalar(value[0])
    });
    match (max, value.as_integer()) {
        (Some(max), Some(integer)) if integer > max => Literal::Int(max).to_scalar(dtype),
        _ => Some(value),
    }
}

/// The value of struct parameter `param`, field by field; `None` for what is no struct.
pub(crate) fn structure(case: &Case, param: usize) -> Option<Box<ByValue>> {
    let ParamKind::Struct { make, .. } = case.kernel.params[param].kind else { return None };
    let mut random = random(case, param);
    let mut field = |dtype| {
        with_dtype!(dtype, T => {
            let value: T = match case.values {
                Values::Hostile if random.one_in(4) => random.pick(T::WILD),
                _ => any(&mut random),
            };
            tidelock::Element::to_scalar(value)
        })
    };
    Some(make(&mut Draw(&mut field)))
}

/// The whole buffer of tensor parameter `param`, with what surrounds it.
pub(crate) fn tensor<T: Sample>(case: &Case, param: usize, placement: Placement) -> Vec<T> {
    let ParamKind::Tensor { access, .. } = case.kernel.params[param].kind else { return Vec::new() };
    let outside = if access == Access::Read { T::GUARD } else { T::POISON };
    let mut buffer = vec![outside; placement.length];
    if access == Access::Write {
        return buffer;
    }
    let domain = case.kernel.params[param].domain;
    let mut random = random(case, param);
    for index in 0..placement.rows {
        let row = &mut buffer[placement.row(index)];
        // Two distributions of one case often share a row, since that is where a residual vanishes.
        let mut shared = Random::new(&[GENERATION, case.kernel.name, &case.id(), "any parameter", &index.to_string()]);
        let alike = domain == Domain::Probabilities && shared.one_in(4);
        Fill { case, domain, random: if alike { &mut shared } else { &mut random } }.row(row);
        // What one arm alone uses holds what that arm has been promised.
        if case.values == Values::Hostile && case.kernel.params[param].only.is_none() {
            hostile::replace(row, domain, &mut random);
        }
    }
    buffer
}

fn random(case: &Case, param: usize) -> Random {
    Random::new(&[GENERATION, case.kernel.name, &case.id(), case.kernel.params[param].name])
}

/// Fills rows of one parameter.
struct Fill<'a> {
    case: &'a Case,
    domain: Domain,
    random: &'a mut Random,
}

impl Fill<'_> {
    fn row<T: Sample>(&mut self, row: &mut [T]) {
        let random = &mut *self.random;
        let (low_unit, high_unit) = T::UNIT;
        match self.domain {
            Domain::Any => row.fill_with(|| any(random)),
            Domain::Range(low, high) => {
                let bounds = evaluate(low, &self.case.dims).zip(evaluate(high, &self.case.dims));
                let (low, high) = bounds.map_or((0, 0), |(low, end)| (low, (end - 1).max(low)));
                row.fill_with(|| T::from_integer(range(random, low, high)));
            }
            Domain::TokenIds => row.fill_with(|| T::from_integer(token_id(random))),
            Domain::InclusiveCumsum(total) => {
                let most = sizes::longest_request(self.case.kernel, &self.case.dims);
                cumsum(random, row, self.case.dims[total], most);
            }
            Domain::Probabilities => probabilities(random, row),
            Domain::Positive => positive(random, row),
            Domain::NonNegative => row.fill_with(|| T::from_float(non_negative(random))),
            Domain::Unit => row.fill_with(|| {
                T::from_float(match random.below(8) {
                    0 => 0.0,
                    1 => 1.0,
                    _ => random.unit(),
                })
            }),
            Domain::OpenUnit => row.fill_with(|| {
                T::from_float(match random.below(16) {
                    0 => low_unit,
                    1 => high_unit,
                    _ => random.unit().clamp(low_unit, high_unit),
                })
            }),
            Domain::Logits => logits(random, row),
        }
    }
}

/// Half small numbers, which meet each other; the rest anything.
fn any<T: Sample>(random: &mut Random) -> T {
    match random.below(16) {
        0..8 => T::from_integer(random.between(-1, 3)),
        8..10 => random.pick(T::WILD),
        10..12 => T::from_float(random.normal()),
        _ => T::from_any(random.bits()),
    }
}

/// Often next to the ends, where several parameters meet.
fn range(random: &mut Random, low: i64, high: i64) -> i64 {
    match random.below(8) {
        0 => low,
        1 => high,
        2..4 => random.between(low, high.min(low.saturating_add(4))),
        _ => random.between(low, high),
    }
}

fn token_id(random: &mut Random) -> i64 {
    match random.below(16) {
        0 => -1,
        1 => random.between(0, 200_000),
        _ => random.between(0, 2),
    }
}

/// Requests that end at `total` together, mostly of at most `most` tokens, many of them empty.
fn cumsum<T: Sample>(random: &mut Random, row: &mut [T], total: i64, most: i64) {
    let requests = row.len() as i64;
    let mut ends = Vec::with_capacity(row.len());
    if total <= requests.saturating_mul(most) && !random.one_in(8) {
        let mut end = 0;
        for request in 0..requests {
            let rest = total - end;
            let least = (rest - (requests - request - 1) * most).max(0);
            let length = if random.one_in(4) { 0 } else { random.between(0, most) };
            end += length.clamp(least, most.min(rest).max(least));
            ends.push(end);
        }
    } else {
        ends.extend((1..requests).map(|_| random.between(0, total)));
        ends.sort_unstable();
        ends.push(total);
    }
    row.iter_mut().zip(ends).for_each(|(value, end)| *value = T::from_integer(end));
}

fn probabilities<T: Sample>(random: &mut Random, row: &mut [T]) {
    if row.is_empty() {
        return;
    }
    let length = row.len() as u64;
    let mut weights = vec![0.0_f64; row.len()];
    match random.below(6) {
        0 => {}
        1 => weights.fill_with(|| random.unit().powi(16)),
        2 => weights.fill_with(|| if random.one_in(8) { random.unit() } else { 0.0 }),
        3 => weights.fill_with(|| if random.one_in(2) { 1.0 } else { 1.0 + f64::from(f32::EPSILON) }),
        4 => (0..20).for_each(|_| weights[random.below(length) as usize] = random.unit()),
        _ => weights.fill_with(|| random.unit()),
    }
    let mut sum: f64 = weights.iter().sum();
    if sum == 0.0 {
        weights[range(random, 0, length as i64 - 1) as usize] = 1.0;
        sum = 1.0;
    }
    row.iter_mut().zip(weights).for_each(|(value, weight)| *value = T::from_float(weight / sum));
}

/// Mostly like reciprocals of exponential noise: about 1, and far above it as often as noise is that small.
fn positive<T: Sample>(random: &mut Random, row: &mut [T]) {
    let equal = random.one_in(8);
    row.fill_with(|| {
        let u = random.unit();
        let value = match random.below(1024) {
            _ if equal => 1.0,
            0 => f64::INFINITY,
            1 => 0.0,
            2 => 1e-30,
            3 => f64::from(f32::MIN_POSITIVE) / 4.0,
            4 => 1e30,
            _ => (1.0 - u) / u + u / 2.0,
        };
        let value = T::from_float(value);
        if value > T::default() { value } else { T::TINY }
    });
}

fn non_negative(random: &mut Random) -> f64 {
    const POOL: [f64; 12] =
        [0.0, 0.0, 1e-12, 1e-5, 0.1, 0.8, 1.0, 5.0, 1e6, 1e-40, f32::MIN_POSITIVE as f64, f32::MAX as f64];
    if random.one_in(2) { random.pick(&POOL) } else { random.unit() * 2.0 }
}

fn logits<T: Sample>(random: &mut Random, row: &mut [T]) {
    let style = random.below(10);
    let (offset, keep) = (random.normal() * 20.0, random.below(row.len().max(1) as u64) as usize);
    for (token, value) in row.iter_mut().enumerate() {
        let x = random.normal() * 3.0;
        *value = T::from_float(match style {
            0 => offset,
            1 if x > -3.0 => f64::NEG_INFINITY,
            2 if x > 0.0 => -1e9,
            3 if x > 0.0 => f64::from(f32::MIN),
            4 if token != keep => f64::NEG_INFINITY,
            5 if token == keep => 3e38,
            6 => x * 1e-8,
            7 => x.round(),
            8 => x + offset,
            _ => x,
        });
    }
}

#[cfg(test)]
mod tests;
