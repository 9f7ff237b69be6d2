//! Temperature, and the bitmask of allowed tokens.

use half::f16;
use tidelock::kernels::{
    ApplyTemperature, ApplyTemperatureL, ApplyTokenBitmask, ApplyTokenBitmaskL, Argmax, ArgmaxL, MarkTokens,
};
use tidelock::{AsView, AsViewMut, Buffer, Device};

use crate::logits::{Draw, Logit, bits, expected, logits, on_each_type};
use crate::support::{on, read};

const REMOVED: f32 = f32::NEG_INFINITY;

/// The bits of rows of logits after their temperatures.
fn scale<L: Logit + ApplyTemperatureL>(device: &Device, row: &[L], temperature: &[f32]) -> Vec<u32> {
    let mut logits = on(device, row);
    let (rows, temperature) = (temperature.len(), on(device, temperature));
    let logits_view = logits.view_mut().matrix(rows, row.len() / rows).expect("it fits");
    let call = ApplyTemperature { logits: logits_view, temperature: temperature.view() };
    call.launch(device).expect("the arguments fit");
    bits(&logits)
}

fn quotients<L: Logit + ApplyTemperatureL>(device: &Device) {
    let row = logits::<L>(&[1.0, -3.0, REMOVED, -0.0, f32::INFINITY, 1.0, -3.0, REMOVED, -0.0, 5.0]);
    let run = |temperature: [f32; 2]| scale(device, &row, &temperature);
    let half = expected::<L>(&[REMOVED, REMOVED, REMOVED, REMOVED, 0.0, 2.0, -6.0, REMOVED, -0.0, 10.0]);
    assert_eq!(run([0.5, 0.5]), half, "an infinite logit takes all, on {device}");
    let unchanged: Vec<u32> = row.iter().map(|x| x.bits()).collect();
    for same in [0.0, -0.0, 1.0] {
        assert_eq!(run([same; 2]), unchanged, "temperature {same} on {device}");
    }
    let equal = expected::<L>(&[0.0, -0.0, REMOVED, -0.0, 0.0]);
    assert_eq!(run([1.0, f32::INFINITY])[5..], equal, "infinity makes all equal, on {device}");
    for bad in [-1.0, f32::NAN, -f32::NAN, -1e-40, f32::NEG_INFINITY] {
        assert_eq!(run([bad; 2]), [L::QUIET_NAN; 10], "temperature {bad} on {device}");
    }
    let nan = L::from_f32(-f32::NAN);
    assert_eq!(scale(device, &[nan, L::from_f32(3.0)], &[3.0]), [nan.bits(), L::from_f32(1.0).bits()], "{device}");
    assert_eq!(scale(device, &[L::from_f32(REMOVED); 3], &[1e-9]), expected::<L>(&[REMOVED; 3]), "{device}");
}

#[test]
fn logits_are_divided_by_their_temperature() {
    on_each_type!(quotients);
}

/// Elsewhere a tiny temperature makes every quotient infinite, and the row NaN.
fn tiny<L: Logit + ApplyTemperatureL>(device: &Device) {
    for temperature in [1e-5, 1e-12, 1e-38, f32::from_bits(1)] {
        for row in [[9.0, 10.0, 9.0], [-11.0, -10.0, -11.0], [-3e4, 3e4, 0.0]] {
            let got = scale(device, &logits::<L>(&row), &[temperature]);
            let values: Vec<f32> = got.iter().map(|&bits| to_f32::<L>(bits)).collect();
            assert!(values[1].is_finite(), "{row:?} at {temperature} on {device}: {values:?}");
            assert!(values[1] > values[0] + 1000.0 && values[1] > values[2] + 1000.0, "{row:?}: {values:?}");
        }
    }
}

/// The value of these bits.
fn to_f32<L: Logit>(bits: u32) -> f32 {
    match size_of::<L>() {
        4 => f32::from_bits(bits),
        _ if L::QUIET_NAN == 0x7e00 => f16::from_bits(bits as u16).to_f32(),
        _ => half::bf16::from_bits(bits as u16).to_f32(),
    }
}

#[test]
fn a_tiny_temperature_tends_to_the_argmax() {
    on_each_type!(tiny);
}

