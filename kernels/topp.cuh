// What the blocks of a row weigh together for top-p alone; see topk_topp.cu.
#pragma once

#include "topk.cuh"

// What a block found, for the other blocks of the row.
struct Slot {
    Found found;
    long long total, before;
    float top;
};

// The sum over the slots of a row, in all lanes.
template <typename Value>
__device__ auto sum_of_slots(const volatile Slot* slots, int parts, Value value) {
    int lane = threadIdx.x % 32;
    auto sum = value(slots[lane < parts ? lane : 0]);
    if (lane >= parts) sum = 0;
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
    return sum;
}

// What the tokens of a part weigh, and those before a place, in units of the largest: within 1e-4 of the sum. For the block's first
// thread.
__device__ void weigh(const Row& row, Batch<Logits<T_logits>>& batch, float top, const Before& place, int begin, int end, float& all,
                      float& before) {
    float slope = (float)(1.4426950408889634 / (double)row.temperature);
    for (int first = begin + BATCH * (threadIdx.x / 32); first < end; first += BATCH * NUM_WARPS) {
        batch.load<DIVISIBLE_BY_16>(row.logits, first, end);
#pragma unroll
        for (int i = 0; i < batch.CHUNKS; i++) {
#pragma unroll
            for (int j = 0; j < batch.SIZE; j++) {
                float x = batch.at(row.logits, i, j), weight = approximate_exp2((x - top) * slope);
                all += weight;
                if (place.runs(x, batch.column(first, i, j))) before += weight;
            }
        }
    }
    __shared__ float sums[2][NUM_WARPS];
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        all += __shfl_xor_sync(~0u, all, lanes);
        before += __shfl_xor_sync(~0u, before, lanes);
    }
    if (threadIdx.x % 32 == 0) {
        sums[0][threadIdx.x / 32] = all;
        sums[1][threadIdx.x / 32] = before;
    }
    __syncthreads();
    all = before = 0;
    for (int warp = 0; warp < NUM_WARPS; warp++) {
        all += sums[0][warp];
        before += sums[1][warp];
    }
}

// The same exactly, into the slot.
__device__ __noinline__ void weigh_exactly(const Row& row, float top, const Before& place, int begin, int end, Slot& slot) {
    FewMasses all, before;
#pragma unroll 1
    for (int column = begin + (int)threadIdx.x; column < end; column += blockDim.x) {
        float x = row.at(column);
        Fixed mass(row.scale.relative(x, top));
        all.add(mass);
        if (place.runs(x, column)) before.add(mass);
    }
    long long total = sum_of_block(all.value()), earlier = sum_of_block(before.value());
    if (threadIdx.x == 0) {
        slot.total = total;
        slot.before = earlier;
    }
}
