// A row of logits as a distribution, which several blocks look at together. Its twin is src/cpu/mass.rs.
//
// The sum of a row is taken tile by tile, each measured from its own largest logit, so that one read of a row is enough; which tokens make a
// tile is part of the contract, for each tile's sum is rounded when it is measured from the row's. A block reads a tile, leaves what that comes
// to in the scratch memory, waits for the row's other blocks, and has the last of its tiles still in registers when the row's sum is known.
// Blocks that wait take tickets; see row.cuh.
#pragma once

#include "mass.cuh"
#include "row.cuh"

const int SUM_TILE = 4096; // tokens whose weights are summed before they are measured from the row's largest, as in src/cpu/mass.rs
const int THREADS = 32 * NUM_WARPS;
const int HEADER = 8; // scratch words of a row before its tiles

// The largest logit of some tokens, NaN where there is one, and what those above -inf weigh, measured from that.
struct Mass {
    long long sum;
    float top;
};

// The exponential of exact.cuh by fewer instructions, for a temperature and a largest logit that are not extreme: the same bits.
struct Plain {
    float high, low;

    __device__ explicit Plain(const Scale& scale) : high(scale.high), low(scale.low) {}

    __device__ bool fits(float top) const { return high > 1e-30f && high < 1e30f && fabsf(top) < INF; }

    // 2^SHIFT e^(d / temperature), for an even SHIFT and a result that is a normal number.
    template <int SHIFT>
    __device__ float power(float d) const {
        const float ROUND = 12582912.0f + SHIFT;
        float shifted = fmaf(d, high, ROUND);
        float n = shifted - ROUND;
        float f = fmaf(d, low, fmaf(d, high, -n));
        float p = 0.00015353361959569156f;
        p = fmaf(p, f, 0.0013398875016719103f);
        p = fmaf(p, f, 0.00961843691766262f);
        p = fmaf(p, f, 0.055503323674201965f);
        p = fmaf(p, f, 0.24022647738456726f);
        p = fmaf(p, f, 0.6931471824645996f);
        p = fmaf(p, f, 1.0f);
        return __int_as_float(__float_as_int(p) + (__float_as_int(shifted) << 23));
    }

    // The smallest difference that weighs anything: Scale::weight asks whether d * high, which is rounded, is at least -125.
    __device__ float least() const {
        int bits = __float_as_int(-125.0f / high);
        while (!(__int_as_float(bits) * high >= -125.0f)) bits--;
        while (__int_as_float(bits + 1) * high >= -125.0f) bits++;
        return __int_as_float(bits);
    }

    // Scale::weight, given least().
    __device__ float weight(float d, float least) const {
        float scaled = power<0>(d);
        return d >= least ? scaled : 0.0f;
    }
};

// A sum of Fixed over a thread's few tokens. The bits of both halves are summed as they are; what they begin from is taken off at the end.
struct PlainSum {
    unsigned upper = 0, lower = 0;

    // `scaled` is a weight in multiples of 2^-40.
    __device__ void add(float scaled) {
        const float ROUND_HIGH = 13194139533312.0f, ROUND_LOW = 12582912.0f; // 1.5 * 2^43, 1.5 * 2^23
        float high = scaled + ROUND_HIGH;
        float low = scaled - (high - (ROUND_HIGH + ROUND_LOW));
        upper += (unsigned)__float_as_int(high);
        lower += (unsigned)__float_as_int(low);
    }

    __device__ void finish(unsigned number) {
        upper -= number * 0x55400000u;
        lower -= number * 0x4B400000u;
    }
};

// A tile of a row in the registers of a block.
template <typename T>
struct Tile {
    static const int SIZE = Chunk<T>::SIZE, CHUNKS = SUM_TILE / (THREADS * SIZE);
    Chunk<T> chunks[CHUNKS];

    __device__ static int column(int tile, int i, int j) { return tile * SUM_TILE + (i * THREADS + (int)threadIdx.x) * SIZE + j; }

    __device__ void load(const T* row, int tile, int vocab_size) {
#pragma unroll
        for (int i = 0; i < CHUNKS; i++) chunks[i].template load<DIVISIBLE_BY_16>(row, column(tile, i, 0), vocab_size);
    }

