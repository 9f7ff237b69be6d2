#!/usr/bin/env python3
"""The workloads of `tidelock bench` in other implementations, timed in the same way on the same inputs.

    tidelock bench --peers "python3 benches/peers/peers.py"

The last argument is a folder with `cases.json` and files of raw values; the answer goes to the standard output as JSON. Peers:

torch       what a step does in plain PyTorch, as vLLM's V1 does it: softmax, exponential_, div, argmax; sorts for top-k and top-p
triton      one Triton kernel written for this comparison: a Gumbel race with one program a row, as engines have it
read        no peer: one read of what a step has to read, by a Triton kernel that does nothing else
flashinfer  FlashInfer's sampling as its documentation says to call it, where it can be imported; its noise is f32 throughout

On a GPU a step is captured into a CUDA graph, its replays are timed between events, and a buffer larger than the cache is written
before each; where `flush` is "read", another one is read after that. On a CPU torch has two threads.
"""

import json
import sys
import time
from pathlib import Path

import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # on a CPU there is none
    triton = None
try:
    import flashinfer
    import flashinfer.sampling
    no_flashinfer = None
except Exception as error:  # it asks for more than packages when it is imported
    flashinfer, no_flashinfer = None, error

WARM_UP = 5
CPU_THREADS = 2


class Skip(Exception):
    """A peer that cannot do a workload here."""


# ---- Inputs ----------------------------------------------------------------------------------------------------------


