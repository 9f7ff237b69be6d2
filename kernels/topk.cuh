// Drawing from a row with a small top-k, by the maxima of its groups; see topk_topp.cu.
#pragma once

#include "alone.cuh"

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

// The last block of a row with a small top-k: `far` has the largest logit of each group.
__device__ __noinline__ void choose(Row row, Race<Noise> race, const float* far, Output output, Digits& digits,
                                    Contenders& contenders, Room& room) {
    Maxima maxima = {far, reinterpret_cast<float*>(&room), (row.vocab_size + (int)GROUP - 1) / (int)GROUP};
    float mine = maxima.bring(), top = largest_of_block(mine);
    if (!(top > -INF)) {
        if (threadIdx.x == 0) output.write(Best(), top == top);
        return;
    }
    int number = first_places(row, maxima, mine, row.top_k, room, digits);
    if (number == TOO_MANY) return alone(row, race, output, digits, contenders);
    int kept = keep(row, room.places, min(number, row.top_k), top, room.masses);
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
