// Verifying drafts from the target's logits, softmax and temperature included; see verification.cu.
//
// The blocks of a request look at a position together: each has tiles of the row, whose sums make the normaliser as softmax.cu makes it. When
// all are there, each block knows whether the draft is kept; if it is, they go on to the next position, and if not they race the row.

#include "verification.cuh"

// The sum of a tile of logits that are above -inf, measured from its largest.
struct Tile {
    long long sum;
    float top;
};

// A warp reads a tile twice, the second time from its cache.
template <typename T>
__device__ Tile tile_of(const T* row, int begin, int end, const Scale& scale) {
    const int SIZE = Chunk<T>::SIZE;
    float top = -INF;
#pragma unroll 4
    for (int at = begin + SIZE * (threadIdx.x % 32); at < end; at += 32 * SIZE) {
        Chunk<T> chunk;
        chunk.template load<DIVISIBLE_BY_16>(row, at, end);
#pragma unroll
        for (int i = 0; i < SIZE; i++) top = larger(top, to_f32(chunk.of[i]));
    }
    for (int lanes = 16; lanes > 0; lanes /= 2) top = larger(top, __shfl_xor_sync(~0u, top, lanes));
    FewMasses sum;
    if (top > -INF) {
#pragma unroll 4
        for (int at = begin + SIZE * (threadIdx.x % 32); at < end; at += 32 * SIZE) {
            Chunk<T> chunk;
            chunk.template load<DIVISIBLE_BY_16>(row, at, end);
#pragma unroll
            for (int i = 0; i < SIZE; i++) sum.add(Fixed(to_f32(chunk.of[i]) > -INF ? scale.relative(to_f32(chunk.of[i]), top) : 0.0f));
        }
    }
    long long total = sum.value();
    for (int lanes = 16; lanes > 0; lanes /= 2) total += __shfl_xor_sync(~0u, total, lanes);
    return {total, top};
}

extern "C" __global__ void __launch_bounds__(32 * NUM_WARPS, 2)
rejection_sample_from_logits_kernel(int* output_token_ids, T_recovered_noise* recovered_noise, int64_t* scratch,
                                    const int* cu_num_draft_tokens, const int* draft_token_ids, const float* draft_probs,
                                    const T_target_logits* target_logits, const float* temperature, const int* bonus_token_ids,
                                    const bool* is_greedy, const int64_t* seeds, const int64_t* positions, const int64_t* first_positions,
                                    int max_spec_len, int num_tokens, int vocab_size, int64_t draft_probs_stride,
                                    int64_t target_logits_stride) {
    typedef Softmax<T_target_logits> Target;
    const int SUM_TILE = 4096; // columns whose weights are summed before they are measured from the row's largest, as in src/cpu/mass.rs
    __shared__ Contenders contenders;
    __shared__ float row_top, row_part;
    int parts = gridDim.y, tiles = (int)(((long long)vocab_size + SUM_TILE - 1) / SUM_TILE);
    long long words = HEADER + 2ll * tiles;
    Counters* all = reinterpret_cast<Counters*>(scratch);
    unsigned ticket = Counters::ticket(all);
    long long index = ticket / parts;
    int part = ticket % parts;
    Counters* counters = reinterpret_cast<Counters*>(scratch + index * words);
    Found* found = reinterpret_cast<Found*>(scratch + index * words + 8);
    Tile* of_row = reinterpret_cast<Tile*>(scratch + index * words + HEADER);

    if (is_greedy[index]) {
        if (part == 0 && threadIdx.x == 0) recovered_noise[index] = 0;
    } else {
        Request request(output_token_ids, cu_num_draft_tokens, draft_token_ids, bonus_token_ids, (int)index, num_tokens, max_spec_len);
        float given = temperature[index];
        Target target = {nullptr, Scale(fabsf(given)), -INF, 0};
        int kept = 0;
        for (; kept < request.num_drafts; kept++) {
            long long token = request.start + kept;
            int draft = request.drafts[kept];
            target.row = target_logits + token * target_logits_stride;
            if (kept > 0) meet(&counters->arrived, parts); // all have read the tiles of the row before
            int end = (int)((long long)tiles * (part + 1) / parts);
            for (int tile = (int)((long long)tiles * part / parts) + threadIdx.x / 32; tile < end; tile += NUM_WARPS) {
                Tile its = tile_of(target.row, tile * SUM_TILE, min((tile + 1) * SUM_TILE, vocab_size), target.scale);
                if (threadIdx.x % 32 == 0) of_row[tile] = its;
            }
            meet(&counters->arrived, parts);
            if (threadIdx.x < 32) {
                float top = -INF;
                for (int tile = threadIdx.x; tile < tiles; tile += 32) top = larger(top, __ldcg(&of_row[tile].top));
                for (int lanes = 16; lanes > 0; lanes /= 2) top = larger(top, __shfl_xor_sync(~0u, top, lanes));
                long long total = 0;
                for (int tile = threadIdx.x; tile < tiles; tile += 32) {
                    float its = __ldcg(&of_row[tile].top);
                    if (its > -INF) total += (long long)((double)__ldcg(&of_row[tile].sum) * (double)target.scale.relative(its, top));
                }
                for (int lanes = 16; lanes > 0; lanes /= 2) total += __shfl_xor_sync(~0u, total, lanes);
                if (threadIdx.x == 0) {
                    row_top = top;
                    row_part = top > -INF && given >= 0 ? 1.0f / ((float)total * (1 / FIXED_ONE)) : 0.0f;
                }
            }
            __syncthreads();
            target.top = row_top;
            target.part = row_part;
            if (draft < 0 || draft >= vocab_size) break;
            float q = NO_DRAFT_PROBS ? 1.0f : draft_probs[token * draft_probs_stride + draft];
            if (!accepts(target.probability(target.row[draft]), q, Stream(seeds[index], positions[token], ACCEPTANCE))) break;
        }
        if (kept < request.num_drafts) {
            long long token = request.start + kept;
            Weights<Target, NO_DRAFT_PROBS> weights = {target, draft_probs + token * draft_probs_stride, request.drafts[kept]};
            recover(weights, request, kept, Residual{Stream(seeds[index], first_positions[index], RECOVERY)}, vocab_size, part, parts, found,
                    &counters->raced, recovered_noise + index, contenders);
        } else if (part == 0 && threadIdx.x < 32) {
            request.write(kept, -1);
            if (threadIdx.x == 0) recovered_noise[index] = 0;
        }
    }
    counters->leave(all, parts, gridDim.x * parts);
}
