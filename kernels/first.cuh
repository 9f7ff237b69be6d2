// The first tokens of a row's order, found by one block.
//
// Quickly by the largest logits of the row's groups of 32 tokens: the k-th largest of those maxima, or of what each thread has of them at
// most, is a threshold that hardly more than k tokens reach. These are sorted. Exactly, where too many reach it, by the digits of places.
//
// A row says `at(column)`, its `vocab_size`, and `column_of(group, member)`.
#pragma once

#include "mass.cuh"
#include "order.cuh"

const int LARGEST_K = 1024; // tokens that are asked for
const int ROOM = 2048;      // for tokens that may be among them
const int TOO_MANY = ROOM + 1;

// What a block works in, first with maxima.
struct Room {
    Place places[ROOM];
    long long masses[LARGEST_K];
};

// The largest logits of a row's groups, brought near where there is room for them.
struct Maxima {
    static const int NEAR = sizeof(Room) / sizeof(float), AT_ONCE = 10;
    const float* far; // in pairs
    float* near;
    int number;

    // The largest of this thread's share, NaN where there is one. The others see them after a barrier.
    __device__ float bring() const {
        float top = -INF;
#pragma unroll 1
        for (int start = 2 * (int)threadIdx.x; start < number; start += AT_ONCE * 2 * (int)blockDim.x) {
            float2 pairs[AT_ONCE];
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                int its = start + i * 2 * (int)blockDim.x;
                pairs[i] = {-INF, -INF};
                if (its < number) pairs[i] = __ldcg(reinterpret_cast<const float2*>(far + its));
                if (its + 1 >= number) pairs[i].y = -INF;
            }
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                int its = start + i * 2 * (int)blockDim.x;
                if (its < number && number <= NEAR) *reinterpret_cast<float2*>(near + its) = pairs[i];
                top = larger(top, larger(pairs[i].x, pairs[i].y));
            }
        }
        return top;
    }

    __device__ float at(int i) const { return number <= NEAR ? near[i] : __ldcg(far + i); }
};

// A key that at least k of the maxima reach, and hardly more; 0 where there are no k. `mine` is the largest key of those that this
// thread has.
__device__ inline unsigned threshold(const Maxima& maxima, unsigned mine, int k, Digits& digits) {
    if (k <= blockDim.x / 2) {
        // The k-th largest of what each thread has at most, or less that no more threads reach.
        unsigned found = 0;
        int reach = 0;
#pragma unroll 1
        for (unsigned bit = 1u << 31; bit != 0 && reach != k; bit >>= 1) {
            reach = __syncthreads_count(mine >= (found | bit));
            if (reach >= k) found |= bit;
        }
        return found;
    }
    if (maxima.number <= k) return 0;
    long long target = k;
    unsigned found = 0;
#pragma unroll 1
    for (int shift = 24; shift >= 0; shift -= 8) {
        unsigned digit = digits.find(target, [&](auto add) {
#pragma unroll 1
            for (int i = threadIdx.x; i < maxima.number; i += blockDim.x) {
                unsigned key = ~key_of(maxima.at(i));
                if (shift == 24 || key >> (shift + 8) == found) add(key >> shift & 255, 1);
            }
        });
        found = found << 8 | digit;
    }
    return ~found;
}

// Sorts places in shared memory, the smallest first, in room for the next power of two. All threads of the block are here.
__device__ inline void sort_all(Place* places, int number) {
    if (number <= blockDim.x) {
        // No two are equal, so each knows its place by how many are before it.
        Place mine = threadIdx.x < number ? places[threadIdx.x] : NOWHERE;
        int before = 0;
#pragma unroll 8
        for (int i = 0; i < number; i++) before += places[i] < mine;
        __syncthreads();
        if (threadIdx.x < number) places[before] = mine;
        __syncthreads();
        return;
    }
    int size = 1;
    while (size < number) size *= 2;
    for (int i = number + threadIdx.x; i < size; i += blockDim.x) places[i] = NOWHERE;
    sort(places, size);
}

// Sorts the row's first k tokens and what else reaches their threshold, of those above -inf. `largest` is what bring() gave this thread, and
// no logit is NaN. Returns how many there are, or TOO_MANY. All threads of the block are here.
template <typename Row>
__device__ int first_places(const Row& row, const Maxima& maxima, float largest, int k, Room& room, Digits& digits) {
    __shared__ int reaching[ROOM]; // groups
    __shared__ int groups, tokens;
    unsigned least = threshold(maxima, key_of(largest), k, digits);
    if (threadIdx.x == 0) groups = tokens = 0;
    __syncthreads();
#pragma unroll 4
    for (int i = threadIdx.x; i < maxima.number; i += blockDim.x) {
        float most = maxima.at(i);
        if (most > -INF && key_of(most) >= least) {
            int place = atomicAdd(&groups, 1);
            if (place < ROOM) reaching[place] = i;
        }
    }
    __syncthreads();
    if (groups > ROOM) return TOO_MANY;
    const int AT_ONCE = 8;
#pragma unroll 1
    for (int start = threadIdx.x; start < groups * 32; start += AT_ONCE * (int)blockDim.x) {
        float values[AT_ONCE];
        int columns[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            int its = start + i * (int)blockDim.x;
            columns[i] = its < groups * 32 ? row.column_of(reaching[its / 32], its % 32) : row.vocab_size;
            values[i] = columns[i] < row.vocab_size ? row.at(columns[i]) : -INF;
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            if (values[i] > -INF && key_of(values[i]) >= least) {
                int place = atomicAdd(&tokens, 1);
                if (place < ROOM) room.places[place] = place_of(values[i], columns[i]);
            }
        }
    }
    __syncthreads();
    if (tokens > ROOM) return TOO_MANY;
    sort_all(room.places, tokens);
    return tokens;
}

// The place at or before which the tokens up to `last` weigh `target` or more; `last` where they do not. Only those above -inf count.
template <typename Row, typename Weight>
__device__ __noinline__ Place place_of_target(const Row& row, Place last, long long target, Digits& digits, Weight weight) {
    long long all = 0;
#pragma unroll 1
    for (int column = threadIdx.x; column < row.vocab_size; column += blockDim.x) {
        float x = row.at(column);
        if (x > -INF && place_of(x, column) <= last) all += weight(x);
    }
    if (sum_of_block(all) <= target) return last;
    Place found = 0;
#pragma unroll 1
    for (int shift = 56; shift >= 0; shift -= 8) {
        unsigned digit = digits.find(target, [&](auto add) {
#pragma unroll 1
            for (int column = threadIdx.x; column < row.vocab_size; column += blockDim.x) {
                float x = row.at(column);
                Place place = place_of(x, column);
                if (x > -INF && place <= last && (shift == 56 || place >> (shift + 8) == found)) add(place >> shift & 255, weight(x));
            }
        });
        found = found << 8 | digit;
    }
    return found;
}
