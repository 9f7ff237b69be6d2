//! No result depends on which block is slow: kernels that have several blocks a row, whose blocks take turns in many orders.
//! `emulated/turns.h` says how.
//!
//! It fails where a slot of `top_k_top_p_sample` has one place for what its races find, or for what its parts weigh, where the meeting between
//! writing and reading that is left out, or where a counter is not put back: each was tried on these kernels, with this seed.

use tidelock::kernels::{RejectionSampleFromLogits, TopKTopPSample};
use tidelock::sampling::scratch_words;
use tidelock::{AsView, AsViewMut, Buffer, Device, Element, REGISTRY};
use tidelock_parity::{Case, Inputs};

use crate::emulated::{KERNELS, built, is_built};
use crate::{alone, run};

const TURNS: &str = "EMULATED_TURNS";

/// How often each case is run, each time in another order.
const ORDERS: usize = 8;

/// Cases with several blocks a row, of variants that are built.
const CASES: [(&str, &[&str]); 9] = [
    ("greedy_sample", &["f32/num_rows=3,vocab_size=20001", "bf16/num_rows=3,vocab_size=20000"]),
    ("gumbel_sample", &["f32-f32/num_rows=2,vocab_size=40001", "bf16-f64/num_rows=2,vocab_size=40000"]),
    ("softmax", &["f32/num_rows=3,vocab_size=20001", "bf16/num_rows=3,vocab_size=20000"]),
    ("log_softmax", &["f32/num_rows=3,vocab_size=20001", "bf16/num_rows=3,vocab_size=20000"]),
    ("gather_logprobs", &["f32/num_rows=3,vocab_size=20001", "bf16/num_rows=3,vocab_size=20000"]),
    (
        "top_logprobs",
        &["f32/num_rows=3,num_logprobs=20,vocab_size=20001", "bf16/num_rows=3,num_logprobs=20,vocab_size=20000"],
    ),
    ("top_k_top_p_sample", &["f32-f32/num_rows=3,vocab_size=40001", "bf16-f64/num_rows=3,vocab_size=40000"]),
    (
        "rejection_sample",
        &[
            "f32-no_draft_probs/batch_size=4,max_spec_len=4,num_tokens=8,vocab_size=20001",
            "f64/batch_size=4,max_spec_len=4,num_tokens=8,vocab_size=20000",
        ],
    ),
    (
        "rejection_sample_from_logits",
        &[
            "f32-f32-no_draft_probs/batch_size=4,max_spec_len=4,num_tokens=8,vocab_size=20001",
            "bf16-f64/batch_size=4,max_spec_len=4,num_tokens=8,vocab_size=20000",
        ],
    ),
];

#[test]
fn no_result_depends_on_which_block_is_slow() {
    let Some(folder) = built() else {
        return eprintln!("no C++ compiler here, so kernels in CUDA C++ are not run on the CPU");
    };
    let said = run("turns::orders", &[(KERNELS, folder.as_os_str()), (TURNS, "1".as_ref())]);
    assert!(said.contains("every order agrees"), "{said}");
}

#[test]
#[ignore = "a part of another test"]
fn orders() {
    if std::env::var_os(TURNS).is_none() {
        return;
    }
    let device = alone();
    let agree = |name: &str, run: &dyn Fn(&Device) -> Vec<u8>| {
        eprintln!("{name}"); // for whoever reads of a kernel that hangs
        let expected = run(&Device::Cpu);
        for order in 0..ORDERS {
            assert!(run(&device) == expected, "{name}, order {order}");
        }
    };
    for (name, ids) in CASES {
        let kernel = REGISTRY.iter().find(|kernel| kernel.name == name).expect("it is a kernel");
        for id in ids {
            let case = Case::parse(kernel, &format!("{id}/packed/declared")).expect("it is a case");
            assert!(is_built(&case), "{name}, case {id}: its variant is built");
            let inputs = Inputs::new(&case);
            let run =
                |device: &Device| inputs.run(device).expect("it runs").into_iter().flat_map(|its| its.bytes).collect();
            agree(&format!("{name}, case {id}"), &run);
        }
    }
    agree("races that are run again", &races);
    agree("drafts that are kept", &drafts);
    println!("every order agrees");
}

const SIZE: usize = 40_001;

/// Rows of normal numbers, about.
fn normal(rows: usize) -> Vec<f32> {
    let mut state = 1_u64;
    let mut unit = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..rows * SIZE).map(|_| 2.0 * (unit() + unit() + unit())).collect()
}

fn on<T: Element>(device: &Device, values: &[T]) -> Buffer<T> {
    Buffer::from_slice(device, values).expect("there is memory")
}

