// What the blocks of a row weigh together for top-p alone; see topk_topp.cu.
#pragma once

#include "topk.cuh"

// What a block found, for the other blocks of the row.
struct Slot {
    Found found;
    long long total, before, beside;
    float top;
};

// How many tokens of a part weigh about as much: bins of 1/64 of a factor e, twenty of these on either side of a reference, which is the
// largest of the row's first tokens. What a row keeps is mostly clear from them, and the row need not be read again.
struct Histogram {
    static const int HALF = 1280, BINS = 2 * HALF;
    int counts[BINS];

    // For all threads of the block; their counts follow a barrier.
    __device__ void clear() {
        for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) counts[bin] = 0;
    }
};

// Counts logits. Those that weigh less than the lowest bin's are left out.
struct Counting {
    int* counts;
    float scale, offset;

    __device__ Counting(Histogram& histogram, float reference, float temperature) : counts(histogram.counts), scale(64.0f / temperature) {
        float place = reference * scale;
        offset = (float)Histogram::HALF - place;
        // Beyond, bins would be rounded; then none is counted.
        if (!(fabsf(place) < 65536.0f) || !(scale < INF)) {
            scale = 0;
            offset = -1;
        }
    }

    __device__ bool counts_any() const { return offset != -1; }

    // The bin of a logit; never smaller for a larger one.
    __device__ int bin(float x) const { return min(__float2int_rd(fmaf(x, scale, offset)), Histogram::BINS - 1); }

    // The least weight in a bin, in units of the largest.
    __device__ float weight(int bin, float top) const {
        return approximate_exp2(((float)bin - fmaf(top, scale, offset)) * 0.022542110013890054f);
    }

    __device__ void operator()(float x) const {
        int its = bin(x);
        if (its > 0) atomicAdd(counts + its, 1);
    }
};

// The largest of the row's first tokens.
__device__ inline float reference(const Row& row) {
    float most = -INF;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int column = i * 32 * NUM_WARPS + (int)threadIdx.x;
        if (column < row.vocab_size) most = larger(most, row.at(column));
    }
    return largest_of_block(most);
}

// The sums of three values over the block, in its first thread at least.
__device__ inline void sum_of_block(float (&values)[3]) {
    __shared__ float sums[3][NUM_WARPS];
    for (int i = 0; i < 3; i++) {
        for (int lanes = 16; lanes > 0; lanes /= 2) values[i] += __shfl_xor_sync(~0u, values[i], lanes);
        if (threadIdx.x % 32 == 0) sums[i][threadIdx.x / 32] = values[i];
    }
    __syncthreads();
    for (int i = 0; i < 3; i++) {
        values[i] = 0;
        for (int warp = 0; warp < NUM_WARPS; warp++) values[i] += sums[i][warp];
    }
}

// What the counted tokens of a part weigh at least: all, those in higher bins than a logit, and those in its own bin, into the slot. The
// last bin has no upper end, so with tokens in it nothing is clear.
__device__ __noinline__ void weigh_counts(const Counting& counting, float top, float logit, Slot& slot) {
    float sums[3] = {0, 0, 0};
    int own = counting.bin(logit);
#pragma unroll 1
    for (int bin = threadIdx.x; bin < Histogram::BINS; bin += blockDim.x) {
        float weight = (float)counting.counts[bin] * counting.weight(bin, top);
        sums[0] += weight;
        if (bin > own) sums[1] += weight;
        if (bin == own) sums[2] += weight;
        if (bin == Histogram::BINS - 1 && weight > 0) sums[2] += INF;
    }
    sum_of_block(sums);
    if (threadIdx.x == 0) {
        slot.total = __double_as_longlong((double)sums[0]);
        slot.before = __double_as_longlong((double)sums[1]);
        slot.beside = __double_as_longlong((double)sums[2]);
    }
}

// The sum over the slots of a row, in all lanes.
template <typename Value>
__device__ auto sum_of_slots(const volatile Slot* slots, int parts, Value value) {
    int lane = threadIdx.x % 32;
    auto sum = value(slots[lane < parts ? lane : 0]);
    if (lane >= parts) sum = 0;
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
    return sum;
}

const double DOUBT = 4e-4; // of what is weighed about
enum Verdict { KEPT, DROPPED, UNCLEAR };

// Whether top-p keeps a logit, as far as the counts of all parts tell; the same in all blocks.
__device__ inline Verdict verdict_of_counts(const Row& row, const Counting& counting, float top, float logit, const volatile Slot* slots,
                                            int parts) {
    const double WIDTH = 1.0157477085866857; // of a bin
    double total = sum_of_slots(slots, parts, [](const volatile Slot& slot) { return __longlong_as_double(slot.total); });
    double before = sum_of_slots(slots, parts, [](const volatile Slot& slot) { return __longlong_as_double(slot.before); });
    double beside = sum_of_slots(slots, parts, [](const volatile Slot& slot) { return __longlong_as_double(slot.beside); });
    // What was not counted is below the first bin.
    double below = (double)row.vocab_size * (double)counting.weight(1, top);
    if (counting.bin(logit) <= 0) beside += below;
    double share = row.top_p > 0 ? row.top_p : 0;
    if ((before + beside) * WIDTH < (share - DOUBT) * total) return KEPT;
    if (before > (share + DOUBT) * (total * WIDTH + below) && beside < (double)INF) return DROPPED;
    return UNCLEAR;
}

// What the tokens of a part weigh, and those before a place, in units of the largest, into the slot: within 1e-4 of the sum.
template <bool DIVISIBLE>
__device__ __noinline__ void weigh(const Row& row, float top, const Before& place, int begin, int end, Slot& slot) {
    Batch<Logits<T_logits>> batch;
    float slope = (float)(1.4426950408889634 / (double)row.temperature);
    float sums[3] = {0, 0, 0};
    for (int first = begin + BATCH * (threadIdx.x / 32); first < end; first += BATCH * NUM_WARPS) {
        batch.load<DIVISIBLE>(row.logits, first, end);
#pragma unroll
        for (int i = 0; i < batch.CHUNKS; i++) {
#pragma unroll
            for (int j = 0; j < batch.SIZE; j++) {
                float x = batch.at(row.logits, i, j), weight = approximate_exp2((x - top) * slope);
                sums[0] += weight;
                if (place.runs(x, batch.column(first, i, j))) sums[1] += weight;
            }
        }
    }
    sum_of_block(sums);
    if (threadIdx.x == 0) {
        slot.total = __double_as_longlong((double)sums[0]);
        slot.before = __double_as_longlong((double)sums[1]);
    }
}

// Whether top-p keeps a token, as far as these sums tell.
__device__ inline Verdict verdict_about(const Row& row, const volatile Slot* slots, int parts) {
    double total = sum_of_slots(slots, parts, [](const volatile Slot& slot) { return __longlong_as_double(slot.total); });
    double before = sum_of_slots(slots, parts, [](const volatile Slot& slot) { return __longlong_as_double(slot.before); });
    double share = row.top_p > 0 ? row.top_p : 0;
    if (before < (share - DOUBT) * total) return KEPT;
    return before > (share + DOUBT) * total ? DROPPED : UNCLEAR;
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