class Inputs:
    """The tensors of one case, on its device."""

    def __init__(self, case, folder, device, cache):
        self.case, self.folder, self.device, self.cache = case, folder, device, cache
        self.rows, self.vocab, self.batch = case["rows"], case["vocab_size"], case["batch"]
        self.noise_type = torch.float64 if case["use_fp64_gumbel"] else torch.float32

    def matrix(self, name):
        return self._read(name, torch.float32).view(self.rows, self.vocab)

    def tokens(self):
        return self._read("draft_token_ids", torch.int32)

    def logits(self):
        logits = self.matrix("logits")
        return logits if self.case["logits"] == "f32" else logits.to(torch.bfloat16)

    def _read(self, name, dtype):
        path = self.folder / self.case["files"][name]
        return torch.from_file(str(path), dtype=dtype, size=path.stat().st_size // 4).to(self.device, copy=True)


# ---- torch, as V1 does it --------------------------------------------------------------------------------------------


def race(probs, noise):
    """Draws a token of each row: the largest probability over exponential noise."""
    noise.exponential_()
    return probs.to(noise.dtype).div(noise).argmax(dim=-1)


def filtered(logits, top_k, top_p):
    """Logits with -inf for what top-k and top-p remove, by one ascending sort."""
    values, order = logits.sort(dim=-1, descending=False)
    if top_k is not None:
        least = values.gather(1, (values.size(1) - top_k.long()).unsqueeze(1))
        values.masked_fill_(values < least, float("-inf"))
    if top_p is not None:
        mass = values.softmax(dim=-1).cumsum(dim=-1)
        removed = mass <= 1 - top_p.unsqueeze(1)
        removed[:, -1] = False
        values.masked_fill_(removed, float("-inf"))
    return logits.scatter(dim=-1, index=order, src=values)


def torch_sample(inputs):
    logits, case = inputs.logits(), inputs.case
    noise = torch.empty(inputs.rows, inputs.vocab, dtype=inputs.noise_type, device=inputs.device)
    of_each = lambda value, dtype: None if value is None else torch.full((inputs.rows,), value, dtype=dtype, device=inputs.device)
    top_k, top_p = of_each(case["top_k"], torch.int32), of_each(case["top_p"], torch.float32)

    def step():
        values = logits.float()
        if top_k is not None or top_p is not None:
            values = filtered(values, top_k, top_p)
        return race(values.softmax(dim=-1, dtype=torch.float32), noise)

    return step


def torch_argmax(inputs):
    logits = inputs.logits()
    return lambda: logits.argmax(dim=-1)


def torch_softmax(inputs):
    logits = inputs.logits()
    return lambda: logits.softmax(dim=-1, dtype=torch.float32)


def torch_log_softmax(inputs):
    logits = inputs.logits()
    return lambda: logits.log_softmax(dim=-1, dtype=torch.float32)


def torch_top_logprobs(inputs):
    logits, count = inputs.logits(), inputs.case["top_logprobs"]
    return lambda: logits.log_softmax(dim=-1, dtype=torch.float32).topk(count, dim=-1)


def verification(inputs, target_probs):
    """One batch of drafts against the target's distributions, in whole-tensor operations: accept by the ratio of probabilities,
    recover from the residual, and keep what comes before the first rejection and the recovered token there."""
    batch, drafts, vocab = inputs.batch, inputs.case["drafts"], inputs.vocab
    draft_probs, tokens = inputs.matrix("draft_probs"), inputs.tokens().long()
    noise = torch.empty(batch, vocab, dtype=inputs.noise_type, device=inputs.device)
    uniforms = torch.empty(batch * drafts, dtype=torch.float64, device=inputs.device)
    columns, bonus = torch.arange(drafts + 1, device=inputs.device), tokens.view(batch, drafts)[:, :1]

    def step():
        target = target_probs()
        uniforms.uniform_()
        noise.exponential_()
        p, q = (probs.gather(1, tokens.unsqueeze(1)).squeeze(1) for probs in (target, draft_probs))
        accepted = ((q > 0) & (p.double() / q >= uniforms)).view(batch, drafts)
        residual = (target - draft_probs).clamp_(min=0).view(batch, drafts, vocab)
        recovered = residual.to(noise.dtype).div(noise.unsqueeze(1)).argmax(dim=-1)
        kept = accepted.long().cumprod(dim=1).sum(dim=1, keepdim=True)
        output = torch.where(columns[:-1] < kept, tokens.view(batch, drafts), recovered)
        output = torch.cat([output, bonus], dim=1)
        return output.masked_fill_(columns > kept, -1)

    return step


def torch_verify_probs(inputs):
    target = inputs.matrix("target_probs")
    return verification(inputs, lambda: target)


def torch_verify(inputs):
    logits = inputs.logits()
    return verification(inputs, lambda: logits.softmax(dim=-1, dtype=torch.float32))


# ---- Triton ----------------------------------------------------------------------------------------------------------

if triton is not None:

    @triton.jit
    def gumbel_race(tokens, logits, seeds, vocab, FP64: tl.constexpr, BLOCK: tl.constexpr):
        """The token with the largest logit plus Gumbel noise; a row a program."""
        row = tl.program_id(0).to(tl.int64)
        seed = tl.load(seeds + row)
        best = tl.full((), float("-inf"), tl.float64 if FP64 else tl.float32)
        winner = tl.full((), 0, tl.int32)
        for start in range(0, vocab, BLOCK):
            column = start + tl.arange(0, BLOCK)
            value = tl.load(logits + row * vocab + column, mask=column < vocab, other=float("-inf")).to(tl.float32)
            if FP64:
                a, b, _, _ = tl.randint4x(seed, column)
                word = (a.to(tl.uint64) << 32) | b.to(tl.uint64)
                uniform = ((word >> 12).to(tl.float64) + 0.5) * 2.220446049250313e-16
                score = value.to(tl.float64) - tl.log(-tl.log(uniform))
            else:
                score = value - tl.log(-tl.log(tl.maximum(tl.rand(seed, column), 1e-10)))
            at = tl.argmax(score, axis=0)
            largest = tl.max(score, axis=0)
            winner = tl.where(largest > best, start + at, winner)
            best = tl.maximum(largest, best)
        tl.store(tokens + row, winner)


def triton_sample(inputs):
    if triton is None:
        raise Skip("Triton cannot be imported")
    if inputs.device.type != "cuda":
        raise Skip("it needs a GPU")
    logits = inputs.logits()
    tokens = torch.empty(inputs.rows, dtype=torch.int32, device=inputs.device)
    seeds = torch.arange(inputs.rows, dtype=torch.int64, device=inputs.device)
    fp64 = inputs.case["use_fp64_gumbel"]
    return lambda: gumbel_race[(inputs.rows,)](tokens, logits, seeds, inputs.vocab, FP64=fp64, BLOCK=4096, num_warps=8)


# ---- FlashInfer ------------------------------------------------------------------------------------------------------


def with_flashinfer(inputs):
    """FlashInfer's sampling, and its random state: on the GPU, since a step that asks torch's generator cannot be captured."""
    if flashinfer is None:
        raise Skip(f"FlashInfer cannot be imported: {no_flashinfer}")
    if inputs.device.type != "cuda":
        raise Skip("it needs a GPU")
    seed, offset = (torch.tensor([value], dtype=torch.int64, device=inputs.device) for value in (7, 0))
    return flashinfer.sampling, {"seed": seed, "offset": offset}


def advancing(step, state):
    """How long a step takes depends on its draws, so no two replays have the same; the clock stands still meanwhile."""
    step.between = lambda: state["offset"].add_(4096)
    return step


def flashinfer_sample(inputs):
    (sampling, state), case = with_flashinfer(inputs), inputs.case
    logits, top_k, top_p = inputs.logits(), case["top_k"], case["top_p"]
    if top_k is not None and top_p is not None:  # top-p of what top-k left, as all here do it
        step = lambda: sampling.top_k_top_p_sampling_from_logits(logits, top_k, top_p, filter_apply_order="top_k_first", **state)
    elif top_k is not None:
        step = lambda: sampling.top_k_sampling_from_probs(sampling.softmax(logits), top_k, **state)
    elif top_p is not None:
        step = lambda: sampling.top_p_sampling_from_probs(sampling.softmax(logits), top_p, **state)
    else:
        step = lambda: sampling.sampling_from_logits(logits, **state)
    return advancing(step, state)


def flashinfer_softmax(inputs):
    (sampling, _), logits = with_flashinfer(inputs), inputs.logits()
    return lambda: sampling.softmax(logits)


def flashinfer_verify_probs(inputs):
    sampling, state = with_flashinfer(inputs)
    batch, drafts, vocab = inputs.batch, inputs.case["drafts"], inputs.vocab
    draft, tokens = inputs.matrix("draft_probs").view(batch, drafts, vocab), inputs.tokens().view(batch, drafts)
    target = inputs.matrix("target_probs").view(batch, drafts, vocab)
    target = torch.cat([target, target[:, -1:]], dim=1).contiguous()  # it draws the bonus token, too
    counts = [torch.zeros(batch, dtype=torch.int32, device=inputs.device) for _ in range(2)]  # it adds to them
    return advancing(lambda: sampling.chain_speculative_sampling(draft, tokens, target, *counts, **state), state)


# ---- Reading alone: no step can be faster ----------------------------------------------------------------------------

if triton is not None:

    @triton.jit
    def read_kernel(values, found, number, BLOCK_SIZE: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        x = tl.load(values + offsets, mask=offsets < number, other=float("-inf"))
        tl.store(found + tl.program_id(0), tl.max(x.to(tl.float32)))


READERS = [(2048, 4), (4096, 4), (4096, 8), (8192, 8), (16384, 16)]  # elements and warps of a program


def reading(values, device, cache):
    """One read of all values, by the quickest of a few ways."""
    if triton is None:
        raise Skip("there is no triton here")
    number = values.numel()
    found = torch.empty(-(-number // min(block for block, _ in READERS)), dtype=torch.float32, device=device)

    def reader(block, warps):
        return lambda: read_kernel[(-(-number // block),)](values, found, number, BLOCK_SIZE=block, num_warps=warps)

    steps = [reader(*how) for how in READERS]
    return min(steps, key=lambda step: sorted(time_on_gpu(step, 11, cache))[5])


def read_logits(inputs):
    return reading(inputs.logits().flatten(), inputs.device, inputs.cache)


def read_probs(inputs):
    rows = (inputs.matrix(name)[:inputs.batch].flatten() for name in ("target_probs", "draft_probs"))
    return reading(torch.cat(list(rows)), inputs.device, inputs.cache)


PEERS = {
    ("read", "sample"): read_logits,
    ("read", "argmax"): read_logits,
    ("read", "top_logprobs"): read_logits,
    ("read", "verify_probs"): read_probs,
    ("torch", "sample"): torch_sample,
    ("torch", "argmax"): torch_argmax,
    ("torch", "softmax"): torch_softmax,
    ("torch", "log_softmax"): torch_log_softmax,
    ("torch", "top_logprobs"): torch_top_logprobs,
    ("torch", "verify_probs"): torch_verify_probs,
    ("torch", "verify"): torch_verify,
    ("triton", "sample"): triton_sample,
    ("flashinfer", "sample"): flashinfer_sample,
    ("flashinfer", "softmax"): flashinfer_softmax,
    ("flashinfer", "verify_probs"): flashinfer_verify_probs,
}  # yapf: disable

# ---- The clock -------------------------------------------------------------------------------------------------------


class Cache:
    """Fills caches with what no step works with: lines that were written, or that were read after that."""

    def __init__(self, number, flush, device):
        self.written = torch.empty(number, dtype=torch.uint8, device=device)
        self.read = torch.zeros(number // 4, dtype=torch.float32, device=device) if flush == "read" and device.type == "cuda" else None

    def flush(self):
        self.written.zero_()
        if self.read is not None:
            self.read.max()


def time_on_gpu(step, replays, cache):
    torch.cuda.synchronize()  # what the inputs are made with runs on another stream
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
        stream.synchronize()
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                step()
            run = graph.replay
        except RuntimeError as error:
            # A step that synchronises cannot be captured; its launches are then part of its time, as they are in use.
            print(f"not captured, so launched each time: {error}", file=sys.stderr)
            torch.cuda.synchronize()
            run = step
        events = []
        for _ in range(WARM_UP + replays):
            getattr(step, "between", lambda: None)()
            cache.flush()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record(stream)
            run()
            end.record(stream)
            events.append((start, end))
        torch.cuda.synchronize()
    return [start.elapsed_time(end) * 1e3 for start, end in events[WARM_UP:]]


def time_on_cpu(step, replays, cache):
    step()
    micros = []
    for _ in range(replays):
        cache.flush()
        start = time.perf_counter()
        step()
        micros.append((time.perf_counter() - start) * 1e6)
    return micros


def spread(micros):
    micros = sorted(micros)
    at = lambda part: round(micros[round((len(micros) - 1) * part)], 3)
    return {"median_us": at(0.5), "p10_us": at(0.1), "p90_us": at(0.9)}


def main():
    folder = Path(sys.argv[1])
    request = json.loads((folder / "cases.json").read_text())
    device = torch.device(request["device"])
    if device.type == "cpu":
        torch.set_num_threads(CPU_THREADS)
    else:
        torch.cuda.set_device(device)
    cache = Cache(request["flushed_bytes"], request["flush"], device)
    time_step = time_on_cpu if device.type == "cpu" else time_on_gpu
    results, skipped = [], []
    for case in request["cases"]:
        for peer in case["peers"]:
            name = {"workload": case["workload"], "peer": peer}
            print(f"{case['workload']}, batch {case['batch']}, {case['vocab_size']} tokens: {peer}", file=sys.stderr)
            try:
                if (peer, case["layer"]) not in PEERS:
                    raise Skip("it is not written")
                step = PEERS[peer, case["layer"]](Inputs(case, folder, device, cache))
                times = spread(time_step(step, request["replays"], cache))
                results.append(name | {"batch": case["batch"], "vocab_size": case["vocab_size"]} | times)
            except Skip as why:
                if (entry := name | {"why": str(why)}) not in skipped:
                    skipped.append(entry)
            except Exception as error:  # one peer that fails is no reason to lose the others
                skipped.append(name | {"why": f"batch {case['batch']}: {type(error).__name__}: {str(error).splitlines()[0]}"})
    versions = {"torch": torch.__version__}
    versions |= {"triton": triton.__version__} if triton is not None else {}
    versions |= {"flashinfer": flashinfer.__version__} if flashinfer is not None else {}
    json.dump({"versions": versions, "results": results, "skipped": skipped}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
