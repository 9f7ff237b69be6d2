"""exp and ln with reproducible bits. Its twin is src/exact.rs.

A GPU's own exp and log are approximations of unstated rounding, which no CPU can repeat. Here each is one polynomial
whose every step (multiply, add, divide, fma) is rounded to nearest by IEEE 754, so two machines that do the same
steps in the same order get the same bits. The twin does them: change neither alone. The measured errors stand there.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
ROUND = tl.constexpr(12582912.0)  # 1.5 * 2^23: adding it leaves the nearest integer in the low bits
# ln 2 in two parts.
LN2_HI_F32 = tl.constexpr(0.6931471824645996)
LN2_LO_F32 = tl.constexpr(-1.9046542121259336e-09)
LN2_HI_F64 = tl.constexpr(0.6931471805599453)
LN2_LO_F64 = tl.constexpr(2.3190468138462996e-17)
SQRT_HALF_BITS_F32 = tl.constexpr(0x3F3504F3)
SQRT_HALF_BITS_F64 = tl.constexpr(0x3FE6A09E667F3BCD)


@triton.jit
def horner(p, x, c: tl.constexpr):
    """p * x + c, rounded once. tl.fma would take a bare c for f32, whatever x is."""
    return tl.fma(p, x, tl.full(x.shape, c, x.dtype))


@triton.jit
def scale_of(temperature):
    """1 / (temperature ln 2) in two f32 parts, which together carry 48 bits. Infinite for temperature 0."""
    scale = LOG2_E / temperature.to(tl.float64)
    high = scale.to(tl.float32)
    return high, tl.where(high < float("inf"), scale - high.to(tl.float64), 0.0).to(tl.float32)


@triton.jit
def weight(d, high, low):
    """e^(d / temperature) in f32 for d <= 0, given scale_of(temperature); 0 below 2^-125 and for NaN.

    It is 2^(d scale): n, the nearest integer to the exponent, becomes the exponent, and what is left of it a polynomial.
    """
    shifted = tl.fma(d, high, ROUND)
    n = shifted - ROUND
    f = tl.fma(d, low, tl.fma(d, high, -n))
    p = tl.full(f.shape, 0.00015353361959569156, tl.float32)
    p = horner(p, f, 0.0013398875016719103)
    p = horner(p, f, 0.00961843691766262)
    p = horner(p, f, 0.055503323674201965)
    p = horner(p, f, 0.24022647738456726)
    p = horner(p, f, 0.6931471824645996)
    p = horner(p, f, 1.0)
    scaled = (p.to(tl.int32, bitcast=True) + (shifted.to(tl.int32, bitcast=True) << 23)).to(tl.float32, bitcast=True)
    return tl.where(d * high >= -125.0, scaled, 0.0)


@triton.jit
def ln_reduced(f, k, quotient, LN2_HI: tl.constexpr, LN2_LO: tl.constexpr, LAST: tl.constexpr):
    """ln(2^k (1 + f)) for quotient = f / (2 + f): ln(1 + f) is 2 atanh(quotient), its series 2/3, 2/5, ... 2/LAST."""
    z = quotient * quotient
    p = tl.full(z.shape, 2 / LAST, z.dtype)
    for i in tl.static_range(LAST - 2, 1, -2):
        p = horner(p, z, 2 / i)
    # 2 quotient = f - quotient f, so only a small part of the result carries the quotient's rounding.
    rest = quotient * tl.fma(-z, p, f)
    rest = tl.fma(k, tl.full(k.shape, -LN2_LO, k.dtype), rest)
    return tl.fma(k, tl.full(k.shape, LN2_HI, k.dtype), f - rest)


@triton.jit
def reduce_f32(x):
    """f and k with x = 2^k (1 + f) and 1 + f in [sqrt(1/2), sqrt(2)), for positive normal x."""
    bits = x.to(tl.int32, bitcast=True)
    k = (bits - SQRT_HALF_BITS_F32) >> 23
    return (bits - (k << 23)).to(tl.float32, bitcast=True) - 1.0, k.to(tl.float32)


@triton.jit
def ln_reduced_f32(f, k):
    """ln(2^k (1 + f)) in f32; with k = 0 it is log1p(f)."""
    return ln_reduced(f, k, tl.div_rn(f, f + 2.0), LN2_HI_F32, LN2_LO_F32, 9)


@triton.jit
def ln_f64(x):
    """ln(x) in f64, for positive normal x."""
    bits = x.to(tl.int64, bitcast=True)
    k = (bits - SQRT_HALF_BITS_F64) >> 52
    f = (bits - (k << 52)).to(tl.float64, bitcast=True) - 1.0
    return ln_reduced(f, k.to(tl.int32).to(tl.float64), f / (f + 2.0), LN2_HI_F64, LN2_LO_F64, 21)
