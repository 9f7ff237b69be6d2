// What the blocks of a row weigh together for top-p alone; see topk_topp.cu.
#pragma once

#include "again.cuh"
#include "topk.cuh"

const int MOST_PARTS = 16;

// How the tokens of a part share its mass: bins of 1/64 of a factor e, from eleven factors below a reference, which is the largest of the
// row's first tokens, to seventeen above. A bin has the number of its tokens in its upper 14 bits, and below these what they are above its
// start, in 64ths of its width.
struct Histogram {
    static const int STEPS = 64, COUNT = 18, REFERENCE = 704, BINS = 1792;
    unsigned bins[BINS];

    // For all threads of the block; their counts follow a barrier.
    __device__ void clear() {
        for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) bins[bin] = 0;
    }

    __device__ static float mass(unsigned its, int bin) {
        float count = (float)(its >> COUNT), steps = (float)(its & ((1 << COUNT) - 1));
        float place = (float)(bin - REFERENCE) + __fdividef(steps, fmaxf(count, 1.0f) * STEPS);
        return count * approximate_exp2(place * 0.022542110013890054f); // log2(e) / 64
    }
};

// The masses of the bins of a part, four to an entry, in units of the reference's weight: within 1e-4.
struct Masses {
    static const int ENTRIES = Histogram::BINS / 4;
    float of[ENTRIES];
};

// What a block found, for the other blocks of the row.
struct Slot {
    Found found[2]; // of the last race and of the one before, which others may still look at
    float top;
    int sound; // whether the part's masses hold
    long long total, before;
};

// Takes notes of a part for top-p: counts its logits, and what there is to know of its groups. The many logits below all bins are only
// weighed together.
struct Noting {
    Counts counts;
    Group* groups; // of the row
    int end;
    float scale, first; // to steps, and where the first is: beside 1.5 * 2^23, so that sums are rounded to integers
    float slope, least; // to the exponent of a weight against the reference's
    float below = 0; // what this thread has of them
    int counted = 0; // and how many of the others
    bool counting;
    static constexpr float ROUND = 12582912.0f;

    __device__ Noting(Histogram& histogram, Group* groups, int end, float reference, const Row& row)
        : counts(histogram.bins), groups(groups), end(end), scale(64.0f * Histogram::STEPS / row.temperature),
          first(ROUND + Histogram::REFERENCE * Histogram::STEPS - rintf(reference * scale)),
          slope((float)(1.4426950408889634 / (double)row.temperature)), least(-slope * reference),
          // Farther from 0, steps would not be exact.
          counting(row.top_p < 1 && fabsf(reference * scale) < 2097152.0f) {}

    __device__ bool looks() const { return counting; }

    // How far a logit is above the start of the bins, in steps; 0 below. Never less for a larger logit.
    __device__ unsigned steps(float x) const {
        const float LAST = ROUND + Histogram::BINS * Histogram::STEPS;
        return __float_as_uint(fminf(fmaxf(fmaf(x, scale, first), ROUND), LAST)) - 0x4B400000u;
    }

    __device__ int bin(float x) const { return (int)(steps(x) / Histogram::STEPS); }
    __device__ int entry(float x) const { return bin(x) / 4; }

    // A logit that is in this entry or below, and hardly below: so are all that are smaller.
    __device__ float end_of_entry(int its) const {
        float x = (ROUND - first + (float)((its + 1) * 4 * Histogram::STEPS - 2)) / scale;
        return entry(x) <= its ? x : -INF;
    }

    __device__ void logit(float x) {
        // As steps() says; what is not between the first bin and the end is out of range here.
        unsigned bits = __float_as_uint(fmaf(x, scale, first)), bin = bits / Histogram::STEPS - 0x4B400000u / Histogram::STEPS;
        float weight = approximate_exp2(fmaf(x, slope, least));
        bool inside = bin - 1 < Histogram::BINS - 1;
        counts.add(inside, bin, 1u << Histogram::COUNT | bits % Histogram::STEPS);
        counted += inside;
        below += inside ? 0.0f : weight;
    }

