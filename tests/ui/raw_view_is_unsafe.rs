use tidelock::View;

fn main() {
    let _ = View::<f32>::from_raw_device(0x1000, 4, 0);
}
