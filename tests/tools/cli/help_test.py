#!/usr/bin/env python3
"""`--help`: what it says, that it fits a screen, and that its examples work.

usage: help_test.py STAGECRAFT SOURCE_DIR [Help[.TEST]]

STAGECRAFT_BLESS=1 writes golden/help.txt anew.
"""
import re
import shlex

from harness import DONE, FLAGSHIP, WRONG_INPUT, Case, main, stagecraft, transcript


class Help(Case):
    def commands(self):
        overview = stagecraft("--help").stdout
        return re.findall(r"^  ([a-z]+) ", overview.split("commands\n")[1].split("\n\n")[0], re.MULTILINE)

    def test_what_it_says(self):
        lines = ["stagecraft --help"] + [f"stagecraft {command} --help" for command in self.commands()]
        self.assert_golden("help", transcript(lines))

    def test_each_fits_a_screen_and_begins_with_examples(self):
        for words in [()] + [(command,) for command in self.commands()]:
            with self.subTest(words):
                ran = stagecraft(*words, "--help")
                self.assertEqual((DONE, ""), (ran.returncode, ran.stderr))
                lines = ran.stdout.splitlines()
                self.assertLessEqual(len(lines), 40)
                self.assertLessEqual(max(map(len, lines)), 100)
                self.assertTrue(any(line.startswith("  stagecraft ") for line in lines[:3]), lines[:3])

    def test_every_example_works(self):
        for words in [()] + [(command,) for command in self.commands()]:
            head = re.split(r"\n(?:usage|commands)", stagecraft(*words, "--help").stdout)[0]
            examples = re.findall(r"^  (stagecraft .*)$", head, re.MULTILINE)
            self.assertGreaterEqual(len(examples), 2, words)
            for example in examples:
                with self.subTest(example):
                    ran = stagecraft(*shlex.split(example)[1:])
                    self.assertEqual(DONE, ran.returncode, ran.stderr)
                    self.assertNotEqual("", ran.stdout)

    def test_there_are_several_ways_to_ask(self):
        wanted = stagecraft("run", "--help").stdout
        for words in (("run", "-h"), ("help", "run"), ("run", FLAGSHIP, "--help")):
            self.assertEqual(wanted, stagecraft(*words).stdout, words)
        self.assertEqual(stagecraft("--help").stdout, stagecraft("help").stdout)
        self.assertEqual(stagecraft("--help").stdout, stagecraft("-h").stdout)

    def test_no_words_at_all_give_help_and_are_wrong(self):
        ran = stagecraft()
        self.assertEqual((WRONG_INPUT, ""), (ran.returncode, ran.stdout))
        self.assertEqual(stagecraft("--help").stdout, ran.stderr)

    def test_version(self):
        self.assertRegex(stagecraft("--version").stdout, r"^stagecraft \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    main()
