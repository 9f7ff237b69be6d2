// Rows of 8-bit integers to numbers. Its twin is cpu/quantize.cpp.

#include "quantization.h"

#include "quantize.h" // made from the registry; nvcc reads it even without this line

extern "C" __global__ void __launch_bounds__(128) dequantize_rows_kernel(
    T_output *__restrict__ output, const int8_t *__restrict__ input, int64_t input_stride, const float *__restrict__ ceilings,
    Quantization quantization, int32_t width) {
    const int64_t row = blockIdx.x, column = int64_t(blockIdx.y) * BLOCK_SIZE + threadIdx.x;
    if (column >= width) {
        return;
    }
    // In 64 bits, where no difference overflows.
    const int64_t steps = int64_t(input[row * input_stride + column]) - quantization.zero_point;
    double value = double(steps) * quantization.scale + double(quantization.bias[column % 2]);
    if (quantization.rectify && value < 0.0) {
        value = 0.0;
    }
    if (HAS_CEILINGS && value > double(ceilings[row])) {
        value = double(ceilings[row]);
    }
    // What a NaN's bits are depends on the processor, so none is stored.
    output[row * width + column] = value == value ? T_output(value) : T_output(0);
}
