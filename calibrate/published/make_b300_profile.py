#!/usr/bin/env python3
"""Makes calibrate/profiles/b300-sxm-288gb.yaml from the inputs of the B200 profile (blackwell_ultra.py says what differs).

    make_b300_profile.py            write the profile
    make_b300_profile.py --check    exit 1 if the profile in the tree differs from what would be written
"""

import sys

from blackwell_ultra import GB300_SCALE, ultra
from make_b200_profile import add_kernels, collectives
from make_gb200_profile import NODE_FITS, OF_ITS_OWN as OF_GB200, gemm_lines
from profile_yaml import HERE, collective_table, data_sheet, header, kernels_and_host, load, main, overheads, table

NAME = "b300-sxm-288gb"
TRANSFERRED = "transferred from the B200 (same chip, the same share of its peak; not measured here): "


def make_lines():
    data, published = load(HERE / "b200_constants.yaml"), table("simumax_efficiency_b200")
    add_kernels(data, published)
    gain = GB300_SCALE / OF_GB200["scale"]["value"]
    scale = {"value": round(data["gemm"]["scale"]["value"] * gain, 2), "provenance": "assumed",
             "source": f"that of the B200, times the {gain:.2f} that the GB300 gains over the GB200 in long runs"}
    sustained = data["attention"]["sustained"]
    held = {"value": sustained["value"], "source": "as of the B200 " + sustained["source"]}
    data = ultra(data, TRANSFERRED, {"name": "NVIDIA B300", "memory": "267.7 GiB"}, scale, held)
    return (header("make_b300_profile.py", NAME, data, {"tf32_tflops": None, **data_sheet("B300-SXM")}) +
            gemm_lines(data) + kernels_and_host(data, TRANSFERRED) +
            ["collectives:", *collective_table(TRANSFERRED + NODE_FITS, collectives(published), "analytic")] + overheads(data))


if __name__ == "__main__":
    sys.exit(main(__doc__, NAME, make_lines))
