//! Work on several streams of a GPU comes in the order of its reads and writes, without a synchronisation by the caller.

use crate::support::{on, read};
use tidelock::kernels::{Argmax, Expand};
use tidelock::{AsView, AsViewMut, Buffer, Device};

#[test]
fn a_stream_waits_for_what_another_writes() {
    let (Ok(first), Ok(second)) = (Device::cuda(0), Device::cuda(0)) else {
        return eprintln!("no GPU here, so no streams");
    };
    // Enough work on the first stream that the second would overtake it if nothing made it wait.
    let columns = 1 << 20;
    for round in 0..20 {
        let value = round as f32 + 1.0;
        let (input, cu) = (on(&first, &[value]), on(&first, &[columns as i32]));
        let mut expanded: Buffer<f32> = Buffer::zeros(&first, columns).expect("the GPU has memory");
        let mut token = Buffer::<i64>::zeros(&second, 1).expect("the GPU has memory");
        let call = Expand { output: expanded.view_mut(), input: input.view(), cu_num_tokens: cu.view() };
        call.launch(&first).expect("the arguments fit");
        let logits = expanded.view().slice(columns - 8..columns).and_then(|tail| tail.matrix(1, 8)).expect("it fits");
        Argmax { output_token_ids: token.view_mut(), logits }.launch(&second).expect("the arguments fit");
        // Written again on the first stream while the second may still be reading.
        let zero = on(&first, &[f32::NEG_INFINITY]);
        let call = Expand { output: expanded.view_mut(), input: zero.view(), cu_num_tokens: cu.view() };
        call.launch(&first).expect("the arguments fit");
        assert_eq!(read(&token), [0], "round {round}: the second stream saw the first one's write");
        drop(input);
    }
}
