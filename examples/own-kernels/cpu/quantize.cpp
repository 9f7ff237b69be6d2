// Rows of 8-bit integers to numbers. Its twin is kernels/quantize.cu; it is compiled without fused multiply-adds, as that is.
// Each arm is `extern "C"`: with other parameters than its header has, it is then an error and no overload.

#include "quantize.h"

template <typename T>
static void dequantize_rows(T *output, const int8_t *input, int64_t input_stride, const float *ceilings,
                            Quantization quantization, int32_t width, int64_t num_rows) {
    for (int64_t row = 0; row < num_rows; row++) {
        for (int64_t column = 0; column < width; column++) {
            const int64_t steps = int64_t(input[row * input_stride + column]) - quantization.zero_point;
            double value = double(steps) * quantization.scale + double(quantization.bias[column % 2]);
            if (quantization.rectify && value < 0.0) {
                value = 0.0;
            }
            if (ceilings != nullptr && value > double(ceilings[row])) {
                value = double(ceilings[row]);
            }
            output[row * width + column] = value == value ? T(value) : T(0);
        }
    }
}

extern "C" void dequantize_rows_f32(float *output, const int8_t *input, int64_t input_stride, const float *ceilings,
                         Quantization quantization, int32_t width, int64_t num_rows) {
    dequantize_rows(output, input, input_stride, ceilings, quantization, width, num_rows);
}

extern "C" void dequantize_rows_f64(double *output, const int8_t *input, int64_t input_stride, const float *ceilings,
                         Quantization quantization, int32_t width, int64_t num_rows) {
    dequantize_rows(output, input, input_stride, ceilings, quantization, width, num_rows);
}
