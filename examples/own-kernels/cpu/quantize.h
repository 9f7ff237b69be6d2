// The CPU arms of signatures/quantize.yaml. bindgen reads this file, and rustc holds it to the registry.
#pragma once

#include "../kernels/quantization.h"

#ifdef __cplusplus
extern "C" {
#endif

void dequantize_rows_f32(float *output, const int8_t *input, int64_t input_stride, const float *ceilings,
                         struct Quantization quantization, int32_t width, int64_t num_rows);
void dequantize_rows_f64(double *output, const int8_t *input, int64_t input_stride, const float *ceilings,
                         struct Quantization quantization, int32_t width, int64_t num_rows);

#ifdef __cplusplus
}
#endif
