#!/usr/bin/env python3
"""Finds what should not have been left lying about in the tracked files: notes to ourselves, tests that are switched off,
tests that are skipped without saying why, and absolute paths of somebody's machine.

usage: check_leftovers.py ROOT

Prints `file:line: what` for each. Exit 0 when there is none, 1 otherwise.
"""
import re
import sys
from pathlib import Path

from tracked import tracked_files

# Every pattern is written so that this file does not match itself.
PATTERNS = [
    (re.compile(r"\b(TO[D]O|FIX[M]E|X[X]X)\b"), "a note to ourselves"),
    (re.compile(r"\bDISABLE[D]_"), "a test that is switched off"),
    (re.compile(r"\bGTEST_SKI[P]\s*\(\s*\)\s*(?!<<|\s)"), "a test that is skipped without saying why"),
    (re.compile(r"(?<![\w.~*$}/-])/(?:wor[k]|hom[e]|roo[t])(?:/|\b(?![-.\w]))"), "an absolute path of one machine"),
]


def problems_in(text: str, name: str) -> list[str]:
    """The leftovers of one text."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, what in PATTERNS:
            if match := pattern.search(line):
                found.append(f"{name}:{number}: {what}: {match[0].strip()}")
    return found


def main() -> int:
    root = Path(sys.argv[1])
    problems = []
    for file in tracked_files(root):
        data = (root / file).read_bytes()
        if b"\0" not in data:  # not a text
            problems += problems_in(data.decode("utf-8", errors="replace"), file)
    print("\n".join(problems) if problems else "nothing was left lying about")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
