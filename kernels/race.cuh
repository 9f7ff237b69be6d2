// The Gumbel-max race over a part of a row, with an exact sum; see gumbel.cu. Its twin is src/cpu/gumbel.rs.
//
// Most tokens are dismissed by a bound. The 32 of a group share their first two arrivals, and -ln(u) is at least 1 - u, which is
// the complement of a random word; the hardware's log2 tells it within 2^-16. A group has no winner if its first token does
// not reach, with the first arrival, a score that another token reaches for certain, nor its largest logit with the second. So a
// row costs little more than its maximum. The few tokens that may win are listed and evaluated exactly.
#pragma once

#include "noise.cuh"
#include "row.cuh"

// What a row's race is run with. Bounds leave out what is the same for all tokens.
template <typename Noise>
struct Race {
    Stream stream;
    int vocab_start;
    bool hot; // at an infinite temperature only the noise counts
    double temperature;
    float slope; // temperature * ln 2: what halving a time is worth
    float reach; // what a certain score is less in bounds, whose times are in 2^-37; and how far approximations may be off

    __device__ Race(const Stream& stream, float given, int vocab_start)
        : stream(stream), vocab_start(vocab_start), hot(given == INF), temperature(given == INF ? 1.0 : (double)given) {
        slope = (float)(temperature * 0.6931471805599453);
        reach = __double2float_ru(temperature * (32 * 0.6931471805599453 + 2.44140625e-4));
    }

    __device__ unsigned token(int column) const { return (unsigned)(vocab_start + column); }

    __device__ float start(float x) const { return hot && fabsf(x) < INF ? 0.0f : x; }

    // What no score is above: of a group's first token; of any other, whose logits are at most this; of one with its own word.
    __device__ float first_bound(float x, const Words& group) const { return score(x, (float)~group.of[0]); }

    __device__ float bound(float x, const Words& group) const {
        return score(x, (float)~group.of[0] + (float)~group.of[3]);
    }

    __device__ float bound(float x, const Words& group, unsigned token, unsigned word) const {
        float first = (float)~group.of[0], second = first + (float)~group.of[3];
        return score(x, token % GROUP == first_lane(group)    ? first
                        : token % GROUP == second_lane(group) ? second
                                                              : fmaf((float)~word, 32.0f, second));
    }

    // What a token reaches for certain: -ln(u) is at most (1 - u) / u.
    __device__ float reached(float x, const Words& group, unsigned token, unsigned word) const {
        float time = latest(group.of[0]);
        if (token % GROUP != first_lane(group)) {
            time += latest(group.of[3]);
            if (token % GROUP != second_lane(group)) time = fmaf(latest(word), 32.0f, time);
        }
        return fmaxf(__fsub_rd(__fsub_rd(start(x), __fmul_ru(slope, approximate_log2(time))), reach), -INF);
    }

    __device__ Noise noise(const Words& group, unsigned token, unsigned word) const {
        return -ln(arrival<Noise>(stream, group, token, word));
    }

  private:
    __device__ float score(float x, float time) const { return fmaf(-slope, approximate_log2(time), start(x)); }

    __device__ static float latest(unsigned word) { return __fdividef((float)~word + 1.0f, (float)word); }
};

// The best column so far, with its logit and its noise: its score as a rounded sum and what rounding took away. The lowest of
// equal ones.
struct Best {
    double score = -INF, rest = -INF, noise = -INF;
    float logit = -INF;
    int column = NO_COLUMN;

    __device__ void contend(const Best& other) {
        bool ahead = other.score > score || (other.score == score && other.rest > rest);
        bool tied = other.score == score && other.rest == rest && other.column < column;
        if (ahead || tied) *this = other;
    }

    // A logit that is above -inf with its noise, exactly.
    template <typename Noise>
    __device__ void contend(const Race<Noise>& race, float logit, Noise noise, int column) {
        double x = race.start(logit);
        double scaled = (double)noise * race.temperature;
        double sum = x + scaled;
        double part = sum - x;
        double lost = (x - (sum - part)) + (scaled - part);
        contend({sum, x == (double)INF ? scaled : lost, noise, logit, column});
    }

    __device__ void contend_warp() {
        for (int lanes = 16; lanes > 0; lanes /= 2) {
            Best other = {__shfl_xor_sync(~0u, score, lanes), __shfl_xor_sync(~0u, rest, lanes),
                          __shfl_xor_sync(~0u, noise, lanes), __shfl_xor_sync(~0u, logit, lanes),
                          __shfl_xor_sync(~0u, column, lanes)};
            contend(other);
        }
    }
};

// The tokens of a block that may still win, and the bound below which none can.
struct Contenders {
    static const int ROOM = 128;
    int count;
    int least; // ordered
    int nan;
    int columns[ROOM];
    float logits[ROOM];
    unsigned words[ROOM];
    Words groups[ROOM];

    __device__ void clear() {
        if (threadIdx.x == 0) {
            count = nan = 0;
            least = ordered(-INF);
        }
        __syncthreads();
    }

    __device__ float bound() const { return unordered(*(volatile const int*)&least); }

    __device__ void raise(float reached) { atomicMax(&least, ordered(reached)); }

