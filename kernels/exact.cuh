// Exponentials and logarithms with reproducible bits, for CUDA C++. Its twins are exact.py and src/exact.rs, which say why.
//
// Compiled with -fmad=false: what is fused is written as fma.
#pragma once

// 1 / (temperature ln 2) in two f32 parts, which together carry 48 bits. Infinite for temperature 0.
struct Scale {
    float high, low;

    __device__ explicit Scale(float temperature) {
        double scale = 1.4426950408889634 / (double)temperature;
        high = (float)scale;
        low = high < __int_as_float(0x7f800000) ? (float)(scale - (double)high) : 0.0f;
    }

    // e^(d / temperature) for d <= 0; 0 below 2^-125 and for NaN.
    __device__ float weight(float d) const {
        const float ROUND = 12582912.0f;
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
        float scaled = __int_as_float(__float_as_int(p) + (__float_as_int(shifted) << 23));
        return d * high >= -125.0f ? scaled : 0.0f;
    }

    // The weight of a logit against the largest, which is 1 for that at every temperature, infinite as it may be.
    __device__ float relative(float x, float top) const { return x == top ? 1.0f : weight(x - top); }
};

// ln(2^k (1 + f)) for quotient = f / (2 + f).
__device__ inline float ln_reduced(float f, float k) {
    float quotient = f / (f + 2.0f);
    float z = quotient * quotient;
    float p = (float)(2.0 / 9.0);
    p = fmaf(p, z, (float)(2.0 / 7.0));
    p = fmaf(p, z, (float)(2.0 / 5.0));
    p = fmaf(p, z, (float)(2.0 / 3.0));
    float rest = quotient * fmaf(-z, p, f);
    rest = fmaf(k, 1.9046542121259336e-09f, rest);
    return fmaf(k, 0.6931471824645996f, f - rest);
}

struct Reduced {
    float f, k;
};

// f and k with x = 2^k (1 + f) and 1 + f in [sqrt(1/2), sqrt(2)), for positive normal x.
__device__ inline Reduced reduce(float x) {
    int bits = __float_as_int(x);
    int k = (bits - 0x3F3504F3) >> 23;
    return {__int_as_float(bits - (k << 23)) - 1.0f, (float)k};
}

__device__ inline float ln(float x) {
    Reduced r = reduce(x);
    return ln_reduced(r.f, r.k);
}

// ln(x) for positive normal x.
__device__ inline double ln(double x) {
    long long bits = __double_as_longlong(x);
    long long shift = (bits - 0x3FE6A09E667F3BCDLL) >> 52;
    double f = __longlong_as_double(bits - (shift << 52)) - 1.0;
    double k = (double)(int)shift;
    double quotient = f / (f + 2.0);
    double z = quotient * quotient;
    double p = 2.0 / 21.0;
    p = fma(p, z, 2.0 / 19.0);
    p = fma(p, z, 2.0 / 17.0);
    p = fma(p, z, 2.0 / 15.0);
    p = fma(p, z, 2.0 / 13.0);
    p = fma(p, z, 2.0 / 11.0);
    p = fma(p, z, 2.0 / 9.0);
    p = fma(p, z, 2.0 / 7.0);
    p = fma(p, z, 2.0 / 5.0);
    p = fma(p, z, 2.0 / 3.0);
    double rest = quotient * fma(-z, p, f);
    rest = fma(k, -2.3190468138462996e-17, rest);
    return fma(k, 0.6931471805599453, f - rest);
}
