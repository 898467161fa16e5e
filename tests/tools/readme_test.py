"""What the README prints is what the program says: the flagship report, the schedule picture, the accuracy tables, the
chart of recovery policies.

usage: readme_test.py STAGECRAFT SOURCE_DIR      with STAGECRAFT_BLESS=1 the README is written anew
"""
import json
import os
import re
import subprocess
import sys

# Sets on which other tools published figures, as the README calls them.
WITH_OTHERS = {
    "sequence_parallel_selective_recompute": "2205.05198, Table 5",
    "simumax_b200": "SimuMax, 8 B200",
    "simumax_b200_experts_context": "SimuMax, experts and long sequences on 8 B200",
    "vtrain_multi_node": "vTrain, multi-node",
}
KINDS_HEAD = ("| kind of job | rows | mean error | bias | median | inside 90 % | fitted rows | their mean error |\n"
              "|---|---|---|---|---|---|---|---|\n")

POLICIES = "{name: checkpoint-restart, lost: done-without},hot-spares,oobleck,bamboo,varuna,recycle,elastic,none"
RATES = "0.001,0.003,0.01,0.03,0.1,0.3,1"
# A file beside the README -> the words that draw it.
FIGURES = {
    "docs/figures/goodput-policies.svg": [
        "goodput", "scenarios/goodput/checkpoint-restart.yaml", "--set", "failures.repeats=10", "--vary",
        f"failures.policy={POLICIES}", "--vary", f"failures.process.rate_per_node_day={RATES}", "--format", "svg",
        "--jobs", "2"],
}


def run(program, source, *words):
    done = subprocess.run([program, *words], cwd=source, capture_output=True, text=True, check=True,
                          env={**os.environ, "NO_COLOR": "1"})
    return done.stdout


