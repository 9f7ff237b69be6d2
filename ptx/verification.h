// The CUDA C++ kernels of signatures/verification.yaml, as the registry declares them: nvcc refuses a definition that differs.
// Made by tidelock, never edited: change the registry, and run `tidelock header` or `tidelock compile`.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>

// `rejection_sample`.
// Its constants are macros: NO_DRAFT_PROBS, USE_FP64_GUMBEL.
// T_recovered_noise is float or double.
#if defined(T_recovered_noise)
extern "C" __global__ void rejection_sample_kernel(
    int32_t *output_token_ids,
    T_recovered_noise *recovered_noise,
    int64_t *scratch,
    const int32_t *cu_num_draft_tokens,
    const int32_t *draft_token_ids,
    const float *draft_probs,
    const float *target_probs,
    const int32_t *bonus_token_ids,
    const bool *is_greedy,
    const int64_t *seeds,
    const int64_t *positions,
    const int64_t *first_positions,
    int32_t max_spec_len,
    int32_t num_tokens,
    int32_t vocab_size,
    int64_t draft_probs_stride,
    int64_t target_probs_stride);
#endif

// `rejection_sample_from_logits`.
// Its constants are macros: NO_DRAFT_PROBS, USE_FP64_GUMBEL.
// T_recovered_noise is float or double.
// T_target_logits is float or __half or __nv_bfloat16.
#if defined(T_recovered_noise) && defined(T_target_logits)
extern "C" __global__ void rejection_sample_from_logits_kernel(
    int32_t *output_token_ids,
    T_recovered_noise *recovered_noise,
    int64_t *scratch,
    const int32_t *cu_num_draft_tokens,
    const int32_t *draft_token_ids,
    const float *draft_probs,
    const T_target_logits *target_logits,
    const float *temperature,
    const int32_t *bonus_token_ids,
    const bool *is_greedy,
    const int64_t *seeds,
    const int64_t *positions,
    const int64_t *first_positions,
    int32_t max_spec_len,
    int32_t num_tokens,
    int32_t vocab_size,
    int64_t draft_probs_stride,
    int64_t target_logits_stride);
#endif
