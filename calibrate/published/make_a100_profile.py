#!/usr/bin/env python3
"""Makes calibrate/profiles/a100-sxm4-80gb.yaml from published figures.

Reads the copies of published tables in calibrate/published/data/ and the constants of a100_end_to_end.yaml, fits the layout
efficiencies of the tile model and the constants of the collectives, and writes the profile. The same input gives the same
bytes. Needs python3 and python3-yaml.

    make_a100_profile.py            write the profile and print how good the fits are
    make_a100_profile.py --check    exit 1 if the profile in the tree differs from what would be written
"""

import itertools
import math
import sys

from profile_yaml import (HERE, between_runs, collective_table, data_sheet, fit_collective, grouped_constants, header,
                          kernels_and_host, load, main, mean, median, overheads, point_table, quantisation, sourced, table)

LAYOUTS = ("TN", "NN", "NT")

# Tiles (m, n, rate relative to the largest) and split-k rule. The shapes are those that cuBLAS has for the A100; rates and
# prologue come from an earlier prototype fit on the same GEMM rows and are inputs here: only the layout efficiencies are fitted.
TILES = ((128, 256, 1.0), (256, 128, 1.0), (128, 128, 0.951), (64, 128, 0.8), (128, 64, 0.8), (64, 256, 0.8),
         (256, 64, 0.8), (64, 64, 0.6))
SPLIT_K_MAX, SPLIT_K_MIN_DEPTH, PROLOGUE_K = 4, 1024, 50
# The table corrects the formula nearby: weight exp(-(d/RADIUS)^2), d the distance in (ln m, ln n, ln k), against PRIOR for
# "the formula is right". The leave-one-out error is flat around these two (printed).
RADIUS, PRIOR = 0.6, 0.3
PCIE_BYTES_US = 0.91 * 1600 * 1.024 ** 3 * 1e3  # the memory rate of the card of the table: SimuMax counts GB as 1024^3


# --- GEMM -------------------------------------------------------------------------------------------------------------

def tile_quantisation(m, n, k, sms):
    return quantisation(TILES, PROLOGUE_K, sms, (m, n, k, 1), (SPLIT_K_MAX, SPLIT_K_MIN_DEPTH))


def read_gemm_rows(data):
    """(m, n, k, layout, efficiency); the source's columns are m, k, n."""
    part = data["ops"]["matmul"]
    assert part["columns"] == ["m", "k", "n", "layout", "accumulate", "out_dtype", "efficiency"], part["columns"]
    return sorted((m, n, k, layout, e) for m, k, n, layout, _, _, e in part["rows"])


def fit_layouts(rows, sms):
    """Per layout the efficiency with the least mean |predicted/published time - 1|; that optimum lies on a row."""
    fitted = {}
    for layout in LAYOUTS:
        wanted = [e / tile_quantisation(m, n, k, sms) for m, n, k, tag, e in rows if tag == layout]
        fitted[layout] = min(sorted(wanted), key=lambda c: sum(abs(w / c - 1) for w in wanted))
    return {layout: round(value, 4) for layout, value in fitted.items()}


def log_ratios(rows, efficiency, sms):
    return [math.log(e / (efficiency[layout] * tile_quantisation(m, n, k, sms))) for m, n, k, layout, e in rows]


def corrected_from_others(rows, ratios, radius, prior):
    """Leave one out: |predicted/published time - 1| of each row, the correction taken from all other rows."""
    errors = []
    for i, row in enumerate(rows):
        weight = pull = 0.0
        for j, other in enumerate(rows):
            if i == j or other[3] != row[3]:
                continue
            distance2 = sum(math.log(row[axis] / other[axis]) ** 2 for axis in range(3))
            w = math.exp(-distance2 / radius ** 2)
            weight += w
            pull += w * ratios[j]
        errors.append(abs(math.exp(ratios[i] - pull / (weight + prior)) - 1))
    return errors


