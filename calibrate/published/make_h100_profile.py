#!/usr/bin/env python3
"""Makes calibrate/published/h100-published.yaml from published figures of the H100. No scenario takes it: it is the base that
tools/refit-profile fits our samples of an H100 on (calibrate/measured), which gives calibrate/profiles/h100-sxm5-80gb.yaml. What
those do not tell stands there as it stands here.

Reads the copies of published tables in calibrate/published/data/ and the constants of h100_constants.yaml, fits collectives
and attention, and writes the base. The same input gives the same bytes. Needs python3 and python3-yaml.

    make_h100_profile.py            write the base
    make_h100_profile.py --check    exit 1 if the base in the tree differs from what would be written
"""

import sys

from profile_yaml import (HERE, azure_points, bus_factor, collective_table, data_sheet, fit_collective, fit_noisy_collective, header,
                          kernels_and_host, load, main, overheads, point_table, sourced, table)

NAME = "h100-published"
KINDS = {"all_reduce": "all-reduce", "all_gather": "all-gather", "reduce_scatter": "reduce-scatter",
         "all_to_all": "all-to-all", "collective_permute_ring8": "send-receive"}
CONSTANTS = ("scale", "efficiency_tn", "efficiency_nn", "efficiency_nt", "batched_efficiency", "misaligned_factor",
             "fp8_factor", "fp8_prologue", "blockwise_factor", "mxfp8_factor", "nvfp4_factor")
XLA_TABLE = "OpenXLA collective_interpolator_data.h (Apache-2.0), one node of 8, 1 KiB to 2 GiB"
XLA_COLLECTIVES = XLA_TABLE + "; fitted"
XLA_POINTS = XLA_TABLE + "; times that fall with the size are pooled"
PAIRS = ("a communicator of two ranks has channels enough (NCCL src/enqueue.cc: 32 over the ranks, at least, of 19 GB/s each, "
         "which eight ranks of XLA's permutes feel up to 64 MiB): latency of the fit over eight, rate of the largest permute")
AZURE = ("all-reduce of 8 x H100 by NVLS, nccl-tests, one process for all (Azure/AI-benchmarking-guide @f350e7e6, "
         "Azure_Results/ND_H100_v5_results.md)")
NVLS_FROM = 2 ** 20  # bytes; launches of one process are a part of what smaller sizes take
NVLS_TREE = "NVIDIA GTC 2024 s62129, slide 35: DGX H100, NDR, NVLSTree, read off the image to 3 GB/s; fitted"


def gemm_rows(grid, peak, t0_us, mostly_launch):
    """(m, n, k, efficiency) of the kernel: the launch is taken out, rows that are mostly launch are left out."""
    rows = []
    for m, n, k, tflops, *_ in grid["rows"]:
        flops = 2 * m * n * k
        microseconds = flops / tflops / 1e6
        if t0_us <= mostly_launch * microseconds:
            rows.append((m, n, k, flops / (peak * 1e6 * (microseconds - t0_us))))
    return rows


def gemm_section(data, grid, peak, device):
    """From a grid of stand-alone calls in one layout, with the tile model that fit_gemm() found on it."""
    gemm, split, correction = data["gemm"], data["gemm"]["split_k"], data["gemm"]["correction"]
    t0, errors = data["grid"]["t0_us"], data["grid"]
    fitted = "fit_gemm() on the XLA grid"
    rows = gemm_rows(grid, peak, t0, data["grid"]["mostly_launch"])
    return ["gemm:", *(sourced(key, gemm[key], "  ") for key in CONSTANTS if key in gemm),
            "  tiles:", "    provenance: analytic", f"    source: '{fitted}'", "    columns: [m, n, rate]", "    rows:",
            *(f"    - [{m}, {n}, {rate:g}]" for m, n, rate in gemm["tiles"]),
            f"  split_k: {{max: {split['max']}, min_depth: {split['min_depth']}, prologue: {split['prologue']}, "
            f"provenance: analytic, source: '{fitted}'}}",
            f"  correction: {{radius: {correction['radius']}, prior: {correction['prior']}, provenance: analytic, "
            f"source: '{fitted}; each row left out: median {errors['median_error']}, 95th percentile {errors['p95_error']}'}}",
            "  table:", "    provenance: published",
            f"    source: 'OpenXLA matmul_interpolator_data.h (Apache-2.0), {device}, bf16 in short bursts; "
            f"{t0} us of launch taken out of each time'",
            "    precisions: [bf16, fp16]", "    columns: [m, n, k, layout, efficiency]", "    rows:",
            *(f"    - [{m}, {n}, {k}, TN, {e:.4f}]" for m, n, k, e in rows)]


