#!/usr/bin/env python3
"""Makes calibrate/profiles/gb200-186gb.yaml from the inputs of the B200 profile and two constants of its own.

The chip is the B200's at a higher power limit (1,200 W where that has 1,000 W), which its data sheet turns into 2,500 TFLOP/s of bf16 in
place of 2,250. Kernels keep the same share of the peak, so they are faster in that ratio (1.11); memory, NVLink and software are the
same, and the memory that a program sees is larger. All-reduces of the four GPUs of a tray are published. What products hold of their
burst in a long run was fitted on published iterations of GB200, in bf16 and fp8.

    make_gb200_profile.py            write the profile
    make_gb200_profile.py --check    exit 1 if the profile in the tree differs from what would be written
"""

import sys

from cudnn_attention import fp8_kernels
from make_b200_profile import add_kernels, collectives
from make_h100_profile import gemm_section
from profile_yaml import (HERE, as_analytic, azure_points, collective_table, data_sheet, fit_noisy_collective, header,
                          kernels_and_host, load, main, overheads, point_table, table, transferred_constants)

NAME = "gb200-186gb"
TRANSFERRED = "transferred from the B200 (same chip, the same share of its peak; not measured here): "
NODE_FITS = "SimuMax @4dcaae51, b200_bf16_ceperm: its fits of one node of 8; no curve of another is published"
AZURE = ("all-reduce of 4 x GB200 in a ring, nccl-tests, one process for all (Azure/AI-benchmarking-guide @2a370be6, "
         "Azure_Results/ND_GB200_v6_results.md)")
FITTED = "fitted on 41 published iterations of GB200 (NVIDIA's DGX Cloud recipes and Megatron Bridge: dense and experts, bf16 and fp8)"
# Of Grace, against the Xeon of a DGX H100. Single calls of PyTorch take 2.75 times as long there (NVIDIA/TransformerEngine #2053).
HOST = {"value": 1.35, "provenance": "analytic",
        "source": "fitted on six small jobs of Megatron-LM's own tests on GB200, against those on DGX H100: 1.30 to 1.40 are as good"}
OF_ITS_OWN = {
    "scale": {"value": 0.73, "provenance": "analytic", "source": FITTED + " under gpu_variability 0.02: 0.73 +- 0.03; the B200 of SimuMax has 0.60"},
    "fp8_factor": {"value": 0.94, "provenance": "analytic", "source": FITTED + " beside scale: 0.943 +- 0.053"},
}


def faster(kernels, factor):
    """Attention at the same share of the peak."""
    for passes in kernels.values():
        for name in ("forward", "backward"):
            for shape in ("causal", "dense"):
                passes[name][shape]["rate"] = round(passes[name][shape]["rate"] * factor)


def gemm_lines(data):
    """Shares of the B200's peak: the same of its kin."""
    return as_analytic(gemm_section(data, table("xla_gemm_b200"), data_sheet("B200-SXM")["bf16_tflops"],
                                    "sm_100 (B200, as shares of its peak)"))


def collective_lines(published):
    source = TRANSFERRED + NODE_FITS
    tray = azure_points("azure_gb200x4_ring")
    return ["collectives:",
            *collective_table(AZURE + ", fitted", [("all-reduce", 4, 1, fit_noisy_collective("all-reduce", 4, tray)[:3])]),
            *collective_table(source, [row for row in collectives(published) if row[:2] != ("all-reduce", 4)], "analytic"),
            "collective_points:", *point_table(AZURE, [("all-reduce", 4, tray)])]


def constants():
    """Of the GB200, as b200_constants.yaml has those of the B200."""
    data = load(HERE / "b200_constants.yaml")
    add_kernels(data, table("simumax_efficiency_b200"))
    faster(data["attention"]["kernels"], data_sheet("GB200 (per GPU)")["bf16_tflops"] / data_sheet("B200-SXM")["bf16_tflops"])
    data = transferred_constants(TRANSFERRED, data)
    data["attention"]["fp8_kernels"] = fp8_kernels(data["attention"]["kernels"]["cudnn"], "GB200")
    data["gemm"].update(OF_ITS_OWN)
    data["host"]["slowdown"] = HOST
    data["software"] = {**data["software"], "cuda_graphs": "layers"}  # so its published iterations ran
    data["device"] = {"name": "NVIDIA GB200", "sms": 148, "memory": "184.3 GiB",
                      "memory_source": "memory that PyTorch reports on these cards, 184.31 GiB (out-of-memory messages in public issues); "
                                       "148 SMs, recalled"}
    return data


def make_lines():
    data = constants()
    return (header("make_gb200_profile.py", NAME, data, data_sheet("GB200 (per GPU)")) + gemm_lines(data) +
            kernels_and_host(data, TRANSFERRED) + collective_lines(table("simumax_efficiency_b200")) + overheads(data))


if __name__ == "__main__":
    sys.exit(main(__doc__, NAME, make_lines))
