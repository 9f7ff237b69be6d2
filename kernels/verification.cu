// Verifying drafts in one launch: acceptance, and the one recovered token that is needed. Its twin is src/cpu/verification.rs.
//
// What these kernels return is what draw_uniform_probs, draw_inverse_exponential, sample_recovered_tokens and rejection_random_sample
// return together, bit for bit. But a rejected draft is replaced once a request, so only that row is raced, over noise that is made in
// place; and from logits, a position is looked at only when all drafts before it were kept.
//
// The race is over weight / time, the weight being what the target gives a token beyond what the draft model gave it.

#include "verification.cuh"

extern "C" __global__ void __launch_bounds__(32 * NUM_WARPS, 2)
rejection_sample_kernel(int* output_token_ids, T_recovered_noise* recovered_noise, int64_t* scratch, const int* cu_num_draft_tokens,
                        const int* draft_token_ids, const float* draft_probs, const float* target_probs, const int* bonus_token_ids,
                        const bool* is_greedy, const int64_t* seeds, const int64_t* positions, const int64_t* first_positions,
                        int max_spec_len, int num_tokens, int vocab_size, int64_t draft_probs_stride, int64_t target_probs_stride) {
    __shared__ Contenders contenders;
    __shared__ int number_kept;
    long long index = blockIdx.x;
    int part = blockIdx.y, parts = gridDim.y;
    if (is_greedy[index]) {
        if (part == 0 && threadIdx.x == 0) recovered_noise[index] = 0;
        return;
    }
    Request request(output_token_ids, cu_num_draft_tokens, draft_token_ids, bonus_token_ids, (int)index, num_tokens, max_spec_len);
    long long seed = seeds[index];
    if (threadIdx.x < 32) {
        int kept = 0;
        for (bool all = true; all && kept < request.num_drafts;) {
            int position = kept + threadIdx.x;
            bool accepted = false;
            if (position < request.num_drafts) {
                long long token = request.start + position;
                int draft = request.drafts[position];
                if (draft >= 0 && draft < vocab_size) {
                    float p = target_probs[token * target_probs_stride + draft];
                    float q = NO_DRAFT_PROBS ? 1.0f : draft_probs[token * draft_probs_stride + draft];
                    accepted = accepts(p, q, Stream(seed, positions[token], ACCEPTANCE));
                }
            }
            unsigned refused = ~__ballot_sync(~0u, accepted);
            kept += refused ? __ffs(refused) - 1 : 32;
            all = refused == 0;
        }
        if (threadIdx.x == 0) number_kept = kept;
    }
    __syncthreads();
    int kept = number_kept;
    if (kept == request.num_drafts) {
        if (part == 0 && threadIdx.x < 32) {
            request.write(kept, -1);
            if (threadIdx.x == 0) recovered_noise[index] = 0;
        }
        return;
    }
    long long token = request.start + kept;
    Weights<Probabilities, NO_DRAFT_PROBS> weights = {{target_probs + token * target_probs_stride}, draft_probs + token * draft_probs_stride,
                                                      request.drafts[kept]};
    Counters* counters = reinterpret_cast<Counters*>(scratch + index * HEADER);
    Found* found = reinterpret_cast<Found*>(scratch + index * HEADER + 8);
    recover(weights, request, kept, Residual{Stream(seed, first_positions[index], RECOVERY)}, vocab_size, part, parts, found,
            &counters->raced, recovered_noise + index, contenders);
}
