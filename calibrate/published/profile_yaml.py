"""What the scripts that make hardware profiles from published figures share: reading, small fits, the sections of the file.

Needs python3 and python3-yaml. The same input gives the same bytes.
"""

import argparse
import bisect
import itertools
import math
import pathlib
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent
PROFILES = HERE.parent / "profiles"
BLOCK_QUERIES, BENCHMARK_BLOCKS = 128, 2048  # of calibrate/profile/hardware_profile.hpp


def load(path):
    with open(path, encoding="utf-8") as file:
        return yaml.safe_load(file)


def table(name):
    """A published table of calibrate/published/data."""
    return load(HERE / "data" / f"{name}.yaml")


def data_sheet(gpu):
    found, = [g for g in table("devices_and_links")["gpus"] if g["gpu"] == gpu]
    return found


def mean(values):
    return sum(values) / len(values)


def median(values):
    return sorted(values)[len(values) // 2]


# --- small fits -------------------------------------------------------------------------------------------------------

def solve(matrix, right):
    """Gauss-Jordan with pivots; None when singular."""
    size = len(right)
    rows = [matrix[i][:] + [right[i]] for i in range(size)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda r: abs(rows[r][i]))
        if rows[pivot][i] == 0:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(size):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [x - factor * y for x, y in zip(rows[r], rows[i])]
    return [rows[i][size] / rows[i][i] for i in range(size)]


def non_negative_least_squares(features, target):
    """Exact for a few unknowns: the best of all supports whose plain solution is not negative."""
    unknowns = len(features[0])
    best = None
    supports = itertools.chain.from_iterable(
        itertools.combinations(range(unknowns), size) for size in range(1, unknowns + 1))
    for support in supports:
        normal = [[sum(x[i] * x[j] for x in features) for j in support] for i in support]
        solution = solve(normal, [sum(x[i] * t for x, t in zip(features, target)) for i in support])
        if solution is None or min(solution) < 0:
            continue
        full = [0.0] * unknowns
        for i, value in zip(support, solution):
            full[i] = value
        loss = sum((sum(a * b for a, b in zip(full, x)) - t) ** 2 for x, t in zip(features, target))
        if best is None or loss < best[0]:
            best = (loss, full)
    return best[1]


def bus_factor(kind, ranks):
    return 1 if kind == "send-receive" else (2 if kind == "all-reduce" else 1) * (ranks - 1) / ranks


def collective_features(factor, points, weights):
    return [(w / t, w * factor * size / 1e3 / t, w * math.sqrt(size) / t) for w, (size, t) in zip(weights, points)]


def collective_errors(constants, factor, points):
    a, inverse, c = constants
    return [abs((a + inverse * factor * size / 1e3 + c * math.sqrt(size)) / t - 1) for size, t in points]


MOST_OVER_SEEN, SHOWS_BUS = 1.25, 2  # of calibrate/fit/curve_fits.hpp


def least_inverse(factor, points):
    """The same as there: us per KB on the bus that a fit has at least, so that no larger size is far faster than what was seen."""
    first, shortest = min(points, key=lambda point: point[1])
    slopes = [(t - shortest) / (size - first) for size, t in points if size > first and t >= SHOWS_BUS * shortest]
    return min(slopes, default=0) * 1e3 / factor / MOST_OVER_SEEN


def collective_constants(factor, points, weights, least):
    """Weighted relative least squares, none negative and the inverse of the bandwidth `least` at least."""
    features = collective_features(factor, points, weights)
    a, more, c = non_negative_least_squares(features, [w - least * x[1] for w, x in zip(weights, features)])
    return a, least + more, c


def fit_collective(kind, ranks, points):
    """t us = a + S*f/B + c*sqrt(S), relative least squares, none negative: (a us, B GB/s, c us per sqrt(byte), errors)."""
    factor = bus_factor(kind, ranks)
    equal = [1.0] * len(points)
    constants = collective_constants(factor, points, equal, 0)
    if constants[1] < least_inverse(factor, points):
        constants = collective_constants(factor, points, equal, least_inverse(factor, points))
    a, inverse, c = constants
    return a, 1 / inverse, c, collective_errors(constants, factor, points)


SMALL, LARGE = 2 ** 16, 2 ** 28  # below the one only the constant matters; from the other on training spends its time
LARGE_WEIGHT, ODD = 3, 0.03


def noisy_constants(factor, fitted, least):
    weights = [LARGE_WEIGHT if size >= LARGE else 1 for size, _ in fitted]
    for _ in range(40):
        constants = collective_constants(factor, fitted, weights, least)
        weights = [LARGE_WEIGHT if size >= LARGE else min(1, math.sqrt(ODD / max(error, ODD)))
                   for (size, _), error in zip(fitted, collective_errors(constants, factor, fitted))]
    return constants


def fit_noisy_collective(kind, ranks, points):
    """The same of sizes of SMALL and more. Those of LARGE and more count three times; of the others one that is off by more
    than ODD counts less, the more so the further off it is."""
    factor = bus_factor(kind, ranks)
    fitted = [(size, t) for size, t in points if size >= SMALL]
    constants = noisy_constants(factor, fitted, 0)
    if constants[1] < least_inverse(factor, fitted):
        constants = noisy_constants(factor, fitted, least_inverse(factor, fitted))
    a, inverse, c = constants
    return a, 1 / inverse, c, collective_errors(constants, factor, points)


POINTS_FROM, LEAST_RISE = SMALL, 1e-3  # of calibrate/fit/curve_fits.hpp


def weighted_median(times):
    """The time t with the least sum of |t/t_i - 1|."""
    half, seen = sum(1 / t for t in times) / 2, 0
    for t in sorted(times):
        seen += 1 / t
        if seen >= half:
            return t


def rising_points(points):
    """The same as rising_points() of calibrate/fit/curve_fits.hpp: of POINTS_FROM bytes and more; times that fall are pooled."""
    pools = []
    for size, us in sorted(point for point in points if point[0] >= POINTS_FROM):
        pools.append([(size, us)])
        while len(pools) > 1 and weighted_median([t for _, t in pools[-2]]) >= weighted_median([t for _, t in pools[-1]]):
            last = pools.pop()
            pools[-1] += last
    rising, us = [], 0
    for pool in pools:
        for size, _ in pool:
            us = max(weighted_median([t for _, t in pool]), us * (1 + LEAST_RISE))
            rising.append((size, us))
    return rising


# --- attention --------------------------------------------------------------------------------------------------------

def flash_gflop(length, causal, direction):
    """FLOPs that the benchmark of flash-attention does at a length: 16 Ki tokens of 16 heads of 128."""
    forward = 4 * 16384 * length * 2048 * (0.5 if causal else 1) / 1e9
    return forward * {"fwd": 1, "bwd": 2.5, "fwd+bwd": 3.5}[direction]


def flash_times(gpu, kernel, causal, direction):
    """[(length, us)] of a published curve; `bwd` is the difference of the two that are published."""
    if direction == "bwd":
        forward = dict(flash_times(gpu, kernel, causal, "fwd"))
        both = flash_times(gpu, kernel, causal, "fwd+bwd")
        return [(length, us - forward[length]) for length, us in both if length in forward]
    row, = [r for r in table("flash_attention")["rows"]
            if (r["gpu"], r["kernel"], r["causal"], r["direction"]) == (gpu, kernel, causal, direction)]
    return [(length, 1e3 * flash_gflop(length, causal, direction) / rate)
            for length, rate in zip(row["seqlen"], row["tflops"]) if rate]


def fit_flash(points, causal, direction, fixed_us):
    """t = fixed + F (1 + L_half/L) / R, relative least squares: (R TFLOP/s, L_half, mean error)."""
    work = [(length, us, 1e3 * flash_gflop(length, causal, direction)) for length, us in points]
    features = [(f / us, f / length / us) for length, us, f in work]
    inverse, slope = non_negative_least_squares(features, [1 - fixed_us / us for _, us, _ in work])
    errors = [abs((fixed_us + f * (inverse + slope / length)) / us - 1) for length, us, f in work]
    return 1 / inverse, slope / inverse, mean(errors)


def curve(rate, half_length, provenance, source):
    return (f"{{rate: {rate:g} TFLOP/s, half_length: {half_length:g}, provenance: {provenance}, "
            f"source: {quoted(source)}}}")


def fitted_curve(spec, causal, fixed_us, whose):
    """A curve of {gpu, fit, direction}: `direction` fwd, bwd (of the difference) or fwd+bwd (both passes as one)."""
    kernel, direction = spec["fit"], spec["direction"]
    kernels = 2 if direction == "fwd+bwd" else 1
    rate, half, error = fit_flash(flash_times(spec["gpu"], kernel, causal, direction), causal, direction, kernels * fixed_us)
    word = "causal" if causal else "dense"
    what = {"fwd": "forward", "bwd": "forward and backward less forward", "fwd+bwd": "forward and backward in one figure"}
    return curve(round(rate), round(half), "analytic" if whose else "interpolated",
                 f"{whose}{kernel} on {spec['gpu']}, {what[direction]}, {word}, head size 128 (Dao-AILab/flash-attention @0251105a, "
                 f"assets); {fixed_us:g} us + F/(R L/(L + L_half)), mean error {100 * error:.1f} %")


def flash_pass(name, spec, fixed_us, whose):
    lines = [f"      {name}:"]
    for word, causal in (("causal", True), ("dense", False)):
        given = spec.get(word)
        text = (curve(given["rate"], given["half_length"], given["provenance"], given["source"]) if given
                else fitted_curve(spec, causal, fixed_us, whose))
        lines.append(f"        {word}: {text}")
    return lines + [sourced(key, spec[key], "        ") for key in ("half_blocks", "window_edge") if key in spec]


def flash_kernel(name, kernel, fixed_us, whose):
    lines = [f"    {name}:", *flash_pass("forward", kernel["forward"], fixed_us, whose),
             *flash_pass("backward", kernel["backward"], fixed_us, whose)]
    return lines + ([sourced("half_head_size", kernel["half_head_size"], "      ")] if "half_head_size" in kernel else [])


def microseconds(constant):
    value, unit = str(constant["value"]).split()
    assert unit == "us", constant
    return float(value)


def call_us(data):
    """What a call of a flash kernel takes beside the work of its curve."""
    return microseconds(data["attention"]["fixed"]) + microseconds(data["host"]["kernel_gap"])


def attention_section(data, whose):
    """Section `attention` of a file of constants: curves given, or named to be fitted beside `fixed` and the kernel gap.

    `whose` goes before the source of a fitted curve: "" where it was measured on this device."""
    spec, fixed_us = data["attention"], call_us(data)
    lines = ["attention:", f"  kernel: {spec['kernel']}", *([f"  sdpa: {spec['sdpa']}"] if "sdpa" in spec else []),
             *(sourced(key, spec[key], "  ") for key in ("fixed", "half_head_size")), "  kernels:"]
    for name, kernel in spec["kernels"].items():
        lines += flash_kernel(name, kernel, fixed_us, whose)
    if "fp8_kernels" in spec:
        lines.append("  fp8_kernels:")
        for name, kernel in spec["fp8_kernels"].items():
            lines += flash_kernel(name, kernel, fixed_us, whose)
    return lines


# --- GEMM -------------------------------------------------------------------------------------------------------------

def tile_cost(tile, slices, prologue, sms, size, least_depth):
    """Multiply-adds that the busiest SM is charged for, the sum cut into `slices`."""
    (tile_m, tile_n, rate), (m, n, k, batch) = tile, size
    waves = -(-(-(-m // tile_m) * -(-n // tile_n) * batch * slices) // sms)
    depth = k if slices == 1 else max(k / slices, least_depth)
    adding_up = 0 if slices == 1 else prologue * m * n * slices / sms
    return waves * tile_m * tile_n * (depth + prologue) / rate + adding_up


def quantisation(tiles, prologue, sms, size, split_k=(1, 0)):
    """Q of calibrate/profile/tile_model.hpp for (m, n, k, batch); `split_k`: the most slices, and the least depth of one."""
    most_slices, least_depth = split_k
    cheapest = min(tile_cost(tile, slices, prologue, sms, size, least_depth)
                   for tile in tiles for slices in range(1, most_slices + 1))
    m, n, k, batch = size
    return m * n * k * batch / sms / cheapest


def grouped_rows(data):
    """[(groups, m, n, k, layout, bytes, us)] of SimuMax's grouped GEMMs; the source prints M, N, K of the forward pass."""
    part = data["ops"]["group_matmul"]
    rows = []
    for values in part["rows"]:
        row = dict(zip(part["columns"], values))
        groups, m, n, k = row["ng"], row["M"], row["N"], row["K"]
        gradient = 4 if row.get("main_grad_dtype", "fp32") == "fp32" else 2
        operands = 2 * (m * k + n * k + m * n)
        shape, traffic = {"fwd": ((m, n, k, "TN"), operands), "bwd_grad_act": ((m, k, n, "NN"), operands),
                          "bwd_grad_w": ((n, k, m, "NT"), 2 * (m * k + m * n) + 2 * gradient * n * k)}[row["stage"]]
        us = 2e-6 * m * n * k * groups / (part["tflops"] * row["efficiency"])
        rows.append((groups, *shape, groups * traffic, us))
    return rows


def grouped_errors(rows, device, factor, gap_us):
    """predicted/published - 1 by the rule of models/compute_cost.hpp; `device` has peak, e, tiles, prologue, sms, bytes_us."""
    errors = []
    for groups, m, n, k, layout, traffic, us in rows:
        q = quantisation(device["tiles"], device["prologue"], device["sms"], (m, n, k, groups))
        math_us = 2e-6 * m * n * k * groups / (device["peak"] * device["e"][layout] * factor * q)
        errors.append((groups * gap_us + math.hypot(math_us, traffic / device["bytes_us"])) / us - 1)
    return errors


def fit_grouped(rows, device):
    """(factor, gap us) of the least mean |error| over every other row of the table, and the mean error of the rest."""
    seen, unseen = rows[::2], rows[1::2]
    grid = [(round(0.5 + 0.01 * i, 2), round(0.1 * j, 1)) for i in range(71) for j in range(101)]
    factor, gap = min(grid, key=lambda c: mean([abs(e) for e in grouped_errors(seen, device, *c)]))
    return factor, gap, grouped_errors(unseen, device, factor, gap)


def grouped_constants(published, device, whose):
    """Constants of grouped GEMMs with their story: fitted on every other row, judged on the rest."""
    rows = grouped_rows(published)
    factor, gap, unseen = fit_grouped(rows, device)
    errors = [abs(error) for error in unseen]
    story = (f"fitted on {len(rows) - len(errors)} of {len(rows)} grouped GEMMs of {whose} @4dcaae51; the other {len(errors)}: "
             f"mean error {100 * mean(errors):.0f} %, median {100 * median(errors):.0f} %, worst {100 * max(errors):.0f} %")
    return {"grouped_factor": {"value": factor, "provenance": "analytic", "source": story},
            "group_gap": {"value": f"{gap:g} us", "provenance": "analytic", "source": story}}


# --- the file ---------------------------------------------------------------------------------------------------------

def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def sourced(key, constant, indent=""):
    assert set(constant) == {"value", "provenance", "source"}, (key, constant)
    value, provenance, source = constant["value"], constant["provenance"], quoted(constant["source"])
    return f"{indent}{key}: {{value: {value}, provenance: {provenance}, source: {source}}}"


def header(script, name, data, sheet):
    device = data["device"]
    peaks = [("fp32", "tf32_tflops"), ("fp16", "bf16_tflops"), ("bf16", "bf16_tflops"), ("fp8", "fp8_tflops")]
    source = (device.get("sheet_source", "data sheet by way of stas00/ml-engineering") + "; peak_fp32 is TF32; " +
              device["memory_source"])
    return [f"# Written by calibrate/published/{script} from published figures. Do not edit; edit its inputs.",
            "# Format: calibrate/profile/README.md.",
            "stagecraft_profile: 1",
            f"name: {name}",
            f"date: {quoted(data['date'])}",
            f"made_by: python3 calibrate/published/{script}",
            "device:",
            f"  name: {device['name']}",
            f"  sms: {device.get('sms', sheet.get('sms'))}",
            f"  memory: {device['memory']}",
            f"  memory_bandwidth: {round(sheet['hbm_tb_s'] * 1000)} GB/s",
            f"  nvlink: {sheet['nvlink_unidir_gb_s']} GB/s",
            *(f"  peak_{precision}: {sheet[column]} TFLOP/s" for precision, column in peaks if sheet[column]),
            "  provenance: published",
            f"  source: {quoted(source)}"]


def collective_table(source, rows, provenance="interpolated", algorithm="any"):
    """`rows` of (kind, ranks, nodes, (a us, B GB/s, c us per sqrt(byte)))."""
    return [f"- provenance: {provenance}", f"  source: {quoted(source)}",
            "  columns: [kind, ranks, nodes, algorithm, latency, bus_bandwidth, sqrt_seconds]", "  rows:",
            *(f"  - [{kind}, {ranks}, {nodes}, {algorithm}, {a:.2f} us, {b:.1f} GB/s, {c * 1e-6:.3e}]"
              for kind, ranks, nodes, (a, b, c) in rows)]


def time_at(points, size):
    """On the line through a run's points in ln t over ln size; None beyond them."""
    sizes = [s for s, _ in points]
    if not sizes[0] <= size <= sizes[-1]:
        return None
    i = max(1, bisect.bisect_left(sizes, size))
    (s0, t0), (s1, t1) = points[i - 1], points[i]
    return math.exp(math.log(t0) + math.log(t1 / t0) * math.log(size / s0) / math.log(s1 / s0))


def between_runs(runs):
    """[(bytes, us)] at every size of a run: the time whose largest relative error against the runs that have it is least."""
    points = []
    for size in sorted({size for run in runs for size, _ in run}):
        times = [t for run in runs if (t := time_at(run, size)) is not None]
        points.append((size, 2 / (1 / min(times) + 1 / max(times))))
    return points


def azure_points(name):
    """[(bytes, us)] of an all-reduce on a node of Azure's."""
    row, = [row for row in table("azure_nd")["curves"] if row["id"] == name]
    factor = bus_factor("all-reduce", row["ranks"])
    return [(size, size * factor / 1e3 / bus) for size, bus in zip(row["bytes"], row["busbw_gb_s"])]


def point_table(source, curves, provenance="published", algorithm="any"):
    """`curves` of (kind, ranks, [(bytes, us)]), each inside a node."""
    return [f"- provenance: {provenance}", f"  source: {quoted(source)}", "  columns: [kind, ranks, algorithm, size, time]",
            "  rows:",
            *(f"  - [{kind}, {ranks}, {algorithm}, {size // 1024} KiB, {us:.6g} us]"
              for kind, ranks, points in curves for size, us in rising_points(points))]


def kernels_and_host(data, whose=""):
    """From memory_efficiency to the overlaps: everything between the GEMMs and the collectives."""
    return [sourced("memory_efficiency", data["memory_efficiency"]), sourced("loss_traffic", data["loss_traffic"]),
            *attention_section(data, whose),
            "experts:", *(sourced(key, value, "  ") for key, value in data["experts"].items()),
            "host:", *(sourced(key, value, "  ") for key, value in data["host"].items()),
            *(sourced(key, data[key]) for key in ("tensor_overlap", "gradient_overlap_slowdown",
                                                     "sharded_overlap_slowdown", "gpu_variability")),
            "software: {" + ", ".join(f"{key}: {value}" for key, value in data["software"].items()) + "}"]


def transferred_from(whose, node):
    """Constants of another device: no longer measured, published or interpolated, and the source begins with whose they are."""
    if isinstance(node, dict) and {"provenance", "source"} <= set(node):
        word = node["provenance"]
        return {**node, "provenance": word if word == "assumed" else "analytic", "source": whose + node["source"]}
    if isinstance(node, dict):
        return {key: transferred_from(whose, value) for key, value in node.items()}
    return node


def transferred_constants(whose, data):
    """Constants carried over from another device. The date, what a process holds, the spreads and the rules of the tile model
    stay as they are."""
    kept = {key: data[key] for key in ("date", "grid", "memory", "relative_spread")}
    fitted_rules = {key: data["gemm"][key] for key in ("tiles", "split_k", "correction")}
    moved = {**transferred_from(whose, data), **kept}
    moved["gemm"].update(fitted_rules)
    return moved


def as_analytic(lines):
    """The lines of a table that is published of another device."""
    return [line.replace("provenance: published", "provenance: analytic") for line in lines]


def overheads(data):
    spread = data["relative_spread"]
    return ["memory:", *(sourced(key, value, "  ") for key, value in data["memory"].items()),
            "relative_spread:",
            *(f"  {key}: {quoted(value) if key == 'source' else value}" for key, value in spread.items())]


def residuals_of(profile):
    """The last section, which `stagecraft calibrate residuals --write` makes from whole predictions."""
    text = profile.read_text(encoding="utf-8") if profile.is_file() else ""
    start = text.find("\nresiduals:")
    return "" if start < 0 else text[start + 1:]


def main(description, name, make_lines, folder=PROFILES):
    """Writes the profile `name` in `folder`, or with --check says whether the one in the tree is what would be written."""
    parser = argparse.ArgumentParser(description=description.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the profile would change")
    check = parser.parse_args().check
    profile = folder / f"{name}.yaml"
    text = "\n".join(make_lines()) + "\n" + residuals_of(profile)
    if not check:
        profile.write_text(text, encoding="utf-8")
        return 0
    if profile.is_file() and profile.read_text(encoding="utf-8") == text:
        return 0
    print(f"{profile.name} is not what this script makes of its inputs; run it without --check", file=sys.stderr)
    return 1