def report_gemm(rows, efficiency, sms):
    ratios = log_ratios(rows, efficiency, sms)
    errors = [abs(math.exp(r) - 1) for r in ratios]
    print("GEMM: " + ", ".join(f"e_{layout} {efficiency[layout]:.4f}" for layout in LAYOUTS))
    print(f"  {len(rows)} rows, mean error {mean(errors):.2%}, median {median(errors):.2%}, worst {max(errors):.1%}")
    for r, row in sorted(zip(ratios, rows), key=lambda pair: -abs(pair[0]))[:5]:
        print(f"  worst: m {row[0]} n {row[1]} k {row[2]} {row[3]}: time by formula {math.exp(r) - 1:+.1%}")
    for radius, prior in itertools.product((0.3, 0.5, 0.6, 0.7, 1.0), (0.1, 0.3, 1.0)):
        loo = corrected_from_others(rows, ratios, radius, prior)
        chosen = "  <- used" if (radius, prior) == (RADIUS, PRIOR) else ""
        print(f"  leave one out, radius {radius} prior {prior}: mean {mean(loo):.2%}, median {median(loo):.2%}{chosen}")


def add_grouped(data, published, efficiency, sms):
    """The constants of grouped GEMMs, fitted on every other row of SimuMax's and reported on the rest."""
    device = {"tiles": TILES, "prologue": PROLOGUE_K, "sms": sms, "peak": published["ops"]["group_matmul"]["tflops"],
              "e": efficiency, "bytes_us": PCIE_BYTES_US}
    grouped = grouped_constants(published, device, "SimuMax's A100-PCIe")
    print("Grouped GEMM: " + grouped["grouped_factor"]["source"])
    data["experts"] = {**grouped, **data["experts"]}


# --- collectives ------------------------------------------------------------------------------------------------------

def nccl_curve(data, name):
    """(ranks, nodes, [(bytes, us)]) of a published run of nccl-tests."""
    found, = [c for c in data["curves"] if c["id"] == name]
    return found["ranks"], found["nodes"], list(zip(found["bytes"], found["time_us"]))


def read_curves(vtrain, nccl):
    """[(group of the profile or None, name, ranks, nodes, points)]; a curve without group is fitted for comparison only."""
    curves = []
    for ranks in range(2, 9):
        points = [(row[0] * 2 ** 20, row[1]) for row in vtrain["a100"][f"ranks_{ranks}"]]  # out of place
        curves.append(("vtrain" if ranks < 8 else None, f"vTrain {ranks} ranks", ranks, 1, points))
    for group, name in (("nvswitch", "a100x8_nvswitch_mpi"), (None, "a100x8_nvswitch_g8"),
                        ("hdr", "a100x32_hdr_coreweave_2022")):
        ranks, nodes, points = nccl_curve(nccl, name)
        curves.append((group, name, ranks, nodes, points))
    return curves


def fit_collectives(curves):
    """{group: [(kind, ranks, nodes, (a, B, c))]}, and prints every fit."""
    groups = {}
    print("All-reduce: a us, B GB/s of bus, c us per sqrt(byte); mean and worst error over the sizes of the curve")
    for group, name, ranks, nodes, points in curves:
        a, bandwidth, c, errors = fit_collective("all-reduce", ranks, points)
        note = "" if group else "   (for comparison, not in the profile)"
        print(f"  {name:27} {a:6.1f} {bandwidth:6.1f} {c:7.4f}  {mean(errors):6.2%} {max(errors):6.1%}{note}")
        if group:
            groups.setdefault(group, []).append(("all-reduce", ranks, nodes, (a, bandwidth, c)))
    return groups


# One process for 8 GPUs launches one after the other: 40.12 us at 8 bytes, 20.26 with a process each.
LAUNCHES_OF_ONE_PROCESS_US = 40.12 - 20.26


def runs_of_eight(curves):
    """The three published runs of all-reduces of 8 GPUs, without launches that training does not have."""
    found = {name: points for _, name, ranks, _, points in curves if ranks == 8}
    one_process = [(size, us - LAUNCHES_OF_ONE_PROCESS_US) for size, us in found["a100x8_nvswitch_g8"]]
    return [found["a100x8_nvswitch_mpi"], one_process, found["vTrain 8 ranks"]]


def point_section(curves):
    pairs_to_seven = [("all-reduce", ranks, points) for group, _, ranks, _, points in curves if group == "vtrain"]
    return ["collective_points:", *point_table(SOURCES["vtrain"].replace("; fitted", ""), pairs_to_seven),
            *point_table(RUNS_OF_EIGHT, [("all-reduce", 8, between_runs(runs_of_eight(curves)))], "interpolated")]


# --- the profile ------------------------------------------------------------------------------------------------------

