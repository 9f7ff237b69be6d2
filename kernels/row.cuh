// Reading rows of any type, and agreeing among the lanes of a warp and the blocks of a row.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ inline float to_f32(float x) { return x; }
__device__ inline float to_f32(__half x) { return __half2float(x); }
__device__ inline float to_f32(__nv_bfloat16 x) { return __bfloat162float(x); }

const float INF = __builtin_huge_valf();
const int NO_COLUMN = 0x7fffffff;

// What a lane reads at once: 16 bytes of neighbouring columns.
template <typename T>
struct alignas(16) Chunk {
    static const int SIZE = 16 / sizeof(T);
    T of[SIZE];

    // Columns that are not in the row are -inf. Where sizes are divisible by 16, a chunk is all inside or all outside.
    template <bool DIVISIBLE>
    __device__ void load(const T* row, int first, int size) {
        if (DIVISIBLE && first >= 0 && first < size) {
            *reinterpret_cast<int4*>(of) = __ldg(reinterpret_cast<const int4*>(row + first));
        } else {
#pragma unroll
            for (int i = 0; i < SIZE; i++)
                of[i] = !DIVISIBLE && first + i >= 0 && first + i < size ? row[first + i] : T(-INF);
        }
    }
};

// The larger; NaN where one is.
__device__ inline float larger(float a, float b) {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}

// The largest of each of COUNT values over COUNT neighbouring lanes; lane i of them has that of value i % COUNT.
template <int COUNT>
__device__ float largest_of_lanes(float (&values)[COUNT]) {
#pragma unroll
    for (int half = COUNT / 2; half > 0; half /= 2) {
        bool upper = threadIdx.x & half;
#pragma unroll
        for (int i = 0; i < half; i++) {
            float kept = upper ? values[i + half] : values[i], sent = upper ? values[i] : values[i + half];
            values[i] = larger(kept, __shfl_xor_sync(~0u, sent, half));
        }
    }
    return values[0];
}

// A float as an integer of the same order, for atomicMax.
__device__ inline int ordered(float x) {
    int bits = __float_as_int(x);
    return bits ^ ((bits >> 31) & 0x7fffffff);
}

__device__ inline float unordered(int key) { return __int_as_float(key ^ ((key >> 31) & 0x7fffffff)); }

// Whether this warp's block is the last of `blocks` to arrive at `counter`, which is 0 before the first and again after the last. One warp
// of each block arrives. What it wrote before, in every block, is then visible to the last.
__device__ inline bool last_to_arrive(unsigned* counter, unsigned blocks) {
    bool last = false;
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
        __threadfence();
        last = atomicAdd(counter, 1u) == blocks - 1;
        if (last) *counter = 0;
        __threadfence();
    }
    return __shfl_sync(~0u, last, 0);
}
