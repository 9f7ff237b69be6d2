use tidelock::kernels::RandomSample;
use tidelock::{AsView, AsViewMut, Device};

fn main() {
    let (probs, inv_q, mut tokens) = ([0f32; 4], [1f64; 4], [0i64; 1]);
    let (probs, inv_q) = (probs.view().matrix(1, 4).unwrap(), inv_q.view().matrix(1, 4).unwrap());
    let _ = RandomSample { output_token_ids: tokens.view_mut(), probs, inv_q }.launch(&Device::Cpu);
}
