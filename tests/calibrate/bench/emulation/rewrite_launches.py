#!/usr/bin/env python3
"""Turns a CUDA source into C++ for the emulation in this folder. Three things of CUDA are no C++ and no macro can make them so:

  kernel<<<blocks, threads, shared, stream>>>(arguments)    a call of emulation::launch
  __shared__ float slots[8], rest[8];                       static arrays, which each block finds filled with NaN
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now))    a call of emulation::global_timer

Everything else stays as it is, line by line, and a #line directive names the original.

usage: rewrite_launches.py SOURCE OUTPUT
"""
import re
import sys
from pathlib import Path

OPENING, CLOSING = "([{", ")]}"
TIMER = re.compile(r'asm volatile\("mov\.u64 %0, %%globaltimer;" : "=l"\((\w+)\)\)')
SHARED = re.compile(r"__shared__\s+([^;]+);")


def end_of_bracket(text: str, start: int) -> int:
    """The position behind the bracket that opens at `start`; no string of a source holds one alone."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] in OPENING) - (text[at] in CLOSING)
        if depth == 0:
            return at + 1
    raise ValueError(f"a bracket stays open: {text[start:start + 40]}")


def start_of_kernel(text: str, end: int) -> int:
    """Where the name of the kernel, with its template arguments, begins that ends at `end`."""
    at = end
    if text[at - 1] == ">":
        depth = 0
        while True:
            at -= 1
            depth += (text[at] == ">") - (text[at] == "<")
            if depth == 0:
                break
    while re.match(r"[\w:]", text[at - 1]):
        at -= 1
    return at


def with_launches(text: str) -> str:
    """Every launch as a call."""
    done, at = "", 0
    while (opening := text.find("<<<", at)) >= 0:
        kernel = start_of_kernel(text, opening)
        closing = text.index(">>>", opening)
        arguments = closing + 3
        if text[arguments] != "(":
            raise ValueError(f"a launch without arguments: {text[kernel:closing]}")
        end = end_of_bracket(text, arguments)
        name, configuration, inside = text[kernel:opening], text[opening + 3 : closing], text[arguments + 1 : end - 1]
        call = f'::stagecraft::emulation::launch({{"{name}", {configuration}}}, [=](auto&... a) {{ {name}(a...); }}'
        done += text[at:kernel] + call + (", " if inside.strip() else "") + inside + ")"
        at = end
    return done + text[at:]


def shared_names(declaration: str) -> list[str]:
    """The variables of `float a[2], b`."""
    flat = re.sub(r"\[[^\]]*\]", "", re.sub(r"<[^<>]*>", "", declaration))
    return [part.split()[-1] for part in flat.split(",")]


def with_shared(text: str) -> str:
    """Shared memory as static variables that are made anew for each block."""
    def declaration(match: re.Match) -> str:
        fresh = ", ".join(f"::stagecraft::emulation::fresh({name})" for name in shared_names(match[1]))
        return f"static {match[1]}; {fresh};"
    return SHARED.sub(declaration, text)


def rewritten(text: str, name: str) -> str:
    """The whole source."""
    text = TIMER.sub(r"\1 = ::stagecraft::emulation::global_timer()", text)
    return f'#line 1 "{name}"\n' + with_launches(with_shared(text))


def main() -> int:
    source, output = Path(sys.argv[1]), Path(sys.argv[2])
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(rewritten(source.read_text(encoding="utf-8"), str(source)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
