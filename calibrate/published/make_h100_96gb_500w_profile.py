#!/usr/bin/env python3
"""Makes calibrate/profiles/h100-hbm2e-96gb-500w.yaml, the H100 of 96 GB of HBM2e at a power limit of 500 W that torchtitan's
published runs had, from the measured profile of the H100 of 80 GB: nothing in it was measured on such a card.

The chip is the same, so the constants of compute are carried over and say so. What differs is the memory, under memory-bound kernels
and under the bytes of each GEMM, and the clock that a long run holds. Near its limit a card takes an idle part of its power and one
that goes with f V^2. Between a voltage that stays (power with f) and one that follows the clock (power with f^3), clocks are in the
ratio of (limit - idle) to the power of 1 to 1/3; their geometric mean stands here. All that computes shares that clock, so
attention slows as GEMMs do; where its rates are those of bursts, it holds what GEMMs hold of theirs.

    make_h100_96gb_500w_profile.py            write the profile
    make_h100_96gb_500w_profile.py --check    exit 1 if the profile in the tree differs from what would be written
"""

import re
import sys

from profile_yaml import PROFILES, main, residuals_of

NAME, BASE = "h100-hbm2e-96gb-500w", "h100-sxm5-80gb"
TRANSFERRED = "transferred from the H100 of 80 GB (same chip; not measured here): "
MEMORY_GB_S = 2400  # pytorch/torchtitan @b5bcd76c, benchmarks/llama3_h100_202412_torchtitan.md
LIMIT_W, USUAL_W, IDLE_W = 500, 700, 125  # an idle power of 100 to 150 W is assumed
RATIO = (LIMIT_W - IDLE_W) / (USUAL_W - IDLE_W)
CLOCK = RATIO ** ((1 + 1 / 3) / 2)
RULE = (f"of the H100 at {USUAL_W} W, times {CLOCK:.3f}: clocks under a power limit are in the ratio of ({LIMIT_W} - {IDLE_W}) / "
        f"({USUAL_W} - {IDLE_W}) to the power of 1 (voltage stays) to 1/3 (it follows the clock), 0.65 to 0.87, whose geometric mean this is; not fitted")
DEVICE = {
    "name": "NVIDIA H100 96GB HBM2e",
    "memory": "95.0 GiB",
    "memory_bandwidth": f"{MEMORY_GB_S} GB/s",
    "source": "'data sheet by way of stas00/ml-engineering; peak_fp32 is TF32; memory that a program sees on these cards, 95.0 GiB, recalled'",
}


def section(text, name):
    """Where the lines of a section begin and end."""
    start = text.index(f"\n{name}:") + 1
    return start, start + re.search(r"\n(?=\w)", text[start:]).end()


def with_section(text, name, change):
    start, end = section(text, name)
    return text[:start] + change(text[start:end]) + text[end:]


def number(pattern, line):
    return float(re.search(pattern, line)[1])


def transferred(text):
    """No constant is measured, published or interpolated here, and each source begins with whose it is."""
    text = re.sub(r"provenance: (?:measured|published|interpolated)\b", "provenance: analytic", text)
    return re.sub(r"source: '", f"source: '{TRANSFERRED}", text)


def device(text):
    return re.sub(r"(?m)^  (name|memory|memory_bandwidth|source): .*$", lambda m: f"  {m[1]}: {DEVICE[m[1]]}", text)


def slower(text, pattern, held):
    """Values that go with the clock, where `held(line)` is what the base's own value leaves out of a long run."""
    def moved(match):
        line = match[0]
        value = re.sub(pattern, lambda m: f"{m[1]}{float(m[2]) * CLOCK * held(line):.4g}", line, count=1)
        return value.replace(TRANSFERRED, f"{TRANSFERRED}{float(re.search(pattern, line)[2]):g} {RULE}; ", 1)
    return re.sub(r"(?m)^.*" + pattern + r".*$", moved, text)


def faster_memory(text, rates, peak, operand_bytes):
    """Rows of GEMMs with their bytes at another of two memory rates, GB/s; of a row faster than its bytes the whole time is theirs."""
    before, after = rates
    def moved(match):
        m, n, k = (int(size) for size in match[2].split(", "))
        share = float(match[4])
        us = 2 * m * n * k / (share * peak) / 1e6
        of_bytes = min(us, (operand_bytes * (m * k + k * n) + 2 * m * n) / 1e3 / before)
        us_here = (us ** 4 - of_bytes ** 4 + (of_bytes * before / after) ** 4) ** 0.25
        return f"{match[1]}{match[2]}{match[3]}{share * us / us_here:.4g}]"
    return re.sub(r"(?m)^(    - \[)(\d+, \d+, \d+)(, [TN]{2}, )([\d.]+)\].*$", moved, text)


def gemm(text, rates, peaks):
    slow = slower(text, r"(^  (?:fp8_)?scale: \{value: )([\d.]+)", lambda _: 1)
    tables = slow.index("  fp8_table:")
    return faster_memory(slow[:tables], rates, peaks[0], 2) + faster_memory(slow[tables:], rates, peaks[1], 1)


def without_residuals(profile):
    text = profile.read_text(encoding="utf-8")
    return text.removesuffix(residuals_of(profile))


def make_lines():
    head, body = without_residuals(PROFILES / f"{BASE}.yaml").split("\ndevice:", 1)
    body = transferred("\ndevice:" + body).replace("provenance: analytic", "provenance: published", 1)  # the first is the device's
    efficiency = number(r"(?m)^memory_efficiency: \{value: ([\d.]+)", body)
    rates = [efficiency * rate for rate in (number(r"memory_bandwidth: (\d+) GB/s", body), MEMORY_GB_S)]
    peaks = [number(rf"peak_{precision}: (\d+) TFLOP/s", body) for precision in ("bf16", "fp8")]
    sustained = number(r"(?m)^  scale: \{value: ([\d.]+)", body)
    def of_bursts(line):
        return 1 if re.search("in a long run|end to end|: as causal", line) else sustained
    body = with_section(body, "device", device)
    body = with_section(body, "gemm", lambda text: gemm(text, rates, peaks))
    body = with_section(body, "attention", lambda text: slower(text, r"(\{rate: )([\d.]+)", of_bursts))
    body = re.sub(r"(?m)^software: .*$", "software: {replicated: megatron-core, sharded: fsdp2}", body)  # newer than what ran on the base's rows
    date, = re.findall(r"(?m)^date: .*$", head)
    return [f"# Written by calibrate/published/make_h100_96gb_500w_profile.py from {BASE}.yaml. Do not edit; edit its inputs.",
            "# Format: calibrate/profile/README.md.", "stagecraft_profile: 1", f"name: {NAME}", date,
            "made_by: python3 calibrate/published/make_h100_96gb_500w_profile.py", *body.strip("\n").split("\n")]


if __name__ == "__main__":
    sys.exit(main(__doc__, NAME, make_lines))