def table_row(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def percent(share):
    return f"{100 * share:.1f} %"


def kind_row(kind):
    held_out, fitted = kind["held_out"], kind["fitted"]
    errors = [percent(held_out["mape"]), f"{100 * held_out['bias']:+.1f} %", percent(held_out["median"]),
              f"{100 * held_out['coverage_90']:.0f} %"] if held_out else 4 * ["–"]
    return table_row(kind["title"], kind["rows"], *errors, *([fitted["rows"], percent(fitted["mape"])] if fitted else 2 * ["–"])) + "\n"


def with_kinds(readme, kinds, sets):
    """The table by kind of job, written anew. Each set counts once."""
    scored = [scores["rows_scored"] for scores in sets.values() if scores["rows_scored"]]
    if (sum(kind["sets"] for kind in kinds), sum(kind["rows"] for kind in kinds)) != (len(scored), sum(scored)):
        sys.exit(f"kinds of jobs do not have the {sum(scored)} rows of {len(scored)} sets")
    before, found, rest = readme.partition(KINDS_HEAD)
    if not found:
        sys.exit("README.md has no table by kind of job")
    return before + found + "".join(map(kind_row, kinds)) + re.sub(r"\A(\|.*\n)*", "", rest)


def with_others(readme, sets):
    """The table of sets on which other tools published figures; these are written by hand."""
    if {name for name, scores in sets.items() if scores.get("peers")} != set(WITH_OTHERS):
        sys.exit("the sets on which other tools published figures are others than in this test")
    for name, title in WITH_OTHERS.items():
        scores = sets[name]
        cells = table_row(scores["rows_scored"], percent(scores["mape"]), f"{100 * scores['bias']:+.1f} %", percent(scores["median"]),
                          percent(scores["worst"]), "held out" if scores["held_out"] else "fitted")
        row = re.compile(r"(\| \[" + re.escape(title) + r"\]\([^)]*\) )\|(?:[^|]*\|){6}")
        readme, count = row.subn(lambda match: match[1] + cells, readme)
        if count != 1:
            sys.exit(f"README.md has {count} rows of {name}")
    return readme


def blocks(program, source):
    """Command as the README shows it -> what it prints."""
    schedule = ["schedule", "show", "--schedule", "1f1b", "--stages", "4", "--micro-batches", "8", "--forward", "1ms",
                "--input-gradient", "1ms", "--weight-gradient", "1ms"]
    commands = [["run", "scenarios/gpt3-175b-1024xA100.yaml"], schedule]
    return {"$ stagecraft " + " ".join(words) + "\n": run(program, source, *words) for words in commands}


def updated(readme, program, source):
    for command, text in blocks(program, source).items():
        before, found, rest = readme.partition(command)
        if not found:
            sys.exit(f"README.md does not show: {command}")
        readme = before + command + text + rest[rest.index("```"):]
    *lines, all_sets = [json.loads(line) for line in run(program, source, "validate", "--json").splitlines()]
    sets = {scores["set"]: scores for scores in lines}
    readme = with_others(with_kinds(readme, all_sets["kinds"], sets), sets)
    errors = {name: {row["id"]: row["error"] for row in scores["rows"]} for name, scores in sets.items()}
    return with_memory_sentence(with_sentences(readme, errors), program, source)


def rewritten(readme, sentence, figure):
    """The README with `figure` in place of the number that `sentence` has as its group 2."""
    readme, count = re.subn(sentence, lambda match: match[1] + figure + match[3], readme)
    if count != 1:
        sys.exit(f"README.md has {count} sentences like: {sentence}")
    return readme


def mean_error(errors):
    """Their mean in percent, without signs."""
    return f"{100 * sum(map(abs, errors)) / len(errors):.1f}"


def with_sentences(readme, errors):
    """The figures between the tables; `errors` of rows by set and row."""
    def of(*names, rows=""):
        return [error for name in names for row, error in errors[name].items() if re.search(rows, row)]

    nvfp4 = of(*errors, rows="nvfp4")
    fitted, rest = "megatron_sc21", "megatron_sc21_rest"
    for sentence, those in ((r"(ten rows of Table 1 of PTD-P )([\d.]+)( % mean\s+error)", of(fitted, rest, rows="_t1_")),
                            (r"(five fitted )([\d.]+)( %)", of(fitted, rows="_t1_")),
                            (r"(five held out )([\d.]+)( %)", of(rest, rows="_t1_")),
                            (r"(, )([\d.]+)( % on\s+Qwen3 235B)", of("megatron_moe_long_h100", rows="balanced$")),
                            (r"(held-out ZeRO-3 runs of its Table 2: )([\d.]+)( %)", of("deepspeed_zero3_a100")),
                            (r"(On H100 )([\d.]+)( % over 96 runs of Llama 3.1)", of("dgxc_llama31_h100")),
                            (r"(fitted on them )([\d.]+)( % over 65 mixture)", of("parallel_folding_h100")),
                            (rf"(, )([\d.]+)( % over {len(nvfp4)} runs in NVFP4)", nvfp4)):
        readme = rewritten(readme, sentence, mean_error(those))
    return readme


def with_memory_sentence(readme, program, source):
    """What `validate --memory` counts in all sets."""
    sets = [json.loads(line) for line in run(program, source, "validate", "--memory", "--quiet", "--json").splitlines()]
    errors = [abs(row["error"]) for one in sets for row in one["rows"] if row.get("error") is not None]
    verdicts, wrong = sum(one["verdicts"] for one in sets), sum(one["wrong_verdicts"] for one in sets)
    near = sum(error <= 0.1 for error in errors)
    for sentence, figure in ((r"(for memory: )(\d+)( published figures)", len(errors)), (r"(figures, )(\d+)( of them within 10 %)", near),
                             (r"(within 10 % \()(\d+)( rows miss)", len(errors) - near),
                             (r"(rows miss by 10 to )(\d+)( %)", f"{100 * max(errors):.0f}"),
                             (r"(and )([\d,]+)( runs whose end is known)", f"{verdicts:,}")):
        readme = rewritten(readme, sentence, str(figure))
    words = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    if f"all but {words[wrong] if wrong < len(words) else wrong} told right" not in readme:
        sys.exit(f"README.md does not say that {wrong} verdicts are wrong")
    return readme


def figures_are_current(program, source, bless):
    current = True
    for name, words in FIGURES.items():
        path = os.path.join(source, name)
        now = run(program, source, *words)
        known = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                known = file.read()
        if now == known:
            continue
        if bless:
            with open(path, "w", encoding="utf-8") as file:
                file.write(now)
            continue
        print(f"{name} is not what the program draws: stagecraft {' '.join(words)}")
        current = False
    return current


def main():
    program, source = sys.argv[1:3]
    bless = os.environ.get("STAGECRAFT_BLESS") == "1"
    current = figures_are_current(program, source, bless)
    path = os.path.join(source, "README.md")
    with open(path, encoding="utf-8") as file:
        readme = file.read()
    now = updated(readme, program, source)
    if now == readme:
        return 0 if current else 1
    if bless:
        with open(path, "w", encoding="utf-8") as file:
            file.write(now)
        return 0
    for old, new in zip(readme.splitlines(), now.splitlines()):
        if old != new:
            print(f"README.md says:    {old}\nthe program says:  {new}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
