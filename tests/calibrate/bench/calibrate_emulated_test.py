#!/usr/bin/env python3
"""stagecraft-calibrate from end to end on the emulated device: what it checks, writes, takes up again and gives up.

usage: calibrate_emulated_test.py PROGRAM
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop(1)
POINTS = [  # the most valuable first
    {"family": "kernel", "operator": "layernorm_forward", "shape": {"tokens": 8, "hidden": 64}, "tags": {}, "value": 5},
    {"family": "kernel", "operator": "softmax_forward", "shape": {"heads": 1, "sequence": 16}, "tags": {}, "value": 4},
    {"family": "kernel", "operator": "adam", "shape": {"elements": 64}, "tags": {"variant": "unfused"}, "value": 3},
    {"family": "gemm", "operator": "gemm", "shape": {"m": 16, "n": 32, "k": 48, "batch": 1}, "tags": {"layout": "NN"}, "value": 2},
]


class Calibrate(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.out = Path(self.folder.name) / "samples.jsonl"
        self.wanted = Path(self.folder.name) / "wanted.jsonl"
        self.wanted.write_text("".join(json.dumps(point) + "\n" for point in POINTS), encoding="utf-8")

    def tearDown(self):
        self.folder.cleanup()

    def run_program(self, *arguments, fault=""):
        command = [PROGRAM, "--out", str(self.out), "--shapes", str(self.wanted), "--quick", *arguments]
        environment = dict(os.environ, STAGECRAFT_EMULATION_FAULT=fault)
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
        return done.returncode, done.stderr

    def samples(self):
        return [json.loads(line) for line in self.out.read_text(encoding="utf-8").splitlines()]

    def operators(self):
        return [sample["operator"] for sample in self.samples()]

    def test_a_check_writes_nothing(self):
        code, said = self.run_program("--check")
        self.assertEqual(code, 0, said)
        self.assertEqual(said.count("right    "), len(POINTS), said)
        self.assertFalse(self.out.exists())

    def test_samples_are_whole_in_the_order_of_value_and_of_no_device(self):
        code, said = self.run_program()
        self.assertEqual(code, 0, said)
        self.assertEqual(self.operators(), [point["operator"] for point in POINTS], said)
        for sample in self.samples():
            self.assertGreaterEqual(sample["repeats"], 10)
            self.assertGreater(sample["median_s"], 0)
            self.assertLessEqual(sample["max_error"], 1)
            self.assertEqual(sample["setup"]["device"], "emulation, no GPU")

    def test_an_interrupted_file_is_taken_up_where_it_was_left(self):
        self.run_program()
        whole = self.out.read_text(encoding="utf-8").splitlines(keepends=True)
        self.out.write_text(whole[0] + whole[1] + whole[2][:40], encoding="utf-8")
        code, said = self.run_program()
        self.assertEqual(code, 0, said)
        self.assertIn("2 measured, 2 there before", said)
        self.assertEqual(self.operators(), [point["operator"] for point in POINTS])
        self.assertEqual(self.out.read_text(encoding="utf-8").splitlines(keepends=True)[:2], whole[:2])

    def test_what_does_not_fit_into_the_budget_is_passed_over(self):
        with self.wanted.open("a", encoding="utf-8") as file:  # first by its value, and over 8 s by its bytes; the others take 1
            point = {"operator": "adam", "shape": {"elements": 2147483648}, "tags": {"variant": "unfused"}, "value": 9}
            file.write(json.dumps({"family": "kernel", **point}) + "\n")
        code, said = self.run_program("--budget", "8s")
        self.assertEqual(code, 0, said)
        self.assertIn("4 measured, 0 there before, 0 skipped, 1 beyond the budget", said)
        code, said = self.run_program("--budget", "none")  # and without a budget for the memory that it takes
        self.assertEqual(code, 0, said)
        self.assertIn("0 measured, 4 there before, 1 skipped, 0 beyond the budget", said)

    def test_a_point_that_loses_the_device_is_noted_and_the_rest_is_measured(self):
        code, said = self.run_program(fault="softmax_forward_kernel")
        self.assertEqual(code, 0, said)
        self.assertIn("LOST     kernel/softmax_forward", said)
        self.assertIn("1 lost before", said)
        self.assertEqual(self.operators(), ["layernorm_forward", "adam", "gemm"])
        failed = Path(str(self.out) + ".failed")
        self.assertEqual(len(failed.read_text(encoding="utf-8").splitlines()), 1)
        failed.unlink()
        code, said = self.run_program()
        self.assertIn("1 measured, 3 there before", said)

    def test_a_device_that_is_lost_at_once_is_an_error(self):
        code, said = self.run_program(fault="flush_kernel")
        self.assertEqual(code, 1, said)
        self.assertIn("flush_kernel", said)

    def test_a_file_of_another_setup_is_left_alone(self):
        self.run_program()
        other = self.out.read_text(encoding="utf-8").replace("emulation, no GPU", "NVIDIA H100 80GB HBM3")
        self.out.write_text(other, encoding="utf-8")
        code, said = self.run_program()
        self.assertEqual(code, 2, said)
        self.assertIn("another setup", said)
        self.assertEqual(self.out.read_text(encoding="utf-8"), other)


if __name__ == "__main__":
    unittest.main()
