#!/usr/bin/env python3
"""Times PyTorch's scaled dot-product attention (flash and cuDNN backends) into the suite's JSON lines.

Optional: the suite itself measures cuDNN without PyTorch. This adds what a PyTorch trainer runs, under the tag
implementation=pytorch_flash or pytorch_cudnn. Lines go to standard output; append them to the suite's samples:

    attention_pytorch.py --setup-of samples.jsonl --seconds 120 >> samples.jsonl

A samples file is of one setup, so they carry that of the file, if device and driver are the same (else nothing is
measured, exit 2); PyTorch's own versions are in the tags seen_torch, seen_cuda and seen_cudnn. Without --setup-of the
lines stand for themselves.

Without PyTorch or a GPU it says so on standard error and exits 0. A configuration that a backend refuses is skipped
with PyTorch's reason. Times are of one execution with a cold L2, the median of the repeats; inputs are random
normal numbers; the result is checked against float64 on a few queries before anything is timed.
"""
import argparse
import datetime
import json
import math
import statistics
import subprocess
import sys
import time

from pytorch_gpu import torch_with_gpu

SCHEMA = "stagecraft.sample/1"

# (batch, heads, kv_heads, sequence, head_size, causal), as attention_shapes.cpp, most valuable first.
SHAPES = [
    (1, 32, 8, 8192, 128, True), (1, 12, 12, 2048, 128, True), (1, 8, 1, 8192, 128, True),
    (1, 32, 8, 4096, 128, True), (1, 16, 16, 4096, 128, False), (1, 16, 4, 4096, 128, True),
    (1, 4, 1, 8192, 128, True), (1, 8, 8, 16384, 128, True), (1, 16, 16, 1024, 128, True),
    (4, 16, 16, 2048, 64, True), (1, 16, 16, 512, 128, True), (1, 8, 8, 4096, 256, True),
    (1, 8, 1, 32768, 128, True), (1, 4, 1, 65536, 128, True),
]
REPEATS = 30
# Of the result's largest term: bf16 rounds the weights and the result, each by 2^-8, and one more for the rest.
BOUND = 3 * 2.0**-8


def counts(shape, backward):
    """FLOPs that count and bytes, as attention_shapes.cpp has them."""
    batch, heads, kv_heads, sequence, size, causal = shape
    tokens = batch * sequence
    flops = 4.0 * tokens * sequence * heads * size * (0.5 if causal else 1.0)
    operands = 2.0 * tokens * size * (2 * heads + 2 * kv_heads)
    return (2.5 * flops, 2 * operands + 4.0 * tokens * heads) if backward else (flops, operands + 4.0 * tokens * heads)


