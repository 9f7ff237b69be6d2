//! Values outside of what a domain promises. An arm has a defined result for them too, the same as the other's.
//!
//! Were a quarter of every row NaN, only the rule for NaN would be tried. So a row draws how hostile it is: a few wild
//! values, a quarter of any kind, a quarter of one kind, or nothing else.

use tidelock::kernel::Domain;

use crate::random::Random;
use crate::sample::Sample;

/// Replaces a part of `row`.
pub(crate) fn replace<T: Sample>(row: &mut [T], domain: Domain, random: &mut Random) {
    if row.is_empty() {
        return;
    }
    if let Domain::InclusiveCumsum(total) = domain
        && random.one_in(2)
    {
        return counts(row, total, random);
    }
    let one = random.pick(T::WILD);
    match random.below(8) {
        0 => row.fill(one),
        1..3 => row.iter_mut().for_each(|value| {
            if random.word() >> 30 == 0 {
                *value = random.pick(T::WILD);
            }
        }),
        3..5 => row.iter_mut().for_each(|value| {
            if random.word() >> 30 == 0 {
                *value = one;
            }
        }),
        5..7 => (0..=random.below(3)).for_each(|_| {
            let place = random.below(row.len() as u64) as usize;
            row[place] = random.pick(T::WILD);
        }),
        _ => {}
    }
}

/// Counts that fall, and counts that are a little wrong.
fn counts<T: Sample>(row: &mut [T], total: usize, random: &mut Random) {
    if random.one_in(2) {
        return row.reverse();
    }
    row.iter_mut().for_each(|value| {
        if random.one_in(4) {
            let near = random.between(-3, total as i64 + 3);
            *value = T::from_integer(near);
        }
    });
}
