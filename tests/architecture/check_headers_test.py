#!/usr/bin/env python3
"""The check of forgotten headers finds what it is there to find. Each test states a small tree and what is missing in it."""
import tempfile
import unittest
from pathlib import Path

from check_headers import NAMES, check, precompiled_in


def problems_of(tree: dict[str, str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in tree.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return check(Path(folder))


class Headers(unittest.TestCase):
    def test_a_name_without_its_header_is_found_once_with_its_line(self):
        text = "#include <map>\nstd::map<int, int> a;\nstd::vector<int> b;\nstd::vector<int> c;\n"
        self.assertEqual(problems_of({"base/a.cpp": text}), ["base/a.cpp:3: vector without <vector>"])

    def test_a_header_of_ours_may_bring_it(self):
        tree = {"base/a.hpp": "#include <vector>\n", "base/b.hpp": '#include "base/a.hpp"\n',
                "base/c.cpp": '#include "base/b.hpp"\nstd::vector<int> a;\n'}
        self.assertEqual(problems_of(tree), [])

    def test_headers_of_ours_that_include_each_other_end(self):
        tree = {"base/a.hpp": '#include "base/b.hpp"\n', "base/b.hpp": '#include "base/a.hpp"\nstd::set<int> s;\n'}
        self.assertEqual(problems_of(tree), ["base/b.hpp:2: set without <set>"])

    def test_a_name_of_several_headers_needs_one_of_them(self):
        self.assertEqual(problems_of({"base/a.hpp": "#include <map>\nstd::pair<int, int> a;\n"}), [])
        self.assertEqual(problems_of({"base/a.hpp": "std::pair<int, int> a;\n"}), ["base/a.hpp:1: pair without <map> or <utility>"])

    def test_comments_and_texts_use_nothing(self):
        text = '// std::vector\n/* std::map\n*/ const char* a = "std::set \\" std::set";\nauto b = R"(std::span\n)";\nstd::span<int> c;\n'
        self.assertEqual(problems_of({"base/a.cpp": text}), ["base/a.cpp:6: span without <span>"])

    def test_a_library_is_a_name_too(self):
        self.assertEqual(problems_of({"base/a.cpp": 'auto a = fmt::format("");\n'}), ["base/a.cpp:1: fmt without <fmt/format.h>"])

    def test_names_of_other_headers_are_not_asked_for(self):
        self.assertEqual(problems_of({"base/a.cpp": "std::atomic<int> a;\n"}), [])

    def test_the_table_covers_what_is_precompiled(self):
        cmake = (Path(__file__).parents[2] / "cmake/StagecraftFastBuild.cmake").read_text(encoding="utf-8")
        self.assertIn("vector", precompiled_in(cmake))
        self.assertLessEqual(set(precompiled_in(cmake)), set(NAMES))


if __name__ == "__main__":
    unittest.main()
