// Random words and noise, for CUDA C++. Its twins are noise.py, src/philox.rs and src/noise.rs, which say why.
//
// The tokens of a group share their first two arrivals, so two numbers bound the noise of all of them.
#pragma once

#include "exact.cuh"
#include "ptx.cuh"

// Both halves of a product.
struct Product {
    unsigned lower, upper;

    __device__ Product(unsigned a, unsigned b) { multiply(a, b, lower, upper); }
};

struct Words {
    unsigned of[4];

    // The word of a token, by selection: an index that is not known when compiling would put the words into memory.
    __device__ unsigned at(unsigned token) const {
        unsigned lower = token & 1 ? of[1] : of[0], upper = token & 1 ? of[3] : of[2];
        return token & 2 ? upper : lower;
    }
};

// The random words of one request at one position, for one purpose: Philox4x32-10, whose key is the seed.
struct Stream {
    unsigned key0, key1, position0, position1, purpose;

    __device__ Stream(long long seed, long long position, int purpose)
        : key0((unsigned)seed), key1((unsigned)(seed >> 32)), position0((unsigned)position),
          position1((unsigned)(position >> 32)), purpose((unsigned)purpose) {}

    // The word of a token.
    __device__ unsigned high_word(unsigned token) const { return words(token / 4, purpose).at(token); }

    // The further word of a token that f64 noise needs.
    __device__ unsigned low_word(unsigned token) const { return words(token / 4, purpose | 0x80000000u).at(token); }

    // The words that the tokens of a group share.
    __device__ Words group_words(unsigned group) const { return words(group, purpose | 0x40000000u); }

    __device__ Words words(unsigned block, unsigned purpose) const {
        unsigned c0 = block, c1 = position0, c2 = position1, c3 = purpose;
        unsigned k0 = key0, k1 = key1;
#pragma unroll
        for (int round = 0; round < 10; round++) {
            Product first(c0, 0xD2511F53u), second(c2, 0xCD9E8D57u);
            c0 = second.upper ^ c1 ^ k0;
            c1 = second.lower;
            c2 = first.upper ^ c3 ^ k1;
            c3 = first.lower;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        return {{c0, c1, c2, c3}};
    }
};

// The middle of one of 2^52 equal parts of (0, 1).
__device__ inline double uniform(unsigned high, unsigned low) {
    unsigned long long part = ((unsigned long long)high << 32 | low) >> 12;
    return ((double)part + 0.5) * 2.220446049250313e-16;
}

// -ln(u) of the uniform of two words.
__device__ inline double exponential(unsigned high, unsigned low) { return -ln(uniform(high, low)); }

// -ln(u) of the uniform of one word, measured from the nearer end of (0, 1).
__device__ inline float exponential(unsigned word) {
    bool near_zero = word < 0x80000000u;
    float v = ((float)(near_zero ? word : ~word) + 0.5f) * 2.3283064365386963e-10f;
    Reduced r = reduce(v);
    if (!near_zero) {
        bool halved = v > 0.2928932309150696f; // 1 - v is below sqrt(1/2): 2 (1 - v) is in range
        r = halved ? Reduced{fmaf(v, -2.0f, 1.0f), -1.0f} : Reduced{-v, 0.0f};
    }
    return -ln_reduced(r.f, r.k);
}

const unsigned GROUP = 32;

// The words of a group say which of its tokens arrives first, which second, and when.
__device__ inline unsigned first_lane(const Words& group) { return group.of[2] >> 27; }
__device__ inline unsigned second_lane(const Words& group) { return group.of[2] >> 22 & 31; }

// When a token arrives, given the words of its group and its own high word.
template <typename Noise>
__device__ Noise arrival(const Stream& stream, const Words& group, unsigned token, unsigned high);

template <>
__device__ inline float arrival<float>(const Stream&, const Words& group, unsigned token, unsigned high) {
    float first = exponential(group.of[0]) * 0.03125f;
    if (token % GROUP == first_lane(group)) return first;
    float second = first + exponential(group.of[3]) * 0.03125f;
    return token % GROUP == second_lane(group) ? second : second + exponential(high);
}

template <>
__device__ inline double arrival<double>(const Stream& stream, const Words& group, unsigned token, unsigned high) {
    double first = exponential(group.of[0], group.of[1]) * 0.03125;
    if (token % GROUP == first_lane(group)) return first;
    double second = first + exponential(group.of[3], group.of[2] << 10) * 0.03125;
    return token % GROUP == second_lane(group) ? second : second + exponential(high, stream.low_word(token));
}
