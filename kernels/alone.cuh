// A row with top-k, top-p and min-p, and what one block does alone with any such row; see topk_topp.cu.
#pragma once

#include "first.cuh"
#include "race.cuh"

typedef T_sampled_noise Noise;

// A row, and what is asked of it.
struct Row {
    Logits<T_logits> logits;
    int vocab_size;
    float temperature, top_p, min_p;
    int top_k;
    Scale scale;

    __device__ float at(int column) const { return logits.at(column); }

    __device__ static int column_of(int group, int member) { return group * (int)GROUP + member; }

    __device__ bool is_valid() const { return temperature >= 0 && top_p == top_p && min_p == min_p; }

    __device__ bool passes_min_p(float x, float top) const { return x == top || scale.weight(x - top) >= min_p; }
};

// What the draw leaves: written by one thread.
struct Output {
    int* token_ids;
    float* logits;
    Noise* noise;
    unsigned row;

    __device__ void write(const Best& best, bool valid) const {
        bool found = best.column != NO_COLUMN;
        token_ids[row] = valid && found ? best.column : -1;
        logits[row] = valid ? best.weight : INF;
        noise[row] = valid ? (Noise)best.noise : (Noise)INF;
    }
};

// Lets one token contend.
__device__ __noinline__ void contend(const Race<Noise>& race, float x, int column, Best& best) {
    Words group = race.stream.group_words((unsigned)column / GROUP);
    Noise noise = race.noise(group, column, race.stream.high_word(column));
    best.contend({race.score(x, noise), noise, x, column});
}

// One block draws from the tokens up to `last` in the order, whatever they are.
__device__ __noinline__ Best race_up_to(const Row& row, const Race<Noise>& race, Place last, float top, Contenders& contenders) {
    contenders.clear();
    Best best;
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
#pragma unroll 1
        for (int column = threadIdx.x; column < row.vocab_size; column += blockDim.x) {
            float x = row.at(column);
            if (!(x > -INF) || place_of(x, column) > last || !row.passes_min_p(x, top)) continue;
            Words group = race.stream.group_words((unsigned)column / GROUP);
            unsigned word = race.stream.high_word(column);
            Times times = {group};
            if (race.bound(x, times.earliest(column, word)) < contenders.bound()) continue;
            if (pass == 0) {
                contenders.raise(race.reached(x, times.latest(column, word)));
            } else {
                contend(race, x, column, best);
            }
        }
        __syncthreads();
    }
    best.contend_block();
    return best;
}

// One block does it all: any top-k, any ties.
__device__ __noinline__ void alone(Row row, Race<Noise> race, Output output, Digits& digits, Contenders& contenders) {
    float top = -INF;
#pragma unroll 1
    for (int column = threadIdx.x; column < row.vocab_size; column += blockDim.x) top = larger(top, row.at(column));
    top = largest_of_block(top);
    Best best;
    if (top > -INF) {
        auto mass = [&](float x) { return Fixed(row.scale.relative(x, top)).value(); };
        Place last = place_of_target(row, NOWHERE, row.top_k, digits, [](float) { return 1ll; });
        if (row.top_p < 1) {
            long long all = 0;
#pragma unroll 1
            for (int column = threadIdx.x; column < row.vocab_size; column += blockDim.x) {
                float x = row.at(column);
                if (x > -INF && place_of(x, column) <= last) all += mass(x);
            }
            last = place_of_target(row, last, part_of(sum_of_block(all), row.top_p), digits, mass);
        }
        best = race_up_to(row, race, last, top, contenders);
    }
    if (threadIdx.x == 0) output.write(best, top == top);
}
