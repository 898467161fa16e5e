#!/usr/bin/env python3
"""Makes calibrate/profiles/h100-hbm2e-96gb-500w.yaml, the H100 of 96 GB of HBM2e at a power limit of 500 W that torchtitan's
published runs had, from the inputs of the H100 profile: nothing in it was measured on such a card.

The chip is the same, so the constants of compute are carried over and say so. What differs is the memory, as in
make_h200_profile.py, and the clock that a long run holds. Near its limit a card takes an idle part of its power and one that
follows the clock, so clocks are in the ratio of (limit - idle): chi' = chi * (500 - P0) / (700 - P0). Of P0 is known that it is
100 to 150 W; the middle stands here. Attention keeps its published rates, as in the H100 profile.

    make_h100_96gb_500w_profile.py            write the profile
    make_h100_96gb_500w_profile.py --check    exit 1 if the profile in the tree differs from what would be written
"""

import sys

from make_h100_profile import collective_lines, gemm_section
from make_h200_profile import NEWER_SOFTWARE, faster_memory, transferred_from
from profile_yaml import HERE, data_sheet, header, kernels_and_host, load, main, overheads, table

NAME = "h100-hbm2e-96gb-500w"
TRANSFERRED = "transferred from the H100 (same chip; not measured here): "
MEMORY_GB_S = 2400  # pytorch/torchtitan @b5bcd76c, benchmarks/llama3_h100_202412_torchtitan.md
LIMIT_W, USUAL_W, IDLE_W = 500, 700, 125


def sustained(scale):
    factor = (LIMIT_W - IDLE_W) / (USUAL_W - IDLE_W)
    return {"value": round(scale["value"] * factor, 3), "provenance": "analytic",
            "source": f"{scale['value']} of the H100 at {USUAL_W} W, times ({LIMIT_W} - {IDLE_W}) / ({USUAL_W} - {IDLE_W}): the clock under a "
                      "power limit, idle power 100 to 150 W assumed (0.636 to 0.667); not fitted"}


def make_lines():
    data = load(HERE / "h100_constants.yaml")
    usual = data_sheet("H100-SXM5-80GB")
    sheet = {**usual, "hbm_tb_s": MEMORY_GB_S / 1e3}
    fixed = {key: data[key] for key in ("date", "grid", "memory", "relative_spread")}
    gemm = {key: value for key, value in data["gemm"].items() if key in ("tiles", "split_k", "correction")}
    scale = sustained(data["gemm"]["scale"])
    data = {**transferred_from(TRANSFERRED, data), **fixed}
    data["gemm"].update(gemm)
    data["software"] = NEWER_SOFTWARE
    data["gemm"]["scale"] = scale
    data["device"] = {"name": "NVIDIA H100 96GB HBM2e", "memory": "95.0 GiB",
                      "memory_source": "memory that a program sees on these cards, 95.0 GiB, recalled"}
    grid = faster_memory(table("xla_gemm_h100"), data["grid"]["t0_us"], 1e3 * usual["hbm_tb_s"], MEMORY_GB_S)
    gemm_lines = gemm_section(data, grid, sheet["bf16_tflops"],
                              f"sm_90 (H100, bytes of each row at {MEMORY_GB_S} in place of {1e3 * usual['hbm_tb_s']:g} GB/s)")
    return (header("make_h100_96gb_500w_profile.py", NAME, data, sheet) +
            [line.replace("provenance: published", "provenance: analytic") for line in gemm_lines] + kernels_and_host(data, TRANSFERRED) +
            collective_lines(TRANSFERRED) + overheads(data))


if __name__ == "__main__":
    sys.exit(main(__doc__, NAME, make_lines))
