// The order of a row's logits: the largest first, and of equal ones the lowest token. Its twins are order.py and src/cpu/order.rs.
#pragma once

#include "row.cuh"

typedef unsigned long long Place;

// The key of a logit, an unsigned integer of the same order. -0 has the key of 0.
__device__ inline unsigned key_of(float x) { return (unsigned)ordered(x == 0.0f ? 0.0f : x) ^ 0x80000000u; }

// The place of a token: the smaller comes first, and no two tokens share one. Above -inf it is below NOWHERE.
__device__ inline Place place_of(float x, int column) { return (Place)~key_of(x) << 32 | (unsigned)column; }

__device__ inline float logit_at(Place place) { return unordered((int)(~(unsigned)(place >> 32) ^ 0x80000000u)); }

__device__ inline int column_at(Place place) { return (int)(unsigned)place; }

const Place NOWHERE = ~0ull;

// A search for a value by its digits, of which each is found by weighing the values that have the earlier ones.
struct Digits {
    long long weights[256];
    int digit;
    long long before;

    // The next eight bits of the smallest value at or before which the values weigh `target` or more, which all of them do; `target`
    // becomes what is left of it. `weigh(add)` calls add(digit, weight) for each value.
    template <typename Weigh>
    __device__ unsigned find(long long& target, Weigh weigh) {
        for (int i = threadIdx.x; i < 256; i += blockDim.x) weights[i] = 0;
        __syncthreads();
        weigh([&](unsigned its, long long weight) {
            // The first digits of most values are the same, and then a warp adds once.
            unsigned active = __activemask();
            int same;
            __match_all_sync(active, its, &same);
            unsigned long long* to = reinterpret_cast<unsigned long long*>(&weights[its]);
            if (same && active == ~0u) {
                for (int lanes = 16; lanes > 0; lanes /= 2) weight += __shfl_xor_sync(~0u, weight, lanes);
                if (threadIdx.x % 32 == 0) atomicAdd(to, (unsigned long long)weight);
            } else {
                atomicAdd(to, (unsigned long long)weight);
            }
        });
        __syncthreads();
        if (threadIdx.x < 32) {
            long long mine = 0;
            for (int i = 0; i < 8; i++) mine += weights[8 * threadIdx.x + i];
            long long sum = mine;
            for (int lanes = 1; lanes < 32; lanes *= 2) {
                long long lower = __shfl_up_sync(~0u, sum, lanes);
                if (threadIdx.x >= lanes) sum += lower;
            }
            long long above = sum - mine;
            if (above < target && (sum >= target || threadIdx.x == 31)) {
                int i = 8 * threadIdx.x;
                while (above + weights[i] < target && i < 8 * threadIdx.x + 7) above += weights[i++];
                digit = i;
                before = above;
            }
        }
        __syncthreads();
        unsigned found = digit;
        target -= before;
        __syncthreads();
        return found;
    }
};

// Sorts 2^n places in shared memory, the smallest first. All threads of the block are here.
__device__ inline void sort(Place* places, int number) {
    for (int size = 2; size <= number; size *= 2) {
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < number / 2; i += blockDim.x) {
                int low = 2 * i - (i & (stride - 1)), high = low + stride;
                Place a = places[low], b = places[high];
                if ((a > b) == ((low & size) == 0)) {
                    places[low] = b;
                    places[high] = a;
                }
            }
        }
    }
    __syncthreads();
}
