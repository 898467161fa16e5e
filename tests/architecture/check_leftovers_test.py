#!/usr/bin/env python3
"""The leftovers check finds what it is there to find. The words are put together here, or the check would find this file."""
import unittest

from check_leftovers import problems_in


class Leftovers(unittest.TestCase):
    def test_notes_to_ourselves_are_found_with_their_line(self):
        for word in ("TO" + "DO", "FIX" + "ME", "XX" + "X"):
            self.assertEqual(problems_in(f"one\n// {word}: later\n", "a.cpp"), [f"a.cpp:2: a note to ourselves: {word}"])

    def test_words_that_only_contain_them_are_silent(self):
        for line in ("mktemp -d t.XX" + "XXXX", "AUTO" + "DOC", "kMethodo"):
            self.assertEqual(problems_in(line, "a"), [])

    def test_a_switched_off_test_is_found(self):
        self.assertEqual(len(problems_in("TEST(Engine, DISABLED" + "_Runs) {", "a.cpp")), 1)

    def test_a_skip_needs_a_reason(self):
        skip = "GTEST_" + "SKIP()"
        self.assertEqual(len(problems_in(f"  {skip};", "a.cpp")), 1)
        self.assertEqual(problems_in(f'  {skip} << "needs a GPU";', "a.cpp"), [])

    def test_absolute_paths_of_a_machine_are_found(self):
        for folder in ("wo" + "rk", "ho" + "me", "ro" + "ot"):
            for line in (f"/{folder}/main/a.yaml", f'"/{folder}/x"', f"cd /{folder}", f"=/{folder}/x"):
                self.assertEqual(len(problems_in(line, "a")), 1, line)

    def test_other_paths_are_silent(self):
        for line in ("../ho" + "me/x", "build/wo" + "rk/x", "/usr/ro" + "ot", "https://example.org/ho" + "me/", "/wo" + "rkload"):
            self.assertEqual(problems_in(line, "a"), [], line)


if __name__ == "__main__":
    unittest.main()
