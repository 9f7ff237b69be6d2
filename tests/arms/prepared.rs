//! A prepared launch does what a launch does, as often as it is asked, and refuses what a launch refuses.

use tidelock::kernels::{Argmax, Expand};
use tidelock::{AsView, AsViewMut, Buffer};

use crate::support::{on, on_each_arm, read};

#[test]
fn a_prepared_launch_gives_what_a_launch_gives() {
    on_each_arm(|device| {
        let logits = on(device, &(0..3000).map(|index| ((index * 7919) % 1013) as f32).collect::<Vec<_>>());
        let (mut once, mut often) = (on(device, &[-7i64; 3]), on(device, &[-7i64; 3]));
        let logits = || logits.view().matrix(3, 1000).expect("it fits");
        Argmax { output_token_ids: once.view_mut(), logits: logits() }.launch(device).expect("the arguments fit");
        let call = Argmax { output_token_ids: often.view_mut(), logits: logits() };
        let mut prepared = call.prepare(device).expect("the arguments fit");
        assert_eq!(prepared.kernel().name, "argmax");
        for _ in 0..3 {
            prepared.launch().expect("it was checked");
        }
        drop(prepared);
        assert_eq!(read(&often), read(&once));
    });
}

#[test]
fn nothing_runs_before_it_is_launched() {
    on_each_arm(|device| {
        let (input, cu) = (on(device, &[1.5f32, 2.5]), on(device, &[2, 3]));
        let mut output: Buffer<f32> = Buffer::zeros(device, 3).expect("the device has memory");
        let call = Expand { output: output.view_mut(), input: input.view(), cu_num_tokens: cu.view() };
        let call = call.replace_from(1.5).replace_to(9.0).prepare(device).expect("the arguments fit");
        drop(call);
        assert_eq!(read(&output), [0.0; 3]);
        let call = Expand { output: output.view_mut(), input: input.view(), cu_num_tokens: cu.view() };
        let mut call = call.replace_from(1.5).replace_to(9.0).prepare(device).expect("the arguments fit");
        call.launch().expect("it was checked");
        drop(call);
        assert_eq!(read(&output), [9.0, 9.0, 2.5]);
    });
}

#[test]
fn a_launch_of_nothing_can_be_prepared() {
    on_each_arm(|device| {
        let logits: Buffer<f32> = Buffer::zeros(device, 0).expect("the device has memory");
        let mut tokens: Buffer<i64> = Buffer::zeros(device, 0).expect("the device has memory");
        let logits = logits.view().matrix(0, 10).expect("it fits");
        let call = Argmax { output_token_ids: tokens.view_mut(), logits };
        call.prepare(device).and_then(|mut call| call.launch()).expect("there is nothing to do");
    });
}

#[test]
fn what_a_launch_refuses_cannot_be_prepared() {
    on_each_arm(|device| {
        let (logits, mut tokens) = (on(device, &[0f32; 12]), on(device, &[7i64; 2]));
        let logits = || logits.view().matrix(3, 4).expect("it fits");
        let call = Argmax { output_token_ids: tokens.view_mut(), logits: logits() };
        let refused = call.prepare(device).err().expect("two tokens are too few").to_string();
        let call = Argmax { output_token_ids: tokens.view_mut(), logits: logits() };
        assert_eq!(refused, call.launch(device).expect_err("two tokens are too few").to_string());
    });
}
