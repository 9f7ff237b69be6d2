// The first tokens of a row's order, by the largest logits of its groups of 32 tokens.
//
// The k-th largest of those maxima, or of what each thread has of them at most, is a threshold that hardly more than k tokens reach. These are
// sorted. Where too many reach it, or there are too few groups, the k-th place is found by its digits.
#pragma once

#include "distribution.cuh"
#include "order.cuh"

const int ROOM = 2048; // for tokens that may be among the first; no row is asked for more than half as many

// What one block works in.
struct Selection {
    Place places[ROOM];
    int reaching[ROOM]; // groups
    unsigned keys[THREADS];
    Digits digits;
    int groups, tokens;
    unsigned least;
};

// A key that at least `count` tokens reach, and hardly more; 0 where there are not so many groups. The key of a group whose largest logit is
// -inf or less counts for nothing.
__device__ inline unsigned threshold(const float* maxima, int number, int count, Selection& its) {
    if (count <= THREADS / 2) {
        unsigned mine = 0;
#pragma unroll 8
        for (int i = threadIdx.x; i < number; i += THREADS) mine = max(mine, key_of(__ldcg(maxima + i)));
        its.keys[threadIdx.x] = mine;
        __syncthreads();
        int before = 0;
#pragma unroll 8
        for (int i = 0; i < THREADS; i++) before += its.keys[i] > mine || (its.keys[i] == mine && i < threadIdx.x);
        if (before == count - 1) its.least = mine;
        __syncthreads();
        return its.least;
    }
    if (number <= count) return 0;
    long long target = count;
    unsigned found = 0;
#pragma unroll 1
    for (int shift = 24; shift >= 0; shift -= 8) {
        unsigned digit = its.digits.find(target, [&](auto add) {
#pragma unroll 1
            for (int i = threadIdx.x; i < number; i += THREADS) {
                unsigned key = ~key_of(__ldcg(maxima + i));
                if (shift == 24 || key >> (shift + 8) == found) add(key >> shift & 255, 1);
            }
        });
        found = found << 8 | digit;
    }
    return ~found;
}

// Keeps the tokens up to a place, if there is room.
template <typename T>
__device__ void keep(const T* row, int column, int vocab_size, unsigned least, Place last, Selection& its) {
    float x = column < vocab_size ? to_f32(row[column]) : -INF;
    if (!(x > -INF) || key_of(x) < least || place_of(x, column) > last) return;
    int at = atomicAdd(&its.tokens, 1);
    if (at < ROOM) its.places[at] = place_of(x, column);
}

// The place of the `count`-th token that is above -inf, or NOWHERE.
template <typename T>
__device__ __noinline__ Place place_of_last(const T* row, int vocab_size, int count, Digits& digits) {
    long long number = 0, target = count;
#pragma unroll 1
    for (int column = threadIdx.x; column < vocab_size; column += THREADS) number += to_f32(row[column]) > -INF;
    if (sum_of_block(number) <= target) return NOWHERE;
    Place found = 0;
#pragma unroll 1
    for (int shift = 56; shift >= 0; shift -= 8) {
        unsigned digit = digits.find(target, [&](auto add) {
#pragma unroll 1
            for (int column = threadIdx.x; column < vocab_size; column += THREADS) {
                float x = to_f32(row[column]);
                Place place = place_of(x, column);
                if (x > -INF && (shift == 56 || place >> (shift + 8) == found)) add((unsigned)(place >> shift) & 255, 1);
            }
        });
        found = found << 8 | digit;
    }
    return found;
}

// Sorts the first `count` tokens that are above -inf into `places`. How many there are. `maxima` has the largest logit of each group. All
// threads of the block are here.
template <typename T>
__device__ int first_places(const T* row, int vocab_size, const float* maxima, int number, int count, Selection& its) {
    unsigned least = threshold(maxima, number, count, its);
    if (threadIdx.x == 0) its.groups = its.tokens = 0;
    __syncthreads();
#pragma unroll 8
    for (int i = threadIdx.x; i < number; i += THREADS) {
        float most = __ldcg(maxima + i);
        if (most > -INF && key_of(most) >= least) {
            int at = atomicAdd(&its.groups, 1);
            if (at < ROOM) its.reaching[at] = i;
        }
    }
    __syncthreads();
    int members = min(its.groups, ROOM) * 32;
#pragma unroll 4
    for (int i = threadIdx.x; i < members; i += THREADS)
        keep(row, Tile<T>::column_of_group(its.reaching[i / 32], i % 32), vocab_size, least, NOWHERE, its);
    __syncthreads();
    bool fits = its.groups <= ROOM && its.tokens <= ROOM;
    __syncthreads();
    if (!fits) {
        Place last = place_of_last(row, vocab_size, count, its.digits);
        if (threadIdx.x == 0) its.tokens = 0;
        __syncthreads();
#pragma unroll 1
        for (int column = threadIdx.x; column < vocab_size; column += THREADS) keep(row, column, vocab_size, 0, last, its);
        __syncthreads();
    }
    int tokens = its.tokens, size = 1;
    while (size < tokens) size *= 2;
    for (int i = tokens + threadIdx.x; i < size; i += THREADS) its.places[i] = NOWHERE;
    sort(its.places, size);
    return min(tokens, count);
}
