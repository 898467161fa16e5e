#!/usr/bin/env python3
"""Makes calibrate/profiles/b200-sxm-180gb.yaml from published figures: an extrapolation, no B200 was at hand.

OpenXLA's grid gives the GEMMs, SimuMax's table of the device attention, grouped GEMMs and the collectives of a node;
b200_constants.yaml the rest.

    make_b200_profile.py            write the profile
    make_b200_profile.py --check    exit 1 if the profile in the tree differs from what would be written
"""

import sys

from cudnn_attention import fp8_kernels
from make_h100_profile import gemm_section
from profile_yaml import (BENCHMARK_BLOCKS, BLOCK_QUERIES, HERE, call_us, collective_table, data_sheet, grouped_constants, header,
                          kernels_and_host, load, main, mean, overheads, table)

GIGABYTE = 1.024 ** 3  # SimuMax multiplies its GB/s by 1024^3
RANKS = (2, 4, 8)
KINDS = {"all_reduce": "all-reduce", "all_gather": "all-gather", "reduce_scatter": "reduce-scatter",
         "all2all": "all-to-all"}


def heads_rows(published, op):
    """[(heads, TFLOP/s done)] at a sequence of 4096, heads of 128, one causal sample; the source counts the full square."""
    part = published["ops"][op]
    rows = [dict(zip(part["columns"], values)) for values in part["rows"]]
    return [(row["head_num"], part["tflops"] * row["efficiency"] / 2) for row in rows
            if row["seq_len"] == 4096 and row["qk_head_dim"] == 128 and row["qkv_contiguous"]]


def flash_error(row, rate, half_length, half_blocks, sms, fixed_us):
    """predicted/published - 1 of one row (length, heads of all samples, FLOPs in millions, TFLOP/s) by the rule of
    models/compute_cost.hpp."""
    length, heads, done, published_rate = row
    blocks, half = heads * length / BLOCK_QUERIES, half_blocks * sms
    occupancy = blocks / (blocks + half) * (BENCHMARK_BLOCKS + half) / BENCHMARK_BLOCKS
    us = fixed_us + done / (rate * occupancy * length / (length + half_length))
    return us / (done / published_rate) - 1


def attention_error(row, rate, half_blocks, sms, spec):
    heads, published_rate = row
    done = 0.5 * 4 * 4096 ** 2 * heads * 128 * spec["work"] / 1e6
    return flash_error((4096, heads, done, published_rate), rate, spec["half_length"], half_blocks, sms, spec["fixed_us"])


def fit_pass(rows, sms, spec):
    """(R, blocks an SM at half of it) of the least mean |error|, and that error."""
    grid = [(rate, round(0.1 * i, 1)) for rate in range(600, 1500, 5) for i in range(81)]

    def loss(constants):
        return mean([abs(attention_error(row, *constants, sms, spec)) for row in rows])
    best = min(grid, key=loss)
    return best, loss(best)


def attention_pass(published, op, name, data):
    spec = data["attention"]
    lengths = spec["half_lengths"][name]
    (rate, half_blocks), error = fit_pass(
        heads_rows(published, op), data["device"]["sms"],
        {"work": 1 if name == "forward" else 2.5, "fixed_us": call_us(data), "half_length": lengths["causal"]})
    story = (f"SimuMax @4dcaae51, {op} at 4096 with 4 to 128 heads of 128: mean error {100 * error:.0f} %; half length of the "
             "H100's cuDNN")
    rates = f"{story}; {spec['sustained']['source']}"
    rate = round(rate * spec["sustained"]["value"])
    return {"causal": {"rate": rate, "half_length": lengths["causal"], "provenance": "analytic", "source": rates},
            "dense": {"rate": round(rate * spec["dense_over_causal"]), "half_length": lengths["dense"],
                      "provenance": "assumed", "source": "dense over causal as on the H100; " + rates},
            "half_blocks": {"value": half_blocks, "provenance": "analytic", "source": story},
            "window_edge": spec["window_edges"][name]}