    // Keeps a token that may win, if there is room.
    template <typename Noise>
    __device__ void add(const Race<Noise>& race, float logit, const Words& group, unsigned word, int column) {
        raise(race.reached(logit, group, race.token(column), word));
        int place = atomicAdd(&count, 1);
        if (place < ROOM) {
            logits[place] = logit;
            groups[place] = group;
            words[place] = word;
            columns[place] = column;
        }
    }

    // Lets the tokens that were kept contend, or all of a part where there were too many. For one warp.
    template <typename Noise, typename T>
    __device__ Best finish(const Race<Noise>& race, const T* row, int begin, int end) {
        Best best;
        float least = bound();
        bool complete = count <= ROOM;
        int number = complete ? count : end - begin;
#pragma unroll 1
        for (int i = threadIdx.x % 32; i < number; i += 32) {
            int column = complete ? columns[i] : begin + i;
            float logit = complete ? logits[i] : to_f32(row[column]);
            unsigned token = race.token(column);
            Words group = complete ? groups[i] : race.stream.group_words(token / GROUP);
            unsigned word = complete ? words[i] : race.stream.high_word(token);
            if (logit > -INF && !(race.bound(logit, group, token, word) < least))
                best.contend(race, logit, race.noise(group, token, word), column);
        }
        best.contend_warp();
        return best;
    }
};

const int BATCH = 1024; // tokens that a warp looks at together: a group for each of its lanes

// Looks at one batch of a row, of which `first` is the column of the first token, negative where the vocabulary starts within a group.
template <typename T>
struct Batch {
    static const int CHUNKS = 32 / Chunk<T>::SIZE;
    Chunk<T> chunks[CHUNKS];

    template <bool DIVISIBLE>
    __device__ void load(const T* row, int first, int size) {
#pragma unroll
        for (int i = 0; i < CHUNKS; i++)
            chunks[i].template load<DIVISIBLE>(row, first + (32 * i + (int)threadIdx.x % 32) * Chunk<T>::SIZE, size);
    }

    // The largest logit of this lane's group, NaN where there is one.
    __device__ float largest() const {
        float values[CHUNKS];
#pragma unroll
        for (int i = 0; i < CHUNKS; i++) {
            values[i] = to_f32(chunks[i].of[0]);
#pragma unroll
            for (int j = 1; j < Chunk<T>::SIZE; j++) values[i] = larger(values[i], to_f32(chunks[i].of[j]));
        }
        return largest_of_lanes<CHUNKS>(values);
    }

    // Which group of the batch is this lane's.
    __device__ static int group() {
        int lane = threadIdx.x % 32;
        return lane % CHUNKS * (32 / CHUNKS) + lane / CHUNKS;
    }
};

// Finds the columns from `begin` up to `end` that may win. `batch` holds the first batch of this warp, at column `first`, which is
// negative where the vocabulary starts within a group. All threads of the block are here.
template <bool DIVISIBLE, typename Noise, typename T>
__device__ void scan(const Race<Noise>& race, const T* row, Batch<T>& batch, int first, int begin, int end, Contenders& contenders) {
    const int step = BATCH * (blockDim.x / 32), lane = threadIdx.x % 32;
    for (bool ahead = true; first < end || ahead; first += step, ahead = false) {
        int column = first + (int)GROUP * Batch<T>::group();
        Words group = race.stream.group_words(race.token(column) / GROUP);
        float largest = batch.largest();
        // The next batch is on its way while this one is looked at.
        batch.template load<DIVISIBLE>(row, first + step, first + step < end ? end : 0);

        int its = column + (int)first_lane(group);
        float logit = its >= begin && its < end ? to_f32(row[its]) : -INF;
        float first_bound = race.first_bound(logit, group), bound = race.bound(largest, group);
        if (ahead) {
            // Without a bound at the start, the first step would dismiss nothing.
            int reached = ordered(logit > -INF ? race.reached(logit, group, race.token(its), 0) : -INF);
            reached = __reduce_max_sync(~0u, reached);
            if (lane == 0) atomicMax(&contenders.least, reached);
            __syncthreads();
        }
        if (logit > -INF && !(first_bound < contenders.bound())) contenders.add(race, logit, group, 0, its);

        // The group that promises most goes first, since what it reaches dismisses others. NaN goes before all.
        const int NONE = 0x80000000;
        bool done = largest == -INF;
        while (true) {
            float least = contenders.bound();
            int promise = done || bound < least ? NONE : bound != bound ? 0x7fffffff : ordered(bound);
            int most = __reduce_max_sync(~0u, promise);
            if (most == NONE) break;
            int from = __ffs(__ballot_sync(~0u, promise == most)) - 1;
            done |= from == lane;
            int other = __shfl_sync(~0u, column, from) + lane;
            Words of;
#pragma unroll
            for (int i = 0; i < 4; i++) of.of[i] = __shfl_sync(~0u, group.of[i], from);
            float x = other >= begin && other < end ? to_f32(row[other]) : -INF;
            unsigned token = race.token(other), word = race.stream.high_word(token);
            if (x != x) contenders.nan = 1;
            // The first token of the group was looked at above.
            if (x > -INF && lane != first_lane(of) && !(race.bound(x, of, token, word) < least))
                contenders.add(race, x, of, word, other);
            __syncwarp();
        }
    }
    __syncthreads();
}