    __device__ void group(int column, float most, float first) {
        if (column < end) groups[column / (int)GROUP] = {most, first};
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

// The masses of a part, by all warps but the first, given what is below the bins. Returns how many tokens this thread saw in them: a bin with
// more than 16383 has lost some.
__device__ __noinline__ int weigh_bins(const Histogram& histogram, float below, Masses& masses) {
    const int EACH = 8;
    int tokens = 0;
    for (int pair = (int)threadIdx.x - 32; pair >= 0 && pair < Masses::ENTRIES / 2; pair += 32 * (NUM_WARPS - 1)) {
        float mass[2] = {pair == 0 ? below : 0.0f, 0};
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            int bin = pair * EACH + i;
            unsigned its = histogram.bins[bin];
            mass[i / 4] += Histogram::mass(its, bin);
            tokens += its >> Histogram::COUNT;
        }
        *reinterpret_cast<float2*>(masses.of + 2 * pair) = {mass[0], mass[1]};
    }
    return tokens;
}

// Which entries top-p keeps for certain, and which it drops: those from `kept`, and those up to `dropped`.
struct Cut {
    int kept = Masses::ENTRIES, dropped = -1;
    float total = 0; // of the row
};

const double DOUBT = 4e-4; // of what is weighed about
enum Verdict { KEPT, DROPPED, UNCLEAR };

// The cut of a row by the masses of its parts, the same in all blocks. For all threads of the block.
__device__ __noinline__ Cut cut_of_row(float top_p, const Masses* masses, int parts) {
    __shared__ float sums[NUM_WARPS];
    Cut cut;
    float later = 0, mine[2] = {0, 0};
    int pair = threadIdx.x;
    if (pair < Masses::ENTRIES / 2) {
#pragma unroll 4
        for (int part = 0; part < parts; part++) {
            float2 its = __ldcg(reinterpret_cast<const float2*>(masses[part].of + 2 * pair));
            mine[0] += its.x;
            mine[1] += its.y;
        }
    }
    // The masses of the entries after this thread's, those of its warp first.
    float sum = mine[0] + mine[1];
    int lane = threadIdx.x % 32;
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        float higher = __shfl_down_sync(~0u, sum, lanes);
        if (lane + lanes < 32) sum += higher;
    }
    if (lane == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    for (int warp = 0; warp < NUM_WARPS; warp++) {
        cut.total += sums[warp];
        if (warp > threadIdx.x / 32) later += sums[warp];
    }
    later += sum - (mine[0] + mine[1]);
    float share = top_p > 0 ? top_p : 0, least = (float)((share - DOUBT) * cut.total), most = (float)((share + DOUBT) * cut.total);
    bool here = pair < Masses::ENTRIES / 2;
    cut.kept -= __syncthreads_count(here && later + mine[1] < least) + __syncthreads_count(here && later + mine[1] + mine[0] < least);
    cut.dropped += __syncthreads_count(here && later > most) + __syncthreads_count(here && later + mine[1] > most);
    return cut;
}

// What the bins of a part weigh above a logit's, and that bin itself, into the slot. For all threads of the block.
__device__ __noinline__ void weigh_before(const Histogram& histogram, float below, int own, Slot& slot) {
    __shared__ float sums[2][NUM_WARPS];
    float before = 0, beside = threadIdx.x == 0 && own == 0 ? below : 0;
    for (int bin = own + (int)threadIdx.x; bin < Histogram::BINS; bin += blockDim.x)
        (bin > own ? before : beside) += Histogram::mass(histogram.bins[bin], bin);
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        before += __shfl_xor_sync(~0u, before, lanes);
        beside += __shfl_xor_sync(~0u, beside, lanes);
    }
    if (threadIdx.x % 32 == 0) {
        sums[0][threadIdx.x / 32] = before;
        sums[1][threadIdx.x / 32] = beside;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        before = beside = 0;
        for (int warp = 0; warp < NUM_WARPS; warp++) {
            before += sums[0][warp];
            beside += sums[1][warp];
        }
        slot.before = __double_as_longlong((double)before);
        slot.total = __double_as_longlong((double)beside);
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

// Whether top-p keeps a logit, given what all parts weigh before and beside it, in units of the reference, and together.
__device__ inline Verdict verdict_of_bins(float top_p, float total, const volatile Slot* slots, int parts) {
    double before = sum_of_slots(slots, parts, [](const volatile Slot& slot) { return __longlong_as_double(slot.before); });
    double beside = sum_of_slots(slots, parts, [](const volatile Slot& slot) { return __longlong_as_double(slot.total); });
    double share = top_p > 0 ? top_p : 0;
    if (before + beside < (share - DOUBT) * total) return KEPT;
    return before > (share + DOUBT) * total ? DROPPED : UNCLEAR;
}

// What the tokens of a part weigh, and those before a place, in units of the largest, into the slot: within 1e-4 of the sum.
__device__ __noinline__ void weigh(Row row, float top, Before place, int begin, int end, Slot& slot) {
    __shared__ float sums[2][NUM_WARPS];
    Batch<Logits<T_logits>> batch;
    float slope = (float)(1.4426950408889634 / (double)row.temperature);
    float all = 0, before = 0;
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
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        all += __shfl_xor_sync(~0u, all, lanes);
        before += __shfl_xor_sync(~0u, before, lanes);
    }
    if (threadIdx.x % 32 == 0) {
        sums[0][threadIdx.x / 32] = all;
        sums[1][threadIdx.x / 32] = before;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        all = before = 0;
        for (int warp = 0; warp < NUM_WARPS; warp++) {
            all += sums[0][warp];
            before += sums[1][warp];
        }
        slot.total = __double_as_longlong((double)all);
        slot.before = __double_as_longlong((double)before);
    }
}

// Whether top-p keeps a token, as far as these sums tell.
__device__ inline Verdict verdict_about(float top_p, const volatile Slot* slots, int parts) {
    double total = sum_of_slots(slots, parts, [](const volatile Slot& slot) { return __longlong_as_double(slot.total); });
    double before = sum_of_slots(slots, parts, [](const volatile Slot& slot) { return __longlong_as_double(slot.before); });
    double share = top_p > 0 ? top_p : 0;
    if (before < (share - DOUBT) * total) return KEPT;
    return before > (share + DOUBT) * total ? DROPPED : UNCLEAR;
}

// The same exactly, into the slot.
__device__ __noinline__ void weigh_exactly(Row row, float top, Before place, int begin, int end, Slot& slot) {
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
