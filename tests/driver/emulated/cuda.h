// What kernels in CUDA C++ are written in, for a CPU; see fibers.h. What a block shares is what a thread of the system has for itself.
//
// Only what our kernels use is here. It says nothing about time, nor about what the memory model of a GPU allows beyond one order of
// everything; turns.h has a way to go through many.
#pragma once

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "fibers.h"

#define __device__
#define __global__
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __shared__ static thread_local

using std::max;
using std::min;

struct int2 {
    int x, y;
};
struct float2 {
    float x, y;
};
struct int4 {
    int x, y, z, w;
};
struct float4 {
    float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

// ---- What the threads of a block and of a warp do together ---------------------------------------------------------------------------

inline void __syncthreads() {
    if (wait(block->barrier)) event();
}

inline int __syncthreads_count(int value) {
    block->given[threadIdx.x] = value != 0;
    wait(block->barrier);
    int count = std::accumulate(block->given.begin(), block->given.end(), 0);
    __syncthreads();
    return count;
}

inline void __threadfence() {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    event();
}

inline int __syncthreads_or(int value) { return __syncthreads_count(value) != 0; }
inline int __syncthreads_and(int value) { return __syncthreads_count(!value) == 0; }

// What each lane gives, in all of them.
template <typename T>
struct Lanes {
    T of[32];

    explicit Lanes(T mine) {
        Warp& warp = block->warps[threadIdx.x / 32];
        unsigned side = warp.barrier.round & 1;
        uint64_t bits = 0;
        memcpy(&bits, &mine, sizeof(T));
        warp.given[side][threadIdx.x % 32] = bits;
        wait(warp.barrier);
        for (int lane = 0; lane < 32; lane++) memcpy(&of[lane], &warp.given[side][lane], sizeof(T));
    }
};

inline void __syncwarp(unsigned = ~0u) { Lanes<int> lanes(0); }

template <typename T>
T __shfl_sync(unsigned, T value, int lane) {
    return Lanes<T>(value).of[lane & 31];
}

template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
    return Lanes<T>(value).of[threadIdx.x % 32 ^ mask];
}

template <typename T>
T __shfl_down_sync(unsigned, T value, int lanes) {
    int lane = threadIdx.x % 32;
    return Lanes<T>(value).of[lane + lanes < 32 ? lane + lanes : lane];
}

template <typename T>
T __shfl_up_sync(unsigned, T value, int lanes) {
    int lane = threadIdx.x % 32;
    return Lanes<T>(value).of[lane >= lanes ? lane - lanes : lane];
}

inline int __reduce_max_sync(unsigned, int value) {
    Lanes<int> lanes(value);
    return *std::max_element(lanes.of, lanes.of + 32);
}

inline int __reduce_add_sync(unsigned, int value) {
    Lanes<int> lanes(value);
    unsigned sum = 0;
    for (int its : lanes.of) sum += (unsigned)its;
    return (int)sum;
}

inline unsigned __ballot_sync(unsigned, bool value) {
    Lanes<bool> lanes(value);
    unsigned bits = 0;
    for (int lane = 0; lane < 32; lane++) bits |= (unsigned)lanes.of[lane] << lane;
    return bits;
}

inline bool __any_sync(unsigned mask, bool value) { return __ballot_sync(mask, value) != 0; }
inline bool __all_sync(unsigned mask, bool value) { return __ballot_sync(mask, value) == ~0u; }

// Threads that take turns are never side by side.
inline unsigned __activemask() { return 1u << threadIdx.x % 32; }
inline unsigned __match_all_sync(unsigned, unsigned, int* same) { return *same = 0; }

// ---- Memory ------------------------------------------------------------------------------------------------------------------------

template <typename T, typename U>
T atomicAdd(T* to, U value) {
    T before = __atomic_fetch_add(to, (T)value, __ATOMIC_SEQ_CST);
    event();
    return before;
}

inline int atomicMax(int* to, int value) {
    int before = __atomic_load_n(to, __ATOMIC_SEQ_CST);
    while (before < value && !__atomic_compare_exchange_n(to, &before, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    event();
    return before;
}

template <typename T>
T __ldg(const T* from) {
    return *from;
}

template <typename T>
T __ldcg(const T* from) {
    return *from;
}

// ---- Numbers -----------------------------------------------------------------------------------------------------------------------

template <typename To, typename From>
To same_bits(From value) {
    static_assert(sizeof(To) == sizeof(From), "");
    To result;
    memcpy(&result, &value, sizeof(To));
    return result;
}

inline unsigned __float_as_uint(float x) { return same_bits<unsigned>(x); }
inline int __float_as_int(float x) { return same_bits<int>(x); }
inline float __int_as_float(int x) { return same_bits<float>(x); }
inline long long __double_as_longlong(double x) { return same_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return same_bits<double>(x); }
inline int __ffs(unsigned x) { return __builtin_ffs((int)x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }

// Within 2 units in the last place, which this is.
inline float __fdividef(float a, float b) { return a / b; }

template <typename Calculation>
float rounded(int mode, Calculation calculation) {
    int before = fegetround();
    fesetround(mode);
    volatile float result = calculation();
    fesetround(before);
    return result;
}

inline float __fsub_rd(volatile float a, volatile float b) { return rounded(FE_DOWNWARD, [&] { return a - b; }); }
inline float __fmul_ru(volatile float a, volatile float b) { return rounded(FE_UPWARD, [&] { return a * b; }); }
inline float __double2float_ru(volatile double a) { return rounded(FE_UPWARD, [&] { return (float)a; }); }

struct __half {
    _Float16 value;

    __half() = default;
    explicit __half(float x) : value((_Float16)x) {}
};

struct __nv_bfloat16 {
    uint16_t bits;

    __nv_bfloat16() = default;
    // To nearest even; a NaN stays one.
    explicit __nv_bfloat16(float x) {
        uint32_t all = same_bits<uint32_t>(x);
        bits = x != x ? 0x7fc0 : (all + 0x7fff + (all >> 16 & 1)) >> 16;
    }
};

inline float __half2float(__half x) { return (float)x.value; }
inline float __bfloat162float(__nv_bfloat16 x) { return same_bits<float>((uint32_t)x.bits << 16); }
