"""What the README prints is what the program says: the flagship report, the schedule picture and the accuracy table.

usage: readme_test.py STAGECRAFT SOURCE_DIR
"""
import json
import os
import subprocess
import sys

SETS = {
    "megatron_sc21": "SC'21, Table 1",
    "sequence_parallel_selective_recompute": "2205.05198, Table 5",
    "vtrain_multi_node": "vTrain, multi-node",
    "zero_bubble": "Zero Bubble, 1F1B rows",
}


def run(program, source, *words):
    done = subprocess.run([program, *words], cwd=source, capture_output=True, text=True, check=True,
                          env={**os.environ, "NO_COLOR": "1"})
    return done.stdout


def accuracy_row(scores):
    cells = [scores["rows_scored"], f"{100 * scores['mape']:.1f} %", f"{100 * scores['bias']:+.1f} %",
             f"{100 * scores['median']:.1f} %", f"{100 * scores['worst']:.1f} %"]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def main():
    program, source = sys.argv[1:3]
    with open(os.path.join(source, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    wanted = [
        run(program, source, "run", "scenarios/gpt3-175b-1024xA100.yaml"),
        run(program, source, "schedule", "show", "--schedule", "1f1b", "--stages", "4", "--micro-batches", "8",
            "--forward", "1ms", "--input-gradient", "1ms", "--weight-gradient", "1ms"),
    ]
    missing = [text for text in wanted if text not in readme]
    lines = readme.splitlines()
    seen = set()
    for line in run(program, source, "validate", "--json").splitlines():
        scores = json.loads(line)
        seen.add(scores["set"])
        row = accuracy_row(scores)
        if not any(SETS[scores["set"]] in text and row in text for text in lines):
            missing.append(f"{scores['set']}: {row}")
    if seen != set(SETS):
        missing.append(f"sets validated: {sorted(seen)}, sets in this test: {sorted(SETS)}")
    for text in missing:
        print("README.md does not have:\n" + text)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
