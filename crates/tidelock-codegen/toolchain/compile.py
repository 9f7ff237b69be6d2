"""Compiles kernels to PTX and says what the compiler saw of them. `tidelock compile` runs it.

A plan comes in as JSON on stdin; PTX and facts go out as JSON on stdout, and no file is written. The same plan gives
the same bytes: no path and no time gets into them. The facts are read from the kernel and from the compiler, never
copied from the plan, because they are there to be checked against the registry that the plan was made from.
"""

import ast
import functools
import hashlib
import importlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FORMAT = 1
ARCH = 80
PTX_VERSION = 80  # low, so that older drivers take it

sys.dont_write_bytecode = True


class Refused(Exception):
    """A mistake in a kernel or in the plan, for the author to read."""


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def position(text, offset):
    """Line and column of an offset, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


# ---- Triton ----------------------------------------------------------------------------------------------------------


def triton_declaration(path, function):
    """Where a kernel is defined and its parameters in order."""
    body = ast.parse(path.read_text()).body
    *classes, name = function.split(".")
    for owner in classes:
        body = [item for node in body if isinstance(node, ast.ClassDef) and node.name == owner for item in node.body]
    found = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]
    if not found:
        raise Refused(f"{path.name} defines no function {function}")
    definition = found[-1]
    params = [{
        "name": arg.arg,
        "constexpr": arg.annotation is not None and ast.unparse(arg.annotation).split(".")[-1] == "constexpr",
        "line": arg.lineno,
        "column": arg.col_offset + 1,
    } for arg in definition.args.posonlyargs + definition.args.args + definition.args.kwonlyargs]
    return definition.lineno, params


def triton_imports(path):
    """The files beside a kernel that it imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
        for module in modules:
            yield module.replace(".", "/") + ".py"


def triton_type(text):
    """An MLIR type in Triton's own spelling: `!tt.ptr<f32>` is `*fp32`."""
    pointer = re.fullmatch(r"!tt\.ptr<([^,>]+)(?:,[^>]*)?>", text)
    name = pointer[1] if pointer else text
    name = re.sub(r"^f(?=\d+$)", "fp", name)
    return "*" + name if pointer else name


def triton_arguments(ttir):
    """The arguments as the compiler saw them: name, type, promised divisibility."""
    header = re.search(r"tt\.func public @\w+\((.*?)\) attributes", ttir, re.DOTALL)[1]
    arguments = []
    for name, kind, rest in re.findall(r"%(\w+): (!tt\.ptr<[^>]*>|\w+)((?: \{[^}]*\})?)", header):
        promise = re.search(r"tt\.divisibility = (\d+)", rest)
        divisibility = int(promise[1]) if promise else None
        arguments.append({"name": name, "type": triton_type(kind), "divisibility": divisibility})
    return arguments


def triton_compile(path, kernel, variant):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = functools.reduce(getattr, kernel["function"].split("."), importlib.import_module(path.stem))
    constants = variant["constants"]
    types = dict(variant["signature"])
    absent = [name for name, kind in types.items() if kind is None]
    fixed = {**constants, **dict.fromkeys(absent)}
    source = ASTSource(
        fn=function,
        signature={name: "constexpr" if name in fixed else types[name] for name in function.arg_names},
        constexprs=fixed,
        attrs={(function.arg_names.index(name), ): [["tt.divisibility", 16]]
               for name in variant["divisible_by_16"] if name not in fixed},
    )
    options = {"num_warps": kernel["num_warps"], "enable_fp_fusion": False, "ptx_version": PTX_VERSION}
    compiled = triton.compile(source, target=GPUTarget("cuda", ARCH, 32), options=options)
    fields = ("num_warps", "num_ctas", "shared", "global_scratch_size", "global_scratch_align", "profile_scratch_size",
              "profile_scratch_align")
    return {
        "entry": compiled.metadata.name,
        "arguments": triton_arguments(compiled.asm["ttir"]),
        "constants": constants,
        "absent": absent,
        **{field: getattr(compiled.metadata, field) for field in fields},
        "ptx": compiled.asm["ptx"],
    }


# ---- CUDA C++ --------------------------------------------------------------------------------------------------------

CUDA_TYPES = {
    "bool": "i1", "char": "i8", "signed char": "i8", "unsigned char": "u8", "int8_t": "i8", "uint8_t": "u8",
    "short": "i16", "unsigned short": "u16", "int16_t": "i16", "uint16_t": "u16", "int": "i32", "unsigned": "u32",
    "unsigned int": "u32", "int32_t": "i32", "uint32_t": "u32", "long long": "i64", "unsigned long long": "u64",
    "int64_t": "i64", "uint64_t": "u64", "__half": "fp16", "half": "fp16", "__nv_bfloat16": "bf16", "float": "fp32",
    "double": "fp64",
}  # yapf: disable


# What nvcc calls the types of the registry: the last name of each above.
CUDA_NAMES = {kind: name for name, kind in CUDA_TYPES.items()}


