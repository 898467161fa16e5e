#!/usr/bin/env python3
"""docs/validation.md says what the program says, and its last tables are of the same predictions.

usage: validation_page_test.py STAGECRAFT SOURCE_DIR

The tables that simulate every row many times (ablation, sources left out) are not made anew here: the errors of sets with
nothing taken away must be those of the overview. After a change of physics: tools/validation-page.
"""
import re
import subprocess
import sys
from pathlib import Path


def cells(line):
    return [cell.strip(" *") for cell in line.strip("|\n ").split(" | ")]


def table_after(page, heading):
    """Lines of the first table behind a heading."""
    lines = page.split(heading, 1)[1].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    return [cells(line) for line in lines[start:start + next(
        (i for i, line in enumerate(lines[start:]) if not line.startswith("|")), len(lines))] if "---" not in line]


def main() -> int:
    program, source = sys.argv[1], Path(sys.argv[2])
    page = (source / "docs/validation.md").read_text(encoding="utf-8")
    fresh = subprocess.run([program, "validate", "--markdown"], capture_output=True, text=True, check=True).stdout
    if not page.startswith(fresh):
        for number, (is_line, should) in enumerate(zip(page.splitlines(), fresh.splitlines()), 1):
            if is_line != should:
                print(f"docs/validation.md:{number}: is\n  {is_line}\nand should be\n  {should}")
                break
        print("run tools/validation-page", file=sys.stderr)
        return 1
    overview = {re.sub(r"\[(.*?)\].*", r"\1", row[0]): row[2].removesuffix(" %") for row in table_after(page, "\n## Sets\n")[1:]}
    ablation = table_after(page, "## Ablation")
    every_row = max(int(row[1]) for row in ablation[1:])
    base = {found for row in ablation[1:] if int(row[1]) == every_row for found in re.findall(r"(\w+) ([\d.]+) to ", row[5])}
    if len(base) < 20 or not base <= set(overview.items()):
        print(f"the ablation table is of other predictions: {base - set(overview.items())}; run tools/validation-page")
        return 1
    # A source that determined no constant is in no fit that it could be left out of.
    constants = (source / "calibrate/validation/scoring/constants.yaml").read_text(encoding="utf-8")
    determine = set(re.findall(r"\w+", " ".join(re.findall(r"fitted_on: \[([^\]]*)\]", constants))))
    with_fits = {name: error for name, error in overview.items() if name in determine}
    left_out = {row[0]: row[3].removesuffix(" %") for row in table_after(page, "## Sources left out")[1:]}
    if left_out != with_fits:
        print(f"sources were left out of other predictions: {left_out}, the overview has {with_fits}; run tools/validation-page")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
