#!/usr/bin/env python3
"""One table of commands: --help, the man page, docs/commands.md and the completions of three shells tell the same.

usage: manual_test.py STAGECRAFT SOURCE_DIR [CLASS[.TEST]]

STAGECRAFT_BLESS=1 writes docs/commands.md anew.
"""
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PROGRAM = Path(sys.argv[1]).resolve()
SOURCE = Path(sys.argv[2]).resolve()
PIPELINE = "scenarios/pipeline-4x8.yaml"


def run(*words, given=None):
    return subprocess.run(words, cwd=SOURCE, capture_output=True, encoding="utf-8", input=given, timeout=120, check=False)


def stagecraft(*words):
    ran = run(PROGRAM, *words)
    assert (ran.returncode, ran.stderr) == (0, ""), (words, ran.stderr)
    return ran.stdout


def commands():
    table = re.search(r"^commands\n((?:  .*\n)+)", stagecraft("--help"), re.MULTILINE)[1]
    return [line.split()[0] for line in table.splitlines()]


def options(command):
    return re.findall(r"^  --([a-z0-9-]+)", stagecraft(command, "--help"), re.MULTILINE)


OPTIONS = {command: options(command) for command in commands()}


class Manual(unittest.TestCase):
    def test_the_table_is_not_empty(self):
        self.assertIn("require-fit", OPTIONS["run"])
        self.assertIn("help", OPTIONS["doctor"])

    def test_docs_commands_is_what_the_program_prints(self):
        kept, printed = SOURCE / "docs/commands.md", stagecraft("--print-manual", "markdown")
        if os.environ.get("STAGECRAFT_BLESS") == "1":
            kept.write_text(printed, encoding="utf-8")
        self.assertEqual(printed, kept.read_text(encoding="utf-8"))

    def test_the_man_page_has_every_option_of_every_command(self):
        plain = run("mandoc", "-T", "utf8", given=stagecraft("--print-manual", "man")).stdout
        page = re.sub(".\b", "", plain).replace("\u2010", "-")
        own, common = page.split("OPTIONS OF EVERY COMMAND")
        parts = re.split(r"^   stagecraft ([a-z]+)", own, flags=re.MULTILINE)
        told = dict(zip(parts[1::2], parts[2::2]))
        self.assertEqual(list(OPTIONS), list(told))
        for command, names in OPTIONS.items():
            for name in names:
                self.assertRegex(told[command] + common, rf"(?m)^ +--{name}\b", command)

    def test_the_man_page_is_well_formed(self):
        ran = run("mandoc", "-T", "lint", "-W", "error", given=stagecraft("--print-manual", "man"))
        self.assertEqual((0, ""), (ran.returncode, ran.stdout))

    def test_docs_commands_has_every_option_of_every_command(self):
        own, common = (SOURCE / "docs/commands.md").read_text(encoding="utf-8").split("## Options of every command")
        parts = re.split(r"^## ([a-z]+)$", own, flags=re.MULTILINE)
        told = dict(zip(parts[1::2], parts[2::2]))
        self.assertEqual(list(OPTIONS), list(told))
        for command, names in OPTIONS.items():
            for name in names:
                self.assertRegex(told[command] + common, rf"`--{name}[ `]", command)


class Fish(unittest.TestCase):
    def completed(self, line):
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "stagecraft.fish"
            script.write_text(stagecraft("--print-completion", "fish"), encoding="utf-8")
            ran = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"], cwd=SOURCE,
                                 env={**os.environ, "HOME": folder}, capture_output=True, encoding="utf-8", timeout=120,
                                 check=False)
        self.assertEqual((0, ""), (ran.returncode, ran.stderr))
        return [line.split("\t")[0] for line in ran.stdout.splitlines()]

    def test_commands(self):
        self.assertEqual(["schedule"], self.completed("stagecraft sch"))

    def test_every_option_of_every_command(self):
        for command, names in OPTIONS.items():
            self.assertEqual(sorted(f"--{name}" for name in names), sorted(self.completed(f"stagecraft {command} --")))

    def test_values_names_and_files(self):
        self.assertEqual(["always", "auto", "never"], sorted(self.completed("stagecraft run --color ")))
        self.assertEqual(["dualpipe", "dualpipe-v"], self.completed("stagecraft schedule show --schedule du"))
        self.assertEqual([PIPELINE], self.completed("stagecraft run scenarios/pipel"))
        self.assertEqual(["check", "show"], sorted(self.completed("stagecraft topology ")))
        self.assertEqual([PIPELINE], self.completed("stagecraft topology show scenarios/pipel"))
        self.assertEqual(["megatron"], self.completed("stagecraft import me"))
        self.assertEqual(["README.md"], self.completed("stagecraft import topology READ"))
        self.assertEqual([], self.completed("stagecraft import topology --graph"))  # of the command `topology`
        self.assertEqual(["--memory-limit"], self.completed("stagecraft schedule import --mem"))
        self.assertEqual(["CITATION.cff"], self.completed("stagecraft run --trace CITA"))
        self.assertEqual(["model=gpt3-175b"], self.completed("stagecraft run --set model=gpt3"))
        self.assertEqual(["mixtral-8x7b-64xH100"], self.completed("stagecraft run mixtral"))


class Zsh(unittest.TestCase):
    """A shell on a terminal of its own, and the tab key."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        (Path(self.folder.name) / "_stagecraft").write_text(stagecraft("--print-completion", "zsh"), encoding="utf-8")
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.chdir(SOURCE)
            os.environ.update(HOME=self.folder.name, ZDOTDIR=self.folder.name, TERM="dumb", COLUMNS="300", LINES="200")
            os.execvp("zsh", ["zsh", "-f", "-i"])
        self.send(f"PS1='ready> '; fpath=({self.folder.name} $fpath); unsetopt beep; unset zle_bracketed_paste\n")
        self.send("autoload -Uz compinit; compinit -u -D; LISTMAX=10000; echo is'' set\n")
        self.until("is set")

    def tearDown(self):
        os.close(self.terminal)
        self.folder.cleanup()

    def send(self, text):
        os.write(self.terminal, text.encode())

    def until(self, *wanted, limit_s=60):
        seen, end = "", time.monotonic() + limit_s
        while not all(word in seen for word in wanted):
            ready, _, _ = select.select([self.terminal], [], [], max(0, end - time.monotonic()))
            self.assertTrue(ready, f"zsh never said {wanted}, but: {seen!r}")
            seen += os.read(self.terminal, 65536).decode("utf-8", "replace")

    def test_commands_options_and_values(self):
        self.send("stagecraft sch\t")
        self.until("schedule ")
        self.send("show --memory-l\t")
        self.until("--memory-limit ")
        self.send("\x15stagecraft run --color alw\t")
        self.until("always ")
        self.send("\x15stagecraft schedule show --schedule dualp\t-\t")
        self.until("dualpipe-v ")
        self.send("\x15stagecraft run --set model=gpt3\t")
        self.until("model=gpt3-175b ")
        self.send("\x15stagecraft run mixtral\t")
        self.until("mixtral-8x7b-64xH100 ")
        self.send("\x15stagecraft import nccl\t")
        self.until("nccl-tests ")

    def test_files(self):
        self.send("stagecraft run scenarios/pipel\t")
        self.until(PIPELINE)

    def test_every_option_of_a_command(self):
        self.send("stagecraft schedule --\t\t")
        self.until(*(f"--{name}" for name in OPTIONS["schedule"]))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
