#!/usr/bin/env python3
"""The check of twins finds what it is there to find."""
import unittest

from check_twins import twins_in, types_in


def in_house(code: str) -> str:
    return "namespace stagecraft {\n" + code + "\n}  // namespace stagecraft\n"


class Twins(unittest.TestCase):
    def test_a_type_of_two_files_is_found(self):
        files = {"models/a.hpp": in_house("struct Pass { int bytes; };"), "sim/b.hpp": in_house("enum class Pass : char { kForward };")}
        self.assertEqual(twins_in(files), ["stagecraft::Pass: models/a.hpp, sim/b.hpp"])

    def test_derived_and_templated_types_are_found(self):
        self.assertEqual(types_in(in_house("class Job final : public Base<int> {};")), ["stagecraft::Job"])
        self.assertEqual(types_in(in_house("template <class T, typename U = A<B>>\nstruct Box {};")), ["stagecraft::Box"])

    def test_what_is_nobody_elses_has_no_twin(self):
        for code in ("namespace {\nstruct Pass {};\n}", "struct Outer { struct Pass {}; };", "void f() { struct Pass {}; }",
                     "struct Pass;", "// struct Pass {\n", "struct Pass::State {};", 'const char* text = "struct Pass {";'):
            self.assertNotIn("stagecraft::Pass", types_in(in_house(code)), code)
        self.assertEqual(types_in(in_house("namespace detail {\nstruct Pass {};\n}")), ["stagecraft::detail::Pass"])

    def test_the_suite_is_a_program_of_its_own(self):
        files = {"calibrate/bench/a.hpp": in_house("struct Event {};"), "sim/b.hpp": in_house("struct Event {};")}
        self.assertEqual(twins_in(files), [])


if __name__ == "__main__":
    unittest.main()
