//! The order of a row's logits: the largest first, and of equal ones the lowest token. Its twin is `kernels/order.py`.
//!
//! Selection compares integers, which have no NaN, no rounding and one zero. A token's place holds the key of its logit,
//! the integer that orders as it does, and its id; so no two tokens share one, and any way to select gives the same.

use super::Logit;

/// The largest logit of a row that has a distribution: no NaN, and something above -inf.
pub(super) fn largest<L: Logit>(logits: &[L]) -> Option<f32> {
    let (mut top, mut nan) = (f32::NEG_INFINITY, false);
    for logit in logits {
        let x = logit.to_f32();
        nan |= x.is_nan();
        top = if x > top { x } else { top };
    }
    (!nan && top > f32::NEG_INFINITY).then_some(top)
}

/// The place of each token of a row that is above -inf, by token. A smaller place comes first.
pub(super) fn places<L: Logit>(logits: &[L]) -> Vec<i64> {
    let mut places = Vec::with_capacity(logits.len());
    for (token, logit) in logits.iter().enumerate() {
        let x = logit.to_f32();
        if x > f32::NEG_INFINITY {
            places.push(place(x, token as u32));
        }
    }
    places
}

/// The token at a place.
#[inline(always)]
pub(super) fn token_at(place: i64) -> usize {
    place as u32 as usize
}

/// The logit at a place.
#[inline(always)]
pub(super) fn logit_at(place: i64) -> f32 {
    f32::from_bits(flip(!(place >> 32) as i32) as u32)
}

#[inline(always)]
fn place(x: f32, token: u32) -> i64 {
    let x = if x == 0.0 { 0.0 } else { x }; // -0 ties with 0
    !i64::from(flip(x.to_bits() as i32)) << 32 | i64::from(token)
}

/// Between an f32's bits and the integer that orders as the f32 does; it undoes itself.
#[inline(always)]
fn flip(bits: i32) -> i32 {
    bits ^ ((bits >> 31) & i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_order_as_the_logits_do() {
        let row = [f32::INFINITY, f32::MAX, 1.0, f32::MIN_POSITIVE / 2.0, 0.0, -0.0, -1e-45, -1.0, f32::MIN];
        let places = places(&row);
        assert!(places.is_sorted());
        assert_eq!(places.iter().map(|&place| token_at(place)).collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
        assert_eq!(places.iter().map(|&place| logit_at(place)).collect::<Vec<_>>(), row);
        assert!(place(f32::MIN, u32::MAX) < place(f32::NEG_INFINITY, 0));
        assert!(place(0.0, 1) < place(-0.0, 2) && place(-0.0, 1) < place(0.0, 2));
    }
}
