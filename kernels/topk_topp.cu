// Top-k, top-p, min-p and the draw, in one launch. Its twin is src/cpu/topk_topp.rs.
//
// What is kept is a first part of the row's order, so nothing is filtered before it is drawn:
//
// - With a small top-k, the k-th largest of the maxima of the groups of 32 tokens is a threshold that hardly more than k tokens reach.
//   One read of the row finds the maxima; the last block to finish sorts those tokens, cuts them exactly, and lets the rest race.
// - Without top-k, all tokens race. While they are read, the blocks of a row take notes: what the tokens weigh in bins, and two logits of
//   each group. With these they agree on where top-p cuts the row, and mostly know whether the winner is kept without reading the row
//   again. If it is not, the tokens before it race, which no one else can win: the race's order is the same whoever runs. That needs
//   the notes and a few groups.
// - What is left (a large top-k, thousands of ties) one block does alone, by digits of the places.

#include "topp.cuh"

// Scratch words of a row: counters, a slot and the masses of each part, and two logits of each group.
const int SLOTS = 8, MASSES = SLOTS + 11 * MOST_PARTS, HEADER = MASSES + Masses::ENTRIES / 2 * MOST_PARTS;
static_assert(sizeof(Slot) == 11 * 8, "a slot is so many words");

extern "C" __global__ void __launch_bounds__(32 * NUM_WARPS, 2)
top_k_top_p_sample_kernel(int* output_token_ids, float* sampled_logits, T_sampled_noise* sampled_noise, int64_t* scratch,
                          const T_logits* logits, const float* temperature, const int* top_k, const float* top_p,
                          const float* min_p, const int64_t* seeds, const int64_t* positions, int purpose, int vocab_size,
                          int64_t logits_stride) {
    __shared__ Contenders contenders;
    __shared__ Digits digits;
    __shared__ union {
        Room room;
        struct {
            Histogram histogram;
            Leads leads;
        };
    } either;
    __shared__ Found winner;
    __shared__ float row_top, of_warps[NUM_WARPS], below;
    __shared__ int unsound;
    __shared__ bool is_last, is_cut;

    unsigned parts = gridDim.y;
    long long words = ((long long)vocab_size + 31) / 32 + HEADER;
    Counters* all = reinterpret_cast<Counters*>(scratch);
    unsigned ticket = Counters::ticket(all);
    long long index = ticket / parts;
    int part = ticket % parts;
    Counters* counters = reinterpret_cast<Counters*>(scratch + index * words);
    Slot* slots = reinterpret_cast<Slot*>(scratch + index * words + SLOTS);
    Masses* masses = reinterpret_cast<Masses*>(scratch + index * words + MASSES);
    Group* groups = reinterpret_cast<Group*>(scratch + index * words + HEADER);

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
        float* maxima = &groups->most;
        survey(row, batch, first, end, maxima);
        __syncthreads();
        if (threadIdx.x < 32) {
            bool last = last_to_arrive(&counters->arrived, parts);
            if (threadIdx.x == 0) is_last = last;
        }
        __syncthreads();
        if (is_last) choose(row, race, maxima, output, digits, contenders, either.room);
    } else if (limited) {
        if (part == 0) alone(row, race, output, digits, contenders);
    } else {
        either.histogram.clear();
        if (threadIdx.x == 0) unsound = 0;
        Noting noting(either.histogram, groups, end, reference(row), row);
        contenders.clear();
        float top = largest_of_block(scan<DIVISIBLE_BY_16>(race, its, batch, first, begin, end, contenders, noting));
        if (noting.counting) {
            for (int lanes = 16; lanes > 0; lanes /= 2) noting.below += __shfl_xor_sync(~0u, noting.below, lanes);
            if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = noting.below;
            atomicAdd(&unsound, -noting.counted);
        }
        __syncthreads();
        Before before = {-INF, 0}; // everyone
        Cut cut;
        for (int races = 0;; races++) {
            bool again = races > 0;
            if (threadIdx.x < 32) {
                Best best = contenders.finish(race, before, its, begin, end);
                if (threadIdx.x == 0) slots[part].found[races % 2].set(best);
            } else if (!again && noting.counting) {
                float sum = 0;
                for (int warp = 0; warp < NUM_WARPS; warp++) sum += of_warps[warp];
                if (threadIdx.x == 32) below = sum;
                atomicAdd(&unsound, weigh_bins(either.histogram, sum, masses[part]));
            }
            __syncthreads();
            if (threadIdx.x == 0 && !again) {
                slots[part].top = top;
                slots[part].sound = noting.counting && unsound == 0 && noting.bin(top) < Histogram::BINS;
            }
            meet(&counters->arrived, parts);
            if (threadIdx.x < 32) {
                Best best;
                float most = -INF;
                bool sound = true;
                if (threadIdx.x < parts) {
                    const volatile Slot& other = slots[threadIdx.x];
                    best = other.found[races % 2].get();
                    most = other.top;
                    sound = other.sound;
                }
                best.contend_warp();
                for (int lanes = 16; lanes > 0; lanes /= 2) most = larger(most, __shfl_xor_sync(~0u, most, lanes));
                sound = __all_sync(~0u, sound);
                if (threadIdx.x == 0) {
                    winner.set(best);
                    row_top = most;
                    is_cut = sound && most < INF;
                }
            }
            __syncthreads();
            Best best = winner.get();
            top = row_top;
            if (!again && is_cut) cut = cut_of_row(row.top_p, masses, parts);
            bool kept = !(top > -INF) || row.passes_min_p(best.weight, top);
            if (top > -INF && kept && row.top_p < 1) {
                int entry = noting.entry(best.weight);
                Verdict verdict = !is_cut ? UNCLEAR : entry >= cut.kept ? KEPT : entry <= cut.dropped ? DROPPED : UNCLEAR;
                // What is left open is told by the bins, then by reading the row again, and then exactly.
                Before its_place = {best.weight, best.column};
                if (verdict == UNCLEAR && is_cut) {
                    weigh_before(either.histogram, below, noting.bin(best.weight), slots[part]);
                    meet(&counters->arrived, parts);
                    verdict = verdict_of_bins(row.top_p, cut.total, slots, parts);
                    if (verdict == UNCLEAR) meet(&counters->arrived, parts);
                }
                if (verdict == UNCLEAR && top < INF) {
                    weigh(row, top, its_place, begin, end, slots[part]);
                    meet(&counters->arrived, parts);
                    verdict = verdict_about(row.top_p, slots, parts);
                    if (verdict == UNCLEAR) meet(&counters->arrived, parts);
                }
                if (verdict == UNCLEAR) {
                    weigh_exactly(row, top, its_place, begin, end, slots[part]);
                    meet(&counters->arrived, parts);
                    long long total = sum_of_slots(slots, parts, [](const volatile Slot& slot) { return slot.total; });
                    long long its = sum_of_slots(slots, parts, [](const volatile Slot& slot) { return slot.before; });
                    verdict = its < part_of(total, row.top_p) ? KEPT : DROPPED;
                }
                kept = verdict == KEPT;
            }
            if (kept) {
                if (part == 0 && threadIdx.x == 0) output.write(best, top == top);
                break;
            }
            // Those that are dropped for certain don't run either.
            before = {best.weight, best.column};
            float dropped = noting.end_of_entry(cut.dropped);
            if (cut.dropped >= 0 && dropped > best.weight) before = {dropped, 0};
            contenders.clear();
            look_again(race, before, its, groups, begin, end, contenders, either.leads);
        }
    }
    counters->leave(all, parts, gridDim.x * parts);
}