def quantile(values, share):
    """Linear between the closest ranks."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def sample(shape, backward, implementation, seconds, error, host):
    """One line; `host` has the setup and the tags of whoever measured."""
    batch, heads, kv_heads, sequence, size, causal = shape
    flops, moved = counts(shape, backward)
    median = statistics.median(seconds)
    return {
        "schema": SCHEMA, "family": "attention", "operator": "flash_backward" if backward else "flash_forward",
        "shape": {"batch": batch, "head_size": size, "heads": heads, "kv_heads": kv_heads, "sequence": sequence},
        "tags": {"cache": "cold", "causal": "true" if causal else "false", "dtype": "bf16",
                 "implementation": implementation, **host["tags"]},
        "median_s": median, "min_s": min(seconds),
        "spread": (quantile(seconds, 0.84) - quantile(seconds, 0.16)) / (2 * median),
        "repeats": len(seconds), "flops": flops, "bytes": moved, "max_error": error, "sm_mhz": 0, "power_w": 0,
        "setup": host["setup"], "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
    }


def driver_version():
    try:
        out = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                             capture_output=True, text=True, check=True)
        return out.stdout.split("\n")[0].strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def setup_of(torch):
    cudnn = torch.backends.cudnn.version()
    return {"device": torch.cuda.get_device_name(), "driver": driver_version(), "cuda": torch.version.cuda or "",
            "cublas": "", "cudnn": str(cudnn) if cudnn else "", "nccl": "", "clock_policy": "default",
            "power_limit_w": 0}


def versions_of(torch):
    """What PyTorch brings itself, as tags that were seen and make no other point."""
    cudnn = torch.backends.cudnn.version()
    return {"seen_torch": torch.__version__, "seen_cuda": torch.version.cuda or "", "seen_cudnn": str(cudnn or "")}


def setup_of_file(path, here):
    """The setup that the samples of a file share. ValueError where they are of another device or driver."""
    with open(path, encoding="utf-8") as file:
        first = next((line for line in file if line.strip()), None)
    if first is None:
        raise ValueError(f"{path} holds no sample")
    setup = json.loads(first)["setup"]
    for field in ("device", "driver"):
        if setup[field] != here[field]:
            raise ValueError(f"{path} is of {field} {setup[field]!r}, and here it is {here[field]!r}")
    return setup


def host_of(torch, path):
    here = setup_of(torch)
    return {"setup": setup_of_file(path, here) if path else here, "tags": versions_of(torch)}


def largest_error(torch, q, k, v, out, causal):
    """Over the bound, on a few queries of the last head, in float64."""
    sequence, group = q.shape[2], q.shape[1] // k.shape[1]
    keys, values = k[-1, -1].double(), v[-1, -1].double()
    assert (q.shape[1] - 1) // group == k.shape[1] - 1
    worst = 0.0
    for query in {0, sequence // 3, sequence - 1}:
        seen = query + 1 if causal else sequence
        scores = keys[:seen] @ q[-1, -1, query].double() / math.sqrt(q.shape[3])
        weights = torch.softmax(scores, 0)
        wanted = weights @ values[:seen]
        magnitude = weights @ values[:seen].abs()
        error = ((out[-1, -1, query].double() - wanted).abs() / (BOUND * magnitude + 1e-6)).max().item()
        worst = error if math.isnan(error) else max(worst, error)
    return worst


def cold_times(torch, run, flush):
    """Seconds of `run`, each after the L2 was rewritten and behind enough queued work to hide the launch."""
    start = [torch.cuda.Event(enable_timing=True) for _ in range(REPEATS)]
    stop = [torch.cuda.Event(enable_timing=True) for _ in range(REPEATS)]
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    for i in range(REPEATS):
        flush.zero_()
        torch.cuda._sleep(200_000)  # cycles: longer than the host needs to queue the call
        start[i].record()
        run()
        stop[i].record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) * 1e-3 for a, b in zip(start, stop)]


def measure(torch, shape, backend, implementation, flush, host):
    from torch.nn.attention import sdpa_kernel
    batch, heads, kv_heads, sequence, size, causal = shape
    # Dense as [batch, sequence, heads, size], as trainers keep them.
    q, k, v, d_o = (torch.randn(batch, sequence, n, size, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
                    for n in (heads, kv_heads, kv_heads, heads))
    for tensor in (q, k, v):
        tensor.requires_grad_(True)
    options = {"enable_gqa": True} if heads != kv_heads else {}
    with sdpa_kernel(backend):
        def forward():
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, **options)
        with torch.no_grad():
            error = largest_error(torch, q, k, v, forward(), causal)
            if not error <= 1:
                raise ArithmeticError(f"the result is {error} times its bound away from float64")
            yield sample(shape, False, implementation, cold_times(torch, forward, flush), error, host)
        out = forward()

        def backward():
            return torch.autograd.grad(out, (q, k, v), d_o, retain_graph=True)
        # The gradient is not checked here; -1 says so.
        yield sample(shape, True, implementation, cold_times(torch, backward, flush), -1, host)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=120, help="stop after so long, most valuable shapes first")
    parser.add_argument("--setup-of", metavar="FILE", help="samples of the suite on this GPU, to which the lines belong")
    arguments = parser.parse_args()
    torch = torch_with_gpu()
    if torch is None:
        return 0
    from torch.nn.attention import SDPBackend
    torch.manual_seed(1)
    end = time.monotonic() + arguments.seconds
    l2_bytes = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 64 << 20)
    flush = torch.empty(2 * l2_bytes, dtype=torch.int8, device="cuda")
    try:
        host = host_of(torch, arguments.setup_of)
    except (OSError, ValueError, KeyError) as error:
        print(f"attention_pytorch.py: {error}", file=sys.stderr)
        return 2
    wrong = 0
    for shape in SHAPES:
        for backend, implementation in ((SDPBackend.FLASH_ATTENTION, "pytorch_flash"),
                                        (SDPBackend.CUDNN_ATTENTION, "pytorch_cudnn")):
            if time.monotonic() > end:
                return 1 if wrong else 0
            try:
                for line in measure(torch, shape, backend, implementation, flush, host):
                    print(json.dumps(line, separators=(",", ":")), flush=True)
            except ArithmeticError as error:
                wrong += 1
                print(f"wrong: {implementation} {shape}: {error}", file=sys.stderr)
            except (RuntimeError, TypeError) as error:
                print(f"skipped: {implementation} {shape}: {str(error).splitlines()[0]}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
