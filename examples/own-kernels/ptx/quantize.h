// The CUDA C++ kernels of signatures/quantize.yaml, as the registry declares them: nvcc refuses a definition that differs.
// Made by tidelock, never edited: change the registry, and run `tidelock header` or `tidelock compile`.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "quantization.h"

static_assert(sizeof(Quantization) == 24 && alignof(Quantization) == 8, "Quantization was bound to Rust with another layout: run `tidelock bind`");
static_assert(offsetof(Quantization, scale) == 0, "Quantization was bound to Rust with another layout: run `tidelock bind`");
static_assert(offsetof(Quantization, zero_point) == 8, "Quantization was bound to Rust with another layout: run `tidelock bind`");
static_assert(offsetof(Quantization, rectify) == 12, "Quantization was bound to Rust with another layout: run `tidelock bind`");
static_assert(offsetof(Quantization, bias) == 16, "Quantization was bound to Rust with another layout: run `tidelock bind`");

// `dequantize_rows`.
// Its constants are macros: BLOCK_SIZE, HAS_CEILINGS.
// T_output is float or double.
#if defined(T_output)
extern "C" __global__ void dequantize_rows_kernel(
    T_output *output,
    const int8_t *input,
    int64_t input_stride,
    const float *ceilings,
    Quantization quantization,
    int32_t width);
#endif