def cuda_declaration(path, function):
    """Where a kernel is declared and its parameters in order, with the words of their types, read from its text."""
    blank = lambda comment: re.sub(r"[^\n]", " ", comment[0])
    text = re.sub(r"//[^\n]*|/\*.*?\*/", blank, path.read_text(), flags=re.DOTALL)
    bounds = r"(?:__launch_bounds__\s*\([^)]*\)\s*)?"
    found = re.search(rf'extern\s+"C"\s+__global__\s+void\s+{bounds}({function})\s*\(([^)]*)\)', text)
    if not found:
        raise Refused(f'{path.name} declares no `extern "C" __global__ void {function}(...)`')
    params = []
    for item in re.finditer(r"[^,]+", found[2]):
        words = re.findall(r"\w+|\*", item[0])
        if not words:
            continue
        name = words.pop()
        line, column = position(text, found.start(2) + item.start() + item[0].rindex(name))
        kind = " ".join(word for word in words if word not in ("const", "__restrict__", "*", "std"))
        text_of_it = " ".join(item[0].split())
        params.append({
            "name": name, "kind": kind, "stars": words.count("*"), "text": text_of_it, "line": line, "column": column
        })
    return position(text, found.start(1))[0], params


def cuda_argument(path, param, variant):
    """A parameter as it is in a variant. What `T_name` and a struct are called, the registry's header says."""
    # The name of a struct is its type.
    structs = {kind: kind for _, kind in variant["signature"] if kind and kind[0].isupper()}
    kind = {**CUDA_TYPES, **variant.get("types", {}), **structs}.get(param["kind"])
    if kind is None or param["stars"] > 1:
        where = f"{path.name}:{param['line']}:{param['column']}"
        raise Refused(f"{where}: parameter {param['name']} has a type that no argument has: {param['text']}")
    return {"name": param["name"], "type": "*" * param["stars"] + kind, "divisibility": None}


def cuda_imports(path):
    """The files beside a kernel that it includes."""
    return re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(), re.MULTILINE)


def cuda_compile(path, kernel, variant, params, header):
    import nvidia.cu13

    toolkit = Path(list(nvidia.cu13.__path__)[0])
    macros = {name: json.dumps(value) for name, value in variant["constants"].items()}
    macros |= {name: CUDA_NAMES[kind] for name, kind in variant.get("types", {}).items()}
    macros |= {"NUM_WARPS": kernel["num_warps"], "DIVISIBLE_BY_16": json.dumps(bool(variant["divisible_by_16"]))}
    options = [f"-D{name}={value}" for name, value in macros.items()]
    with tempfile.TemporaryDirectory() as folder:
        ptx = Path(folder) / "kernel.ptx"
        if header is not None:
            # The registry's declaration comes first, whether the kernel includes it or not.
            declared = Path(folder) / f"{kernel['family']}.h"
            declared.write_text(header)
            options += ["-I", folder, "-I", ".", "-include", declared]
        command = [toolkit / "bin" / "nvcc", "-ptx", f"-arch=compute_{ARCH}", "-fmad=false", "-I", toolkit / "include" / "cccl",
                   *options, "-o", ptx, path.name]
        done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True)
        if done.returncode != 0:
            raise Refused(cuda_refusal(done.stderr.replace(f"{folder}/", "ptx/"), kernel, header))
        text = ptx.read_text()
    # nvcc writes its own version whatever the code needs. Under a lower one it loads into older drivers; the assembler
    # refuses it where the code needs more.
    text = re.sub(r"^\.version \S+$", f".version {PTX_VERSION // 10}.{PTX_VERSION % 10}", text, count=1, flags=re.M)
    text = re.sub(r"^//.*\n", "", text, flags=re.M)
    return {
        "entry": kernel["function"],
        "arguments": [cuda_argument(path, param, variant) for param in params],
        "constants": variant["constants"],
        "absent": [name for name, kind in variant["signature"] if kind is None],
        "num_warps": kernel["num_warps"], "num_ctas": 1, "shared": 0,
        "global_scratch_size": 0, "global_scratch_align": 1, "profile_scratch_size": 0, "profile_scratch_align": 1,
        "ptx": text,
    }  # yapf: disable


def cuda_refusal(report, kernel, header):
    """What nvcc says, and, where two declarations differ, what the registry's is."""
    report = report.replace(kernel["file"].rsplit("/", 1)[1] + "(", kernel["file"] + "(").strip()
    if header is None or '"C" linkage' not in report:
        return report
    declared = re.search(rf'extern "C" __global__ void {kernel["function"]}\([^)]*\)', header)
    return f"{report}\nthe registry declares it in ptx/{kernel['family']}.h as\n{declared[0] if declared else ''}"


# ---- Both ------------------------------------------------------------------------------------------------------------


