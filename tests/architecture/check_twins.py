#!/usr/bin/env python3
"""Two types of one name in one namespace and one program are undefined behaviour that no compiler reports: finds types that two
files define. `calibrate/bench` is a program of its own; types of an unnamed namespace are nobody else's.

usage: check_twins.py ROOT

Prints each name with its files. Exit 0 when there is none, 1 otherwise.
"""
import re
import sys
from collections import defaultdict
from pathlib import Path

from tracked import tracked_files

FOLDERS = ("base/", "calibrate/", "models/", "topology/", "formats/", "sim/", "tools/", "python/")
OTHER_PROGRAM = "calibrate/bench/"
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|^[ \t]*#[^\n]*', re.S | re.M)
TEMPLATE = re.compile(r"\btemplate\s*<[^<>]*(?:<[^<>]*>[^<>]*)*>")
OPENING = re.compile(r"\bnamespace\s*(?P<space>[\w:]*)\s*\{|\b(?:struct|class|union|enum(?:\s+class)?)\s+(?P<type>\w+)\b(?!::)[^;{}()]*\{|[{}]")


def types_in(text: str) -> list[str]:
    """The types that a file defines in named namespaces, with their namespace: 'stagecraft::Op'."""
    open_braces: list[str | None] = []  # a namespace by name, None for any other brace
    found = []
    for match in OPENING.finditer(TEMPLATE.sub("", NO_CODE.sub("", text))):
        if match[0] == "}":
            if open_braces:
                open_braces.pop()
        elif match["space"] is not None:
            open_braces.append(match["space"])
        else:
            in_namespaces = bool(open_braces) and all(open_braces)  # neither in a type nor in an unnamed namespace
            if match["type"] and in_namespaces:
                found.append("::".join(filter(None, open_braces)) + "::" + match["type"])
            open_braces.append(None)
    return found


def twins_in(files: dict[str, str]) -> list[str]:
    """`name: file, file` for each type that two files of one program define."""
    places = defaultdict(set)
    for name, text in files.items():
        for found in types_in(text):
            places[(name.startswith(OTHER_PROGRAM), found)].add(name)
    return [f"{found}: {', '.join(sorted(names))}" for (_, found), names in sorted(places.items()) if len(names) > 1]


def main() -> int:
    root = Path(sys.argv[1])
    names = [f for f in tracked_files(root) if f.startswith(FOLDERS) and f.endswith((".hpp", ".cpp", ".cuh", ".cu"))]
    problems = twins_in({name: (root / name).read_text(encoding="utf-8") for name in names})
    print("\n".join(problems) if problems else f"no type of {len(names)} files has a twin")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
