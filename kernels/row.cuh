// Reading rows of any type, and agreeing among the lanes of a warp and the blocks of a row.
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "ptx.cuh"

__device__ inline float to_f32(float x) { return x; }
__device__ inline float to_f32(__half x) { return __half2float(x); }
__device__ inline float to_f32(__nv_bfloat16 x) { return __bfloat162float(x); }

const float INF = __builtin_huge_valf();
const int NO_COLUMN = 0x7fffffff;

template <int BYTES>
struct Word;
template <>
struct Word<16> {
    typedef int4 Type;
};
template <>
struct Word<8> {
    typedef int2 Type;
};

// What a lane reads at once: neighbouring columns, 16 bytes of them where nothing else is said.
template <typename T, int COLUMNS = 16 / sizeof(T)>
struct alignas(COLUMNS * sizeof(T)) Chunk {
    static const int SIZE = COLUMNS;
    typedef typename Word<COLUMNS * sizeof(T)>::Type Whole;
    T of[SIZE];

    // Columns that are not in the row are -inf. Where sizes are divisible by 16, a chunk is all inside or all outside.
    template <bool DIVISIBLE>
    __device__ void load(const T* row, int first, int size) {
        if (DIVISIBLE && first >= 0 && first < size) {
            *reinterpret_cast<Whole*>(of) = __ldg(reinterpret_cast<const Whole*>(row + first));
        } else {
#pragma unroll
            for (int i = 0; i < SIZE; i++)
                of[i] = !DIVISIBLE && first + i >= 0 && first + i < size ? row[first + i] : T(-INF);
        }
    }
};

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
        fence();
        last = atomicAdd(counter, 1u) == blocks - 1;
        if (last) *counter = 0;
        fence();
    }
    return __shfl_sync(~0u, last, 0);
}

// Waits until all blocks of a row are here. What they wrote before is visible after. Each must have been started, or be sure to be.
__device__ inline void meet(unsigned* arrived, unsigned blocks) {
    __syncthreads();
    if (threadIdx.x == 0) {
        fence();
        unsigned goal = (atomicAdd(arrived, 1u) / blocks + 1) * blocks, seen;
        do {
            seen = acquire(arrived);
        } while (seen < goal);
    }
    __syncthreads();
}

// What the blocks of a row tell each other; 0 before the first launch and after each.
//
// Blocks that wait need those that they wait for to run. So a block takes the next part of the next row as it starts, whatever its own
// index; then all blocks with earlier parts have started, and a row has few parts.
struct Counters {
    unsigned arrived, left, raced;
    unsigned tickets, finished; // of all rows, in the first

    // The next part of the next row, in all threads of the block.
    __device__ static unsigned ticket(Counters* all) {
        __shared__ unsigned ticket;
        if (threadIdx.x == 0) ticket = atomicAdd(&all->tickets, 1u);
        __syncthreads();
        return ticket;
    }

    // The last to leave puts the counters back.
    __device__ void leave(Counters* all, unsigned parts, unsigned blocks) {
        if (threadIdx.x != 0) return;
        fence();
        if (atomicAdd(&left, 1u) == parts - 1) arrived = left = 0;
        fence();
        if (atomicAdd(&all->finished, 1u) == blocks - 1) all->tickets = all->finished = 0;
    }
};

// The largest of a block, NaN where there is one, in all of its threads.
__device__ inline float largest_of_block(float value) {
    __shared__ float values[NUM_WARPS];
    for (int lanes = 16; lanes > 0; lanes /= 2) value = larger(value, __shfl_xor_sync(~0u, value, lanes));
    __syncthreads();
    if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = value;
    __syncthreads();
    value = values[0];
    for (int warp = 1; warp < NUM_WARPS; warp++) value = larger(value, values[warp]);
    return value;
}
