// The Gumbel-max race over a part of a row, with an exact sum; see gumbel.cu. Its twin is src/cpu/gumbel.rs.
//
// Most tokens are dismissed by a bound. The 32 of a group share their first two arrivals, and -ln(u) is at least 1 - u, which is
// the complement of a random word; the hardware's log2 tells it within 2^-16. A group has no winner if its first token does
// not reach, with the first arrival, a score that another token reaches for certain, nor its largest logit with the second. So a
// row costs little more than its maximum. The few tokens that may win are listed and evaluated exactly.
#pragma once

#include "noise.cuh"
#include "row.cuh"

// A score as a rounded sum and what rounding took away.
struct Score {
    double sum, rest;

    __device__ bool operator>(const Score& other) const { return sum > other.sum || (sum == other.sum && rest > other.rest); }
    __device__ bool operator==(const Score& other) const { return sum == other.sum && rest == other.rest; }
};

// What a row's race is run with. Bounds leave out what is the same for all tokens.
template <typename Noise>
struct Race {
    Stream stream;
    int vocab_start;
    bool hot; // at an infinite temperature only the noise counts
    double temperature;
    float slope; // temperature * ln 2: what halving a time is worth
    float unit;  // of bounds, so that no temperature overflows or loses its precision
    float reach; // what a certain score is less in bounds, whose times are in 2^-37; and how far approximations may be off

    __device__ Race(const Stream& stream, float given, int vocab_start)
        : stream(stream), vocab_start(vocab_start), hot(given == INF), temperature(given == INF ? 1.0 : (double)given) {
        unit = temperature > 1e30 ? 5.421010862427522e-20f : temperature < 1e-30 ? 18446744073709551616.0f : 1.0f; // 2^-64, 2^64
        slope = (float)(temperature * unit * 0.6931471805599453);
        reach = __double2float_ru(temperature * unit * (32 * 0.6931471805599453 + 2.44140625e-4));
    }

    __device__ unsigned token(int column) const { return (unsigned)(vocab_start + column); }

    __device__ float start(float x) const { return hot && fabsf(x) < INF ? 0.0f : x; }

    // No score is above this: of a token that does not come before `time`, nor of any with a smaller logit.
    __device__ float bound(float x, float time) const { return fmaf(-slope, approximate_log2(time), start(x) * unit); }

    // What a token reaches for certain that comes by `time`.
    __device__ float reached(float x, float time) const {
        return fmaxf(__fsub_rd(__fsub_rd(start(x) * unit, __fmul_ru(slope, approximate_log2(time))), reach), -INF);
    }

    __device__ Noise noise(const Words& group, unsigned token, unsigned word) const {
        return -ln(arrival<Noise>(stream, group, token, word));
    }

    // What a logit above -inf and its noise come to, exactly.
    __device__ Score score(float logit, Noise noise) const {
        double x = start(logit);
        double scaled = (double)noise * temperature;
        double sum = x + scaled;
        double part = sum - x;
        double lost = (x - (sum - part)) + (scaled - part);
        return {sum, x == (double)INF ? scaled : lost};
    }
};

// Times of a group's tokens, approximately. -ln(u) lies between 1 - u, here in 2^-37 after the division by 32, and (1 - u) / u, in 2^-5.
struct Times {
    Words group;

    __device__ float first() const { return (float)~group.of[0]; }
    __device__ float second() const { return (float)~group.of[0] + (float)~group.of[3]; }

    __device__ float earliest(unsigned token, unsigned word) const {
        if (token % GROUP == first_lane(group)) return first();
        return token % GROUP == second_lane(group) ? second() : fmaf((float)~word, 32.0f, second());
    }

    __device__ float latest(unsigned token, unsigned word) const {
        float time = over(group.of[0]);
        if (token % GROUP == first_lane(group)) return time;
        time += over(group.of[3]);
        return token % GROUP == second_lane(group) ? time : fmaf(over(word), 32.0f, time);
    }

  private:
    __device__ static float over(unsigned word) { return __fdividef((float)~word + 1.0f, (float)word); }
};

// The best column so far, with its weight (a logit, or what else it runs with) and its noise. The lowest of equal ones.
struct Best {
    Score score = {-INF, -INF};
    double noise = -INF;
    float weight = -INF;
    int column = NO_COLUMN;

    __device__ void contend(const Best& other) {
        if (other.score > score || (other.score == score && other.column < column)) *this = other;
    }

