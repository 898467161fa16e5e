#!/usr/bin/env python3
"""Options and other words of a command line that are not about one command: what is taken, and what is refused.

usage: options_test.py STAGECRAFT SOURCE_DIR [Options[.TEST]]
"""
import re

from harness import DONE, FLAGSHIP, GOOD, PIPELINE, SOURCE, WRONG_INPUT, Case, main, stagecraft


class Options(Case):
    def test_standard_output_is_no_file_and_standard_input_is_read_once(self):
        for words in (["run", PIPELINE, "--html", "-"], ["search", FLAGSHIP, "--write-best", "-"], ["sweep", "sweeps/schedules", "--csv", "--output", "-"]):
            ran = stagecraft(*words)
            self.assert_refused(ran)
            self.assertIn(f"{words[-2]} writes a file, and - is none\n", ran.stderr)
        self.assertFalse((SOURCE / "-").exists())
        ran = stagecraft("compare", "-", "-", text_in=GOOD)
        self.assert_refused(ran)
        self.assertIn("standard input can be read only once", ran.stderr)

    def test_options_of_a_wrong_kind_are_one_error(self):
        for value in ("[]", "text"):
            ran = stagecraft("check", FLAGSHIP, "--set", f"options={value}")
            self.assert_refused(ran)
            self.assertTrue(ran.stderr.endswith("\n1 error, nothing was simulated\n"), ran.stderr)

    def test_words_of_which_one_would_be_left_out_in_silence_are_refused(self):
        two_forms = "are two forms of one answer"
        for line, reason in (("validate --memory --markdown", "--markdown is about predicted times, not --memory"),
                             ("validate --memory --ablation", "--ablation is about predicted times, not --memory"),
                             ("validate --ablation --json", "--ablation is a table in Markdown and has no JSON"),
                             ("validate --markdown --json", two_forms),
                             (f"compare {PIPELINE} --vary schedule=1f1b --json --format csv", two_forms),
                             (f"diff {PIPELINE} trace.json --json --format text", two_forms),
                             ("goodput scenarios/goodput/oobleck.yaml --vary failures.repeats=1,2 --json --format svg", two_forms)):
            ran = stagecraft(*line.split())
            self.assertEqual(WRONG_INPUT, ran.returncode, line)
            self.assertIn(reason, ran.stdout if "--json" in line else ran.stderr)

    def test_several_values_of_an_option_are_none_of_them(self):
        for value in ("auto|always", "|auto", "al"):
            ran = stagecraft("run", PIPELINE, f"--color={value}")
            self.assert_refused(ran)
            self.assertIn(f"--color: '{value}' is not one of its values\n  hint: one of auto|always|never\n", ran.stderr)
        self.assertEqual(DONE, stagecraft("run", PIPELINE, "--color=never").returncode)

    def test_options_may_stand_before_the_command(self):
        for options in (["--json"], ["--color", "never", "--json"]):
            ran = stagecraft(*options, "run", PIPELINE)
            self.assertEqual((DONE, stagecraft("run", PIPELINE, "--json").stdout), (ran.returncode, ran.stdout))
        self.assertIn("--jsn", stagecraft("--jsn", "run", PIPELINE).stderr)
        self.assertIn("--jsn is not an option of `stagecraft`", stagecraft("--jsn").stderr)

    def test_standard_input_is_a_scenario(self):
        ran = stagecraft("check", "-", text_in=GOOD)
        self.assertEqual(DONE, ran.returncode, ran.stderr)
        self.assertTrue(ran.stdout.startswith("-: ok: 1024 GPUs"), ran.stdout)
        wrong = stagecraft("check", "-", text_in=GOOD.replace("tensor:", "tensro:"))
        self.assert_refused(wrong)
        self.assertIn("<stdin>:6:3: error: parallelism.tensro: ", wrong.stderr)
        for command, text in ((["check"], "family: gpt"), (["goodput"], GOOD), (["schedule", "check"], "0F0,"),
                              (["import", "hf"], "family")):
            refused = stagecraft(*command, "-", text_in=text)
            self.assertIn("<stdin>:", refused.stderr, command)
            in_json = stagecraft(*command, "-", "--json", text_in=text).stdout
            self.assertTrue("<stdin>" in in_json and '"file":"-"' not in in_json, in_json)

    def test_quiet_leaves_only_the_answer(self):
        keys = ["--set", "overlap.expert=true"]  # without effect: the model has no experts
        self.assertIn("overlap.expert", stagecraft("run", FLAGSHIP, *keys).stdout)
        ran = stagecraft("run", FLAGSHIP, *keys, "--quiet")
        self.assertNotIn("overlap.expert", ran.stdout + ran.stderr)
        self.assertIn("iteration", ran.stdout)
        imported = ["import", "deepspeed", str(SOURCE / "tests/data/deepspeed/ds_config_fp16_z1.json"), "--gpus", "8"]
        self.assertIn("warning", stagecraft(*imported).stderr)
        self.assertEqual("", stagecraft(*imported, "--quiet").stderr)

    def test_verbose_adds_to_the_answer(self):
        short, long = stagecraft("run", PIPELINE).stdout, stagecraft("run", PIPELINE, "--verbose").stdout
        self.assertTrue(long.startswith(short))
        self.assertIn("formulas", long[len(short):])

    def test_a_hint_to_leave_a_key_out_says_how_without_an_edit(self):
        one_stage = ["check", FLAGSHIP, "--set", "parallelism.pipeline=1"]
        ran = stagecraft(*one_stage)
        self.assert_refused(ran)
        hints = re.findall(r"  hint: (.*)", ran.stderr)
        self.assertEqual(["leave `data` out to use what is left (--set parallelism.data=null)",
                          "leave virtual_stages out, or use a pipeline of 2 or more (--set parallelism.virtual_stages=null)"], hints)
        followed = [word for hint in hints for word in ("--set", hint.split("--set ")[1].rstrip(")"))]
        self.assertEqual(DONE, stagecraft(*one_stage, *followed, "--set", "schedule=1f1b").returncode)


if __name__ == "__main__":
    main()
