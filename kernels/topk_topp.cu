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

#include "topk.cuh"
#include "topp.cuh"

const int MOST_PARTS = 16;
const int HEADER = 8 + 8 * MOST_PARTS; // scratch words of a row before the maxima of its groups

extern "C" __global__ void __launch_bounds__(32 * NUM_WARPS, 3)
top_k_top_p_sample_kernel(int* output_token_ids, float* sampled_logits, T_sampled_noise* sampled_noise, int64_t* scratch,
                          const T_logits* logits, const float* temperature, const int* top_k, const float* top_p,
                          const float* min_p, const int64_t* seeds, const int64_t* positions, int purpose, int vocab_size,
                          int64_t logits_stride) {
    __shared__ Contenders contenders;
    __shared__ Digits digits;
    __shared__ union {
        Room room;
        Histogram histogram;
    } either;
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
            float most = largest(batch, its, Everyone(), first, Nothing());
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
        if (is_last) choose(row, race, maxima, output, digits, contenders, either.room);
    } else if (limited) {
        if (part == 0) alone(row, race, output, digits, contenders);
    } else {
        either.histogram.clear();
        Counting counting(either.histogram, reference(row), row.temperature);
        Before before = {-INF, 0}; // everyone
        for (bool again = false;; again = true) {
            contenders.clear();
            float top = again ? scan<DIVISIBLE_BY_16>(race, before, its, batch, first, begin, end, contenders, Nothing())
                              : scan<DIVISIBLE_BY_16>(race, Everyone(), its, batch, first, begin, end, contenders, counting);
            top = largest_of_block(top);
            if (threadIdx.x < 32) {
                Best best = contenders.finish(race, before, its, begin, end);
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
                // First by the counts, which settles nearly all; then about, and then exactly.
                Verdict verdict = UNCLEAR;
                if (counting.counts_any() && top < INF) {
                    weigh_counts(counting, top, best.weight, slots[part]);
                    meet(&counters->arrived, parts);
                    verdict = verdict_of_counts(row, counting, top, best.weight, slots, parts);
                    if (verdict == UNCLEAR) meet(&counters->arrived, parts);
                }
                Before its_place = {best.weight, best.column};
                if (verdict == UNCLEAR && top < INF) {
                    weigh<DIVISIBLE_BY_16>(row, top, its_place, begin, end, slots[part]);
                    meet(&counters->arrived, parts);
                    verdict = verdict_about(row, slots, parts);
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
            before = {best.weight, best.column};
            batch.load<DIVISIBLE_BY_16>(its, first, end);
        }
    }
    counters->leave(all, parts, gridDim.x * parts);
}
