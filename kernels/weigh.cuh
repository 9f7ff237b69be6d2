// Whether top-p keeps a token, by what the tokens of a row weigh and what those before it do: by the bins, by reading the row again, and
// exactly. The blocks of a row weigh their parts, and all of them add these up.
#pragma once

#include "bins.cuh"

// What tokens weigh, and what those before a place do.
template <typename Number>
struct Sums {
    Number total, before;
};

enum Verdict { KEPT, DROPPED, UNCLEAR };

// Whether a token is kept, given what is before it and what is before the next, each within `doubt` of the whole.
__device__ inline Verdict verdict(double before, double after, double total, float top_p, double doubt) {
    double share = top_p > 0 ? top_p : 0;
    if (after < (share - doubt) * total) return KEPT;
    return before > (share + doubt) * total ? DROPPED : UNCLEAR;
}

// Both sums over the block, in all of its threads.
__device__ inline Sums<double> sums_of_block(double all, double before) {
    __shared__ double sums[2][NUM_WARPS];
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
    return {all, before};
}

// What a bin of a part weighs, and those above it. For all threads of the block.
__device__ __noinline__ Sums<double> weigh_bin(const Histogram& histogram, float below, int own) {
    float before = 0, beside = threadIdx.x == 0 && own == 0 ? below : 0;
    for (int bin = own + (int)threadIdx.x; bin < Histogram::BINS; bin += blockDim.x)
        (bin > own ? before : beside) += Histogram::mass(histogram.bins[bin], bin);
    return sums_of_block(beside, before);
}

const double DOUBT_READ = 2e-5; // of what reading the row again tells

// What the tokens of a part weigh, and those before a place, in units of the largest.
__device__ __noinline__ Sums<double> weigh(Row row, float top, Before place, int begin, int end) {
    typedef Batch<Logits<T_logits>> Its;
    const int step = BATCH * NUM_WARPS;
    float slope = (float)(1.4426950408889634 / (double)row.temperature);
    double all = 0, before = 0;
    int first = begin + BATCH * (threadIdx.x / 32);
    Its next;
    next.load<DIVISIBLE_BY_16>(row.logits, first, end);
#pragma unroll 1
    for (; first < end; first += step) {
        // The next batch is on its way while this one is weighed.
        Its batch = next;
        next.load<DIVISIBLE_BY_16>(row.logits, first + step, first + step < end ? end : 0);
        float batch_all = 0, batch_before = 0;
#pragma unroll
        for (int i = 0; i < Its::CHUNKS; i++) {
#pragma unroll
            for (int j = 0; j < Its::SIZE; j++) {
                float x = batch.at(row.logits, i, j), weight = approximate_exp2((x - top) * slope);
                batch_all += weight;
                if (place.runs(x, Its::column(first, i, j))) batch_before += weight;
            }
        }
        all += batch_all;
        before += batch_before;
    }
    return sums_of_block(all, before);
}

// The same exactly.
__device__ __noinline__ Sums<long long> weigh_exactly(Row row, float top, Before place, int begin, int end) {
    long long all = 0, before = 0;
#pragma unroll 1
    for (int column = begin + (int)threadIdx.x; column < end; column += blockDim.x) {
        float x = row.at(column);
        long long mass = Fixed(row.scale.relative(x, top)).value();
        all += mass;
        if (place.runs(x, column)) before += mass;
    }
    return {sum_of_block(all), sum_of_block(before)};
}
