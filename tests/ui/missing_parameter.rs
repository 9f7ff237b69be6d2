use tidelock::kernels::Argmax;
use tidelock::{AsViewMut, Device};

fn main() {
    let mut tokens = [0i64; 1];
    let _ = Argmax::<f32, i64> { output_token_ids: tokens.view_mut() }.launch(&Device::Cpu);
}
