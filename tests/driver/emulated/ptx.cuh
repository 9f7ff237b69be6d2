// The instructions of kernels/ptx.cuh, for a CPU. What is approximate there is as good as exact here; no result depends on that.
#pragma once

inline void multiply(unsigned a, unsigned b, unsigned& lower, unsigned& upper) {
    unsigned long long product = (unsigned long long)a * b;
    lower = (unsigned)product;
    upper = (unsigned)(product >> 32);
}

inline float larger(float a, float b) { return a != a || b != b ? NAN : a > b ? a : b; }

inline float approximate_log2(float x) { return log2f(x); }
inline float approximate_exp2(float x) { return exp2f(x); }

struct Counts {
    unsigned *counts, first, *elsewhere;

    Counts(unsigned* counts, unsigned first, unsigned* elsewhere) : counts(counts), first(first), elsewhere(elsewhere) {}

    void add(bool really, unsigned index, unsigned value) const { (really ? counts[index - first] : *elsewhere) += value; }
};

inline void fence() { __threadfence(); }

// Whoever waits lets the threads beside it run.
inline unsigned acquire(const unsigned* counter) {
    rest();
    return turns ? turns->look(seat, counter) : __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}