    __device__ float at(int i, int j) const { return to_f32(chunks[i].of[j]); }

    // Neighbouring lanes have the 32 tokens of a group: the first of them, and each of its tokens.
    static const int GROUPS = SUM_TILE / 32, LANES = THREADS / GROUPS;

    __device__ static int column_of_group(int group, int member) {
        const int RUN = LANES * SIZE;
        return group / GROUPS * SUM_TILE + (member / RUN * THREADS + group % GROUPS * LANES) * SIZE + member % RUN;
    }

    // The largest logit of this thread, NaN where there is one.
    __device__ float largest() const {
        float top = -INF;
#pragma unroll
        for (int i = 0; i < CHUNKS; i++) {
#pragma unroll
            for (int j = 0; j < SIZE; j++) top = larger(top, at(i, j));
        }
        return top;
    }

    // What the tile comes to, given largest() in each thread. For the block's first thread.
    __device__ Mass weigh(const Scale& scale, float mine) const {
        __shared__ long long sums[NUM_WARPS];
        float top = largest_of_block(mine);
        PlainSum sum;
        Plain plain(scale);
        if (plain.fits(top)) {
            // What weighs less than half of 2^-40 counts for nothing, and this is far less.
            float floor = -64.0f / plain.high;
#pragma unroll
            for (int i = 0; i < CHUNKS; i++) {
#pragma unroll
                for (int j = 0; j < SIZE; j++) sum.add(plain.power<40>(fmaxf(at(i, j) - top, floor)));
            }
            sum.finish(CHUNKS * SIZE);
        } else {
#pragma unroll
            for (int i = 0; i < CHUNKS; i++) {
#pragma unroll
                for (int j = 0; j < SIZE; j++) {
                    Fixed its(at(i, j) > -INF ? scale.relative(at(i, j), top) : 0.0f);
                    sum.upper += (unsigned)its.upper;
                    sum.lower += (unsigned)its.lower;
                }
            }
        }
        // Each is below 2^31 over a warp.
        int upper = __reduce_add_sync(~0u, (int)sum.upper), lower = __reduce_add_sync(~0u, (int)sum.lower);
        if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = ((long long)upper << 20) + lower;
        __syncthreads();
        Mass its = {0, top};
        for (int warp = 0; warp < NUM_WARPS; warp++) its.sum += sums[warp];
        return its;
    }
};

// What a row comes to. For one warp, each of whose lanes holds the first two tiles that it looks at.
__device__ inline Mass row_mass(const Mass* tiles, int number, const Scale& scale) {
    int lane = threadIdx.x % 32;
    Mass held[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        bool inside = lane + 32 * i < number;
        held[i].sum = inside ? __ldcg(&tiles[lane + 32 * i].sum) : 0;
        held[i].top = inside ? __ldcg(&tiles[lane + 32 * i].top) : -INF;
    }
    float top = larger(held[0].top, held[1].top);
#pragma unroll 1
    for (int tile = lane + 64; tile < number; tile += 32) top = larger(top, __ldcg(&tiles[tile].top));
    for (int lanes = 16; lanes > 0; lanes /= 2) top = larger(top, __shfl_xor_sync(~0u, top, lanes));
    auto part = [&](const Mass& its) { return (long long)((double)its.sum * (double)scale.relative(its.top, top)); };
    long long sum = part(held[0]) + part(held[1]);
#pragma unroll 1
    for (int tile = lane + 64; tile < number; tile += 32) sum += part({__ldcg(&tiles[tile].sum), __ldcg(&tiles[tile].top)});
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
    return {sum, top};
}

// Writes a chunk of a row. Where sizes are divisible by 16, a chunk is all inside or all outside.
template <bool DIVISIBLE, int SIZE>
__device__ void store(float* row, int first, int size, const float (&values)[SIZE]) {
    if (DIVISIBLE) {
        if (first >= size) return;
#pragma unroll
        for (int i = 0; i < SIZE; i += 4)
            *reinterpret_cast<float4*>(row + first + i) = make_float4(values[i], values[i + 1], values[i + 2], values[i + 3]);
    } else {
#pragma unroll
        for (int i = 0; i < SIZE; i++)
            if (first + i < size) row[first + i] = values[i];
    }
}

