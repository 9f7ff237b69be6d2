// Drawing from a row with a small top-k, by the maxima of its groups; see topk_topp.cu.
#pragma once

#include "alone.cuh"

const int LARGEST_K = 1024; // of rows whose tokens are sorted
const int ROOM = 2048;      // for tokens that may be among them

// The tokens that a row keeps of those in `places`, which are sorted and are at least its first k: how many.
__device__ int keep(const Row& row, const Place* places, int number, float top, long long* masses) {
    __shared__ int kept;
    if (threadIdx.x == 0) kept = 0;
    __syncthreads();
    if (row.top_p >= 1) return number;
    for (int i = threadIdx.x; i < number; i += blockDim.x) masses[i] = Fixed(row.scale.relative(logit_at(places[i]), top)).value();
    __syncthreads();
    if (threadIdx.x < 32) {
        int each = (number + 31) / 32, begin = min(each * (int)threadIdx.x, number), end = min(begin + each, number);
        long long mine = 0;
        for (int i = begin; i < end; i++) mine += masses[i];
        long long sum = mine;
        for (int lanes = 1; lanes < 32; lanes *= 2) {
            long long lower = __shfl_up_sync(~0u, sum, lanes);
            if (threadIdx.x >= lanes) sum += lower;
        }
        long long target = part_of(__shfl_sync(~0u, sum, 31), row.top_p), before = sum - mine;
        int within = 0;
        for (int i = begin; i < end && before < target; i++) {
            before += masses[i];
            within++;
        }
        atomicAdd(&kept, within);
    }
    __syncthreads();
    return kept;
}

// Leaves the largest logit of each group from `first` up to `end`, as the warps of the block share them, in `maxima`, which has one for each
// group of the row. `batch` holds the first batch of this warp.
__device__ inline void survey(const Row& row, Batch<Logits<T_logits>>& batch, int first, int end, float* maxima) {
    const int step = BATCH * NUM_WARPS;
    for (; first < end; first += step) {
        float most = largest(batch, row.logits);
        // The next batch is on its way while this one is looked at.
        batch.load<DIVISIBLE_BY_16>(row.logits, first + step, first + step < end ? end : 0);
        int group = first / (int)GROUP + group_of_lane<Batch<Logits<T_logits>>>();
        if (group * (int)GROUP < end) maxima[group] = most;
    }
}

// What one block works in when it sorts.
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

    // Shows each thread its share.
    template <typename Show>
    __device__ void bring(Show show) const {
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
                show(pairs[i].x);
                show(pairs[i].y);
            }
        }
    }

    __device__ float at(int i) const { return number <= NEAR ? near[i] : __ldcg(far + i); }
};

// A key that at least k of the maxima reach, and hardly more; 0 where there are no k. `mine` is the largest key of those that this
// thread has.
__device__ unsigned threshold(const Maxima& maxima, unsigned mine, int k, Digits& digits) {
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
__device__ void sort_all(Place* places, int number) {
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

// The last block of a row with a small top-k: `far` has the largest logit of each group.
__device__ __noinline__ void choose(Row row, Race<Noise> race, const float* far, Output output, Digits& digits,
                                    Contenders& contenders, Room& room) {
    __shared__ int count;
    int groups = (row.vocab_size + (int)GROUP - 1) / (int)GROUP;
    Maxima maxima = {far, reinterpret_cast<float*>(&room), groups};
    float top = -INF;
    unsigned mine = 0;
    maxima.bring([&](float value) {
        top = larger(top, value);
        mine = max(mine, key_of(value));
    });
    top = largest_of_block(top);
    if (!(top > -INF)) {
        if (threadIdx.x == 0) output.write(Best(), top == top);
        return;
    }
    unsigned least = threshold(maxima, mine, row.top_k, digits);

    // The groups that reach it, then their tokens that do.
    __shared__ int reaching[ROOM];
    __shared__ int number_reaching;
    if (threadIdx.x == 0) count = number_reaching = 0;
    __syncthreads();
#pragma unroll 4
    for (int i = threadIdx.x; i < groups; i += blockDim.x) {
        if (key_of(maxima.at(i)) >= least) {
            int place = atomicAdd(&number_reaching, 1);
            if (place < ROOM) reaching[place] = i;
        }
    }
    __syncthreads();
    if (number_reaching > ROOM) return alone(row, race, output, digits, contenders);
    const int AT_ONCE = 8;
#pragma unroll 1
    for (int start = threadIdx.x; start < number_reaching * (int)GROUP; start += AT_ONCE * (int)blockDim.x) {
        float values[AT_ONCE];
        int columns[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            int its = start + i * (int)blockDim.x;
            columns[i] = its < number_reaching * (int)GROUP ? reaching[its / (int)GROUP] * (int)GROUP + its % (int)GROUP : row.vocab_size;
            values[i] = columns[i] < row.vocab_size ? row.at(columns[i]) : -INF;
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            if (values[i] > -INF && key_of(values[i]) >= least) {
                int place = atomicAdd(&count, 1);
                if (place < ROOM) room.places[place] = place_of(values[i], columns[i]);
            }
        }
    }
    __syncthreads();
    if (count > ROOM) return alone(row, race, output, digits, contenders);
    sort_all(room.places, count);
    int kept = keep(row, room.places, min(count, row.top_k), top, room.masses);
    Best best;
#pragma unroll 1
    for (int i = threadIdx.x; i < kept; i += blockDim.x) {
        float x = logit_at(room.places[i]);
        int column = column_at(room.places[i]);
        if (x == 0) x = row.at(column); // it may be -0
        if (row.passes_min_p(x, top)) contend(race, x, column, best);
    }
    best.contend_block(min((kept + 31) / 32, NUM_WARPS));
    if (threadIdx.x == 0) output.write(best, true);
}