def gemm_section(data, rows, efficiency, sms):
    errors = [abs(math.exp(r) - 1) for r in log_ratios(rows, efficiency, sms)]
    loo = corrected_from_others(rows, log_ratios(rows, efficiency, sms), RADIUS, PRIOR)
    fitted = f"fitted on the table's rows of this layout with the tile model; mean error of the table {100 * mean(errors):.1f} %"
    story = "provenance: analytic, source: 'chosen on the rows of the table'"
    names = {"TN": "efficiency_tn", "NN": "efficiency_nn", "NT": "efficiency_nt"}
    return ["gemm:",
            sourced("scale", data["gemm"]["scale"], "  "),
            *(sourced(names[layout], {"value": efficiency[layout], "provenance": "analytic", "source": fitted}, "  ")
              for layout in LAYOUTS),
            sourced("batched_efficiency", data["gemm"]["batched_efficiency"], "  "),
            sourced("misaligned_factor", data["gemm"]["misaligned_factor"], "  "),
            "  tiles:",
            "    provenance: analytic",
            "    source: 'tiles of cuBLAS on the A100; rates chosen on the rows of the table'",
            "    columns: [m, n, rate]",
            "    rows:",
            *(f"    - [{m}, {n}, {rate:g}]" for m, n, rate in TILES),
            f"  split_k: {{max: {SPLIT_K_MAX}, min_depth: {SPLIT_K_MIN_DEPTH}, prologue: {PROLOGUE_K}, {story}}}",
            f"  correction: {{radius: {RADIUS}, prior: {PRIOR}, provenance: analytic,",
            f"               source: 'leaving one row out: mean error {100 * mean(loo):.1f} %, median {100 * median(loo):.1f} %'}}",
            "  table:",
            "    provenance: published",
            "    source: 'SimuMax (MooreThreads/SimuMax @4dcaae51, Apache-2.0), configs/system/a100_pcie.json, bf16'",
            "    precisions: [bf16, fp16]",
            "    columns: [m, n, k, layout, efficiency]",
            "    rows:",
            *(f"    - [{m}, {n}, {k}, {layout}, {e:g}]" for m, n, k, layout, e in rows)]


SOURCES = {
    "vtrain": "vTrain (MICRO 2024, VIA-Research/vTrain @f8dda847, MIT), trace/a100, out-of-place, 1 MiB to 1 GiB; fitted",
    "nvswitch": "nccl-tests output of 8 A100 on NVSwitch, one process per GPU, 8 B to 4 GiB, in a public note; fitted. "
                "The one row for 8 ranks: one process per GPU is how training runs; vTrain's own curve of 8 ranks fits 69 us, "
                "225 GB/s",
    "hdr": "coreweave/nccl-tests README (2022), 4 nodes of 8 A100, HDR, 8 B to 8 GiB; fitted. The plateau of 115 GB/s is "
           "not that of 8 full rails",
}
RUNS_OF_EIGHT = ("at the least largest relative error against three published runs: two of nccl-tests on one machine (a process "
                 "for each GPU; one for all, less 19.9 us of launches) and vTrain's")
SEND_RECEIVE = ("li-plus/playground cuda/nccl.md: 8 A100, 195.1 GB/s from 256 MiB on; 11 us of latency as XLA's permutes on a "
                "node of H100")


def collective_section(groups):
    return ["collectives:", *itertools.chain.from_iterable(
        collective_table(SOURCES[group], fits) for group, fits in groups.items()),
        *collective_table(SEND_RECEIVE, [("send-receive", 8, 1, (11, 195.1, 0))], "analytic")]


def lines_of(script, name, data, gpu):
    """The profile of an A100: compute of SimuMax's table, collectives of three sources."""
    device = data_sheet(gpu)
    published = table("simumax_efficiency_a100_pcie")
    rows = read_gemm_rows(published)
    efficiency = fit_layouts(rows, device["sms"])
    report_gemm(rows, efficiency, device["sms"])
    add_grouped(data, published, efficiency, device["sms"])
    curves = read_curves(table("vtrain_nccl_allreduce"), table("nccl_curves"))
    return (header(script, name, data, device) + gemm_section(data, rows, efficiency, device["sms"]) +
            kernels_and_host(data) + collective_section(fit_collectives(curves)) + point_section(curves) + overheads(data))


def make_lines():
    return lines_of("make_a100_profile.py", "a100-sxm4-80gb", load(HERE / "a100_end_to_end.yaml"), "A100-SXM4-80GB")


if __name__ == "__main__":
    sys.exit(main(__doc__, "a100-sxm4-80gb", make_lines))
