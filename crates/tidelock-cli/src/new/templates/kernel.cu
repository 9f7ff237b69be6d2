// What this family of kernels is for. Its twin is `src/cpu/{family}.rs`. Constants of the registry are macros here.

extern "C" __global__ void {kernel}_kernel(
    float *output,
    const float *input,
    int width,
    int64_t output_stride,
    int64_t input_stride,
    float factor)
{
    int64_t row = blockIdx.x;
    int64_t start = (int64_t)blockIdx.y * BLOCK_SIZE;
    for (int64_t column = start + threadIdx.x; column < start + BLOCK_SIZE && column < width; column += blockDim.x) {
        float product = input[row * input_stride + column] * factor;
        // Which NaN an operation gives is not the same everywhere.
        output[row * output_stride + column] = product == product ? product : __int_as_float(0x7fc00000);
    }
}
