use tidelock::kernels::Argmax;
use tidelock::{AsView, Device};

fn main() {
    let (logits, tokens) = ([0f32; 4], [0i64; 1]);
    let logits = logits.view().matrix(1, 4).unwrap();
    let _ = Argmax { output_token_ids: tokens.view(), logits }.launch(&Device::Cpu);
}
