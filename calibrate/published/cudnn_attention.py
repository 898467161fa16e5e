"""cuDNN's attention on Blackwell by its own benchmark (data/cudnn_attention_blackwell.yaml): in 16 bit, and in fp8.

Kernels with operands in fp8 are as much faster than those of 16 bit as there, length by length, so that what long runs hold of a short
one is the same of both. Rates of heads of two sizes (192 and 128) are of the FLOPs that are done.
"""
import math

from profile_yaml import BENCHMARK_BLOCKS, BLOCK_QUERIES, call_us, mean, table

SOURCE = "NVIDIA/cudnn-frontend, benchmark/attention_training, September 2026"
OPERANDS, HEADS = ("fp8", "mxfp8"), {"": 128, "_two_sizes": "latent"}
PASSES = {"forward": "fwd", "backward": "bwd"}
MASKS = {"causal": True, "dense": False}
QUERY_HEADS, SAMPLES = 64, 2
# Backward of the whole square with heads of 64 and 128 (gpt_oss @07b111f1, @546cc712, whose window that kernel does not skip).
HALF_HEAD_SIZE = {"value": 150, "provenance": "analytic",
                  "source": "cuDNN's backward in fp8 with heads of 64 and 128, 4,096 and 8,192 tokens, GB200 and GB300: 97 to 218 "
                            "(NVIDIA/cudnn-frontend @07b111f1, @546cc712)"}


def rates(gpu, heads, causal, operands, direction):
    published = table("cudnn_attention_blackwell")
    row, = [row for row in published["rows"]
            if (row["gpu"], row["heads"], row["causal"], row["operands"]) == (gpu, heads, causal, operands)]
    return dict(zip(published["seqlen"], row[direction]))


def fit_curve(points):
    """(R, half length) of the least mean |error| of R L / (L + half length), and that error."""
    def loss(rate, half):
        return mean([abs(rate * length / (length + half) / wanted - 1) for length, wanted in points])
    top = max(wanted for _, wanted in points)
    grid = [(round(top * (1 + 0.01 * step)), half) for half in range(0, 3200, 20) for step in range(-5, 60)]
    best = min(grid, key=lambda constants: loss(*constants))
    return *best, loss(*best)


def occupancy(half_blocks, sms, blocks):
    """By the rule of calibrate/profile/hardware_profile.hpp."""
    half = half_blocks * sms
    return blocks / (blocks + half) * (BENCHMARK_BLOCKS + half) / BENCHMARK_BLOCKS


def window_edge(gpu, direction, curve, half_blocks, sms, half_head_size, fixed_us):
    """Keys that the far edge of a window of 128 tokens costs, by the rule of models/compute_cost.hpp."""
    window, heads, head = 128, 128 * SAMPLES, 64
    published, = [row for row in table("cudnn_attention_blackwell")["windows"] if row["gpu"] == gpu]
    head_share = head / (head + half_head_size) * (128 + half_head_size) / 128
    edges = []
    for length, ms in zip(published["seqlen"], published[direction]):
        span = (math.ceil((window - 1) / 128) + 0.5) * 128 / length
        share = span - span ** 2 / 2
        done = 4 * length ** 2 * heads * head * (2.5 if direction == "bwd" else 1) * share / 1e6
        full = curve["rate"] * head_share * occupancy(half_blocks, sms, heads * length / BLOCK_QUERIES)
        keys = 2 * share * length
        edges.append((full * keys * (1e3 * ms - fixed_us) / done - keys - curve["half_length"]) / 2)
    return max(round(mean(edges)), 0)


def sixteen_bit(kernel, gpu, held, data):
    """cuDNN's kernel of a profile in 16 bit from the rates of `gpu`: `held` {value, source} is what long runs hold of them."""
    sms = data["device"]["sms"]
    for name, direction in PASSES.items():
        half_blocks = kernel[name]["half_blocks"]["value"]
        for mask, causal in MASKS.items():
            points = [(length, rate / occupancy(half_blocks, sms, SAMPLES * QUERY_HEADS * length / BLOCK_QUERIES))
                      for length, rate in rates(gpu, 128, causal, "bf16", direction).items()]
            rate, half_length, error = fit_curve(points)
            kernel[name][mask] = {
                "rate": rate, "half_length": half_length, "provenance": "analytic",
                "source": f"cuDNN on {gpu}, {direction}, {mask}, heads of 128, 2,048 to 32,768 tokens ({SOURCE}): mean error "
                          f"{100 * error:.0f} %; {held['source']}"}
        edge = window_edge(gpu, direction, kernel[name]["causal"], half_blocks, sms, data["attention"]["half_head_size"]["value"],
                           call_us(data))
        kernel[name]["window_edge"] = {"value": edge, "provenance": "analytic",
                                       "source": f"cuDNN on {gpu}, a window of 128 tokens, 128 heads of 64, 2,048 to 32,768 tokens "
                                                 "(NVIDIA/cudnn-frontend @546cc712)"}
        for mask in MASKS:
            kernel[name][mask]["rate"] = round(kernel[name][mask]["rate"] * held["value"])


def narrow_curve(sixteen, gpu, heads, causal, operands, direction):
    """Of heads of two sizes only causal rates are published; dense ones keep their ratio."""
    published = causal or heads == "latent"  # the mask of the rates that there are
    base, narrow = rates(gpu, 128, published, "bf16", direction), rates(gpu, heads, published, operands, direction)
    points = [(length, sixteen["rate"] * length / (length + sixteen["half_length"]) * narrow[length] / base[length])
              for length in narrow]
    rate, half, error = fit_curve(points)
    return {"rate": rate, "half_length": half, "provenance": "analytic" if causal == published else "assumed",
            "source": f"cuDNN in {operands} over 16 bit on {gpu}, {direction}, {'causal' if published else 'dense'}, heads of "
                      f"{'192 and 128' if heads == 'latent' else 128}, 2,048 to 32,768 tokens ({SOURCE}), times the rate in 16 bit: "
                      f"mean error {100 * error:.0f} %"}


def fp8_kernels(cudnn, gpu):
    """`fp8_kernels` of a profile, by its kernel in 16 bit."""
    kernels = {}
    for operands in OPERANDS:
        for suffix, heads in HEADS.items():
            kernel = {name: {**{mask: narrow_curve(cudnn[name][mask], gpu, heads, causal, operands, direction)
                                for mask, causal in MASKS.items()},
                             "half_blocks": cudnn[name]["half_blocks"]}
                      for name, direction in PASSES.items()}
            if heads == 128:
                kernel["half_head_size"] = HALF_HEAD_SIZE
            kernels[operands + suffix] = kernel
    return kernels
