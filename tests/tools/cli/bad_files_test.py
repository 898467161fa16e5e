#!/usr/bin/env python3
"""What is no scenario or no text at all is refused with a message that names it: no crash, no hang, no memory eaten up.

usage: bad_files_test.py STAGECRAFT SOURCE_DIR [BadFiles[.TEST]]
"""
import json
import os
import random
import re
import socket

from harness import DONE, GOOD, STAGES, WRONG_INPUT, Case, main, stagecraft


class BadFiles(Case):
    def test_a_wrong_search_section_is_refused_by_every_command(self):
        text = STAGES + "search: {fixx: [schedule], gpus: 256...4096}\n"
        for command in ("check", "run", "search"):
            ran = stagecraft(command, self.write("a.yaml", text), cwd=self.folder)
            self.assert_refused(ran)
            self.assertIn("error: search.fixx: is not a known key\n  hint: did you mean 'fix'?\n", ran.stderr)
            self.assertIn("error: search.gpus: is no list of GPU counts", ran.stderr)

    def assert_file_refused(self, name, reason):
        for command in ("run", "check", "memory", "validate"):
            with self.subTest(command, name=name):
                ran = stagecraft(command, name, cwd=self.folder)
                self.assert_refused(ran)
                self.assertRegex(ran.stderr, rf"^{re.escape(name)}(:\d+:\d+)?: error: ")
                self.assertIn(reason, ran.stderr)
                self.assertIn("  hint: ", ran.stderr)

    def test_a_file_that_is_not_there(self):
        self.assert_file_refused("nosuch.yaml", "no such file")

    def test_a_link_to_nowhere(self):
        (self.folder / "link.yaml").symlink_to("nowhere.yaml")
        self.assert_file_refused("link.yaml", "no such file")

    def test_a_file_in_what_is_no_folder(self):
        self.write("file", GOOD)
        self.assert_file_refused("file/scenario.yaml", "no such file")

    def test_a_file_that_may_not_be_read(self):
        name = self.write("secret.yaml", GOOD)
        (self.folder / name).chmod(0)
        readable = os.access(self.folder / name, os.R_OK)  # by root
        if readable:
            self.assertEqual(DONE, stagecraft("check", name, cwd=self.folder).returncode)
        else:
            self.assert_file_refused(name, "cannot be read: Permission denied")

    def test_a_directory(self):
        (self.folder / "folder").mkdir()
        self.assert_file_refused("folder", "is a directory")

    def test_a_pipe(self):
        os.mkfifo(self.folder / "pipe.yaml")
        self.assert_file_refused("pipe.yaml", "is a pipe or a device")

    def test_a_socket(self):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.folder / "socket.yaml"))
            self.assert_file_refused("socket.yaml", "is a pipe or a device")

    def test_devices(self):
        self.assert_file_refused("/dev/zero", "larger than 64 MiB")
        ran = stagecraft("run", "/dev/null")
        self.assert_refused(ran)
        self.assertIn("/dev/null:1:1: error: the file is empty", ran.stderr)

    def test_a_line_of_a_gigabyte_is_refused_unread(self):
        with open(self.folder / "huge.yaml", "w", encoding="utf-8") as file:
            file.write("stagecraft: 1 # " + "x" * 5000)
            file.truncate(1 << 30)  # a hole: no disk is used
        self.assert_file_refused("huge.yaml", "larger than 64 MiB")

    def test_binary_rubbish(self):
        (self.folder / "rubbish.yaml").write_bytes(random.Random(7).randbytes(1 << 20))
        self.assert_file_refused("rubbish.yaml", "")
        (self.folder / "nul.yaml").write_bytes(b"stagecraft: 1\nname: a\0b\n")
        self.assert_file_refused("nul.yaml", "")

    def test_scenarios_cut_off_anywhere_never_crash(self):
        for length in range(0, len(GOOD), 7):
            ran = stagecraft("check", "-", text_in=GOOD[:length])
            self.assertIn(ran.returncode, (DONE, WRONG_INPUT), f"{GOOD[:length]}\n{ran.stderr}")

    def test_bytes_changed_anywhere_never_crash(self):
        dice = random.Random(11)
        for _ in range(150):
            text = list(GOOD if dice.random() < 0.5 else STAGES)
            for _ in range(dice.randint(1, 3)):
                text[dice.randrange(len(text))] = dice.choice("0189-.:[]{},&*!#%@\"'\n\t eE\x7fé")
            scenario = "".join(text)
            ran = stagecraft("run", "-", "--json", text_in=scenario)
            self.assertIn(ran.returncode, (DONE, WRONG_INPUT), f"{scenario}\n{ran.stderr}")
            json.loads(ran.stdout)


if __name__ == "__main__":
    main()
