"""What is written to logits. Its twin is src/cpu/logits.rs.

Processors calculate in f32 and round once to the type of the logits, to nearest even. Which bits a computed NaN has
depends on the machine, so it is written as the one quiet NaN. A logit that is NaN or -inf already is no processor's
matter: it keeps its bits, and so a token that was removed stays removed.
"""

import triton
import triton.language as tl


@triton.jit
def rounded(x, dtype: tl.constexpr):
    """x in the type of the logits."""
    return tl.where(x == x, x.to(dtype), tl.full(x.shape, float("nan"), dtype))


@triton.jit
def bit_is_set(bitmask, tokens, inside):
    """Whether each token's bit is set, which is bit token % 32 of word token // 32; false where not `inside`."""
    return ((tl.load(bitmask + tokens // 32, mask=inside, other=0) >> (tokens % 32)) & 1) != 0
