// The most likely token of each row, by several blocks. Its twin is src/cpu/greedy.rs.
//
// A row is cut into as many parts as the grid has blocks for it. Each leaves the first place of its part in the order of logits in the
// scratch memory, and the last one to finish takes the first of them. How the row is cut changes no result.

#include "order.cuh"

const int WORDS = 520; // scratch words of a row: a counter and, from the eighth, one for each part
const Place NAN_SEEN = 0; // before the place of any token

__device__ Place first_of_lanes(Place place) {
    for (int lanes = 16; lanes > 0; lanes /= 2) place = min(place, __shfl_xor_sync(~0u, place, lanes));
    return place;
}

extern "C" __global__ void __launch_bounds__(32 * NUM_WARPS, 4)
greedy_sample_kernel(int* output_token_ids, int64_t* scratch, const T_logits* logits, int vocab_size, int64_t logits_stride) {
    typedef Chunk<T_logits> Its;
    const int DEPTH = DIVISIBLE_BY_16 ? 8 : 2; // chunks that a thread has on their way
    const int STEP = 32 * NUM_WARPS * Its::SIZE;
    __shared__ Place places[NUM_WARPS];
    long long index = blockIdx.x;
    const T_logits* row = logits + index * logits_stride;

    // A whole number of steps a part.
    int part = blockIdx.y, parts = gridDim.y, steps = (int)(((long long)vocab_size + STEP - 1) / STEP);
    int begin = (int)((long long)steps * part / parts) * STEP;
    int end = (int)min((long long)steps * (part + 1) / parts * STEP, (long long)vocab_size);
    float top = -INF, best = -INF;
    int column = NO_COLUMN;
    for (int first = begin + Its::SIZE * (int)threadIdx.x; first < end; first += DEPTH * STEP) {
        Its chunks[DEPTH];
        int ahead = -1; // where in them the best is, if it is new
#pragma unroll
        for (int i = 0; i < DEPTH; i++) chunks[i].template load<DIVISIBLE_BY_16>(row, first + i * STEP, end);
#pragma unroll
        for (int i = 0; i < DEPTH; i++) {
#pragma unroll
            for (int j = 0; j < Its::SIZE; j++) {
                float x = to_f32(chunks[i].of[j]);
                top = larger(top, x);
                if (x > best) {
                    best = x;
                    ahead = i * STEP + j;
                }
            }
        }
        if (ahead >= 0) column = first + ahead;
    }
    Place place = top != top ? NAN_SEEN : column == NO_COLUMN ? NOWHERE : place_of(best, column);
    place = first_of_lanes(place);
    if (threadIdx.x % 32 == 0) places[threadIdx.x / 32] = place;
    __syncthreads();
    if (threadIdx.x >= 32) return;

    Counters* counters = reinterpret_cast<Counters*>(scratch + index * WORDS);
    Place* found = reinterpret_cast<Place*>(scratch + index * WORDS + 8);
    place = first_of_lanes(places[threadIdx.x % NUM_WARPS]);
    if (threadIdx.x == 0) found[part] = place;
    if (!last_to_arrive(&counters->arrived, parts)) return;
    place = NOWHERE;
#pragma unroll 1
    for (int other = threadIdx.x; other < parts; other += 32) place = min(place, __ldcg(found + other));
    place = first_of_lanes(place);
    if (threadIdx.x == 0) output_token_ids[index] = place == NAN_SEEN || place == NOWHERE ? -1 : column_at(place);
}
