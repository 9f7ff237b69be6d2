"""What this family of kernels is for. Its twin is `src/cpu/{family}.rs`."""

import triton
import triton.language as tl


@triton.jit
def {kernel}_kernel(output, input, width, output_stride, input_stride, factor, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    inside = columns < width
    product = tl.load(input + row * input_stride + columns, mask=inside) * factor
    # Which NaN an operation gives is not the same everywhere.
    product = tl.where(product == product, product, float("nan"))
    tl.store(output + row * output_stride + columns, product, mask=inside)
