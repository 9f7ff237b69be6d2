// How the tokens of a part of a row share its mass, counted while they are read; see topp.cuh.
#pragma once

#include "again.cuh"
#include "alone.cuh"

// How the tokens of a part share its mass: bins of 1/64 of a factor e, from eleven factors below a reference, which is the largest of the
// row's first tokens, to seventeen above. A bin has the number of its tokens in its upper 14 bits, and below these what they are above its
// start, in 64ths of its width. What is in no bin is only counted, by lane.
struct Histogram {
    static const int STEPS = 64, COUNT = 18, REFERENCE = 704, BINS = 1792;
    unsigned bins[BINS], outside[32];
    unsigned one; // token, where the compiler doesn't see it: of two constants it would make two instructions

    // For all threads of the block; their counts follow a barrier.
    __device__ void clear() {
        for (int bin = threadIdx.x; bin < BINS + 32; bin += blockDim.x) (bin < BINS ? bins[bin] : outside[bin - BINS]) = 0;
        if (threadIdx.x == 0) one = 1u << COUNT;
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

// Where in the bins a logit is.
struct Steps {
    static constexpr float ROUND = 12582912.0f; // 1.5 * 2^23: beside it sums are rounded to integers
    static const unsigned BASE = 0x4B400000;    // its bits
    float scale, first;                         // to steps, and where the first is, beside that

    __device__ Steps(float reference, float temperature)
        : scale(64.0f * Histogram::STEPS / temperature), first(ROUND + Histogram::REFERENCE * Histogram::STEPS - rintf(reference * scale)) {}

    // Those above the start of the bins; 0 below. Never less for a larger logit.
    __device__ unsigned of(float x) const {
        const float LAST = ROUND + Histogram::BINS * Histogram::STEPS;
        return __float_as_uint(fminf(fmaxf(fmaf(x, scale, first), ROUND), LAST)) - BASE;
    }

    __device__ int bin(float x) const { return (int)(of(x) / Histogram::STEPS); }
    __device__ int entry(float x) const { return bin(x) / 4; }

    // A logit that is in this entry or below, and hardly below: so are all that are smaller.
    __device__ float end_of_entry(int its) const {
        float x = (ROUND - first + (float)((its + 1) * 4 * Histogram::STEPS - 2)) / scale;
        return entry(x) <= its ? x : -INF;
    }
};

// Takes notes of a part for top-p: counts its logits, and what there is to know of its groups. The many logits below all bins are only
// weighed together.
struct Noting {
    Steps steps;
    Counts counts;
    unsigned one;  // in a bin
    Group* groups; // of the row
    int end;
    float slope, least;          // to the exponent of a weight against the reference's
    float below = 0, recent = 0; // what this thread has below the bins, and of that in this batch
    int counted = 0;             // how many logits were
    bool counting;

    __device__ Noting(Histogram& histogram, Group* groups, int end, float reference, const Row& row)
        : steps(reference, row.temperature), counts(histogram.bins, Steps::BASE / Histogram::STEPS, &histogram.outside[threadIdx.x % 32]),
          one(histogram.one), groups(groups), end(end), slope((float)(1.4426950408889634 / (double)row.temperature)),
          least(-slope * reference),
          // Farther from 0, steps would not be exact.
          counting(row.top_p < 1 && fabsf(reference * steps.scale) < 2097152.0f) {}

    __device__ bool looks() const { return counting; }

    __device__ void logit(float x) {
        // What is not between the first bin and the end is out of range here.
        unsigned bits = __float_as_uint(fmaf(x, steps.scale, steps.first));
        bool inside = bits - (Steps::BASE + Histogram::STEPS) < (Histogram::BINS - 1) * Histogram::STEPS;
        float weight = approximate_exp2(fmaf(x, slope, least));
        counts.add(inside, bits / Histogram::STEPS, bits % Histogram::STEPS | one);
        recent += inside ? 0.0f : weight;
    }

    __device__ void group(int column, float most, float first) {
        below += recent;
        recent = 0;
        counted += (int)GROUP;
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

// The masses of a part, by all warps but the first, given what is below the bins. Returns how many tokens this thread saw: a bin with more
// than 16383 has lost some.
__device__ __noinline__ int weigh_bins(const Histogram& histogram, float below, Masses& masses) {
    const int EACH = 8;
    int tokens = threadIdx.x < 64 ? histogram.outside[threadIdx.x % 32] >> Histogram::COUNT : 0;
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

const double DOUBT = 4e-4; // of what bins weigh

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