// The blocks of a row, which have the tiles of it in turn. They meet, or the last to come goes on alone.
struct Blocks {
    Counters* counters;
    Mass* tiles;
    int64_t* more; // scratch words after the tiles
    long long row;
    int part, parts, number; // of tiles
    unsigned left;

    // `turn` counts the blocks row by row: a ticket where they meet. `words` of scratch memory are a tile's.
    __device__ Blocks(unsigned turn, int64_t* scratch, int vocab_size, int words) {
        parts = gridDim.y;
        row = turn / (unsigned)parts;
        part = turn % (unsigned)parts;
        number = (int)(((long long)vocab_size + SUM_TILE - 1) / SUM_TILE);
        int64_t* its = scratch + row * (HEADER + (long long)words * number);
        counters = reinterpret_cast<Counters*>(its);
        tiles = reinterpret_cast<Mass*>(its + HEADER);
        more = its + HEADER + 2ll * number;
    }

    __device__ static unsigned ticket(int64_t* scratch) { return Counters::ticket(reinterpret_cast<Counters*>(scratch)); }

    // Where no block waits for another, any order will do; rows that end one after the other leave the last blocks less to do at once.
    __device__ static unsigned index() { return blockIdx.y * gridDim.x + blockIdx.x; }

    // Waits until all of the row are here. What they wrote before is visible after. They meet once.
    __device__ void meet() {
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(&counters->arrived, 1u);
            while (acquire(&counters->arrived) < (unsigned)parts) {
            }
            left = atomicAdd(&counters->left, 1u);
        }
        __syncthreads();
    }

    // After that, at the end: the last puts the counters back.
    __device__ void leave(int64_t* scratch) const {
        if (threadIdx.x != 0 || left != (unsigned)parts - 1) return;
        Counters* all = reinterpret_cast<Counters*>(scratch);
        counters->arrived = counters->left = 0;
        if (atomicAdd(&all->finished, 1u) == gridDim.x - 1) all->tickets = all->finished = 0;
    }

    // Instead of meeting: whether this is the last of the row, in all threads of the block. What the others wrote is visible then.
    __device__ bool is_last() const {
        __shared__ bool last;
        __syncthreads();
        if (threadIdx.x < 32) {
            bool its = last_to_arrive(&counters->arrived, parts);
            if (threadIdx.x == 0) last = its;
        }
        __syncthreads();
        return last;
    }
};

// A row of logits, of which this block looks at every parts-th tile. The last of them stays in registers.
template <typename T>
struct Row {
    const T* logits;
    int vocab_size, tile;
    Tile<T> its;

    // The first tile is on its way from here on.
    __device__ Row(const T* logits, int vocab_size, const Blocks& blocks) : logits(logits), vocab_size(vocab_size), tile(blocks.part) {
        its.load(logits, tile, vocab_size);
    }

    // Leaves what each tile comes to. `seen(tile, largest of this thread)` is called while it is in registers.
    template <typename Seen>
    __device__ void weigh(const Blocks& blocks, const Scale& scale, Seen seen) {
        while (true) {
            float mine = its.largest();
            Mass mass = its.weigh(scale, mine);
            if (tile < blocks.number) {
                if (threadIdx.x == 0) blocks.tiles[tile] = mass;
                seen(tile, mine);
            }
            if (tile + blocks.parts >= blocks.number) return;
            tile += blocks.parts;
            its.load(logits, tile, vocab_size);
        }
    }

    // Writes `of(logit)` for each token of this block's, after weigh().
    template <typename Of>
    __device__ void write(float* output, int parts, Of of) {
        for (int at = tile;;) {
#pragma unroll
            for (int i = 0; i < its.CHUNKS; i++) {
                float values[its.SIZE];
#pragma unroll
                for (int j = 0; j < its.SIZE; j++) values[j] = of(its.at(i, j));
                store<DIVISIBLE_BY_16>(output, its.column(at, i, 0), vocab_size, values);
            }
            at -= parts;
            if (at < 0) return;
            its.load(logits, at, vocab_size);
        }
    }
};
