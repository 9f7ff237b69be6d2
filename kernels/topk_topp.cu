// Top-k, top-p, min-p and the draw, in one launch. Its twin is src/cpu/topk_topp.rs.
//
// What is kept is a first part of the row's order, so nothing is filtered before it is drawn:
//
// - With a small top-k, the k-th largest of the maxima of the groups of 32 tokens is a threshold that hardly more than k tokens reach.
//   One read of the row finds the maxima; the last block to finish sorts those tokens, cuts them exactly, and lets the rest race.
// - Without top-k, all tokens race, and the mass of those before the winner in the order tells whether it is kept. If it is not, those
//   before it race again, which no one else can win: the race's order is the same whoever runs. With top-p 0.9 nine rows of ten
//   need no second race. The blocks of a row wait for each other between the two steps.
// - What is left (a large top-k, thousands of ties) one block does alone, by digits of the places.

#include "mass.cuh"
#include "order.cuh"
#include "race.cuh"

typedef T_sampled_noise Noise;

const int MOST_PARTS = 16;
const int HEADER = 8 + 8 * MOST_PARTS; // scratch words of a row before the maxima of its groups
const int LARGEST_K = 1024;
const int ROOM = 2048;

// What a block found, for the other blocks of the row.
struct Slot {
    Found found;
    long long total, before;
    float top;
};

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
                Noise noise = race.noise(group, column, word);
                best.contend({race.score(x, noise), noise, x, column});
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

// A key that at least k of the maxima reach, and hardly more; 0 where there are no k.
__device__ unsigned threshold(const float* maxima, int number, int k, Digits& digits) {
    __shared__ unsigned keys[32 * NUM_WARPS];
    __shared__ unsigned least;
    if (k <= blockDim.x / 2) {
        // The k-th largest of what each thread has at most.
        unsigned mine = 0;
        for (int i = threadIdx.x; i < number; i += blockDim.x) mine = max(mine, key_of(__ldcg(maxima + i)));
        keys[threadIdx.x] = mine;
        __syncthreads();
        int larger = 0;
#pragma unroll 8
        for (int i = 0; i < blockDim.x; i++) larger += keys[i] > mine || (keys[i] == mine && i < threadIdx.x);
        if (larger == k - 1) least = mine;
        __syncthreads();
        return least;
    }
    if (number <= k) return 0;
    long long target = k;
    unsigned found = 0;
#pragma unroll 1
    for (int shift = 24; shift >= 0; shift -= 8) {
        unsigned digit = digits.find(target, [&](auto add) {
            for (int i = threadIdx.x; i < number; i += blockDim.x) {
                unsigned key = ~key_of(__ldcg(maxima + i));
                if (shift == 24 || key >> (shift + 8) == found) add(key >> shift & 255, 1);
            }
        });
        found = found << 8 | digit;
    }
    return ~found;
}

// The last block of a row with a small top-k: `maxima` has the largest logit of each group.
__device__ __noinline__ void choose(const Row& row, const Race<Noise>& race, const float* maxima, const Output& output, Digits& digits,
                       Contenders& contenders, Place* places, long long* masses) {
    __shared__ int count;
    int groups = (row.vocab_size + (int)GROUP - 1) / (int)GROUP;
    float top = -INF;
    for (int i = threadIdx.x; i < groups; i += blockDim.x) top = larger(top, __ldcg(maxima + i));
    top = largest_of_block(top);
    if (!(top > -INF)) {
        if (threadIdx.x == 0) output.write(Best(), top == top);
        return;
    }
    unsigned least = threshold(maxima, groups, row.top_k, digits);

    // The groups that reach it, then their tokens that do.
    __shared__ int reaching[ROOM];
    __shared__ int number_reaching;
    if (threadIdx.x == 0) count = number_reaching = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < groups; i += blockDim.x) {
        if (key_of(__ldcg(maxima + i)) >= least) {
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
            if (place < ROOM) places[place] = place_of(x, column);
        }
    }
    __syncthreads();
    if (count > ROOM) return alone(row, race, output, digits, contenders);
    int number = 1;
    while (number < count) number *= 2;
    for (int i = count + threadIdx.x; i < number; i += blockDim.x) places[i] = NOWHERE;
    sort(places, number);
    int kept = keep(row, places, min(count, row.top_k), top, masses);
    Best best;
#pragma unroll 1
    for (int i = threadIdx.x; i < kept; i += blockDim.x) {
        float x = logit_at(places[i]);
        int column = column_at(places[i]);
        if (x == 0) x = row.at(column); // it may be -0
        if (row.passes_min_p(x, top)) {
            Words group = race.stream.group_words((unsigned)column / GROUP);
            Noise noise = race.noise(group, column, race.stream.high_word(column));
            best.contend({race.score(x, noise), noise, x, column});
        }
    }
    best.contend_block();
    if (threadIdx.x == 0) output.write(best, true);
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
                float x = batch.at(row.logits, i, j), weight;
                asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(weight) : "f"((x - top) * slope));
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

