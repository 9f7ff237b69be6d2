// The most likely tokens of each row and their logprobs, a row by several blocks. Its twin is src/cpu/logprobs.rs.
//
// Each block leaves the largest logit of every 32 tokens; the last one to finish finds the row's first tokens by them.

#include "first.cuh"
#include "logprobs.cuh"

extern "C" __global__ void __launch_bounds__(32 * NUM_WARPS, 4)
top_logprobs_kernel(float* logprobs, int* token_ids, int64_t* scratch, const T_logits* logits, int num_logprobs, int vocab_size,
                    int64_t logprobs_stride, int64_t token_ids_stride, int64_t logits_stride) {
    typedef Tile<T_logits> Its;
    __shared__ Selection selection;
    Blocks blocks(Blocks::index(), scratch, vocab_size, 2 + Its::GROUPS / 2);
    Row<T_logits> row(logits + blocks.row * logits_stride, vocab_size, blocks);
    float* maxima = reinterpret_cast<float*>(blocks.more);
    Scale scale(1.0f);
    row.weigh(blocks, scale, [&](int tile, float mine) {
        for (int lanes = Its::LANES / 2; lanes > 0; lanes /= 2) mine = larger(mine, __shfl_xor_sync(~0u, mine, lanes));
        if (threadIdx.x % Its::LANES == 0) maxima[tile * Its::GROUPS + threadIdx.x / Its::LANES] = mine;
    });
    if (blocks.is_last() && num_logprobs > 0) {
        Logarithm its = logarithm(blocks, scale);
        int found = 0;
        if (its.valid) found = first_places(row.logits, vocab_size, maxima, blocks.number * Its::GROUPS, num_logprobs, selection);
        for (int i = threadIdx.x; i < num_logprobs; i += THREADS) {
            Place place = i < found ? selection.places[i] : NOWHERE;
            logprobs[blocks.row * logprobs_stride + i] = i < found ? its.of(logit_at(place)) : -INF;
            token_ids[blocks.row * token_ids_stride + i] = i < found ? column_at(place) : -1;
        }
    }
}
