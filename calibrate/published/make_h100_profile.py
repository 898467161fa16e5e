#!/usr/bin/env python3
"""Makes calibrate/profiles/h100-sxm5-80gb.yaml from published figures.

Reads the copies of published tables in calibrate/published/data/ and the constants of h100_constants.yaml, fits collectives
and the attention rate, and writes the profile. The same input gives the same bytes. Needs python3 and python3-yaml.

    make_h100_profile.py            write the profile
    make_h100_profile.py --check    exit 1 if the profile in the tree differs from what would be written
"""

import argparse
import math
import sys

from make_a100_profile import HERE, load, non_negative_least_squares, quoted, sourced

PROFILE = HERE.parent / "profiles" / "h100-sxm5-80gb.yaml"
# Rates of fit_gemm() on the grid, relative to 128 x 256; tiles of one size share a rate.
TILES = ((128, 256, 1.0), (256, 128, 1.0), (128, 128, 0.9729), (64, 256, 0.85), (256, 64, 0.85), (128, 64, 0.7381),
         (64, 128, 0.7381), (64, 64, 0.7043))
KINDS = {"all_reduce": "all-reduce", "all_gather": "all-gather", "reduce_scatter": "reduce-scatter",
         "all_to_all": "all-to-all"}


def bus_factor(kind, ranks):
    return (2 if kind == "all-reduce" else 1) * (ranks - 1) / ranks


def gemm_rows(table, peak, grid):
    """(m, n, k, efficiency) of the kernel: the launch is taken out, rows that are mostly launch are left out."""
    rows = []
    for m, n, k, tflops, _ in table["rows"]:
        flops = 2 * m * n * k
        microseconds = flops / tflops / 1e6
        if grid["t0_us"] <= grid["mostly_launch"] * microseconds:
            rows.append((m, n, k, flops / (peak * 1e6 * (microseconds - grid["t0_us"]))))
    return rows


def gemm_section(data, peak):
    gemm = data["gemm"]
    split, correction = gemm["split_k"], gemm["correction"]
    rows = gemm_rows(load(HERE / "data" / "xla_gemm_h100.yaml"), peak, data["grid"])
    fitted = "fit_gemm() on the XLA grid"
    return ["gemm:",
            *(sourced(key, gemm[key], "  ") for key in ("scale", "efficiency_tn", "efficiency_nn", "efficiency_nt",
                                                         "batched_efficiency", "misaligned_factor")),
            "  tiles:", "    provenance: analytic", f"    source: '{fitted}'", "    columns: [m, n, rate]", "    rows:",
            *(f"    - [{m}, {n}, {rate:g}]" for m, n, rate in TILES),
            f"  split_k: {{max: {split['max']}, min_depth: {split['min_depth']}, prologue: {split['prologue']}, "
            f"provenance: analytic, source: '{fitted}'}}",
            f"  correction: {{radius: {correction['radius']}, prior: {correction['prior']}, provenance: analytic, "
            f"source: '{fitted}; each row left out: median 2.7 %, 95th percentile 10.3 %'}}",
            "  table:", "    provenance: published",
            "    source: 'OpenXLA matmul_interpolator_data.h (Apache-2.0), sm_90, bf16 in short bursts; "
            f"{data['grid']['t0_us']} us of launch taken out of each time'",
            "    precisions: [bf16, fp16]", "    columns: [m, n, k, layout, efficiency]", "    rows:",
            *(f"    - [{m}, {n}, {k}, TN, {e:.4f}]" for m, n, k, e in rows)]


def fit_collective(kind, ranks, points):
    """t us = a + S*f/B + c*sqrt(S), relative least squares, none negative: (a us, B GB/s, c us)."""
    factor = bus_factor(kind, ranks)
    features = [(1 / t, factor * size / 1e3 / t, math.sqrt(size) / t) for size, t in points]
    a, inverse, c = non_negative_least_squares(features, [1.0] * len(points))
    return a, 1 / inverse, c


def collective_table(source, rows):
    return ["- provenance: interpolated", f"  source: {quoted(source)}",
            "  columns: [kind, ranks, nodes, algorithm, latency, bus_bandwidth, sqrt_seconds]", "  rows:",
            *(f"  - [{kind}, {ranks}, {nodes}, any, {a:.2f} us, {b:.1f} GB/s, {c * 1e-6:.3e}]"
              for kind, ranks, nodes, (a, b, c) in rows)]


