// What one block does for a row with top-k, top-p and min-p; see topk_topp.cu.
#pragma once

#include "mass.cuh"
#include "order.cuh"
#include "race.cuh"

typedef T_sampled_noise Noise;

const int LARGEST_K = 1024; // of rows whose tokens are sorted
const int ROOM = 2048;      // for tokens that may be among them

// A row, and what is asked of it.
struct Row {
    Logits<T_logits> logits;
    int vocab_size;
    float temperature, top_p, min_p;
    int top_k;
    Scale scale;

    __device__ float at(int column) const { return logits.at(column); }

    __device__ bool is_valid() const { return temperature >= 0 && top_p == top_p && min_p == min_p; }

    __device__ bool passes_min_p(float x, float top) const { return x == top || scale.weight(x - top) >= min_p; }
};

// What the draw leaves: written by one thread.
struct Output {
    int* token_id;
    float* logit;
    Noise* noise;

    __device__ void write(const Best& best, bool valid) const {
        bool found = best.column != NO_COLUMN;
        *token_id = valid && found ? best.column : -1;
        *logit = valid ? best.weight : INF;
        *noise = valid ? (Noise)best.noise : (Noise)INF;
    }
};

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

// The place at or before which the tokens up to `last` weigh `target` or more; `last` where they do not.
template <typename Weight>
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

// One block does it all: any top-k, any ties.
__device__ __noinline__ void alone(const Row& row, const Race<Noise>& race, const Output& output, Digits& digits, Contenders& contenders) {
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

// What one block works in when it sorts.
struct Room {
    Place places[ROOM];
    long long masses[LARGEST_K];
};

// The largest logits of a row's groups, brought near where there is room for them.
struct Maxima {
    static const int NEAR = sizeof(Room) / sizeof(float);
    const float* far;
    float* near;
    int number;

    __device__ float bring(int i) const {
        float value = __ldcg(far + i);
        if (number <= NEAR) near[i] = value;
        return value;
    }

    __device__ float at(int i) const { return number <= NEAR ? near[i] : __ldcg(far + i); }
};

// A key that at least k of the maxima reach, and hardly more; 0 where there are no k. `mine` is the largest key of those that this
// thread has: every blockDim.x-th.
__device__ unsigned threshold(const Maxima& maxima, unsigned mine, int k, Digits& digits) {
    __shared__ unsigned keys[32 * NUM_WARPS];
    __shared__ unsigned least;
    if (k <= blockDim.x / 2) {
        // The k-th largest of what each thread has at most.
        keys[threadIdx.x] = mine;
        __syncthreads();
        int larger = 0;
#pragma unroll 8
        for (int i = 0; i < blockDim.x; i++) larger += keys[i] > mine || (keys[i] == mine && i < threadIdx.x);
        if (larger == k - 1) least = mine;
        __syncthreads();
        return least;
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

// The last block of a row with a small top-k: `far` has the largest logit of each group.
__device__ __noinline__ void choose(const Row& row, const Race<Noise>& race, const float* far, const Output& output, Digits& digits,
                                    Contenders& contenders, Room& room) {
    __shared__ int count;
    int groups = (row.vocab_size + (int)GROUP - 1) / (int)GROUP;
    Maxima maxima = {far, reinterpret_cast<float*>(&room), groups};
    float top = -INF;
    unsigned mine = 0;
#pragma unroll 8
    for (int i = threadIdx.x; i < groups; i += blockDim.x) {
        float value = maxima.bring(i);
        top = larger(top, value);
        mine = max(mine, key_of(value));
    }
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
#pragma unroll 1
    for (int i = threadIdx.x; i < groups; i += blockDim.x) {
        if (key_of(maxima.at(i)) >= least) {
            int place = atomicAdd(&number_reaching, 1);
            if (place < ROOM) reaching[place] = i;
        }
    }
    __syncthreads();
    if (number_reaching > ROOM) return alone(row, race, output, digits, contenders);
#pragma unroll 4
    for (int i = threadIdx.x; i < number_reaching * (int)GROUP; i += blockDim.x) {
        int column = reaching[i / (int)GROUP] * (int)GROUP + i % (int)GROUP;
        float x = column < row.vocab_size ? row.at(column) : -INF;
        if (x > -INF && key_of(x) >= least) {
            int place = atomicAdd(&count, 1);
            if (place < ROOM) room.places[place] = place_of(x, column);
        }
    }
    __syncthreads();
    if (count > ROOM) return alone(row, race, output, digits, contenders);
    int number = 1;
    while (number < count) number *= 2;
    for (int i = count + threadIdx.x; i < number; i += blockDim.x) room.places[i] = NOWHERE;
    sort(room.places, number);
    int kept = keep(row, room.places, min(count, row.top_k), top, room.masses);
    Best best;
#pragma unroll 1
    for (int i = threadIdx.x; i < kept; i += blockDim.x) {
        float x = logit_at(room.places[i]);
        int column = column_at(room.places[i]);
        if (x == 0) x = row.at(column); // it may be -0
        if (row.passes_min_p(x, top)) contend(race, x, column, best);
    }
    best.contend_block();
    if (threadIdx.x == 0) output.write(best, true);
}