def sources(root, path, imports):
    """The kernel's file and all it takes from beside it, each with its hash."""
    found, waiting = {}, [path]
    while waiting:
        current = waiting.pop()
        name = str(current.relative_to(root))
        if name not in found:
            found[name] = digest(current)
            beside = ((current.parent / other).resolve() for other in imports(current))
            waiting += [other for other in beside if other.is_file() and other.is_relative_to(root)]
    return dict(sorted(found.items()))


def check_names(kernel, variant, line, params):
    """Refuses a plan whose names are not the kernel's. Their order and types are for whoever reads the facts."""
    at = kernel["file"]
    planned = {name: False for name, _ in variant["signature"]} | {name: True for name in variant["constants"]}
    cuda = at.endswith(".cu")
    for param in params:
        name = param["name"]
        where = f"{at}:{param['line']}:{param['column']}"
        if name not in planned:
            raise Refused(f"{where}: {kernel['function']} has a parameter {name} that the registry does not list")
        if param.get("constexpr", False) != planned[name]:
            said, is_now = ("a constant", "a run-time parameter") if planned[name] else ("a parameter", "tl.constexpr")
            raise Refused(f"{where}: {name} is {is_now} of {kernel['function']}, but {said} in the registry")
    missing = [name for name, constant in planned.items() if not (cuda and constant)]
    for name in missing:
        if all(param["name"] != name for param in params):
            raise Refused(f"{at}:{line}: {kernel['function']} has no parameter {name}, which the registry lists")


def compile_kernel(root, kernel, header):
    path = (root / kernel["file"]).resolve()
    if not path.is_file():
        raise Refused(f"{kernel['file']} does not exist")
    cuda = path.suffix == ".cu"
    line, params = (cuda_declaration if cuda else triton_declaration)(path, kernel["function"])
    facts = {
        "file": kernel["file"],
        "function": kernel["function"],
        "line": line,
        "params": [{"name": p["name"], "constexpr": p.get("constexpr", False), "line": p["line"], "column": p["column"]}
                   for p in params],
        "sources": sources(root, path, cuda_imports if cuda else triton_imports),
        "variants": {},
    }
    for variant in kernel["variants"]:
        print(kernel["name"], variant["name"], file=sys.stderr, flush=True)
        try:
            check_names(kernel, variant, line, params)
            compiled = (cuda_compile(path, kernel, variant, params, header) if cuda else
                        triton_compile(path, kernel, variant))
        except Exception as error:
            raise Failed(kernel["name"], variant["name"], error) from error
        compiled |= registers(compiled["ptx"])
        facts["variants"][variant["name"]] = compiled
    return facts


def registers(ptx):
    """Registers of a thread, as ptxas counts them; nothing where it is not at hand."""
    try:
        import nvidia.cu13
        ptxas = Path(list(nvidia.cu13.__path__)[0]) / "bin" / "ptxas"
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "kernel.ptx"
            source.write_text(ptx)
            command = [ptxas, "-v", f"-arch=sm_{ARCH}", "-o", Path(folder) / "kernel.cubin", source]
            done = subprocess.run(command, capture_output=True, text=True)
    except (ImportError, OSError):
        return {}
    if done.returncode != 0:
        raise Refused(done.stderr.strip())
    found = re.search(r"Used (\d+) registers", done.stderr)
    return {"registers": int(found[1])} if found else {}


class Failed(Exception):
    """What went wrong, and with which kernel and variant."""

    def __init__(self, kernel, variant, error):
        message = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
        self.report = {"kernel": kernel, "variant": variant, "message": message}


def compile_plan(plan):
    if plan.get("format") != FORMAT:
        raise Failed(None, None, Refused(f"the plan has format {plan.get('format')}, and this script reads {FORMAT}"))
    root = Path(plan["root"]).resolve()
    sys.path.insert(0, str(root / "kernels"))
    toolchain = {
        "triton": importlib.metadata.version("triton"),
        "target": f"sm_{ARCH}",
        "ptx_version": f"{PTX_VERSION // 10}.{PTX_VERSION % 10}",
    }
    kernels = {}
    for kernel in plan["kernels"]:
        try:
            if kernel["file"].endswith(".cu"):
                toolchain["nvcc"] = importlib.metadata.version("nvidia-cuda-nvcc")
            kernels[kernel["name"]] = compile_kernel(root, kernel, plan.get("headers", {}).get(kernel["family"]))
        except Failed:
            raise
        except Exception as error:
            raise Failed(kernel["name"], None, error) from error
    return {"format": FORMAT, "toolchain": toolchain, "kernels": kernels}


def main():
    # What the author's shell says to Triton must not change what is compiled.
    for name in [name for name in os.environ if name.startswith("TRITON_")]:
        del os.environ[name]
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # or the PTX would hold paths of this machine
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        try:
            answer, status = compile_plan(json.load(sys.stdin)), 0
        except Failed as failed:
            answer, status = {"error": failed.report}, 1
    json.dump(answer, sys.stdout, indent=1)
    print()
    return status


if __name__ == "__main__":
    sys.exit(main())
