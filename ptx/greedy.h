// The CUDA C++ kernels of signatures/greedy.yaml, as the registry declares them: nvcc refuses a definition that differs.
// Made by tidelock, never edited: change the registry, and run `tidelock header` or `tidelock compile`.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>

// `greedy_sample`.
// T_logits is float or __half or __nv_bfloat16.
#if defined(T_logits)
extern "C" __global__ void greedy_sample_kernel(
    int32_t *output_token_ids,
    int64_t *scratch,
    const T_logits *logits,
    int32_t vocab_size,
    int64_t logits_stride);
#endif
