#!/usr/bin/env python3
"""Compares every #include of the tree with the table of who may include whom (allowed_includes.txt).

A source that has a header of its name includes it first, so that each build compiles that header alone.

usage: check_includes.py ROOT

Prints `file:line: what is wrong` for each violation. Exit 0 when there is none, 1 otherwise.
"""
import fnmatch
import re
import sys
from pathlib import Path

from tracked import tracked_files

SOURCE = {".hpp", ".cpp", ".cu", ".cuh", ".h", ".cc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


class Table:
    """The rows of allowed_includes.txt."""

    def __init__(self, text: str):
        self.folders: dict[str, list[str]] = {}  # "sim/engine" or "tools/**" -> folders
        self.libraries: dict[str, list[str]] = {}  # "yaml-cpp/" -> file patterns
        for number, raw in enumerate(text.splitlines(), 1):
            line = raw.split("#", 1)[0].strip()
            if not line:
                continue
            if match := re.fullmatch(r"<([^>]+)>\s+(.+)", line):
                self.libraries[match[1]] = match[2].split()
            elif match := re.fullmatch(r"(\S+):(.*)", line):
                if match[1] in self.folders:
                    raise ValueError(f"line {number}: {match[1]} has two rows")
                self.folders[match[1]] = match[2].split()
            else:
                raise ValueError(f"line {number}: not a row: {line}")

    def allowed_for(self, folder: str) -> list[str] | None:
        """The row of a folder; the longest `…/**` above it where it has none of its own; None when nobody speaks for it."""
        if folder in self.folders:
            return self.folders[folder]
        parts = folder.split("/")
        for length in range(len(parts), 0, -1):
            row = "/".join(parts[:length]) + "/**"
            if row in self.folders:
                return self.folders[row]
        return None

    def same_row(self, one: str, other: str) -> bool:
        """Are both folders under one `…/**` row (or the same folder)?"""
        return one == other or any(
            row.endswith("/**") and all((f + "/").startswith(row[:-2]) for f in (one, other)) for row in self.folders
        )


def local_problem(table: Table, files: set[str], file: str, header: str) -> str | None:
    """Why `file` may not include "header"; None when it may."""
    if header not in files:
        return f'"{header}" is not a file of the tree: write includes from its root'
    folder, target = str(Path(file).parent), str(Path(header).parent)
    if table.same_row(folder, target):
        return None
    of_tools = target.split("/")[0] == "tools"
    if of_tools and folder.split("/")[0] != "tools" and not folder.startswith("tests/tools"):
        return f'nothing includes tools: "{header}"'
    allowed = table.allowed_for(folder)
    if allowed is None:
        return f"folder {folder} has no row in allowed_includes.txt"
    everything = "*" in allowed and (not of_tools or folder.startswith("tests/"))
    if everything or target in allowed or header in allowed:
        return None
    return f'{folder} may not include {target}: "{header}" (it may: {", ".join(allowed) or "nothing"})'


def library_problem(table: Table, file: str, header: str) -> str | None:
    """Why `file` may not include <header>; None when it may."""
    for prefix, patterns in table.libraries.items():
        if header.startswith(prefix) and not any(fnmatch.fnmatch(file, p) for p in patterns):
            return f"<{header}> belongs to {' '.join(patterns)} only"
    return None


def first_include_problem(files: set[str], file: str, lines: list[str]) -> str | None:
    """`line: why` when a source's first include is not the header of its name."""
    own = str(Path(file).with_suffix(".hpp"))
    if Path(file).suffix != ".cpp" or own not in files:
        return None
    for number, line in enumerate(lines, 1):
        if match := INCLUDE.match(line):
            return None if match[2] == own else f'{number}: the first include is not "{own}"'
    return f'1: does not include "{own}"'


def check(root: Path, table: Table) -> list[str]:
    """All violations under root, in order of file and line."""
    files = set(tracked_files(root))
    problems = []
    for file in sorted(files):
        if Path(file).suffix not in SOURCE:
            continue
        if table.allowed_for(str(Path(file).parent)) is None:
            problems.append(f"{file}:1: folder {Path(file).parent} has no row in allowed_includes.txt")
            continue
        lines = (root / file).read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            if not (match := INCLUDE.match(line)):
                continue
            quoted, header = match[1] == '"', match[2]
            # A library's header in quotes is still that library's.
            problem = library_problem(table, file, header)
            if problem is None and quoted:
                problem = local_problem(table, files, file, header)
            if problem:
                problems.append(f"{file}:{number}: {problem}")
        if problem := first_include_problem(files, file, lines):
            problems.append(f"{file}:{problem}")
    return problems


def main() -> int:
    root = Path(sys.argv[1])
    table = Table((Path(__file__).parent / "allowed_includes.txt").read_text(encoding="utf-8"))
    problems = check(root, table)
    print("\n".join(problems) if problems else "every include is one that the table allows")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
