// The logprob of every token, a row by several blocks. Its twin is src/cpu/logprobs.rs.

#include "logprobs.cuh"

extern "C" __global__ void __launch_bounds__(32 * NUM_WARPS, 8)
log_softmax_kernel(float* logprobs, int64_t* scratch, const T_logits* logits, int vocab_size, int64_t logprobs_stride,
                   int64_t logits_stride) {
    Blocks blocks(Blocks::ticket(scratch), scratch, vocab_size, 2);
    Row<T_logits> row(logits + blocks.row * logits_stride, vocab_size, blocks);
    Scale scale(1.0f);
    row.weigh(blocks, scale, [](int, float) {});
    blocks.meet();
    Logarithm its = logarithm(blocks, scale);
    row.write(logprobs + blocks.row * logprobs_stride, blocks.parts, [&](float x) { return its.of(x); });
    blocks.leave(scratch);
}
