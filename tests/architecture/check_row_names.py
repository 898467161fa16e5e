#!/usr/bin/env python3
"""No price may know what it is compared with: finds names of published sets, of their rows and of their models, and of the
papers and sites behind them, in the code that predicts. A comment may cite a source; code may not name one.

usage: check_row_names.py ROOT

Prints `file:line: name` for each. Exit 0 when there is none, 1 otherwise.
"""
import re
import sys
from pathlib import Path

FOLDERS = ("base", "calibrate/profile", "models", "topology", "sim")
# Names of zoo models, sets, rows and models of sets are read from the data. These are the papers, tools and sites behind them.
SOURCES = ["bloom", "jean_zay", "jean-zay", "selene", "vtrain", "dgxc", "foundry", "simumax", "torchtitan", "calculon", "mosaicml",
           "sc21", "seqsel", "mpt", "gpt3", "gpt-3", "llama3", "llama-3", "llama31"]
# What a schedule is called by its paper is a name of the scenario schema and no row.
ALLOWED = {"zero_bubble"}
COMMENT = re.compile(r"//.*?$|/\*.*?\*/", re.S | re.M)
INCLUDE = re.compile(r"^\s*#include.*$", re.M)
CITATION = re.compile(r'\.citation =\s*(?:"[^"]*"\s*)+')  # a table's own field for it


def names_of_rows(root: Path) -> set[str]:
    """Ids, model names and set names of all published sets, and names of the zoo."""
    names = set()
    for file in sorted((root / "calibrate" / "validation").rglob("*.yaml")):
        text = file.read_text(encoding="utf-8")
        names |= set(re.findall(r"^set: (\S+)", text, re.M))
        names |= set(re.findall(r"^- \{id: ([^,}\s]+)", text, re.M))
        models = re.search(r"^models:\n((?:[ #].*\n)*)", text, re.M)
        names |= set(re.findall(r"^  ([\w.-]+):", models[1], re.M)) if models else set()
    names |= {file.stem for file in (root / "scenarios" / "models").glob("*.yaml")}
    return {name for name in names if len(name) > 3} - ALLOWED


def without_comments(text: str) -> str:
    """Comments and includes are blanked, lines stay where they are."""
    blank = lambda match: re.sub(r"[^\n]", " ", match[0])
    return CITATION.sub(blank, INCLUDE.sub(blank, COMMENT.sub(blank, text)))


def problems_in(text: str, name: str, words: set[str]) -> list[str]:
    """The names that the code of one file knows."""
    code = without_comments(text)
    folded = code.lower()
    found = sorted((word for word in words if word.lower() in folded), key=len, reverse=True)
    if not found:
        return []
    pattern = re.compile(r"(?<![A-Za-z0-9])(" + "|".join(map(re.escape, found)) + r")", re.I)
    return [f"{name}:{number}: {match[0]}" for number, line in enumerate(code.splitlines(), 1) if (match := pattern.search(line))]


def main() -> int:
    root = Path(sys.argv[1])
    words = names_of_rows(root) | set(SOURCES)
    problems = []
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.[ch]pp")):
            problems += problems_in(file.read_text(encoding="utf-8"), str(file.relative_to(root)), words)
    print("\n".join(problems) if problems else f"none of {len(words)} names of rows, models and sources is known to the code")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
