// The logprob of one token of each row, and its rank, a row by several blocks. Its twin is src/cpu/logprobs.rs.

#include "logprobs.cuh"

extern "C" __global__ void __launch_bounds__(32 * NUM_WARPS, 8)
gather_logprobs_kernel(float* logprobs, int* ranks, int64_t* scratch, const T_logits* logits, const int* token_ids, int vocab_size,
                       int64_t logits_stride) {
    __shared__ int counts[NUM_WARPS];
    Blocks blocks(Blocks::index(), scratch, vocab_size, 3);
    Row<T_logits> row(logits + blocks.row * logits_stride, vocab_size, blocks);
    int token = token_ids[blocks.row];
    bool known = token >= 0 && token < vocab_size;
    float chosen = known ? to_f32(row.logits[token]) : -INF;
    Scale scale(1.0f);
    row.weigh(blocks, scale, [&](int tile, float) {
        int count = 0;
#pragma unroll
        for (int i = 0; i < row.its.CHUNKS; i++) {
#pragma unroll
            for (int j = 0; j < row.its.SIZE; j++)
                count += row.its.at(i, j) >= chosen && (DIVISIBLE_BY_16 ? row.its.column(tile, i, 0) : row.its.column(tile, i, j)) < vocab_size;
        }
        count = __reduce_add_sync(~0u, count);
        if (threadIdx.x % 32 == 0) counts[threadIdx.x / 32] = count;
        __syncthreads();
        count = 0;
        for (int warp = 0; warp < NUM_WARPS; warp++) count += counts[warp];
        if (threadIdx.x == 0) blocks.more[tile] = count;
    });
    if (blocks.is_last()) {
        Logarithm its = logarithm(blocks, scale);
        if (threadIdx.x < 32) {
            int rank = 0;
            for (int tile = threadIdx.x; tile < blocks.number; tile += 32) rank += (int)__ldcg(blocks.more + tile);
            rank = __reduce_add_sync(~0u, rank);
            if (threadIdx.x == 0) {
                bool defined = its.valid && known;
                logprobs[blocks.row] = defined ? its.of(chosen) : -INF;
                ranks[blocks.row] = defined ? rank : 0;
            }
        }
    }
}
