use tidelock::kernels::Argmax;
use tidelock::{AsView, AsViewMut, Device};

fn main() {
    let (logits, mut tokens) = ([0f32; 4], [0i64; 1]);
    let logits = logits.view().matrix(1, 4).unwrap();
    // The vocabulary's size follows from the logits; it cannot be said a second time.
    let _ = Argmax { output_token_ids: tokens.view_mut(), logits, vocab_size: 4 }.launch(&Device::Cpu);
}