def collective_section():
    xla = [(KINDS[row["collective"]], row["ranks"], 1, list(zip(row["bytes"], row["time_us"])))
           for row in load(HERE / "data" / "xla_collectives_h100.yaml")["rows"] if row["collective"] in KINDS]
    slides = [("all-reduce", row["ranks"], row["nodes"],
               [(size, size * bus_factor("all-reduce", row["ranks"]) / 1e3 / bus)
                for size, bus in zip(row["bytes"], row["busbw_gb_s"])])
              for row in load(HERE / "data" / "nccl_curves.yaml")["busbw_curves_h100_nvlstree"]]
    fits = [[(kind, ranks, nodes, fit_collective(kind, ranks, points)) for kind, ranks, nodes, points in group]
            for group in (xla, slides)]
    return ["collectives:",
            *collective_table("OpenXLA collective_interpolator_data.h (Apache-2.0), one node of 8, 1 KiB to 2 GiB; fitted",
                              fits[0]),
            *collective_table("NVIDIA GTC 2024 s62129, slide 35: DGX H100, NDR, NVLSTree, read off the image to 3 GB/s; fitted",
                              fits[1])]


def attention_section(data):
    """Time per FLOP of cuDNN's causal forward is a line in 1/L; its rate at the length that training uses most."""
    row, = [r for r in load(HERE / "data" / "flash_attention.yaml")["rows"]
            if r["kernel"] == "cuDNN" and r["causal"] and r["direction"] == "fwd"]
    features = [(rate, rate / length) for length, rate in zip(row["seqlen"], row["tflops"])]
    inverse, slope = non_negative_least_squares(features, [1.0] * len(features))
    length = data["attention_length"]
    rate = 2 / (inverse + slope / length)  # the table halves the FLOPs of causal attention
    forward = {"value": f"{rate:.0f} TFLOP/s", "provenance": "interpolated",
               "source": f"cuDNN forward, causal, head size 128 (Dao-AILab/flash-attention, flash3_fp16_fwd.png): "
                         f"{1 / inverse:.0f} L/(L + {slope / inverse:.0f}) at L = {length}, on the full square"}
    return ["attention:", sourced("flash_forward", forward, "  "), sourced("flash_backward", data["flash_backward"], "  ")]


def header(data, sheet):
    device = data["device"]
    source = "data sheet by way of stas00/ml-engineering; peak_fp32 is TF32; " + device["memory_source"]
    return ["# Written by calibrate/published/make_h100_profile.py from published figures. Do not edit; edit its inputs.",
            "# Format: calibrate/profile/README.md.", "stagecraft_profile: 1", "name: h100-sxm5-80gb",
            f"date: {quoted(data['date'])}", "made_by: python3 calibrate/published/make_h100_profile.py", "device:",
            f"  name: {device['name']}", f"  sms: {sheet['sms']}", f"  memory: {device['memory']}",
            f"  memory_bandwidth: {round(sheet['hbm_tb_s'] * 1000)} GB/s",
            f"  nvlink: {sheet['nvlink_unidir_gb_s']} GB/s",
            f"  peak_fp32: {sheet['tf32_tflops']} TFLOP/s", f"  peak_fp16: {sheet['bf16_tflops']} TFLOP/s",
            f"  peak_bf16: {sheet['bf16_tflops']} TFLOP/s", f"  peak_fp8: {sheet['fp8_tflops']} TFLOP/s",
            "  provenance: published", f"  source: {quoted(source)}"]


def make_profile():
    data = load(HERE / "h100_constants.yaml")
    sheet, = [g for g in load(HERE / "data" / "devices_and_links.yaml")["gpus"] if g["gpu"] == "H100-SXM5-80GB"]
    spread = data["relative_spread"]
    lines = (header(data, sheet) + gemm_section(data, sheet["bf16_tflops"]) +
             [sourced(key, data[key]) for key in ("memory_efficiency", "loss_traffic")] + attention_section(data) +
             ["host:", *(sourced(key, value, "  ") for key, value in data["host"].items())] +
             [sourced(key, data[key]) for key in ("tensor_overlap", "gradient_overlap_slowdown")] + collective_section() +
             ["memory:", *(sourced(key, value, "  ") for key, value in data["memory"].items()), "relative_spread:",
              *(f"  {key}: {quoted(value) if key == 'source' else value}" for key, value in spread.items())])
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the profile would change")
    text = make_profile()
    if not parser.parse_args().check:
        PROFILE.write_text(text, encoding="utf-8")
        return 0
    if PROFILE.is_file() and PROFILE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PROFILE.name} is not what this script makes of its inputs; run it without --check", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
