// Instructions that CUDA C++ has no name for. A test that runs the kernels on a CPU has these in its own way, and nothing else.
#pragma once

// Both halves of a product, since nvcc makes more of one of 64 bits.
__device__ inline void multiply(unsigned a, unsigned b, unsigned& lower, unsigned& upper) {
    asm("{ .reg .u64 wide; mul.wide.u32 wide, %2, %3; mov.b64 {%0, %1}, wide; }" : "=r"(lower), "=r"(upper) : "r"(a), "r"(b));
}

// The larger; NaN where one is.
__device__ inline float larger(float a, float b) {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}

// log2 as the hardware approximates it, within 2^-22 of the result: for bounds alone.
__device__ inline float approximate_log2(float x) {
    float result;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

// 2^x, likewise.
__device__ inline float approximate_exp2(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

// Counters in shared memory. What nvcc makes of atomicAdd looks for their address each time, and branches, as does an instruction with a
// predicate; so what counts for none of them goes elsewhere.
struct Counts {
    unsigned address, elsewhere;

    // `counts` begins with the counter of index `first`.
    __device__ Counts(unsigned* counts, unsigned first, unsigned* elsewhere)
        : address((unsigned)__cvta_generic_to_shared(counts) - 4 * first), elsewhere((unsigned)__cvta_generic_to_shared(elsewhere)) {}

    __device__ void add(bool really, unsigned index, unsigned value) const {
        asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(really ? address + 4 * index : elsewhere), "r"(value) : "memory");
    }
};

// Orders what this thread has seen and done before with what it does after, for all blocks.
__device__ inline void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// A counter that other blocks raise. What they wrote before they did is visible after.
__device__ inline unsigned acquire(const unsigned* counter) {
    unsigned seen;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
    return seen;
}
