#!/usr/bin/env python3
"""The check of batches finds what it is there to find."""
import contextlib
import io
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from check_batches import clashes_in, definitions_in, libraries_in, main


def hidden(code: str) -> str:
    return "namespace stagecraft {\nnamespace {\n" + code + "\n}  // namespace\n}  // namespace stagecraft\n"


def clashes(a: str, b: str) -> list[str]:
    return clashes_in({"a.cpp": a, "b.cpp": b})


class Batches(unittest.TestCase):
    def test_the_places_of_both_are_told(self):
        self.assertEqual(clashes(hidden("// first\nint at(int i) { return i; }"), hidden("double at(int index) {\n  return index;\n}")),
                         ["a.cpp:4 and b.cpp:3 both define stagecraft::at: give one of them another name"])

    def test_what_cannot_be_defined_twice_is_found(self):
        for code in ("struct Pair { int a; };", "class Job final : public Base<int> {};", "enum class Zeros : char { kKeep };",
                     "constexpr double kMinute = 60e9, kHour = 1 < 2, kPair = 1;", "const std::array kUnits{Unit{1, \"n;s\"}, Unit{2}};",
                     "constexpr int kTable[][2] = {{1, 2}};", "const std::regex kPattern(\"a\");", "enum { kOne, kTwo = 2 };",
                     "template <class T>\nconcept Number = std::is_arithmetic_v<T>;", "[[nodiscard]] auto f() -> int { return 1; }",
                     "bool operator<(const A& a, const A& b) { return a.x < b.x; }", "const auto f = [](int a) { return a; };",
                     "template <class... A> struct Overloaded : A... { using A::operator()...; };\nint after = 1'000;"):
            names = {d.name for d in definitions_in(hidden(code))}
            found = clashes(hidden(code), hidden(code))
            self.assertTrue(names and len(found) == len(names), (code, found))

    def test_one_of_several_is_found(self):
        self.assertEqual(len(clashes(hidden("constexpr int kA = 1, kB = 2;"), hidden("enum { kB, kC };"))), 1)

    def test_parameters_count_by_their_types(self):
        for a, b in (("const Op& op, int", "const Op& other, int n = 3"), ("std::pair<int, A> x", "std::pair<int, A> y"), ("", "")):
            self.assertEqual(len(clashes(hidden(f"int f({a}) {{ return 1; }}"), hidden(f"int f({b}) {{ return 2; }}"))), 1, a)
        for a, b in (("const Op& op", "Op op"), ("int a", "int a, int b"), ("std::span<A> x", "std::span<B> x"), ("a::Op", "a::Job")):
            self.assertEqual(clashes(hidden(f"int f({a}) {{ return 1; }}"), hidden(f"int f({b}) {{ return 2; }}")), [], a)

    def test_template_parameters_read_alike_by_either_word(self):
        a, b = ("template <class T>\nint f(T a) { return 1; }", "template <typename T>\nint f(T b) { return 2; }")
        self.assertEqual(len(clashes(hidden(a), hidden(b))), 1)

    def test_a_helper_clashes_with_what_all_may_call(self):
        self.assertEqual(len(clashes(hidden("int f(int a) { return a; }"), "namespace stagecraft {\nint f(int a) {\n  return a;\n}\n}")), 1)
        self.assertEqual(len(clashes("static int f() { return 1; }", "namespace {\nint f() { return 1; }\n}")), 1)

    def test_an_alias_may_be_repeated_and_not_mean_another_thing(self):
        for same, other in (("namespace fs = std::filesystem;", "namespace fs = boost::filesystem;"), ("using Eigen::Index;", "using ours::Index;"),
                            ("using Row = std::vector<int>;", "using Row = std::vector<double>;")):
            self.assertEqual(clashes(hidden(same), hidden(same)), [], same)
            self.assertEqual(len(clashes(hidden(same), hidden(other))), 1, same)

    def test_what_keeps_apart_does_not_clash(self):
        for code in ("struct Pass;", "int f(int a);", "// int f() {}\n", 'constexpr auto a = "int f() {"', "int A::f() { int g = 1; return g; }",
                     "A::A(int a) : a_(a), b_{a} {\n  struct Inner {};\n}", "using namespace literals;", "extern int shared;",
                     "template <>\nstruct hash<A> {};", 'static_assert(sizeof(int) == 4, "int");', "#define X struct Pass {\n"):
            self.assertEqual(clashes(hidden(code), hidden(code)), [], code)
        self.assertEqual(clashes("namespace a {\nint f() { return 1; }\n}", "namespace b {\nint f() { return 1; }\n}"), [])

    def test_libraries_and_their_sources_are_read(self):
        cmake = ("stagecraft_library(\n  NAME base  # units\n  SOURCES a.cpp\n  in/b.cpp ${CMAKE_CURRENT_BINARY_DIR}/made.cpp\n  HEADERS a.hpp)\n"
                 "stagecraft_library(NAME cli SOURCES main.cpp)\nset_target_properties(stagecraft_cli PROPERTIES UNITY_BUILD OFF)\n")
        self.assertEqual(libraries_in(cmake), {"base": ["a.cpp", "in/b.cpp"]})
        with self.assertRaises(ValueError):  # rather than leave it out
            libraries_in("stagecraft_library(NAME base DEPS other SOURCES a.cpp)")

    def test_a_clash_in_a_tree_fails(self):
        with tempfile.TemporaryDirectory() as root, contextlib.redirect_stdout(io.StringIO()) as told:
            folder = Path(root) / "base"
            folder.mkdir()
            (folder / "CMakeLists.txt").write_text("stagecraft_library(NAME base SOURCES a.cpp b.cpp)\n", encoding="utf-8")
            for name, other in (("a.cpp", 1), ("b.cpp", 2)):
                (folder / name).write_text(hidden(f"constexpr int kMost = {other};"), encoding="utf-8")
            with mock.patch("sys.argv", ["check_batches.py", root]):
                self.assertEqual(main(), 1)
                (folder / "b.cpp").write_text(hidden("constexpr int kLeast = 2;"), encoding="utf-8")
                self.assertEqual(main(), 0)
        self.assertIn("base/a.cpp:3 and base/b.cpp:3 both define stagecraft::kMost", told.getvalue())


if __name__ == "__main__":
    unittest.main()
