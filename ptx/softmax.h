// The CUDA C++ kernels of signatures/softmax.yaml, as the registry declares them: nvcc refuses a definition that differs.
// Made by tidelock, never edited: change the registry, and run `tidelock header` or `tidelock compile`.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>

// `softmax`.
// T_logits is float or __half or __nv_bfloat16.
#if defined(T_logits)
extern "C" __global__ void softmax_kernel(
    float *probs,
    int64_t *scratch,
    const T_logits *logits,
    const float *temperature,
    int32_t vocab_size,
    int64_t probs_stride,
    int64_t logits_stride);
#endif
