#!/usr/bin/env python3
"""Writes the examples of a page as files: its block of CMake, and each block of C++ under the name above it (`name.cpp`).

usage: take_examples.py PAGE FOLDER
"""
import re
import sys
from pathlib import Path

page, folder = Path(sys.argv[1]).read_text(encoding="utf-8"), Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
(cmake,) = re.findall(r"^```cmake\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
(folder / "CMakeLists.txt").write_text(cmake, encoding="utf-8")
examples = re.findall(r"\(`(\w+\.cpp)`\):\n\n```cpp\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
assert len(examples) == page.count("```cpp"), "a block of C++ has no name"
for name, text in examples:
    (folder / name).write_text(text, encoding="utf-8")
