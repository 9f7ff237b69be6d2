// What this family of kernels is for. Its twin is `src/cpu/{family}.rs`. Constants of the registry are macros here.

extern "C" __global__ void {kernel}_kernel(
    float *output,
    const float *input,
    int width,
    long long output_stride,
    long long input_stride,
    float factor)
{
    long long row = blockIdx.x;
    long long start = (long long)blockIdx.y * BLOCK_SIZE;
    for (long long column = start + threadIdx.x; column < start + BLOCK_SIZE && column < width; column += blockDim.x) {
        float product = input[row * input_stride + column] * factor;
        // Which NaN an operation gives is not the same everywhere.
        output[row * output_stride + column] = product == product ? product : __int_as_float(0x7fc00000);
    }
}
