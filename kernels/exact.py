"""exp and ln with reproducible bits. Its twin is src/exact.rs.

A GPU's own exp and log are approximations of unstated rounding, which no CPU can repeat. Here each is one polynomial
whose every step (multiply, add, divide, fma) is rounded to nearest by IEEE 754, so two machines that do the same
steps in the same order get the same bits. The twin does them: change neither alone. The measured errors stand there.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950216293335)
ROUND = tl.constexpr(12582912.0)  # 1.5 * 2^23: adding it leaves the nearest integer in the low bits
# ln 2 in two parts. exp needs a first part of few bits, so that n times it is exact.
LN2_SHORT = tl.constexpr(0.693145751953125)
LN2_REST = tl.constexpr(1.428606765330187e-06)
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
def exp(x):
    """e^x in f32 for x <= 0; 0 below -87 and for NaN. x = n ln 2 + r: the series in r, then 2^n as the exponent."""
    shifted = tl.fma(x, LOG2_E, ROUND)
    n = shifted - ROUND
    r = tl.fma(n, -LN2_SHORT, x)
    r = tl.fma(n, -LN2_REST, r)
    p = tl.full(r.shape, 1 / 5040, tl.float32)
    p = horner(p, r, 1 / 720)
    p = horner(p, r, 1 / 120)
    p = horner(p, r, 1 / 24)
    p = horner(p, r, 1 / 6)
    p = horner(p, r, 1 / 2)
    p = horner(p, r, 1.0)
    p = horner(p, r, 1.0)
    scale = ((shifted.to(tl.int32, bitcast=True) + 127) << 23).to(tl.float32, bitcast=True)
    return tl.where(x >= -87.0, p * scale, 0.0)


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
