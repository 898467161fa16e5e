#!/usr/bin/env python3
"""tools/calibrate with compilers of several ages in the place of nvcc: what it asks of each, and what it says is missing.

usage: build_calibrate_test.py REPOSITORY
"""
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(sys.argv.pop(1)).resolve()

# Writes down what it is asked to build, as a program that says so when it runs. {age} is its newest architecture, {standard} its
# newest C++ and {libraries} what a program can be linked with.
COMPILER = """#!/usr/bin/env bash
for argument in "$@"; do
  case $argument in
    -std=c++20) [[ {standard} == 20 ]] || exit 1 ;;
    -l*) [[ " {libraries} dl " == *" ${{argument#-l}} "* ]] || exit 1 ;;
    --list-gpu-code) printf 'sm_80\\nsm_90\\n{age}\\n'; exit ;;
    --version) exit ;;
    --dryrun) echo '#$ LIBRARIES=  "-L/toolkit/lib/stubs" "-L/toolkit/lib"' >&2; exit ;;
  esac
done
while [[ $1 != -o ]]; do asked+="$1 "; shift; done
printf '#!/bin/sh\\necho "%s"\\n' "$asked" > "$2"
chmod +x "$2"
"""


class BuildCalibrate(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        root = Path(self.folder.name)
        (root / "tools").mkdir()
        shutil.copy(REPOSITORY / "tools" / "calibrate", root / "tools")
        (root / "calibrate").symlink_to(REPOSITORY / "calibrate")
        self.root = root

    def build(self, age="sm_100", standard=20, libraries="cublasLt cudnn nccl"):
        nvcc = self.root / "nvcc"
        nvcc.write_text(COMPILER.format(age=age, standard=standard, libraries=libraries), encoding="utf-8")
        nvcc.chmod(nvcc.stat().st_mode | stat.S_IXUSR)
        environment = dict(os.environ, NVCC=str(nvcc))
        environment.pop("STAGECRAFT_CALIBRATE", None)
        done = subprocess.run([self.root / "tools" / "calibrate"], capture_output=True, text=True, env=environment, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def test_a_recent_compiler_builds_for_every_architecture_with_every_library(self):
        code, asked, said = self.build()
        self.assertEqual(code, 0, said)
        for flag in ("code=sm_80", "code=sm_90a", "code=sm_100", "-lcublasLt", "-lcudnn", "-lnccl"):
            self.assertIn(flag, asked.split() if flag.startswith("-l") else asked)
        self.assertNotIn("STAGECRAFT_NO_", asked)
        self.assertNotIn("Blackwell", said)

    def test_one_that_does_not_know_blackwell_builds_for_the_others_and_says_so(self):
        code, asked, said = self.build(age="sm_90")
        self.assertEqual(code, 0, said)
        self.assertIn("code=sm_90a", asked)
        self.assertNotIn("sm_100", asked)
        self.assertIn("has no code for Blackwell", said)

    def test_the_program_finds_the_libraries_of_the_toolkit_but_no_stubs(self):
        _, asked, _ = self.build()
        self.assertIn("-Xlinker=-rpath=/toolkit/lib ", asked)
        self.assertNotIn("rpath=/toolkit/lib/stubs", asked)

    def test_what_is_not_there_is_left_out_and_named(self):
        code, asked, said = self.build(libraries="cublasLt")
        self.assertEqual(code, 0, said)
        self.assertIn("-DSTAGECRAFT_NO_CUDNN", asked)
        self.assertIn("-DSTAGECRAFT_NO_NCCL", asked)
        self.assertIn("no cudnn: what needs it is not measured", said)
        self.assertIn("no nccl: what needs it is not measured", said)

    def test_without_cublaslt_nothing_is_built(self):
        code, asked, said = self.build(libraries="cudnn nccl")
        self.assertEqual((code, asked), (2, ""), said)
        self.assertIn("finds no cuBLASLt", said)

    def test_a_name_that_is_no_program_is_said(self):
        done = subprocess.run([self.root / "tools" / "calibrate"], capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, NVCC="/nowhere/nvcc"))
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn("NVCC=/nowhere/nvcc is no program", done.stderr)

    def test_one_without_cxx20_is_refused(self):
        code, asked, said = self.build(standard=17)
        self.assertEqual((code, asked), (2, ""), said)
        self.assertIn("compiles no C++20", said)
        self.assertIn("12.0 or later", said)


if __name__ == "__main__":
    unittest.main()
