#!/usr/bin/env python3
"""The release and sanitizer builds compile with a precompiled header (cmake/StagecraftFastBuild.cmake), which hides that a source
forgot one: finds names of those headers in files that neither include them nor one of ours that does.

usage: check_headers.py ROOT

Prints `file:line: what is missing` once for each file and name. Exit 0 when nothing is missing, 1 otherwise.
"""
import re
import sys
from functools import cache
from pathlib import Path

from check_includes import INCLUDE
from tracked import tracked_files

# What people use of each header in cmake/StagecraftFastBuild.cmake; a name of several headers is in several rows.
NAMES = {
    "algorithm": "adjacent_find all_of any_of binary_search clamp copy copy_if count_if equal_range fill fill_n find_if for_each "
                 "generate includes is_sorted lower_bound max max_element min min_element minmax minmax_element move "
                 "next_permutation none_of nth_element partition remove_if reverse rotate set_difference set_intersection "
                 "set_union shuffle sort stable_sort transform unique upper_bound",
    "array": "array get",
    "cmath": "cbrt ceil cos erf erfc exp exp2 expm1 fabs floor fmod frexp hypot isfinite isinf isnan ldexp lgamma llround log log10 "
             "log1p log2 lround nan nearbyint nextafter pow round sin sqrt tgamma trunc",
    "cstdint": "int16_t int32_t int64_t int8_t uint16_t uint32_t uint64_t uint8_t uintptr_t",
    "filesystem": "filesystem",
    "fmt/format.h": "fmt",
    "fstream": "fstream ifstream ofstream",
    "functional": "bit_or cref function greater hash identity invoke less multiplies plus ref reference_wrapper",
    "map": "map multimap pair",
    "memory": "allocator hash make_shared make_unique shared_ptr unique_ptr weak_ptr",
    "optional": "hash make_optional nullopt nullopt_t optional",
    "random": "mt19937 mt19937_64 normal_distribution uniform_int_distribution uniform_real_distribution",
    "set": "multiset set",
    "span": "span",
    "sstream": "istringstream ostringstream stringstream",
    "string": "getline hash stod stoi stoll string string_view to_string",
    "string_view": "hash string_view",
    "utility": "as_const exchange forward get in_range make_pair move pair swap",
    "variant": "get get_if hash holds_alternative monostate variant variant_size_v visit",
    "vector": "vector",
}
HEADERS_OF: dict[str, set[str]] = {}
for _header, _names in NAMES.items():
    for _name in _names.split():
        HEADERS_OF.setdefault(_name, set()).add(_header)
HEADERS_OF["get"] |= {"tuple"}
HEADERS_OF["getline"] |= {"istream", "iostream"}

NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(?P<end>\w*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"', re.S)
NAME = re.compile(r"\bstd::(\w+)|\b(fmt)::")
PRECOMPILED = re.compile(r"target_precompile_headers\(\$\{name\} PRIVATE([^)]*)\)")


def precompiled_in(cmake: str) -> list[str]:
    """The headers of other people that libraries are compiled with."""
    return re.findall(r"<([^>]+)>", PRECOMPILED.search(cmake)[1])


def check(root: Path) -> list[str]:
    """What is missing under root, in order of file and line."""
    files = {f for f in tracked_files(root) if f.endswith((".hpp", ".cpp"))}

    @cache
    def text_of(file: str) -> str:
        return (root / file).read_text(encoding="utf-8")

    def reached_from(file: str) -> set[str]:
        """Headers of other people that the file includes, itself or through ours."""
        found, seen, waiting = set(), {file}, [file]
        while waiting:
            for header in (match[2] for line in text_of(waiting.pop()).splitlines() if (match := INCLUDE.match(line))):
                if header not in files:
                    found.add(header)
                elif header not in seen:
                    seen.add(header)
                    waiting.append(header)
        return found

    problems = []
    for file in sorted(files):
        reached = reached_from(file)
        code = NO_CODE.sub(lambda m: "\n" * m[0].count("\n"), text_of(file))
        missing: dict[str, int] = {}
        for match in NAME.finditer(code):
            name = match[1] or match[2]
            if name in HEADERS_OF and not HEADERS_OF[name] & reached:
                missing.setdefault(name, code.count("\n", 0, match.start()) + 1)
        problems += [f"{file}:{line}: {name} without <{'> or <'.join(sorted(HEADERS_OF[name]))}>" for name, line in missing.items()]
    return problems


def main() -> int:
    root = Path(sys.argv[1])
    unknown = set(precompiled_in((root / "cmake/StagecraftFastBuild.cmake").read_text(encoding="utf-8"))) - set(NAMES)
    problems = [f"cmake/StagecraftFastBuild.cmake: <{header}> is precompiled and has no row here" for header in sorted(unknown)]
    problems += check(root)
    print("\n".join(problems) if problems else "every file has the headers of the names that it uses")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
