// Which tokens are whose, given where each request's tokens end. Its twins are ragged.py and src/cpu/ragged.rs, which say why.
#pragma once

struct Tokens {
    int start, end;
};

// The tokens of a request, in all lanes of a warp: it begins where the furthest earlier one ended.
__device__ inline Tokens request_tokens(const int* ends, int request, int num_tokens) {
    int furthest = 0;
    for (int i = threadIdx.x % 32; i < request; i += 32) furthest = max(furthest, ends[i]);
    int start = __reduce_max_sync(~0u, furthest), end = max(start, ends[request]);
    return {min(start, num_tokens), min(end, num_tokens)};
}
