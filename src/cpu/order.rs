//! The order of a row's logits: the largest first, and of equal ones the lowest token. Its twins are `kernels/order.py` and `kernels/order.cuh`.
//!
//! Selection compares integers, which have no NaN, no rounding and one zero. A token's place holds the key of its logit,
//! the integer that orders as it does, and its id; so no two tokens share one, and any way to select gives the same.

/// No token above -inf has a later place.
pub(super) const LAST_PLACE: i64 = place(f32::MIN, u32::MAX);

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

/// The place of a token of this logit, which is no NaN. A smaller place comes first.
#[inline(always)]
pub(super) const fn place(x: f32, token: u32) -> i64 {
    let x = if x == 0.0 { 0.0 } else { x }; // -0 ties with 0
    !(flip(x.to_bits() as i32) as i64) << 32 | token as i64
}

/// Between an f32's bits and the integer that orders as the f32 does; it undoes itself.
#[inline(always)]
const fn flip(bits: i32) -> i32 {
    bits ^ ((bits >> 31) & i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_order_as_the_logits_do() {
        let row = [f32::INFINITY, f32::MAX, 1.0, f32::MIN_POSITIVE / 2.0, 0.0, -0.0, -1e-45, -1.0, f32::MIN];
        let places: Vec<i64> = (0..).zip(row).map(|(token, x)| place(x, token)).collect();
        assert!(places.is_sorted());
        assert_eq!(places.iter().map(|&place| token_at(place)).collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
        assert_eq!(places.iter().map(|&place| logit_at(place)).collect::<Vec<_>>(), row);
        assert!(LAST_PLACE < place(f32::NEG_INFINITY, 0));
        assert!(place(0.0, 1) < place(-0.0, 2) && place(-0.0, 1) < place(0.0, 2));
    }
}
