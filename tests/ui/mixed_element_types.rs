use tidelock::kernels::Expand;
use tidelock::{AsView, AsViewMut, Device};

fn main() {
    let (input, cu, mut output) = ([1i32; 2], [1i32, 3], [0f32; 3]);
    let _ = Expand { output: output.view_mut(), input: input.view(), cu_num_tokens: cu.view() }.launch(&Device::Cpu);
}
