//! What came of the proof, as it is printed in JSON: every key in this order.

use serde::Serialize;

use super::count::Counts;
use super::noise::Noise;
use super::{GAPS, SMALL};

/// Fewer expected events than this decide nothing.
const ENOUGH: f64 = 10.0;
/// Standard deviations beyond which a count is not chance.
const LIMIT: f64 = 4.0;

/// The proof.
#[derive(Serialize)]
pub struct Report {
    /// Where the races of this library's noise were run.
    pub device: String,
    /// Seed of all noise.
    pub seed: i64,
    /// Races of each kind of noise and gap.
    pub trials: u32,
    /// Tail tokens in each.
    pub tail: u32,
    /// How often noise falls under 2^-24.
    pub lower_tail: Vec<Finding>,
    /// How often a tail token beats the head.
    pub races: Vec<Finding>,
    /// Whether all of this library's noise holds.
    pub holds: bool,
    /// How long it took.
    pub seconds: f64,
}

/// One count and what it should be.
#[derive(Serialize)]
pub struct Finding {
    /// The noise.
    pub noise: Noise,
    /// How much less likely a tail token is than the head, as a difference of logits; nothing where no race was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<f64>,
    /// Chances: draws, or races.
    pub of: u64,
    /// Exact expectation.
    pub expected: f64,
    /// What was counted.
    pub count: u64,
    /// The difference in standard deviations.
    pub z: f64,
    /// What that says.
    pub verdict: Verdict,
}

/// What a count says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is what it should be, within 4 standard deviations.
    Holds,
    /// It is not.
    Fails,
    /// Too little was expected to say.
    TooFew,
}

impl Verdict {
    /// As people read it.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "FAILS",
            Verdict::TooFew => "too few to say",
        }
    }
}

impl Finding {
    /// `count` of `of` chances, each with probability `p`.
    pub fn new(noise: Noise, gap: Option<f64>, of: u64, p: f64, count: u64) -> Finding {
        let expected = of as f64 * p;
        let z = (count as f64 - expected) / (expected * (1.0 - p)).sqrt();
        let verdict = match z.abs() < LIMIT {
            _ if expected < ENOUGH => Verdict::TooFew,
            true => Verdict::Holds,
            false => Verdict::Fails,
        };
        Finding { noise, gap, of, expected, count, z, verdict }
    }

    /// Counted for each expected: 1 is right.
    pub fn ratio(&self) -> f64 {
        self.count as f64 / self.expected
    }

    /// How far the ratio may be from 1.
    pub fn band(&self) -> f64 {
        LIMIT / self.expected.sqrt()
    }
}

impl Report {
    /// The findings in `counts`.
    pub fn new(device: String, seed: i64, trials: u32, tail: u32, counts: &Counts, seconds: f64) -> Report {
        let draws = u64::from(trials) * u64::from(tail);
        let (mut lower_tail, mut races) = (Vec::new(), Vec::new());
        for (noise, &small) in Noise::ALL.into_iter().zip(&counts.small) {
            lower_tail.push(Finding::new(noise, None, draws, -(-SMALL).exp_m1(), small));
        }
        for (index, gap) in GAPS.into_iter().enumerate() {
            let weight = f64::from(tail) * (-gap).exp();
            for (noise, hits) in Noise::ALL.into_iter().zip(&counts.hits) {
                races.push(Finding::new(noise, Some(gap), trials.into(), weight / (1.0 + weight), hits[index]));
            }
        }
        let failed = |finding: &Finding| finding.noise.ours() && finding.verdict == Verdict::Fails;
        let holds = !lower_tail.iter().chain(&races).any(failed);
        Report { device, seed, trials, tail, lower_tail, races, holds, seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_four_standard_deviations() {
        let verdict = |count, of, p| Finding::new(Noise::F64, None, of, p, count).verdict;
        assert_eq!(verdict(100, 200, 0.5), Verdict::Holds);
        assert_eq!(verdict(128, 200, 0.5), Verdict::Holds);
        assert_eq!(verdict(129, 200, 0.5), Verdict::Fails);
        assert_eq!(verdict(71, 200, 0.5), Verdict::Fails);
        assert_eq!(verdict(0, 100_000, 32.76e-5), Verdict::Fails);
        assert_eq!(verdict(9, 1000, 1e-3), Verdict::TooFew);
    }

    #[test]
    fn only_our_own_noise_has_to_hold() {
        let (trials, tail) = (100_000, 262_144);
        let mut counts = Counts { small: [0, 1562, 1562], hits: [[250, 15, 0], [398, 54, 33], [398, 54, 33]] };
        let holds = |counts: &Counts| Report::new("cpu".into(), 0, trials, tail, counts, 1.0).holds;
        assert!(holds(&counts));
        counts.hits[1][2] = 9;
        assert!(!holds(&counts));
    }
}
