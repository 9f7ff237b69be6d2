// What both ways to verify drafts share: who a request is, which draft is kept, and the race for what replaces it; see verification.cu.
#pragma once

#include "mass.cuh"
#include "race.cuh"
#include "ragged.cuh"

typedef T_recovered_noise Noise;

const int ACCEPTANCE = 2, RECOVERY = 3; // purposes
const int HEADER = 8 + 8 * 16; // scratch words of a request: counters, and what each of up to 16 parts found

// An exponential race: the largest weight / time wins. A weight of 0 does not run, and is -inf here.
struct Residual {
    Stream stream;

    __device__ unsigned token(int column) const { return (unsigned)column; }

    // Times in 2^-37; f32 noise is off by less than the factor says.
    __device__ float bound(float weight, float time) const { return __fdividef(weight, time * 0.99999f); }
    __device__ float reached(float weight, float time) const {
        float score = __fdividef(weight, time * (4294967296.0f * 1.00001f));
        // f32 scores that are infinite tie, and so may those that are hardly above 0.
        return score > 1e-36f ? fminf(score, 2.4e27f) : -INF;
    }

    __device__ Noise noise(const Words& group, unsigned token, unsigned word) const {
        return (Noise)1 / arrival<Noise>(stream, group, token, word);
    }

    __device__ Score score(float weight, double noise) const { return above_zero((double)weight * noise); }
    __device__ Score score(float weight, float noise) const { return above_zero((double)(weight * noise)); }

  private:
    // What is not above 0 wins nothing, since NaN is not above anything either.
    __device__ static Score above_zero(double score) { return {score > 0 ? score : (double)-INF, score > 0 ? 0.0 : (double)NAN}; }

  public:
};

// The probabilities of a row, given as they are.
struct Probabilities {
    typedef float Element;
    const float* row;

    __device__ float probability(float p) const { return p; }
};

// The probabilities of a row of logits, as softmax gives them.
template <typename T>
struct Softmax {
    typedef T Element;
    const T* row;
    Scale scale;
    float top, part; // `part` is 0 where the row has no distribution

    __device__ float probability(T x) const { return part > 0 ? scale.relative(to_f32(x), top) * part : 0.0f; }
};

// What a row gives each token beyond the draft's: all but the drafted token where each draft was certain. -1 drafts nothing.
template <typename Target, bool CERTAIN>
struct Weights {
    typedef Target Of;
    static const bool IS_CERTAIN = CERTAIN;
    Target target;
    const float* draft;
    int drafted;

    __device__ float weigh(typename Target::Element given, float q, int column) const {
        float p = target.probability(given);
        float weight = CERTAIN ? (column != drafted && p > 0 ? p : 0.0f) : (p > q ? p - q : 0.0f);
        return weight > 0 ? weight : -INF;
    }

    __device__ float at(int column) const { return weigh(target.row[column], CERTAIN ? 0.0f : draft[column], column); }
};

// One batch of weights. Columns that are not in the row weigh nothing.
template <typename Source>
struct WeightBatch {
    static const int SIZE = 4, CHUNKS = 8;
    Chunk<typename Source::Of::Element, SIZE> targets[CHUNKS];
    Chunk<float, SIZE> drafts[Source::IS_CERTAIN ? 1 : CHUNKS];
    int first, size;

    template <bool DIVISIBLE>
    __device__ void load(const Source& source, int its_first, int its_size) {
        first = its_first;
        size = its_size;
#pragma unroll
        for (int i = 0; i < CHUNKS; i++) {
            targets[i].template load<DIVISIBLE>(source.target.row, column(first, i, 0), size);
            if (!Source::IS_CERTAIN) drafts[i].template load<DIVISIBLE>(source.draft, column(first, i, 0), size);
        }
    }

    __device__ float at(const Source& source, int i, int j) const {
        int its = column(first, i, j);
        return its < size ? source.weigh(targets[i].of[j], Source::IS_CERTAIN ? 0.0f : drafts[i].of[j], its) : -INF;
    }

    __device__ static int column(int first, int i, int j) { return first + (32 * i + (int)threadIdx.x % 32) * SIZE + j; }
};

// What a request asks for.
struct Request {
    int* row; // its tokens, max_spec_len + 1 of them
    const int* drafts;
    int start, num_drafts, max_spec_len, bonus;

    __device__ Request(int* output_token_ids, const int* cu_num_draft_tokens, const int* draft_token_ids, const int* bonus_token_ids,
                       int index, int num_tokens, int its_max_spec_len) {
        Tokens tokens = request_tokens(cu_num_draft_tokens, index, num_tokens);
        row = output_token_ids + index * ((long long)its_max_spec_len + 1);
        drafts = draft_token_ids + tokens.start;
        start = tokens.start;
        num_drafts = min(tokens.end - tokens.start, its_max_spec_len);
        max_spec_len = its_max_spec_len;
        bonus = bonus_token_ids[index];
    }

    // Writes the drafts that were kept, then the recovered token or, where all were, the bonus, then -1. For one warp.
    __device__ void write(int kept, int recovered) const {
        for (int i = threadIdx.x % 32; i <= max_spec_len; i += 32)
            row[i] = i < kept ? drafts[i] : i > kept ? -1 : kept == num_drafts ? bonus : recovered;
    }
};

__device__ bool accepts(float p, float q, const Stream& stream) {
    double chance = uniform(stream.high_word(0), stream.low_word(0));
    return p > 0 && q > 0 && (double)(p / q) >= chance;
}

// Races a part of a row; the last block writes the recovered token.
template <typename Source>
__device__ void recover(const Source& source, const Request& request, int kept, const Residual& race, int vocab_size, int part, int parts,
                        Found* found, unsigned* raced, T_recovered_noise* noise, Contenders& contenders) {
    int batches = (vocab_size + BATCH - 1) / BATCH;
    int begin = (int)((long long)batches * part / parts) * BATCH, end = min((int)((long long)batches * (part + 1) / parts) * BATCH, vocab_size);
    int first = begin + BATCH * (threadIdx.x / 32);
    WeightBatch<Source> batch;
    batch.template load<DIVISIBLE_BY_16>(source, first, end);
    contenders.clear();
    Nothing nothing;
    scan<DIVISIBLE_BY_16>(race, source, batch, first, begin, end, contenders, nothing);
    if (threadIdx.x >= 32) return;
    Best best = contenders.finish(race, Everyone(), source, begin, end);
    if (threadIdx.x == 0) found[part].set(best);
    if (!last_to_arrive(raced, parts)) return;
    best = Best();
    for (int other = threadIdx.x; other < parts; other += 32) best.contend(const_cast<const volatile Found&>(found[other]).get());
    best.contend_warp();
    if (best.column == NO_COLUMN) {
        // No residual: the target's own distribution.
        Weights<typename Source::Of, true> all = {source.target, nullptr, -1};
        for (int column = threadIdx.x; column < vocab_size; column += 32) {
            float weight = all.at(column);
            if (!(weight > 0)) continue;
            Noise its = race.noise(race.stream.group_words((unsigned)column / GROUP), column, race.stream.high_word(column));
            best.contend({race.score(weight, its), its, weight, column});
        }
        best.contend_warp();
    }
    request.write(kept, best.column == NO_COLUMN ? -1 : best.column);
    if (threadIdx.x == 0) *noise = best.column == NO_COLUMN ? (Noise)0 : (Noise)best.noise;
}