fn quotients_of_random_rows<L: Logit + ApplyTemperatureL>(device: &Device) {
    let mut draw = Draw(11);
    for vocab_size in [1, 50, 4096, 5000] {
        let temperature = [0.7, 1.3, 30.0];
        let row: Vec<L> = (0..3 * vocab_size).map(|_| L::from_f32(draw.below(4001) as f32 / 50.0 - 40.0)).collect();
        let after: Vec<f32> =
            row.iter().enumerate().map(|(index, x)| x.to_f32() / temperature[index / vocab_size]).collect();
        assert!(scale(device, &row, &temperature) == expected::<L>(&after), "{vocab_size} tokens on {device}");
    }
}

#[test]
fn random_rows_are_divided() {
    on_each_type!(quotients_of_random_rows);
}

/// Rows of logits after `bitmask`, with `stride` elements from one row of `vocab_size` to the next.
fn allow<L: Logit + ApplyTokenBitmaskL>(
    device: &Device,
    logits: &[L],
    (rows, vocab_size, stride): (usize, usize, usize),
    bitmask: &Buffer<i32>,
) -> Buffer<L> {
    let mut logits = on(device, logits);
    ApplyTokenBitmask {
        logits: logits.view_mut().strided(rows, vocab_size, stride).expect("it fits"),
        bitmask: bitmask.view().matrix(rows, vocab_size.div_ceil(32)).expect("it fits"),
    }
    .launch(device)
    .expect("the arguments fit");
    logits
}

fn bits_decide<L: Logit + ApplyTokenBitmaskL>(device: &Device) {
    let vocab_size = 2100;
    let mut draw = Draw(23);
    let before: Vec<L> = (0..2 * vocab_size).map(|_| L::from_f32(draw.logit())).collect();
    let words: Vec<i32> = (0..2 * 66).map(|_| draw.below(1 << 32) as u32 as i32).collect();
    let allowed = |index: usize| {
        let (row, token) = (index / vocab_size, index % vocab_size);
        words[row * 66 + token / 32] as u32 >> (token % 32) & 1 == 1
    };
    let after: Vec<u32> =
        (0..).zip(&before).map(|(index, x)| if allowed(index) { *x } else { L::from_f32(REMOVED) }.bits()).collect();
    let got = allow(device, &before, (2, vocab_size, vocab_size), &on(device, &words));
    assert!(bits(&got) == after, "{device}");

    let nan = L::from_f32(-f32::NAN);
    let got = bits(&allow(device, &[nan, nan], (1, 2, 2), &on(device, &[0b10])));
    assert_eq!(got, [L::from_f32(REMOVED).bits(), nan.bits()], "a NaN can be removed, on {device}");
}

#[test]
fn the_bits_of_a_mask_decide() {
    on_each_type!(bits_decide);
}

/// Padded columns of a vocabulary are not -inf by themselves: neither a mask of allowed ids nor the choice looks at them.
fn padding<L: Logit + ApplyTokenBitmaskL + ArgmaxL>(device: &Device) {
    let (ids, ends, initial) = (on(device, &[1, 2, 5, 6]), on(device, &[4, 4]), on(device, &[0, -1]));
    let mut bitmask = on(device, &[0; 2]);
    MarkTokens {
        bitmask: bitmask.view_mut().matrix(2, 1).expect("it fits"),
        token_ids: ids.view(),
        cu_token_ids: ends.view(),
        initial: initial.view(),
    }
    .launch(device)
    .expect("the arguments fit");
    let row = [5.0, 1.0, 2.0, 3.0, 4.0, 99.0, 99.0];
    let logits = allow(device, &logits::<L>(&[row, row].concat()), (2, 5, 7), &bitmask);
    let after = [[REMOVED, 1.0, 2.0, REMOVED, REMOVED, 99.0, 99.0], row].concat();
    assert_eq!(bits(&logits), expected::<L>(&after), "{device}");
    let mut tokens = on(device, &[0i32; 2]);
    let logits = logits.view().strided(2, 5, 7).expect("it fits");
    Argmax { output_token_ids: tokens.view_mut(), logits }.launch(device).expect("the arguments fit");
    assert_eq!(read(&tokens), [2, 0], "{device}");
}

#[test]
fn a_padded_vocabulary_gives_no_padding() {
    on_each_type!(padding);
}
