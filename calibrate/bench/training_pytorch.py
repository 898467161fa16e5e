#!/usr/bin/env python3
"""Times whole training iterations of Llama-like models with PyTorch on one GPU: rows to hold predictions against.

No constant of a profile is fitted to them. A line a configuration goes to standard output:

    training_pytorch.py --seconds 150 > training.jsonl

Everything is in bf16 (weights, gradients, both moments of a fused AdamW), attention is PyTorch's scaled dot product on
cuDNN, tokens are random. With `compiled` the layers and the loss go through torch.compile. Seconds are medians of the
iterations behind the first few: of the whole, of all forwards with their backwards, and of the optimizer's step.
Without PyTorch or a GPU it says so on standard error and exits 0.
"""
import argparse
import gc
import json
import statistics
import sys
import time

from pytorch_gpu import torch_with_gpu

# Widths of published models, with fewer layers: name, hidden, ffn, heads, kv_heads, layers, vocabulary, sequence,
# micro-batch size, micro-batches. Most telling first.
SHAPES = [
    ("llama_8b_8_layers", 4096, 14336, 32, 8, 8, 32000, 4096, 2, 2),
    ("llama_1b", 2048, 8192, 32, 8, 16, 128256, 2048, 4, 2),
    ("llama_70b_2_layers", 8192, 28672, 64, 8, 2, 32000, 4096, 1, 4),
    ("llama_8b_4_layers_long", 4096, 14336, 32, 8, 4, 32000, 16384, 1, 2),
    ("gpt2_like", 768, 3072, 12, 12, 12, 50304, 1024, 8, 2),
]
WARM_UPS = 4
ITERATIONS = 12


def build(torch, shape):
    from torch import nn
    from torch.nn import functional
    _, hidden, ffn, heads, kv_heads, layers, vocabulary, sequence, _, _ = shape
    size = hidden // heads

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.RMSNorm(hidden), nn.RMSNorm(hidden)
            self.qkv = nn.Linear(hidden, (heads + 2 * kv_heads) * size, bias=False)
            self.out = nn.Linear(heads * size, hidden, bias=False)
            self.up = nn.Linear(hidden, 2 * ffn, bias=False)
            self.down = nn.Linear(ffn, hidden, bias=False)

        def turned(self, x, cos, sin):
            a, b = x.chunk(2, dim=-1)
            return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)

        def forward(self, x, cos, sin):
            batch = x.shape[0]
            q, k, v = self.qkv(self.norm1(x)).split((heads * size, kv_heads * size, kv_heads * size), dim=-1)
            q = self.turned(q.view(batch, sequence, heads, size), cos, sin).transpose(1, 2)
            k = self.turned(k.view(batch, sequence, kv_heads, size), cos, sin).transpose(1, 2)
            v = v.view(batch, sequence, kv_heads, size).transpose(1, 2)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=heads != kv_heads)
            x = x + self.out(y.transpose(1, 2).reshape(batch, sequence, heads * size))
            gate, up = self.up(self.norm2(x)).chunk(2, dim=-1)
            return x + self.down(functional.silu(gate) * up)

    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.RMSNorm(hidden)
            self.weight = nn.Linear(hidden, vocabulary, bias=False)

        def forward(self, x, targets):
            logits = self.weight(self.norm(x))
            return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(vocabulary, hidden)
            self.layers = nn.ModuleList(Layer() for _ in range(layers))
            self.head = Head()

        def forward(self, tokens, targets, cos, sin):
            x = self.embedding(tokens)
            for layer in self.layers:
                x = layer(x, cos, sin)
            return self.head(x, targets)

    return Model().to(device="cuda", dtype=torch.bfloat16)


def rotations(torch, shape):
    _, hidden, _, heads, _, _, _, sequence, _, _ = shape
    size = hidden // heads
    rates = 10000.0 ** (-torch.arange(0, size, 2, device="cuda") / size)
    angles = torch.outer(torch.arange(sequence, device="cuda"), rates)[None, :, None, :]
    return angles.cos().to(torch.bfloat16), angles.sin().to(torch.bfloat16)


def measure(torch, shape, compiled):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    name, hidden, ffn, heads, kv_heads, layers, vocabulary, sequence, micro_batch, micro_batches = shape
    torch.manual_seed(1)
    gc.collect()  # compiled layers of the configuration before are held by cycles
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    held_before = torch.cuda.memory_allocated()
    model = build(torch, shape)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    cos, sin = rotations(torch, shape)
    tokens = torch.randint(vocabulary, (micro_batches, micro_batch, sequence + 1), device="cuda")
    if compiled:
        for layer in model.layers:
            layer.compile()
        model.head.compile()
    totals, passes, steps = [], [], []
    with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION], set_priority=True):
        for _ in range(WARM_UPS + ITERATIONS):
            torch.cuda.synchronize()
            start = time.perf_counter()
            marks = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
            marks[0].record()
            for batch in tokens:
                loss = model(batch[:, :-1], batch[:, 1:], cos, sin) / micro_batches
                loss.backward()
            marks[1].record()
            optimizer.step()
            optimizer.zero_grad()
            marks[2].record()
            torch.cuda.synchronize()
            totals.append(time.perf_counter() - start)
            passes.append(marks[0].elapsed_time(marks[1]) * 1e-3)
            steps.append(marks[1].elapsed_time(marks[2]) * 1e-3)
    if not torch.isfinite(loss):
        raise ArithmeticError(f"{name}: the loss is {loss.item()}")
    keep = slice(WARM_UPS, None)
    return {
        "schema": "stagecraft.training/1", "model": name, "compiled": compiled, "device": torch.cuda.get_device_name(),
        "torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
        "hidden": hidden, "ffn_hidden": ffn, "heads": heads, "kv_heads": kv_heads, "layers": layers,
        "vocabulary": vocabulary, "sequence_length": sequence, "micro_batch_size": micro_batch,
        "micro_batches": micro_batches, "parameters": sum(p.numel() for p in model.parameters()),
        "iteration_s": statistics.median(totals[keep]), "least_s": min(totals[keep]), "most_s": max(totals[keep]),
        "passes_s": statistics.median(passes[keep]), "step_s": statistics.median(steps[keep]),
        "held_before_bytes": held_before, "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(), "loss": loss.item() * micro_batches,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=150, help="begin nothing after so long")
    arguments = parser.parse_args()
    torch = torch_with_gpu()
    if torch is None:
        return 0
    end = time.monotonic() + arguments.seconds
    wrong = 0
    for shape in SHAPES:
        for compiled in (True, False):
            if time.monotonic() > end:
                print(f"left out: {shape[0]}, compiled {compiled}", file=sys.stderr)
                continue
            try:
                print(json.dumps(measure(torch, shape, compiled), separators=(",", ":")), flush=True)
            except ArithmeticError as error:
                wrong += 1
                print(f"wrong: {error}", file=sys.stderr)
            except (RuntimeError, TypeError, ValueError) as error:
                print(f"skipped: {shape[0]}, compiled {compiled}: {str(error).splitlines()[0]}", file=sys.stderr)
            torch.cuda.empty_cache()
            torch.compiler.reset()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
