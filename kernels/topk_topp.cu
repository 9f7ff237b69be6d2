// Top-k, top-p, min-p and the draw, in one launch. Its twin is src/cpu/topk_topp.rs.
//
// What is kept is a first part of the row's order, so nothing is filtered before it is drawn:
//
// - With a small top-k, the k-th largest of the maxima of the groups of 32 tokens is a threshold that hardly more than k tokens reach.
//   One read of the row finds the maxima; the last block to finish sorts those tokens, cuts them exactly, and lets the rest race.
// - Without top-k, all tokens race, and the blocks of a row find out together whether the winner is kept.
// - What is left (a large top-k, thousands of ties) one block does alone, by digits of the places.

#include "topk.cuh"
#include "topp.cuh"

extern "C" __global__ void __launch_bounds__(32 * NUM_WARPS, 2)
top_k_top_p_sample_kernel(int* output_token_ids, float* sampled_logits, T_sampled_noise* sampled_noise, int64_t* scratch,
                          const T_logits* logits, const float* temperature, const int* top_k, const float* top_p,
                          const float* min_p, const int64_t* seeds, const int64_t* positions, int purpose, int vocab_size,
                          int64_t logits_stride) {
    __shared__ Contenders contenders;
    __shared__ Digits digits;
    __shared__ union {
        Room room;
        Notes notes;
    } either;
    __shared__ bool is_last;

    int parts = gridDim.y;
    Counters* all = reinterpret_cast<Counters*>(scratch);
    unsigned ticket = Counters::ticket(all);
    unsigned index = ticket / parts;
    int part = ticket % parts;
    Team team = {scratch + index * Team::words(vocab_size), part, parts};

    int batches = (int)(((long long)vocab_size + BATCH - 1) / BATCH);
    int begin = (int)((long long)batches * part / parts) * BATCH;
    int end = min((int)((long long)batches * (part + 1) / parts) * BATCH, vocab_size);
    int first = begin + BATCH * (threadIdx.x / 32);
    Logits<T_logits> tokens = {logits + index * logits_stride};
    Batch<Logits<T_logits>> batch;
    batch.load<DIVISIBLE_BY_16>(tokens, first, end);

    float given = temperature[index];
    Row row = {tokens, vocab_size, given >= 0 ? fabsf(given) : given, top_p[index], min_p[index], top_k[index], Scale(fabsf(given))};
    if (given == 0 || row.top_p <= 0) row.top_k = 1;
    bool limited = row.top_k > 0 && row.top_k < vocab_size;
    Output output = {output_token_ids, sampled_logits, sampled_noise, index};
    Race<Noise> race(Stream(seeds[index], positions[index], purpose), row.temperature, 0);

    if (!row.is_valid() || vocab_size == 0) {
        if (part == 0 && threadIdx.x == 0) output.write(Best(), row.is_valid());
    } else if (limited && row.top_k <= LARGEST_K) {
        float* maxima = &team.groups()->most;
        survey(row, batch, first, end, maxima);
        __syncthreads();
        if (threadIdx.x < 32) {
            bool last = last_to_arrive(&team.counters()->arrived, parts);
            if (threadIdx.x == 0) is_last = last;
        }
        __syncthreads();
        if (is_last) choose(row, race, maxima, output, digits, contenders, either.room);
    } else if (limited) {
        if (part == 0) alone(row, race, output, digits, contenders);
    } else {
        draw_by_top_p(row, race, team, batch, first, begin, end, either.notes, contenders, output);
    }
    team.counters()->leave(all, parts, gridDim.x * parts);
}
