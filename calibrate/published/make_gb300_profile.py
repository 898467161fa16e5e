#!/usr/bin/env python3
"""Makes calibrate/profiles/gb300-288gb.yaml from the inputs of the GB200 profile (blackwell_ultra.py says what differs).

    make_gb300_profile.py            write the profile
    make_gb300_profile.py --check    exit 1 if the profile in the tree differs from what would be written
"""

import sys

from blackwell_ultra import GB300_SCALE, ultra
from make_gb200_profile import collective_lines, constants, gemm_lines
from profile_yaml import data_sheet, header, kernels_and_host, main, overheads, table

NAME = "gb300-288gb"
TRANSFERRED = "transferred from the GB200 (same chip, the same share of its peak; not measured here): "


def make_lines():
    data = constants()
    scale = {"value": GB300_SCALE, "provenance": "analytic",
             "source": "fitted on nine published iterations of GB300 (Megatron Bridge, Llama 3 in fp8), 0.92 to 0.94 are as good; the GB200 has 0.73"}
    held = {"value": 1, "source": "as in long runs, in which products of the GB300 hold all of theirs as well"}
    data = ultra(data, TRANSFERRED, {"name": "NVIDIA GB300", "memory": "276.6 GiB"}, scale, held)
    return (header("make_gb300_profile.py", NAME, data, data_sheet("GB300 (per GPU)")) +
            gemm_lines(data) + kernels_and_host(data, TRANSFERRED) + collective_lines(table("simumax_efficiency_b200")) + overheads(data))


if __name__ == "__main__":
    sys.exit(main(__doc__, NAME, make_lines))
