// Logarithms of probabilities. Their twin is src/cpu/logprobs.rs.
//
// The logarithm of a row's sum is one number, taken in f64 from the integer sum of distribution.cuh; so a token that is almost certain still
// has a logprob below 0.
#pragma once

#include "distribution.cuh"

// What makes logprobs of a row's logits.
struct Logarithm {
    float top, total; // the largest logit, and the logarithm of the sum of exp(x - top)
    bool valid;

    // The logit is measured from the largest, which is 0 even where it is infinite.
    __device__ float of(float x) const { return valid ? (x == top ? 0.0f : x - top) - total : -INF; }
};

// That of a row whose tiles have all been weighed, in all threads of the block.
__device__ inline Logarithm logarithm(const Blocks& blocks, const Scale& scale) {
    __shared__ Logarithm its;
    if (threadIdx.x < 32) {
        Mass mass = row_mass(blocks.tiles, blocks.number, scale);
        if (threadIdx.x == 0)
            its = {mass.top, (float)ln((double)max(mass.sum, 1ll) * (1.0 / (double)FIXED_ONE)), mass.top > -INF};
    }
    __syncthreads();
    return its;
}
