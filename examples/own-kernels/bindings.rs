// What bindgen reads in these headers. Made by `tidelock bind`, never edited.
// cpu/quantize.h c758a9ad47dcf5374690d107ffbfaa3ac50f3fe5070a31e05874189bbad725a8
// kernels/quantization.h 7b60c2352f7f1dd9334bda85901a95f87710465f9c53ec57db183e5c0ec35f95

#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq)]
pub struct Quantization {
    pub scale: f64,
    pub zero_point: i32,
    pub rectify: bool,
    pub bias: [f32; 2usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of Quantization"][::core::mem::size_of::<Quantization>() - 24usize];
    ["Alignment of Quantization"][::core::mem::align_of::<Quantization>() - 8usize];
    [
        "Offset of field: Quantization::scale",
    ][::core::mem::offset_of!(Quantization, scale) - 0usize];
    [
        "Offset of field: Quantization::zero_point",
    ][::core::mem::offset_of!(Quantization, zero_point) - 8usize];
    [
        "Offset of field: Quantization::rectify",
    ][::core::mem::offset_of!(Quantization, rectify) - 12usize];
    [
        "Offset of field: Quantization::bias",
    ][::core::mem::offset_of!(Quantization, bias) - 16usize];
};
unsafe extern "C" {
    pub fn dequantize_rows_f32(
        output: *mut f32,
        input: *const i8,
        input_stride: i64,
        ceilings: *const f32,
        quantization: Quantization,
        width: i32,
        num_rows: i64,
    );
    pub fn dequantize_rows_f64(
        output: *mut f64,
        input: *const i8,
        input_stride: i64,
        ceilings: *const f32,
        quantization: Quantization,
        width: i32,
        num_rows: i64,
    );
}
