// The CUDA C++ kernels of signatures/logprobs.yaml, as the registry declares them: nvcc refuses a definition that differs.
// Made by tidelock, never edited: change the registry, and run `tidelock header` or `tidelock compile`.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>

// `log_softmax`.
// T_logits is float or __half or __nv_bfloat16.
#if defined(T_logits)
extern "C" __global__ void log_softmax_kernel(
    float *logprobs,
    int64_t *scratch,
    const T_logits *logits,
    int32_t vocab_size,
    int64_t logprobs_stride,
    int64_t logits_stride);
#endif

// `gather_logprobs`.
// T_logits is float or __half or __nv_bfloat16.
#if defined(T_logits)
extern "C" __global__ void gather_logprobs_kernel(
    float *logprobs,
    int32_t *ranks,
    int64_t *scratch,
    const T_logits *logits,
    const int32_t *token_ids,
    int32_t vocab_size,
    int64_t logits_stride);
#endif

// `top_logprobs`.
// T_logits is float or __half or __nv_bfloat16.
#if defined(T_logits)
extern "C" __global__ void top_logprobs_kernel(
    float *logprobs,
    int32_t *token_ids,
    int64_t *scratch,
    const T_logits *logits,
    int32_t num_logprobs,
    int32_t vocab_size,
    int64_t logprobs_stride,
    int64_t token_ids_stride,
    int64_t logits_stride);
#endif
