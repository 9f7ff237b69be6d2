"""Which tokens are whose, given where each request's tokens end. Its twin is src/cpu/ragged.rs.

A request begins where the furthest earlier one ended, so a token belongs to the first request that ends after it. For
counts that only grow this is the usual meaning. For any other it is still defined: requests never overlap, and none
reaches outside [0, num_tokens), whatever the counts say.
"""

import triton
import triton.language as tl

STEP = tl.constexpr(512)


@triton.jit
def request_tokens(ends, request, num_tokens):
    """The tokens [start, end) of a request. In 64 bits, so that stepping past the end cannot wrap."""
    furthest = tl.zeros([STEP], tl.int32)
    for first in range(0, request, STEP):
        earlier = first + tl.arange(0, STEP)
        furthest = tl.maximum(furthest, tl.load(ends + earlier, mask=earlier < request, other=0))
    start = tl.max(furthest)
    end = tl.maximum(start, tl.load(ends + request))
    return tl.minimum(start, num_tokens).to(tl.int64), tl.minimum(end, num_tokens).to(tl.int64)


@triton.jit
def request_of(ends, token, batch_size):
    """The request of a token, or batch_size where it belongs to none."""
    batch_size = batch_size.to(tl.int64)
    owner = tl.zeros([STEP], tl.int64) + batch_size
    for first in range(0, batch_size, STEP):
        request = first + tl.arange(0, STEP)
        inside = request < batch_size
        after = inside & (tl.load(ends + request, mask=inside, other=0) > token)
        owner = tl.minimum(owner, tl.where(after, request, batch_size))
    return tl.min(owner)
