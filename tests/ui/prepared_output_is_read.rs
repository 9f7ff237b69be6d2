//! What a prepared launch writes is its own while it lives.

use tidelock::kernels::Argmax;
use tidelock::{AsView, AsViewMut, Device};

fn main() {
    let (logits, mut tokens) = ([0.5f32, 2.0], [0i64]);
    let logits = logits.view().matrix(1, 2).unwrap();
    let mut prepared = Argmax { output_token_ids: tokens.view_mut(), logits }.prepare(&Device::Cpu).unwrap();
    prepared.launch().unwrap();
    println!("{tokens:?}");
    prepared.launch().unwrap();
}
