#!/usr/bin/env python3
"""The check of row names finds what it is there to find."""
import unittest

from check_row_names import problems_in

WORDS = {"vtrain", "bloom", "gpt-22B", "seqsel_t5_22B_full"}


class RowNames(unittest.TestCase):
    def test_a_test_of_a_row_is_found_with_its_line(self):
        text = 'int a;\nif (row == "seqsel_t5_22B_full") a = 2;\n'
        self.assertEqual(problems_in(text, "a.cpp", WORDS), ["a.cpp:2: seqsel_t5_22B_full"])

    def test_a_site_in_a_name_is_found(self):
        self.assertEqual(len(problems_in("bool is_bloom_site();", "a.hpp", WORDS)), 1)
        self.assertEqual(len(problems_in('if (fabric.name == "BLOOM") slow();', "a.cpp", WORDS)), 1)
        self.assertEqual(len(problems_in("constexpr double kX = 1;  vtrain_factor(kX);", "a.cpp", WORDS)), 1)

    def test_a_source_may_be_cited(self):
        for text in ("// source  Bang et al., vTrain (MICRO 2024)\n", '#include "x/vtrain.hpp"\n', "/* BLOOM\n BLOOM */",
                     '     .citation = "vTrain, section 2",\n'):
            self.assertEqual(problems_in(text, "a.cpp", WORDS), [], text)


if __name__ == "__main__":
    unittest.main()
