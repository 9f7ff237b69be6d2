// Drawing tokens straight from logits: the Gumbel-max race. Its twin is src/cpu/gumbel.rs.
//
// The race is run with logit + temperature * noise, which is logit / temperature + noise on another scale. Each sum is
// kept exactly, as its rounded value and the rest that rounding took away, so neither 1e38 nor a tiny temperature can
// swallow the noise; and it knows nothing of other tokens, so shards of a vocabulary run the same race as the whole.
//
// A row is cut into as many parts as the grid has blocks for it. Each leaves its best in the scratch memory, and the last
// one to finish compares them. How the row is cut changes no result.

#include "race.cuh"

typedef T_sampled_noise Noise;

const int WORDS = 520; // scratch words of a row: a counter and, from the eighth, four for each part

extern "C" __global__ void __launch_bounds__(32 * NUM_WARPS, 3)
gumbel_sample_kernel(int* output_token_ids, float* sampled_logits, T_sampled_noise* sampled_noise, int64_t* scratch,
                     const T_logits* logits, const float* temperature, const int64_t* seeds,
                     const int64_t* positions, int purpose, int vocab_start, int vocab_size, int64_t logits_stride) {
    __shared__ Contenders contenders;
    long long index = blockIdx.x;
    Logits<T_logits> row = {logits + index * logits_stride};

    // A whole number of batches a part, counted from the first token of the first group.
    int before = vocab_start & (int)(GROUP - 1), part = blockIdx.y, parts = gridDim.y;
    int batches = (int)(((long long)vocab_size + before + BATCH - 1) / BATCH);
    int start = (int)((long long)batches * part / parts) * BATCH - before;
    int begin = max(start, 0), end = min((int)((long long)batches * (part + 1) / parts) * BATCH - before, vocab_size);
    int first = start + BATCH * (threadIdx.x / 32);
    Batch<Logits<T_logits>> batch;
    batch.load<DIVISIBLE_BY_16>(row, first, end);

    float given = temperature[index];
    Race<Noise> race(Stream(seeds[index], positions[index], purpose), given, vocab_start);
    contenders.clear();
    float top = -INF;
    Nothing nothing;
    if (given >= 0 && begin < end) top = scan<DIVISIBLE_BY_16>(race, row, batch, first, begin, end, contenders, nothing);
    bool nan = __syncthreads_or(top != top);
    if (threadIdx.x >= 32) return;

    Counters* counters = reinterpret_cast<Counters*>(scratch + index * WORDS);
    Found* found = reinterpret_cast<Found*>(scratch + index * WORDS + 8);
    Best best = contenders.finish(race, Everyone(), row, begin, end);
    if (nan) best.column = NO_COLUMN - 1;
    if (threadIdx.x == 0) found[part].set(best);
    if (!last_to_arrive(&counters->arrived, parts)) return;

    best = Best();
    nan = false;
    for (int other = threadIdx.x; other < parts; other += 32) {
        Best its = const_cast<const volatile Found&>(found[other]).get();
        nan |= its.column == NO_COLUMN - 1;
        best.contend(its);
    }
    best.contend_warp();
    nan = __any_sync(~0u, nan);
    if (threadIdx.x != 0) return;
    bool valid = !nan && given >= 0;
    output_token_ids[index] = valid && best.column != NO_COLUMN ? vocab_start + best.column : -1;
    sampled_logits[index] = valid ? best.weight : INF;
    sampled_noise[index] = valid ? (Noise)best.noise : (Noise)INF;
}