extern "C" __global__ void __launch_bounds__(32 * NUM_WARPS, 3)
top_k_top_p_sample_kernel(int* output_token_ids, float* sampled_logits, T_sampled_noise* sampled_noise, int64_t* scratch,
                          const T_logits* logits, const float* temperature, const int* top_k, const float* top_p,
                          const float* min_p, const int64_t* seeds, const int64_t* positions, int purpose, int vocab_size,
                          int64_t logits_stride) {
    __shared__ Contenders contenders;
    __shared__ Digits digits;
    __shared__ Place places[ROOM];
    __shared__ long long masses[LARGEST_K];
    __shared__ Found winner;
    __shared__ float row_top;
    __shared__ bool is_last;

    unsigned parts = gridDim.y;
    long long words = ((long long)vocab_size + 63) / 64 + HEADER;
    Counters* all = reinterpret_cast<Counters*>(scratch);
    unsigned ticket = Counters::ticket(all);
    long long index = ticket / parts;
    int part = ticket % parts;
    Counters* counters = reinterpret_cast<Counters*>(scratch + index * words);
    Slot* slots = reinterpret_cast<Slot*>(scratch + index * words + 8);
    float* maxima = reinterpret_cast<float*>(scratch + index * words + HEADER);

    int batches = (int)(((long long)vocab_size + BATCH - 1) / BATCH);
    int begin = (int)((long long)batches * part / parts) * BATCH;
    int end = min((int)((long long)batches * (part + 1) / parts) * BATCH, vocab_size);
    int first = begin + BATCH * (threadIdx.x / 32);
    Logits<T_logits> its = {logits + index * logits_stride};
    Batch<Logits<T_logits>> batch;
    batch.load<DIVISIBLE_BY_16>(its, first, end);

    float given = temperature[index];
    Row row = {its, vocab_size, given >= 0 ? fabsf(given) : given, top_p[index], min_p[index], top_k[index], Scale(fabsf(given))};
    if (given == 0 || row.top_p <= 0) row.top_k = 1;
    bool limited = row.top_k > 0 && row.top_k < vocab_size;
    Output output = {output_token_ids + index, sampled_logits + index, sampled_noise + index};
    Race<Noise> race(Stream(seeds[index], positions[index], purpose), row.temperature, 0);

    if (!row.is_valid() || vocab_size == 0) {
        if (part == 0 && threadIdx.x == 0) output.write(Best(), row.is_valid());
    } else if (limited && row.top_k <= LARGEST_K) {
        for (; first < end; first += BATCH * NUM_WARPS) {
            float most = largest(batch, its, Everyone(), first);
            batch.load<DIVISIBLE_BY_16>(its, first + BATCH * NUM_WARPS, first + BATCH * NUM_WARPS < end ? end : 0);
            int group = first / (int)GROUP + group_of_lane<Batch<Logits<T_logits>>>();
            if (group * (int)GROUP < end) maxima[group] = most;
        }
        __threadfence();
        __syncthreads();
        if (threadIdx.x < 32) {
            bool last = last_to_arrive(&counters->arrived, parts);
            if (threadIdx.x == 0) is_last = last;
        }
        __syncthreads();
        if (is_last) choose(row, race, maxima, output, digits, contenders, places, masses);
    } else if (limited) {
        if (part == 0) alone(row, race, output, digits, contenders);
    } else {
        Before before = {INF, 0};
        for (bool again = false;; again = true) {
            contenders.clear();
            float top = again ? scan<DIVISIBLE_BY_16>(race, before, its, batch, first, begin, end, contenders)
                              : scan<DIVISIBLE_BY_16>(race, Everyone(), its, batch, first, begin, end, contenders);
            top = largest_of_block(top);
            if (threadIdx.x < 32) {
                Best best = again ? contenders.finish(race, before, its, begin, end) : contenders.finish(race, Everyone(), its, begin, end);
                if (threadIdx.x == 0) {
                    slots[part].found.set(best);
                    if (!again) slots[part].top = top;
                }
            }
            meet(&counters->arrived, parts);
            if (threadIdx.x < 32) {
                Best best;
                float most = -INF;
                if (threadIdx.x < parts) {
                    const volatile Slot& other = slots[threadIdx.x];
                    best = other.found.get();
                    most = other.top;
                }
                best.contend_warp();
                for (int lanes = 16; lanes > 0; lanes /= 2) most = larger(most, __shfl_xor_sync(~0u, most, lanes));
                if (threadIdx.x == 0) {
                    winner.set(best);
                    row_top = most;
                }
            }
            __syncthreads();
            Best best = winner.get();
            top = row_top;
            bool kept = !(top > -INF) || row.passes_min_p(best.weight, top);
            if (top > -INF && kept && row.top_p < 1) {
                Before its_place = {best.weight, best.column};
                // First about, which settles nearly all; then exactly.
                float mine = 0, earlier = 0;
                if (top < INF) weigh(row, batch, top, its_place, begin, end, mine, earlier);
                if (threadIdx.x == 0) {
                    slots[part].total = __double_as_longlong((double)mine);
                    slots[part].before = __double_as_longlong((double)earlier);
                }
                meet(&counters->arrived, parts);
                double about = sum_of_slots(slots, parts, [](const volatile Slot& slot) { return __longlong_as_double(slot.total); });
                double before = sum_of_slots(slots, parts, [](const volatile Slot& slot) { return __longlong_as_double(slot.before); });
                const double DOUBT = 4e-4;
                kept = before < (row.top_p - DOUBT) * about;
                if (!kept && !(before > (row.top_p + DOUBT) * about)) {
                    meet(&counters->arrived, parts);
                    weigh_exactly(row, top, its_place, begin, end, slots[part]);
                    meet(&counters->arrived, parts);
                    long long total = sum_of_slots(slots, parts, [](const volatile Slot& slot) { return slot.total; });
                    long long its = sum_of_slots(slots, parts, [](const volatile Slot& slot) { return slot.before; });
                    kept = its < part_of(total, row.top_p);
                }
            }
            if (kept || best.column == NO_COLUMN) {
                if (part == 0 && threadIdx.x == 0) output.write(best, top == top);
                break;
            }
            before = {best.weight, best.column};
            batch.load<DIVISIBLE_BY_16>(its, first, end);
        }
    }
    counters->leave(all, parts, gridDim.x * parts);
}
