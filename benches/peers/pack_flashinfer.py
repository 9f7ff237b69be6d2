#!/usr/bin/env python3
"""FlashInfer's sampling as one folder, for a GPU machine without network on which nothing should be compiled.

    pip install flashinfer-python==0.7.4
    FLASHINFER_CUDA_ARCH_LIST=9.0a python3 benches/peers/pack_flashinfer.py FOLDER

Run it where nvcc is; no GPU is needed. Both machines need the same Python and PyTorch with what FlashInfer imports. On the GPU
machine `PYTHONPATH=FOLDER` is enough: the folder has the package's Python files (large ones only if an import loads them), tvm_ffi,
and the modules `sampling` and `topk`, compiled with FlashInfer's own flags, where FlashInfer looks before it compiles. Top-k of CUB is
left out: it takes longer to compile than the rest together, and sampling, which wants the tokens sorted, never calls it.
"""

import re
import shutil
import sys
from pathlib import Path

import flashinfer
import flashinfer.sampling
import tvm_ffi
from flashinfer.jit.sampling import gen_sampling_module
from flashinfer.jit.topk import gen_topk_module

SMALL = 20_000  # bytes; most of what is larger is generated for kernels that have nothing to do with sampling


def copy_python(package, folder):
    loaded = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    for file in package.rglob("*.py"):
        if file.stat().st_size <= SMALL or str(file) in loaded:
            copy = folder / file.relative_to(package.parent)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)


def without_cub(spec):
    """The module with functions that refuse to run in the place of `cub_topk.cu`."""
    [binding] = (source for source in spec.sources if source.name == "flashinfer_topk_binding.cu")
    functions = re.findall(r"^\w+ cub_topk\w*\([^;]*\);", binding.read_text(), re.MULTILINE)
    refuse = ' { TVM_FFI_THROW(RuntimeError) << "left out of this build"; throw; }'
    stub = spec.build_dir / "left_out.cu"
    stub.parent.mkdir(parents=True, exist_ok=True)
    lines = ['#include "tvm_ffi_utils.h"', "using tvm::ffi::Optional;", *(function[:-1] + refuse for function in functions)]
    stub.write_text("\n".join(lines) + "\n")
    spec.sources = [stub if source.name == "cub_topk.cu" else source for source in spec.sources]
    return spec


def main():
    folder, package = Path(sys.argv[1]), Path(flashinfer.__file__).parent
    copy_python(package, folder)
    shutil.copytree(Path(tvm_ffi.__file__).parent, folder / "tvm_ffi", ignore=shutil.ignore_patterns("__pycache__", "include"))
    for spec in gen_sampling_module(), without_cub(gen_topk_module()):
        if not spec.is_compiled:
            spec.build()
        compiled = folder / package.name / "data" / "aot" / spec.name
        compiled.mkdir(parents=True)
        shutil.copy(spec.get_library_path(), compiled)


if __name__ == "__main__":
    main()
