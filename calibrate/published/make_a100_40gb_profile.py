#!/usr/bin/env python3
"""Makes calibrate/profiles/a100-sxm4-40gb.yaml from the inputs of the 80 GB profile.

The two cards have the same chip at the same power limit: every constant of compute and of NVLink is carried over. What
differs is the memory: its size, and its data-sheet rate under every memory-bound kernel.

    make_a100_40gb_profile.py            write the profile
    make_a100_40gb_profile.py --check    exit 1 if the profile in the tree differs from what would be written
"""

import sys

from make_a100_profile import lines_of
from profile_yaml import HERE, load, main


def make_lines():
    data = load(HERE / "a100_end_to_end.yaml")
    data["device"] = {
        "name": "NVIDIA A100-SXM4-40GB", "memory": "39.4 GiB",
        "sheet_source": "data sheet of the 40 GB card, recalled",
        "memory_source": "memory that a program sees, 39.4 GiB, recalled. Kernels are those of the 80 GB profile: one chip"}
    share = data["memory_efficiency"]
    share["provenance"] = "assumed"
    share["source"] = "the share of the 80 GB card, at 1555 GB/s: " + share["source"]
    return lines_of("make_a100_40gb_profile.py", "a100-sxm4-40gb", data, "A100-SXM4-40GB")


if __name__ == "__main__":
    sys.exit(main(__doc__, "a100-sxm4-40gb", make_lines))
