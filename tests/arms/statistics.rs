//! Whether counts of draws fit what they should be. Every seed is fixed, so a test that fits today always does.

/// The standard normal value that is exceeded with a probability of 1e-4.
const ONE_IN_TEN_THOUSAND: f64 = 3.719;

/// Standard normal value of Pearson's statistic, after Wilson and Hilferty: large where `counts` do not fit `probs`.
fn chi_square(counts: &[u64], probs: &[f64]) -> f64 {
    let draws = counts.iter().sum::<u64>() as f64;
    let total: f64 = probs.iter().sum();
    let terms = counts.iter().zip(probs).map(|(&count, p)| {
        let expected = draws * p / total;
        assert!(expected > 5.0, "a cell that should hold {expected} is too small for the test");
        (count as f64 - expected).powi(2) / expected
    });
    let (statistic, freedom) = (terms.sum::<f64>(), (counts.len() - 1) as f64);
    let spread = 2.0 / (9.0 * freedom);
    ((statistic / freedom).cbrt() - (1.0 - spread)) / spread.sqrt()
}

/// Asserts that counts as unlikely as these come up more often than once in 10,000 times.
pub fn assert_fits(counts: &[u64], probs: &[f64], what: &str) {
    let z = chi_square(counts, probs);
    assert!(z < ONE_IN_TEN_THOUSAND, "{what}: p < 1e-4 (z = {z:.2}), counts {counts:?}");
}

/// Asserts that `count` of `trials` is within 4 standard deviations of its expectation.
pub fn assert_close(count: u64, trials: u64, p: f64, what: &str) {
    let expected = trials as f64 * p;
    let z = (count as f64 - expected) / (expected * (1.0 - p)).sqrt();
    assert!(z.abs() < 4.0, "{what}: {count} of {trials}, expected {expected:.1}, z = {z:.2}");
}

/// How often each of `cells` comes up.
pub fn count(cells: usize, drawn: impl IntoIterator<Item = usize>) -> Vec<u64> {
    let mut counts = vec![0; cells];
    drawn.into_iter().for_each(|cell| counts[cell] += 1);
    counts
}

/// softmax(logits / temperature), in f64.
pub fn softmax(logits: &[f32], temperature: f64) -> Vec<f64> {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f64> = logits.iter().map(|&x| (f64::from(x - top) / temperature).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total).collect()
}

/// The bin of each token and what each bin holds: consecutive tokens, until they hold a part in `number`.
pub fn bins(probs: &[f64], number: usize) -> (Vec<usize>, Vec<f64>) {
    let mut held = vec![0.0];
    let mut bin = |p: &f64| {
        let last = held.len() - 1;
        held[last] += p;
        if held[last] * number as f64 >= 1.0 {
            held.push(0.0);
        }
        last
    };
    let mut bins: Vec<usize> = probs.iter().map(&mut bin).collect();
    // What is left at the end goes to the bin before it.
    let rest = held.pop().expect("there is one");
    let last = held.len() - 1;
    held[last] += rest;
    bins.iter_mut().for_each(|bin| *bin = (*bin).min(last));
    (bins, held)
}

/// What the chi-square tests of a million draws in 8 cells see: one probability that is off by 2 percent.
#[test]
fn a_probability_off_by_two_percent_is_seen() {
    let fair = [125_000; 8];
    assert!(chi_square(&fair, &[1.0; 8]) < 0.0);
    let mut off = fair;
    (off[3], off[4]) = (127_500, 122_500);
    assert!(chi_square(&off, &[1.0; 8]) > ONE_IN_TEN_THOUSAND);
}