    __device__ void contend_warp() {
        for (int lanes = 16; lanes > 0; lanes /= 2) {
            Best other = {{__shfl_xor_sync(~0u, score.sum, lanes), __shfl_xor_sync(~0u, score.rest, lanes)},
                          __shfl_xor_sync(~0u, noise, lanes), __shfl_xor_sync(~0u, weight, lanes),
                          __shfl_xor_sync(~0u, column, lanes)};
            contend(other);
        }
    }

    // The best of the block's first warps, in all of its threads.
    __device__ void contend_block(int warps = NUM_WARPS) {
        __shared__ double sums[NUM_WARPS], rests[NUM_WARPS], noises[NUM_WARPS];
        __shared__ float weights[NUM_WARPS];
        __shared__ int columns[NUM_WARPS];
        contend_warp();
        int warp = threadIdx.x / 32;
        __syncthreads();
        if (threadIdx.x % 32 == 0) {
            sums[warp] = score.sum;
            rests[warp] = score.rest;
            noises[warp] = noise;
            weights[warp] = weight;
            columns[warp] = column;
        }
        __syncthreads();
        *this = Best();
#pragma unroll 1
        for (int i = 0; i < warps; i++) contend({{sums[i], rests[i]}, noises[i], weights[i], columns[i]});
    }
};

// What a block found in a part of a row, for the other blocks of the row.
struct Found {
    double sum, rest, noise;
    long long place;

    __device__ void set(const Best& best) {
        sum = best.score.sum;
        rest = best.score.rest;
        noise = best.noise;
        place = (long long)__float_as_int(best.weight) << 32 | (unsigned)best.column;
    }

    __device__ Best get() const volatile {
        long long its = place;
        return {{sum, rest}, noise, __int_as_float((int)(its >> 32)), (int)its};
    }
};

// Which tokens of a row run: all of them, or those that come before a place in the order of logits, ties by the lowest token.
struct Everyone {
    __device__ bool runs(float, int) const { return true; }
};

struct Before {
    float logit;
    int column;

    __device__ bool runs(float x, int its) const { return (x > logit) | ((x == logit) & (its < column)); }
};

// The tokens of a block that may still win, and the bound below which none can.
struct Contenders {
    static const int ROOM = 128;
    int count;
    int least; // ordered
    int columns[ROOM];
    float weights[ROOM];
    unsigned words[ROOM];
    Words groups[ROOM];

    __device__ void clear() {
        __syncthreads();
        if (threadIdx.x == 0) {
            count = 0;
            least = ordered(-INF);
        }
        __syncthreads();
    }

    __device__ float bound() const { return unordered(*(volatile const int*)&least); }

    __device__ void raise(float reached) { atomicMax(&least, ordered(reached)); }

    // Keeps a token that may win, if there is room.
    template <typename Race>
    __device__ void add(const Race& race, float weight, const Words& group, unsigned word, int column) {
        raise(race.reached(weight, Times{group}.latest(race.token(column), word)));
        int place = atomicAdd(&count, 1);
        if (place < ROOM) {
            weights[place] = weight;
            groups[place] = group;
            words[place] = word;
            columns[place] = column;
        }
    }

    // Lets the tokens that were kept contend, or all of a part where there were too many. For one warp.
    template <typename Race, typename Runners, typename Source>
    __device__ Best finish(const Race& race, const Runners& runners, const Source& source, int begin, int end) {
        Best best;
        float least = bound();
        bool complete = count <= ROOM;
        int number = complete ? count : end - begin;
#pragma unroll 1
        for (int i = threadIdx.x % 32; i < number; i += 32) {
            int column = complete ? columns[i] : begin + i;
            float weight = complete ? weights[i] : source.at(column);
            unsigned token = race.token(column);
            Words group = complete ? groups[i] : race.stream.group_words(token / GROUP);
            unsigned word = complete ? words[i] : race.stream.high_word(token);
            if (!(weight > -INF) || !runners.runs(weight, column)) continue;
            if (race.bound(weight, Times{group}.earliest(token, word)) < least) continue;
            auto noise = race.noise(group, token, word);
            best.contend({race.score(weight, noise), noise, weight, column});
        }
        best.contend_warp();
        return best;
    }
};

const int BATCH = 1024; // tokens that a warp looks at together: a group for each of its lanes

// What runs in a race: the logits of a row.
template <typename T>
struct Logits {
    typedef T Element;
    const T* row;

    __device__ float at(int column) const { return to_f32(row[column]); }
};

// One batch of logits. `first` is the column of its first token, negative where the vocabulary starts within a group.
template <typename Source>
struct Batch {
    typedef typename Source::Element T;
    static const int SIZE = Chunk<T>::SIZE, CHUNKS = 32 / SIZE;
    Chunk<T> chunks[CHUNKS];

