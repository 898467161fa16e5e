#!/usr/bin/env python3
"""What bash completes behind a tab: commands, options, their values, names and files.

usage: completion_test.py STAGECRAFT SOURCE_DIR [Completion[.TEST]]
"""
import re
import shlex
import subprocess

from harness import LIMIT_S, PIPELINE, SOURCE, Case, main, stagecraft


class Completion(Case):
    def completed(self, line):
        """What bash offers after this line and a tab; it splits words at '='."""
        words = [part for word in line.split(" ") for part in re.findall("=|[^=]+", word) or [""]]
        script = self.folder / "completion.bash"
        if not script.exists():
            self.write("completion.bash", stagecraft("--print-completion", "bash").stdout)
        ask = (f"set -u; source {shlex.quote(str(script))}; COMP_WORDS=({' '.join(map(shlex.quote, words))}); "
               f"COMP_CWORD={len(words) - 1}; _stagecraft; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        ran = subprocess.run(["bash", "--norc", "-c", ask], cwd=SOURCE, capture_output=True, encoding="utf-8",
                             timeout=LIMIT_S, check=False)
        self.assertEqual((0, ""), (ran.returncode, ran.stderr))
        return ran.stdout.split()

    def test_commands(self):
        self.assertEqual(["schedule"], self.completed("stagecraft sch"))

    def test_options(self):
        self.assertEqual(["--set", "--seed"], self.completed("stagecraft run --se"))
        self.assertEqual(["--require-fit"], self.completed("stagecraft memory --req"))

    def test_values_of_options(self):
        self.assertEqual(["auto", "always", "never"], self.completed("stagecraft run --color "))
        self.assertEqual(["overlapped", "batched", "blocking"], self.completed("stagecraft schedule show --p2p "))
        self.assertEqual(["dualpipe", "dualpipe-v"], self.completed("stagecraft schedule show --schedule du"))

    def test_names_of_schedules_are_those_that_the_program_knows(self):
        listed = re.search(r"^schedules +(.*(?:\n +.*)*)$", stagecraft("doctor").stdout, re.MULTILINE)[1].split()
        self.assertEqual(listed, self.completed("stagecraft schedule show --schedule "))

    def test_names_of_models_nodes_and_scenarios(self):
        self.assertEqual(["gpt3-175b"], self.completed("stagecraft run --set model=gpt3"))
        self.assertIn("dgx-h100", self.completed("stagecraft compare x.yaml --vary cluster.node="))
        self.assertIn("cluster.node=dgx-h100", self.completed("stagecraft check --set clus"))
        self.assertEqual(["mixtral-8x7b-64xH100"], self.completed("stagecraft run mixtral"))
        self.assertEqual([], self.completed("stagecraft sweep mixtral"))

    PARTS = {"schedule": ["show", "compare", "check", "export", "import", "search"], "topology": ["show", "check"],
             "calibrate": ["fit", "plan", "residuals", "show"],
             "import": ["deepspeed", "hf", "kineto", "megatron", "nccl-tests", "topology"]}

    def test_words_and_files(self):
        for command, parts in self.PARTS.items():
            self.assertEqual(parts, self.completed(f"stagecraft {command} ")[-len(parts):])
            self.assertNotIn("README.md", self.completed(f"stagecraft {command} "))
            self.assertEqual(["README.md"], self.completed(f"stagecraft {command} {parts[0]} READ"))
            unknown = stagecraft(command, "no-such-part", "no-such-file").stderr
            for part in parts:  # the command knows what is completed
                self.assertRegex(unknown, rf"\b{part}\b")
        self.assertEqual(["show"], self.completed("stagecraft schedule sh"))
        self.assertEqual(["show"], self.completed("stagecraft schedule --stages 4 sh"))
        self.assertEqual([PIPELINE], self.completed("stagecraft run scenarios/pipel"))
        self.assertEqual([], self.completed("stagecraft run --seed "))


if __name__ == "__main__":
    main()
