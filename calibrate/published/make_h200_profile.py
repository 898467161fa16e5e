#!/usr/bin/env python3
"""Makes calibrate/published/h200-transferred.yaml from the inputs of the H100 profile and what is published of an H200: an
all-reduce, twice, and a copy. No scenario takes it: it is the base that tools/refit-profile fits our samples of an H200 on
(calibrate/measured), which gives calibrate/profiles/h200-sxm-141gb.yaml. What those do not tell stands there as it stands here.

The two devices have the same SMs, peaks, power limit and NVLink, so the constants of compute are carried over and say so. What
differs is the memory: its size, its rate under every memory-bound kernel, by the ratio of copies that one operator measured on
both, and under the bytes of the GEMM grid, where t' = t0 + ((t - t0)^4 - tb^4 + tb'^4)^(1/4) with tb the bytes at 0.85 of the H100's
data sheet before, and at that times the same ratio after.

    make_h200_profile.py            write the base
    make_h200_profile.py --check    exit 1 if the base in the tree differs from what would be written
"""

import sys

from make_h100_profile import (NVLS_TREE, PAIRS, XLA_COLLECTIVES, XLA_POINTS, all_reduces_apart, gemm_section, nvls_tree,
                               pair_messages, xla_collectives, xla_curves)
from profile_yaml import (HERE, as_analytic, azure_points, between_runs, collective_table, data_sheet, fit_noisy_collective,
                          header, kernels_and_host, load, main, overheads, point_table, table, transferred_constants)

NAME = "h200-transferred"
TRANSFERRED = "transferred from the H100 (same chip, peaks and power limit; not measured here): "
NEWER_SOFTWARE = {"replicated": "megatron-core", "sharded": "fsdp2"}  # than what ran on the H100 when its rows were published
GRID_BYTES = 0.85  # share of the H100's data sheet that the GEMM grid asks for
H200_CURVE = "all-reduce of 8 x H200 through PyTorch (stas00/ml-engineering network/benchmarks, a plot read in pixels)"
H200_NVLS = ("all-reduce of 8 x H200 by NVLS, at the least largest relative error against two published runs: nccl-tests, one process for all "
             "(Azure/AI-benchmarking-guide @7f20e5fa, Azure_Results/ND_H200_v5_results.md), and PyTorch (stas00/ml-engineering "
             "network/benchmarks, a plot read in pixels)")


def faster_memory(grid, t0_us, before, after):
    """The grid with the bytes of each row at another memory rate, GB/s; rows that are launch alone stay."""
    rows = []
    for m, n, k, tflops, *rest in grid["rows"]:
        us = 2 * m * n * k / tflops / 1e6
        moved = 2 * (m * k + k * n + m * n) / 1e3 / GRID_BYTES
        kernel = max(us - t0_us, 0) ** 4 - (moved / before) ** 4 + (moved / after) ** 4
        rows.append((m, n, k, 2 * m * n * k / (t0_us + kernel ** 0.25) / 1e6 if kernel > 0 else tflops, *rest))
    return {**grid, "rows": rows}


def copy_ratio():
    """A copy of the H200 over one of the H100, by BabelStream on one operator's nodes."""
    stream = table("azure_nd")["stream"]
    return stream["h200"]["copy"] / stream["h100"]["copy"]


def memory_efficiency(of_h100, before, sheet):
    return {"value": round(of_h100["value"] * copy_ratio() * before["hbm_tb_s"] / sheet["hbm_tb_s"], 3), "provenance": "analytic",
            "source": f"{of_h100['value']} of the H100, times {copy_ratio():.3f}, the ratio of BabelStream's copies (Azure/AI-benchmarking-guide "
                      "@7f20e5fa, @f350e7e6: 4.01 and 2.90 TB/s), over that of the data sheets"}


def points_of_eight(nvls):
    """[(bytes, us)] of all-reduces of a node. Through PyTorch NVLS ran above 1 MiB, up to there the ring."""
    row, = [c for c in table("nccl_curves")["curves"] if c["id"] == "h200x8_nvls_torch"]
    of_torch = [(size, us) for size, us in zip(row["bytes"], row["time_us"]) if (size > 2 ** 20) == nvls]
    of_azure = [(size, us) for size, us in azure_points("azure_h200x8_nvls") if size > 2 ** 20]
    return between_runs([of_torch, of_azure]) if nvls else of_torch


def all_reduce_of_eight(nvls):
    return ("all-reduce", 8, 1, fit_noisy_collective("all-reduce", 8, points_of_eight(nvls))[:3])


def others_than_eight(rows_of_h100):
    """Of the H100 node, but the one group that has a curve of its own: (pairs that all-reduce, in a ring; all other kinds)."""
    return all_reduces_apart(row for row in rows_of_h100 if row[:2] != ("all-reduce", 8))


def collective_lines():
    pairs, others = others_than_eight(xla_collectives())
    pair_points, other_points = others_than_eight(xla_curves())
    return ["collectives:",
            *collective_table(H200_NVLS + "; fitted", [all_reduce_of_eight(nvls=True)], algorithm="nvls"),
            *collective_table(H200_CURVE + ", fitted; the ring up to 1 MiB", [all_reduce_of_eight(nvls=False)],
                              algorithm="ring"),
            *collective_table(TRANSFERRED + XLA_COLLECTIVES, pairs, "analytic", "ring"),
            *collective_table(TRANSFERRED + XLA_COLLECTIVES, others, "analytic"),
            *collective_table(TRANSFERRED + PAIRS, pair_messages(), "analytic"),
            *collective_table(TRANSFERRED + NVLS_TREE, nvls_tree(), "analytic", "nvls-tree"),
            "collective_points:",
            *point_table(H200_NVLS, [("all-reduce", 8, points_of_eight(nvls=True))], "interpolated", "nvls"),
            *point_table(H200_CURVE, [("all-reduce", 8, points_of_eight(nvls=False))], algorithm="ring"),
            *point_table(TRANSFERRED + XLA_POINTS, pair_points, "analytic", "ring"),
            *point_table(TRANSFERRED + XLA_POINTS, other_points, "analytic")]


def make_lines():
    data = load(HERE / "h100_constants.yaml")
    before, sheet = data_sheet("H100-SXM5-80GB"), data_sheet("H200-SXM")
    memory = memory_efficiency(data["memory_efficiency"], before, sheet)
    data = {**transferred_constants(TRANSFERRED, data), "memory_efficiency": memory}
    data["software"] = NEWER_SOFTWARE
    data["device"] = {"name": "NVIDIA H200", "memory": "139.8 GiB",
                      "memory_source": "memory that a program sees on 141 GB cards, 139.8 GiB, recalled"}
    grid = faster_memory(table("xla_gemm_h100"), data["grid"]["t0_us"], 1e3 * before["hbm_tb_s"],
                         1e3 * before["hbm_tb_s"] * copy_ratio())
    gemm_lines = gemm_section(data, grid, sheet["bf16_tflops"], f"sm_90 (H100, bytes of each row {copy_ratio():.3f} times as fast)")
    return (header("make_h200_profile.py", NAME, data, sheet) +
            as_analytic(gemm_lines) + kernels_and_host(data, TRANSFERRED) +
            collective_lines() + overheads(data))


if __name__ == "__main__":
    sys.exit(main(__doc__, NAME, make_lines, folder=HERE))
