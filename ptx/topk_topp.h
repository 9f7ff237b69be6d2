// The CUDA C++ kernels of signatures/topk_topp.yaml, as the registry declares them: nvcc refuses a definition that differs.
// Made by tidelock, never edited: change the registry, and run `tidelock header` or `tidelock compile`.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>

// `top_k_top_p_sample`.
// Its constants are macros: USE_FP64_GUMBEL.
// T_sampled_noise is float or double.
// T_logits is float or __half or __nv_bfloat16.
#if defined(T_sampled_noise) && defined(T_logits)
extern "C" __global__ void top_k_top_p_sample_kernel(
    int32_t *output_token_ids,
    float *sampled_logits,
    T_sampled_noise *sampled_noise,
    int64_t *scratch,
    const T_logits *logits,
    const float *temperature,
    const int32_t *top_k,
    const float *top_p,
    const float *min_p,
    const int64_t *seeds,
    const int64_t *positions,
    int32_t purpose,
    int32_t vocab_size,
    int64_t logits_stride);
#endif