def xla_curves():
    """[(kind, ranks, [(bytes, us)])] of one H100 node through XLA."""
    return [(KINDS[row["collective"]], row["ranks"], list(zip(row["bytes"], row["time_us"])))
            for row in table("xla_collectives_h100")["rows"] if row["collective"] in KINDS]


def xla_collectives():
    """[(kind, ranks, nodes, (a, B, c))] of the same."""
    return [(kind, ranks, 1, fit_noisy_collective(kind, ranks, points)[:3]) for kind, ranks, points in xla_curves()]


def pair_messages():
    """What neighbours send to each other."""
    (ranks, points), = [(ranks, points) for kind, ranks, points in xla_curves() if kind == "send-receive"]
    latency, _, _ = fit_noisy_collective("send-receive", ranks, points)[:3]
    size, us = points[-1]
    return [("send-receive", 2, 1, (latency, size / 1e3 / us, 0))]


def nvls_tree():
    """The same of all-reduces over 4, 16 and 128 nodes."""
    fits = []
    for row in table("nccl_curves")["busbw_curves_h100_nvlstree"]:
        factor = bus_factor("all-reduce", row["ranks"])
        points = [(size, size * factor / 1e3 / bus) for size, bus in zip(row["bytes"], row["busbw_gb_s"])]
        fits.append(("all-reduce", row["ranks"], row["nodes"], fit_collective("all-reduce", row["ranks"], points)[:3]))
    return fits


def nvls_points():
    """[(bytes, us)] of all-reduces of a node by NVLS, which XLA's curves lack."""
    return [(size, us) for size, us in azure_points("azure_h100x8_nvls") if size >= NVLS_FROM]


def all_reduces_apart(rows):
    """(all-reduces, other kinds) of rows that begin with their kind."""
    rows = list(rows)
    return [row for row in rows if row[0] == "all-reduce"], [row for row in rows if row[0] != "all-reduce"]


def collective_lines():
    """Of one node and of several."""
    rings, others = all_reduces_apart(xla_collectives())
    ring_curves, other_curves = all_reduces_apart(xla_curves())
    nvls = ("all-reduce", 8, 1, fit_noisy_collective("all-reduce", 8, nvls_points())[:3])
    return ["collectives:",
            *collective_table(AZURE + ", fitted", [nvls], algorithm="nvls"),
            *collective_table(XLA_COLLECTIVES, rings, algorithm="ring"),
            *collective_table(XLA_COLLECTIVES, others),
            *collective_table(PAIRS, pair_messages(), "analytic"),
            *collective_table(NVLS_TREE, nvls_tree(), algorithm="nvls-tree"),
            "collective_points:",
            *point_table(AZURE, [("all-reduce", 8, nvls_points())], algorithm="nvls"),
            *point_table(XLA_POINTS, ring_curves, algorithm="ring"),
            *point_table(XLA_POINTS, other_curves)]


def make_lines():
    data = load(HERE / "h100_constants.yaml")
    sheet = data_sheet("H100-SXM5-80GB")
    return (header("make_h100_profile.py", NAME, data, sheet) +
            gemm_section(data, table("xla_gemm_h100"), sheet["bf16_tflops"], "sm_90") + kernels_and_host(data) +
            collective_lines() + overheads(data))


if __name__ == "__main__":
    sys.exit(main(__doc__, NAME, make_lines, folder=HERE))