/// The bits of what a kernel wrote.
fn bits(tokens: &Buffer<i32>, numbers: [&Buffer<f32>; 2]) -> Vec<u8> {
    let tokens = tokens.to_vec().expect("it can be read").into_iter().flat_map(i32::to_ne_bytes);
    let numbers = numbers.into_iter().flat_map(|its| its.to_vec().expect("it can be read"));
    tokens.chain(numbers.flat_map(f32::to_ne_bytes)).collect()
}

/// Rows of which top-p drops most winners, so that those before them race again; then with top-k, in the same memory. Of eight rows, bins tell of
/// the first who is kept; of the others, some logits are so many or weigh so much that the blocks look closer.
fn races(device: &Device) -> Vec<u8> {
    const ROWS: usize = 24;
    let words = scratch_words("top_k_top_p_sample", SIZE);
    let mut logits = normal(ROWS);
    for (row, logits) in logits.chunks_mut(SIZE).enumerate() {
        match row % 8 {
            3..6 => logits.iter_mut().for_each(|x| *x = x.round()),
            6.. => (0..4).for_each(|i| logits[i * 10_000] = 40.0),
            _ => {}
        }
    }
    let logits = on(device, &logits);
    let temperature = on(device, &[1.0, 0.5, 0.1, 1.0, 0.5, 0.5, 1.0, 1.0].repeat(ROWS / 8));
    let top_p = on(device, &[0.02, 0.1, 0.5, 0.02, 0.1, 0.4, 0.25, 0.5].repeat(ROWS / 8));
    let (min_p, zeros) = (on(device, &[0.0; ROWS]), on(device, &[0; ROWS]));
    let mut scratch = on(device, &vec![0; ROWS * words]);
    let mut all = Vec::new();
    for purpose in 0..2 {
        let top_k = on(device, &[50 * purpose; ROWS]);
        let (mut tokens, mut its_logits, mut noise) =
            (on(device, &[0; ROWS]), on(device, &[0.0; ROWS]), on(device, &[0.0; ROWS]));
        let call = TopKTopPSample {
            output_token_ids: tokens.view_mut(),
            sampled_logits: its_logits.view_mut(),
            sampled_noise: noise.view_mut(),
            scratch: scratch.view_mut().matrix(ROWS, words).expect("it fits"),
            logits: logits.view().matrix(ROWS, SIZE).expect("it fits"),
            temperature: temperature.view(),
            top_k: top_k.view(),
            top_p: top_p.view(),
            min_p: min_p.view(),
            seeds: zeros.view(),
            positions: zeros.view(),
            purpose,
        };
        call.launch(device).expect("it fits");
        all.extend(bits(&tokens, [&its_logits, &noise]));
    }
    all
}

/// Requests whose first drafts are certain to be kept, and the last one not; each row has much larger logits than the one before.
fn drafts(device: &Device) -> Vec<u8> {
    const REQUESTS: usize = 3;
    const DRAFTS: usize = 3;
    let words = scratch_words("rejection_sample_from_logits", SIZE);
    let mut logits = normal(REQUESTS * DRAFTS);
    for (row, logits) in logits.chunks_mut(SIZE).enumerate() {
        logits.iter_mut().for_each(|x| *x += 50.0 * (row % DRAFTS) as f32);
        logits[row] += if row % DRAFTS < DRAFTS - 1 { 40.0 } else { 0.0 };
    }
    let logits = on(device, &logits);
    let ids: Vec<i32> = (0..(REQUESTS * DRAFTS) as i32).collect();
    let ends: Vec<i32> = (1..=REQUESTS).map(|request| (request * DRAFTS) as i32).collect();
    let (ids, ends) = (on(device, &ids), on(device, &ends));
    let (temperature, is_greedy) = (on(device, &[1.0; REQUESTS]), on(device, &[false; REQUESTS]));
    let (bonus, seeds, positions) =
        (on(device, &[-2; REQUESTS]), on(device, &[5; REQUESTS]), on(device, &[7; REQUESTS * DRAFTS]));
    let mut tokens = on(device, &[0; REQUESTS * (DRAFTS + 1)]);
    let mut noise = on(device, &[0.0; REQUESTS]);
    let mut scratch = on(device, &vec![0; REQUESTS * words]);
    let call = RejectionSampleFromLogits {
        output_token_ids: tokens.view_mut().matrix(REQUESTS, DRAFTS + 1).expect("it fits"),
        recovered_noise: noise.view_mut(),
        scratch: scratch.view_mut().matrix(REQUESTS, words).expect("it fits"),
        cu_num_draft_tokens: ends.view(),
        draft_token_ids: ids.view(),
        draft_probs: None,
        target_logits: logits.view().matrix(REQUESTS * DRAFTS, SIZE).expect("it fits"),
        temperature: temperature.view(),
        bonus_token_ids: bonus.view(),
        is_greedy: is_greedy.view(),
        seeds: seeds.view(),
        positions: positions.view(),
        first_positions: seeds.view(),
    };
    call.launch(device).expect("it fits");
    bits(&tokens, [&noise, &noise])
}
