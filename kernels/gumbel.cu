// Drawing tokens straight from logits: the Gumbel-max race. Its twin is src/cpu/gumbel.rs.
//
// The race is run with logit + temperature * noise, which is logit / temperature + noise on another scale. Each sum is
// kept exactly, as its rounded value and the rest that rounding took away, so neither 1e38 nor a tiny temperature can
// swallow the noise; and it knows nothing of other tokens, so shards of a vocabulary run the same race as the whole.
//
// A row is cut into as many parts as the grid has blocks for it. Each leaves its best in the scratch memory, and the last
// one to finish compares them. How the row is cut changes no result.

#include "race.cuh"

const int WORDS = 513; // scratch words of a row: a counter, and four for each part

extern "C" __global__ void __launch_bounds__(32 * NUM_WARPS, 3)
gumbel_sample_kernel(int* output_token_ids, float* sampled_logits, T_sampled_noise* sampled_noise, long long* scratch,
                     const T_logits* __restrict__ logits, const float* temperature, const long long* seeds,
                     const long long* positions, int purpose, int vocab_start, int vocab_size, long long logits_stride) {
    typedef T_sampled_noise Noise;
    __shared__ Contenders contenders;
    long long index = blockIdx.x;
    const T_logits* row = logits + index * logits_stride;

    // A whole number of batches a part, counted from the first token of the first group.
    int before = vocab_start & (int)(GROUP - 1), part = blockIdx.y, parts = gridDim.y;
    int batches = (int)(((long long)vocab_size + before + BATCH - 1) / BATCH);
    int start = (int)((long long)batches * part / parts) * BATCH - before;
    int begin = max(start, 0), end = min((int)((long long)batches * (part + 1) / parts) * BATCH - before, vocab_size);
    int first = start + BATCH * (threadIdx.x / 32);
    Batch<T_logits> batch;
    batch.load<DIVISIBLE_BY_16>(row, first, end);

    float given = temperature[index];
    Race<Noise> race(Stream(seeds[index], positions[index], purpose), given, vocab_start);
    contenders.clear();
    if (given >= 0 && begin < end) scan<DIVISIBLE_BY_16>(race, row, batch, first, begin, end, contenders);

    if (threadIdx.x >= 32) return;

    long long* shared = scratch + index * WORDS;
    Best best = contenders.finish(race, row, begin, end);
    if (threadIdx.x == 0) {
        long long* mine = shared + 1 + 4 * part;
        mine[0] = __double_as_longlong(best.score);
        mine[1] = __double_as_longlong(best.rest);
        mine[2] = __double_as_longlong(best.noise);
        mine[3] = (long long)(contenders.nan ? NO_COLUMN - 1 : best.column) << 32 | (unsigned)__float_as_int(best.logit);
    }
    if (!last_to_arrive(reinterpret_cast<unsigned*>(shared), parts)) return;

    best = Best();
    bool nan = false;
    for (int other = threadIdx.x; other < parts; other += 32) {
        const volatile long long* its = shared + 1 + 4 * other;
        long long last = its[3];
        int column = (int)(last >> 32);
        best.contend({__longlong_as_double(its[0]), __longlong_as_double(its[1]), __longlong_as_double(its[2]),
                      __int_as_float((int)last), column});
        nan |= column == NO_COLUMN - 1;
    }
    best.contend_warp();
    nan = __any_sync(~0u, nan);
    if (threadIdx.x != 0) return;
    bool valid = !nan && given >= 0, found = best.column != NO_COLUMN;
    output_token_ids[index] = valid && found ? vocab_start + best.column : -1;
    sampled_logits[index] = valid ? best.logit : INF;
    sampled_noise[index] = valid ? (Noise)best.noise : (Noise)INF;
}