    template <bool DIVISIBLE>
    __device__ void load(const Source& source, int first, int size) {
#pragma unroll
        for (int i = 0; i < CHUNKS; i++) chunks[i].template load<DIVISIBLE>(source.row, column(first, i, 0), size);
    }

    __device__ float at(const Source&, int i, int j) const { return to_f32(chunks[i].of[j]); }

    __device__ static int column(int first, int i, int j) { return first + (32 * i + (int)threadIdx.x % 32) * SIZE + j; }
};

// The largest in this lane's group of a batch, NaN where there is one.
template <typename Batch, typename Source>
__device__ float largest(const Batch& batch, const Source& source) {
    float values[Batch::CHUNKS];
#pragma unroll
    for (int i = 0; i < Batch::CHUNKS; i++) {
        values[i] = -INF;
#pragma unroll
        for (int j = 0; j < Batch::SIZE; j++) values[i] = larger(values[i], batch.at(source, i, j));
    }
    return largest_of_lanes<Batch::CHUNKS>(values);
}

// Which group of a batch is this lane's.
template <typename Batch>
__device__ int group_of_lane() {
    int lane = threadIdx.x % 32;
    return lane % Batch::CHUNKS * (32 / Batch::CHUNKS) + lane / Batch::CHUNKS;
}

// What is noted of the logits while they are read: nothing.
struct Nothing {
    __device__ bool looks() const { return false; }
    __device__ void logit(float) {}
    __device__ void group(int, float, float) {}
};

// Finds the columns from `begin` up to `end` that may win. `batch` holds the first batch of this warp, at column `first`. All threads of
// the block are here. Returns the largest of what this lane has seen.
template <bool DIVISIBLE, typename Race, typename Source, typename Batch, typename Notes>
__device__ float scan(const Race& race, const Source& source, Batch& batch, int first, int begin, int end, Contenders& contenders,
                      Notes& notes) {
    const int step = BATCH * NUM_WARPS, lane = threadIdx.x % 32;
    float top = -INF;
    for (bool ahead = true; first < end || ahead; first += step, ahead = false) {
        int column = first + (int)GROUP * group_of_lane<Batch>();
        Times times = {race.stream.group_words(race.token(column) / GROUP)};
        if (notes.looks()) {
#pragma unroll
            for (int i = 0; i < Batch::CHUNKS; i++) {
#pragma unroll
                for (int j = 0; j < Batch::SIZE; j++) notes.logit(batch.at(source, i, j));
            }
        }
        float most = largest(batch, source);
        top = larger(top, most);
        // The next batch is on its way while this one is looked at.
        batch.template load<DIVISIBLE>(source, first + step, first + step < end ? end : 0);

        int its = column + (int)first_lane(times.group);
        float weight = its >= begin && its < end ? source.at(its) : -INF;
        notes.group(column, most, weight);
        float first_bound = race.bound(weight, times.first()), bound = race.bound(most, times.second());
        if (ahead) {
            // Without a bound at the start, the first step would dismiss nothing.
            int reached = ordered(weight > -INF ? race.reached(weight, times.latest(race.token(its), 0)) : -INF);
            reached = __reduce_max_sync(~0u, reached);
            if (lane == 0) atomicMax(&contenders.least, reached);
            __syncthreads();
        }
        if (weight > -INF && !(first_bound < contenders.bound())) contenders.add(race, weight, times.group, 0, its);

        // The group that promises most goes first, since what it reaches dismisses others.
        const int NONE = 0x80000000;
        bool done = !(most > -INF);
        while (true) {
            float least = contenders.bound();
            int promise = done || bound < least ? NONE : bound != bound ? 0x7fffffff : ordered(bound);
            int highest = __reduce_max_sync(~0u, promise);
            if (highest == NONE) break;
            int from = __ffs(__ballot_sync(~0u, promise == highest)) - 1;
            done |= from == lane;
            int other = __shfl_sync(~0u, column, from) + lane;
            Times of;
#pragma unroll
            for (int i = 0; i < 4; i++) of.group.of[i] = __shfl_sync(~0u, times.group.of[i], from);
            float x = other >= begin && other < end ? source.at(other) : -INF;
            unsigned token = race.token(other), word = race.stream.high_word(token);
            // The first token of the group was looked at above.
            if (x > -INF && lane != first_lane(of.group) && !(race.bound(x, of.earliest(token, word)) < least))
                contenders.add(race, x, of.group, word, other);
            __syncwarp();
        }
    }
    __syncthreads();
    return top;
}
