#!/usr/bin/env python3
"""Files, pipes, devices and terminals that answers are written to.

usage: output_test.py STAGECRAFT SOURCE_DIR [Output[.TEST]]
"""
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import unittest
from pathlib import Path

from harness import DONE, LIMIT_S, PIPELINE, PROGRAM, SOURCE, WRONG_INPUT, Case, changed, main, stagecraft


class Output(Case):
    def page(self, name, *more):
        return stagecraft("run", str(SOURCE / PIPELINE), "--html", name, "--force", "--quiet", *more, cwd=self.folder)

    def test_a_file_that_is_replaced_keeps_its_mode(self):
        self.write("page.html", "old")
        for mode in (0o600, 0o664):
            (self.folder / "page.html").chmod(mode)
            self.assertEqual(DONE, self.page("page.html").returncode)
            self.assertEqual(mode, (self.folder / "page.html").stat().st_mode & 0o777)
            self.assertIn("<html", (self.folder / "page.html").read_text(encoding="utf-8"))
        self.assertEqual(["page.html"], os.listdir(self.folder))

    def test_of_a_link_the_file_behind_it_is_written(self):
        (self.folder / "pages").mkdir()
        for name, there in (("old.html", True), ("new.html", False)):
            with self.subTest(name):
                file, link, far = self.folder / "pages" / name, self.folder / name, self.folder / f"far-{name}"
                if there:
                    file.write_text("old", encoding="utf-8")
                link.symlink_to(f"pages/{name}")
                far.symlink_to(link)
                self.assertEqual(DONE, self.page(far.name).returncode)
                self.assertTrue(link.is_symlink() and far.is_symlink())
                self.assertIn("<html", file.read_text(encoding="utf-8"))
        (self.folder / "round").symlink_to("round")
        self.assert_refused(self.page("round"))
        self.assertTrue((self.folder / "round").is_symlink())
        self.assertIn("pages: error: is a directory\n", self.page("pages").stderr)

    def test_a_device_is_written_to_and_not_replaced(self):
        for device, code in (("/dev/null", DONE), ("/dev/full", WRONG_INPUT)):
            with self.subTest(device):
                link = self.folder / Path(device).name  # a link, so that a program that replaces it does no harm
                link.symlink_to(device)
                ran = self.page(link.name)
                self.assertEqual((code, device), (ran.returncode, os.readlink(link)))
                self.assertEqual(code == WRONG_INPUT, f"{link.name}: error: cannot be written: No space left on device\n"
                                 "  hint: make room, or write to another disk\n" in ran.stderr)
                kept = stagecraft("run", str(SOURCE / PIPELINE), "--html", link.name, cwd=self.folder)
                self.assertIn("exists and is left as it is\n  hint: --force writes to it\n", kept.stderr)

    def test_a_file_that_cannot_be_written_is_refused_before_the_work(self):
        self.write("there.yaml", "precious")
        self.write("there.yaml.0.et", "precious")
        for command, option in (("run", "--html"), ("run", "--chakra"), ("search", "--write-best"), ("compare", "--html"),
                                ("goodput", "--html"), ("validate", "--html")):
            for name, why in (("there.yaml", "exists and is left as it is"), ("nosuch/new.yaml", "cannot be written: No such file or directory")):
                with self.subTest(f"{command} {option} {name}"):
                    ran = stagecraft(command, "nosuch-scenario.yaml", option, name, cwd=self.folder)
                    self.assert_refused(ran)
                    first = name + ".0.et" if option == "--chakra" else name
                    self.assertTrue(ran.stderr.startswith(f"{first}: error: {why}\n"), ran.stderr)
                    self.assertNotIn("nosuch-scenario", ran.stderr)
        ran = stagecraft("run", "nosuch-scenario.yaml", "--html", "there.yaml", "--trace", "nosuch/new.json", "--json", cwd=self.folder)
        self.assertEqual((WRONG_INPUT, ""), (ran.returncode, ran.stderr))
        self.assertEqual(["cannot-write", "exists"], [error["code"] for error in json.loads(ran.stdout)["errors"]])
        for name in ("there.yaml", "there.yaml.0.et"):
            self.assertEqual("precious", (self.folder / name).read_text(encoding="utf-8"))

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_of_others_is_said_to_be_one(self):
        (self.folder / "theirs").mkdir(mode=0o555)
        ran = self.page("theirs/page.html")
        self.assert_refused(ran)
        self.assertIn("theirs/page.html: error: cannot be written: Permission denied\n"
                      "  hint: this folder is not yours to write to: name a file in another\n", ran.stderr)

    def test_a_page_has_the_hash_of_its_document(self):
        for order in ("1f1b", "gpipe"):  # the contents of a file of one name
            cells = stagecraft("schedule", "export", "--schedule", order, "--stages", "4", "--micro-batches", "8").stdout
            file = self.folder / self.write("order.csv", cells)
            ran = stagecraft("run", str(SOURCE / PIPELINE), "--set", f"schedule={{file: {file}}}", "--json", "--html", "page.html",
                             "--force", cwd=self.folder)
            page = (self.folder / "page.html").read_text(encoding="utf-8")
            self.assertIn('"scenario_hash":"{}"'.format(json.loads(ran.stdout)["scenario_hash"]), page, order)

    def test_the_traces_of_all_ranks_are_written_or_none(self):
        self.write("trace.2.et", "precious")
        ran = stagecraft("run", str(SOURCE / PIPELINE), "--quiet", "--chakra", "trace", cwd=self.folder)
        self.assert_refused(ran)
        self.assertIn("trace.2.et: error: exists and is left as it is\n", ran.stderr)
        self.assertEqual(["trace.2.et"], os.listdir(self.folder))

    def test_a_file_is_written_beside_what_another_process_writes(self):
        (self.folder / "page.html.part").mkdir()
        self.assertEqual(DONE, self.page("page.html").returncode)
        self.assertEqual({"page.html", "page.html.part"}, set(os.listdir(self.folder)))

    def test_a_pipe_is_written_to_and_not_replaced(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, encoding="utf-8") as reader:
            try:
                self.assertEqual(DONE, self.page("pipe").returncode)
                self.assertTrue(pipe.is_fifo())
                self.assertIn("<html", reader.stdout.read())
            finally:
                reader.kill()  # it waits where nobody wrote

    def test_a_full_disk_is_an_error(self):
        for words in (["run", PIPELINE], ["run", PIPELINE, "--json"], ["run", "nosuch.yaml", "--json"], ["--help"],
                      ["run", "--json"], ["doctor"], ["--version"]):
            with self.subTest(words), open("/dev/full", "w", encoding="utf-8") as full:
                ran = stagecraft(*words, stdout=full)
                self.assertEqual(WRONG_INPUT, ran.returncode)
                self.assertEqual("stagecraft: error: standard output could not be written\n", ran.stderr)

    def test_a_closed_output_is_an_error(self):
        line = f"{shlex.quote(str(PROGRAM))} run {PIPELINE} >&-"
        ran = subprocess.run(["sh", "-c", line], cwd=SOURCE, capture_output=True, timeout=LIMIT_S, check=False)
        self.assertEqual(WRONG_INPUT, ran.returncode)

    def test_a_reader_that_leaves_is_no_error_of_ours(self):
        show = f"{shlex.quote(str(PROGRAM))} schedule show --schedule gpipe --stages 500 --micro-batches 2000"
        line = f"{show} --json | head -c 1; exit ${{PIPESTATUS[0]}}"
        for ignored in (False, True):  # the signal ends the program, or the write fails
            with self.subTest(ignored=ignored):
                before = signal.getsignal(signal.SIGPIPE)
                signal.signal(signal.SIGPIPE, signal.SIG_IGN if ignored else signal.SIG_DFL)
                try:
                    ran = subprocess.run(["bash", "-c", line], cwd=SOURCE, capture_output=True, encoding="utf-8",
                                         timeout=LIMIT_S, check=False, restore_signals=False)
                finally:
                    signal.signal(signal.SIGPIPE, before)
                self.assertEqual("{", ran.stdout)
                self.assertNotIn("internal error", ran.stderr)
                self.assertEqual(WRONG_INPUT if ignored else 128 + signal.SIGPIPE, ran.returncode, ran.stderr)

    def on_terminal(self, *words, env=None):
        """What a terminal shows: both streams."""
        ours, theirs = pty.openpty()
        ran = stagecraft(*words, env=env, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = b""
        try:
            while block := os.read(ours, 1 << 16):
                shown += block
        except OSError:  # the terminal is closed and empty
            pass
        os.close(ours)
        return ran.returncode, shown.decode("utf-8").replace("\r\n", "\n")

    def test_colour_is_for_terminals_and_can_be_had_or_not(self):
        show = ("schedule", "show", "--schedule", "1f1b", "--stages", "2", "--micro-batches", "2")
        self.assertIn("\x1b[", self.on_terminal(*show)[1])
        self.assertNotIn("\x1b", self.on_terminal(*show, env={"NO_COLOR": "1"})[1])
        self.assertIn("\x1b[", self.on_terminal(*show, env={"NO_COLOR": ""})[1])
        self.assertNotIn("\x1b", self.on_terminal(*show, "--color", "never")[1])
        self.assertNotIn("\x1b", stagecraft(*show).stdout)
        self.assertIn("\x1b[", stagecraft(*show, "--color", "always", env={"NO_COLOR": "1"}).stdout)

    def test_colour_changes_nothing_but_the_colour(self):
        show = ("schedule", "show", "--schedule", "interleaved-group", "--stages", "2", "--micro-batches", "4",
                "--chunks", "2")
        painted = stagecraft(*show, "--color", "always").stdout
        self.assertEqual(stagecraft(*show).stdout, re.sub("\x1b\\[[0-9]*m", "", painted))

    def test_a_terminal_shows_the_line_that_is_wrong(self):
        file = self.folder / self.write("bad.yaml", changed("tensor: 8", "tensor: 0"))
        code, shown = self.on_terminal("check", str(file))
        self.assertEqual(WRONG_INPUT, code)
        self.assertIn("    6 |   tensor: 0\n      |           ^\n", shown)
        self.assertNotIn("^", stagecraft("check", str(file)).stderr)


if __name__ == "__main__":
    main()
