// The most likely tokens of each row and their logprobs, a row by several blocks. Its twin is src/cpu/logprobs.rs.
//
// Each block leaves the largest logit of every 32 tokens; the last one to finish finds the row's first tokens by them.

#include "first.cuh"
#include "logprobs.cuh"

// A row, whose groups are those of neighbouring lanes of a tile.
struct Grouped {
    const T_logits* logits;
    int vocab_size;

    __device__ float at(int column) const { return to_f32(logits[column]); }

    __device__ static int column_of(int group, int member) { return Tile<T_logits>::column_of_group(group, member); }
};

// The first `count` tokens, sorted, however many tie. How many there are.
__device__ __noinline__ int exactly(Grouped row, int count, Room& room, Digits& digits) {
    __shared__ int tokens;
    Place last = place_of_target(row, NOWHERE, count, digits, [](float) { return 1ll; });
    if (threadIdx.x == 0) tokens = 0;
    __syncthreads();
#pragma unroll 1
    for (int column = threadIdx.x; column < row.vocab_size; column += THREADS) {
        float x = row.at(column);
        if (x > -INF && place_of(x, column) <= last) room.places[atomicAdd(&tokens, 1)] = place_of(x, column);
    }
    __syncthreads();
    sort_all(room.places, tokens);
    return tokens;
}

extern "C" __global__ void __launch_bounds__(32 * NUM_WARPS, 4)
top_logprobs_kernel(float* logprobs, int* token_ids, int64_t* scratch, const T_logits* logits, int num_logprobs, int vocab_size,
                    int64_t logprobs_stride, int64_t token_ids_stride, int64_t logits_stride) {
    typedef Tile<T_logits> Its;
    __shared__ Room room;
    __shared__ Digits digits;
    Blocks blocks(Blocks::index(), scratch, vocab_size, 2 + Its::GROUPS / 2);
    Row<T_logits> row(logits + blocks.row * logits_stride, vocab_size, blocks);
    float* far = reinterpret_cast<float*>(blocks.more);
    Scale scale(1.0f);
    row.weigh(blocks, scale, [&](int tile, float mine) {
        for (int lanes = Its::LANES / 2; lanes > 0; lanes /= 2) mine = larger(mine, __shfl_xor_sync(~0u, mine, lanes));
        if (threadIdx.x % Its::LANES == 0) far[tile * Its::GROUPS + threadIdx.x / Its::LANES] = mine;
    });
    if (!blocks.is_last() || num_logprobs == 0) return;
    Maxima maxima = {far, reinterpret_cast<float*>(&room), blocks.number * Its::GROUPS};
    float mine = maxima.bring();
    Logarithm its = logarithm(blocks, scale);
    int found = 0;
    if (its.valid) {
        Grouped grouped = {row.logits, vocab_size};
        found = first_places(grouped, maxima, mine, num_logprobs, room, digits);
        if (found == TOO_MANY) found = exactly(grouped, num_logprobs, room, digits);
    }
    for (int i = threadIdx.x; i < num_logprobs; i += THREADS) {
        Place place = i < found ? room.places[i] : NOWHERE;
        logprobs[blocks.row * logprobs_stride + i] = i < found ? its.of(logit_at(place)) : -INF;
        token_ids[blocks.row * token_ids_stride + i] = i < found ? column_at(place) : -1;
    }
}
