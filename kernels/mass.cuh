// What tokens weigh against each other, in integers. Its twins are mass.py and src/cpu/mass.rs, which say why.
#pragma once

#include "exact.cuh"

const float FIXED_ONE = 1099511627776.0f; // 2^40

// A weight in multiples of 2^-40, to nearest even: a multiple of 2^20 and what is left, both exact in f32.
struct Fixed {
    int upper, lower;

    __device__ explicit Fixed(float weight) {
        const float ROUND_HIGH = 13194139533312.0f, ROUND_LOW = 12582912.0f; // 1.5 * 2^43, 1.5 * 2^23
        float scaled = weight * FIXED_ONE;
        float high = scaled + ROUND_HIGH;
        float low = (scaled - (high - ROUND_HIGH)) + ROUND_LOW;
        upper = __float_as_int(high) - 0x55400000;
        lower = __float_as_int(low) - 0x4B400000;
    }

    __device__ long long value() const { return ((long long)upper << 20) + lower; }
};

// A sum of few masses, in two halves: up to 1024 of them.
struct FewMasses {
    int upper = 0, lower = 0;

    __device__ void add(Fixed mass) {
        upper += mass.upper;
        lower += mass.lower;
    }

    __device__ long long value() const { return ((long long)upper << 20) + lower; }
};

// `p` of a mass, rounded up; at least 1, since a mass of 0 would keep no token.
__device__ inline long long part_of(long long total, float p) {
    double exact = (double)(p > 0 ? p : 0.0f) * (double)total;
    long long whole = (long long)exact;
    whole += (double)whole < exact;
    return whole > 1 ? whole : 1;
}

// The sum over a block, in all of its threads.
__device__ inline long long sum_of_block(long long value) {
    __shared__ long long sums[32];
    for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(~0u, value, lanes);
    __syncthreads();
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0;
    for (int warp = 0; warp < blockDim.x / 32; warp++) value += sums[warp];
    return value;
}
