// Probabilities from logits, a row by several blocks. Its twin is src/cpu/softmax.rs.

#include "distribution.cuh"

extern "C" __global__ void __launch_bounds__(32 * NUM_WARPS, 8)
softmax_kernel(float* probs, int64_t* scratch, const T_logits* logits, const float* temperature, int vocab_size, int64_t probs_stride,
               int64_t logits_stride) {
    __shared__ float row_top, row_part, row_least;
    Blocks blocks(Blocks::ticket(scratch), scratch, vocab_size, 2);
    Row<T_logits> row(logits + blocks.row * logits_stride, vocab_size, blocks);
    float given = temperature[blocks.row];
    Scale scale(fabsf(given)); // -0 is 0
    Plain plain(scale);
    row.weigh(blocks, scale, [](int, float) {});
    blocks.meet();
    if (threadIdx.x < 32) {
        Mass mass = row_mass(blocks.tiles, blocks.number, scale);
        if (threadIdx.x == 0) {
            bool valid = mass.top > -INF && given >= 0;
            row_top = mass.top;
            row_part = valid ? 1.0f / ((float)mass.sum * (1 / FIXED_ONE)) : 0.0f;
            row_least = plain.fits(mass.top) ? plain.least() : INF;
        }
    }
    __syncthreads();
    float top = row_top, part = row_part, least = row_least;
    float* output = probs + blocks.row * probs_stride;
    if (least < INF)
        row.write(output, blocks.parts, [&](float x) { return plain.weight(x - top, least) * part; });
    else
        row.write(output, blocks.parts, [&](float x) { return scale.relative(x, top) * part; });
    blocks.leave(scratch);
}