def fa2_rows(direction):
    """The rows of flash_error() that are published; heads are of all samples."""
    rows = []
    for row in table("flash_attention_b200")["rows"]:
        if row["direction"] != direction:
            continue
        for length, rate in zip(row["seqlen"], row["tflops"]):
            heads = row["batch"] * row["heads"] if "batch" in row else 16384 // length * 2048 // row["head_dim"]
            work = 4 * length ** 2 * heads * row["head_dim"] * (2.5 if direction == "bwd" else 1) / 1e6
            rows.append((length, heads, work, rate))
    return rows


def fa2_pass(name, data):
    spec, sms = data["attention"]["fa2"], data["device"]["sms"]
    fixed_us = call_us(data)
    rows, half_blocks = fa2_rows({"forward": "fwd", "backward": "bwd"}[name]), spec["half_blocks"][name]

    def loss(constants):
        return mean([abs(flash_error(row, *constants, half_blocks, sms, fixed_us)) for row in rows])
    rate, half_length = min(((r, h) for r in range(300, 460, 2) for h in range(0, 400, 10)), key=loss)
    story = (f"FlashAttention-2 on B200, dense, heads of {'64 and 128' if name == 'forward' else '64'} (Dao-AILab/flash-attention #1589, "
             f"meta-pytorch/tritonbench #171): mean error {100 * loss((rate, half_length)):.0f} %")
    return {"causal": {"rate": round(rate * spec["causal_over_dense"][name]), "half_length": spec["causal_half_lengths"][name],
                       "provenance": "assumed", "source": "causal over dense as measured on the H100; " + story},
            "dense": {"rate": rate, "half_length": half_length, "provenance": "interpolated", "source": story},
            "half_blocks": {"value": half_blocks, "provenance": "assumed", "source": "about that of the H100"},
            "window_edge": {"value": spec["window_edges"][name], "provenance": "assumed",
                            "source": "that of FlashAttention-2 on A100"}}


def add_kernels(data, published):
    gemm = data["gemm"]
    data["attention"]["kernels"] = {
        "cudnn": {"forward": attention_pass(published, "sdp_fwd", "forward", data),
                  "backward": attention_pass(published, "sdp_bwd", "backward", data)},
        "fa2": {"forward": fa2_pass("forward", data), "backward": fa2_pass("backward", data),
                "half_head_size": data["attention"]["fa2"]["half_head_size"]}}
    device = {"tiles": gemm["tiles"], "prologue": gemm["split_k"]["prologue"], "sms": data["device"]["sms"],
              "peak": published["ops"]["group_matmul"]["tflops"] * gemm["scale"]["value"],
              "e": {tag: gemm[f"efficiency_{tag.lower()}"]["value"] for tag in ("TN", "NN", "NT")},
              "bytes_us": data["memory_efficiency"]["value"] * 8e6}
    data["experts"] = {**grouped_constants(published, device, "SimuMax's B200"), **data["experts"]}


def collectives(published):
    """SimuMax's own fits of a node: latency + fixed latency + S*f/(GB/s * efficiency)."""
    network = published["networks"]["high_intra_node"]
    rows = []
    for op, kind in KINDS.items():
        fit = network["ops"][op]
        for ranks in RANKS:
            fixed = fit["fixed_latency_us_by_comm_num"].get(ranks, fit["fixed_latency_us"])
            bandwidth = network["default"]["gbps"] * GIGABYTE * fit["efficient_factor"]
            rows.append((kind, ranks, 1, (fit["latency_us"] + fixed, bandwidth, 0)))
    return rows


def make_lines():
    data, published = load(HERE / "b200_constants.yaml"), table("simumax_efficiency_b200")
    sheet = data_sheet("B200-SXM")
    add_kernels(data, published)
    data["attention"]["fp8_kernels"] = fp8_kernels(data["attention"]["kernels"]["cudnn"], "GB200")
    return (header("make_b200_profile.py", "b200-sxm-180gb", data, sheet) +
            gemm_section(data, table("xla_gemm_b200"), sheet["bf16_tflops"], "sm_100") + kernels_and_host(data) +
            ["collectives:", *collective_table("SimuMax @4dcaae51, b200_bf16_ceperm: its fits of one node of 8; no curve is "
                                               "published", collectives(published))] + overheads(data))


if __name__ == "__main__":
    sys.exit(main(__doc__, "b200-sxm-180gb", make_lines))
