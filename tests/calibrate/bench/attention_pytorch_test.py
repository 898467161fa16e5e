#!/usr/bin/env python3
"""What attention_pytorch.py writes, without PyTorch: counts, setups and lines."""
import importlib.util
import json
import pathlib
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "calibrate" / "bench" / "attention_pytorch.py"
sys.path.insert(0, str(SCRIPT.parent))  # as when it is run: it imports what lies beside it
spec = importlib.util.spec_from_file_location("attention_pytorch", SCRIPT)
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)

SETUP = {"device": "NVIDIA H200", "driver": "570.1", "cuda": "13.0", "cublas": "13.0.2", "cudnn": "9.1.0", "nccl": "",
         "clock_policy": "default", "power_limit_w": 700}


class AttentionPytorch(unittest.TestCase):
    def file_of(self, text):
        file = tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False)
        self.addCleanup(pathlib.Path(file.name).unlink)
        with file:
            file.write(text)
        return file.name

    def test_a_causal_core_counts_half_of_the_square_and_the_backward_two_and_a_half_times(self):
        shape = (1, 2, 1, 4, 8, True)
        self.assertEqual(script.counts(shape, False)[0], 4 * 4 * 4 * 2 * 8 / 2)
        self.assertEqual(script.counts(shape, True)[0], 2.5 * script.counts(shape, False)[0])
        # Q and O of 2 heads, K and V of 1, 4 tokens of 8 elements at 2 bytes; the log-sum-exp of 2 heads at 4.
        self.assertEqual(script.counts(shape, False)[1], 2 * 4 * 8 * 6 + 4 * 4 * 2)

    def test_lines_take_the_setup_of_the_file_that_they_are_added_to(self):
        path = self.file_of("\n" + json.dumps({"setup": SETUP}) + "\n")
        here = {**SETUP, "cublas": "", "cudnn": "91002", "power_limit_w": 0}
        self.assertEqual(script.setup_of_file(path, here), SETUP)

    def test_a_file_of_another_device_or_driver_is_refused(self):
        path = self.file_of(json.dumps({"setup": SETUP}))
        with self.assertRaisesRegex(ValueError, "is of driver '570.1', and here it is '550.2'"):
            script.setup_of_file(path, {**SETUP, "driver": "550.2"})
        with self.assertRaisesRegex(ValueError, "is of device"):
            script.setup_of_file(path, {**SETUP, "device": "NVIDIA A100"})
        with self.assertRaisesRegex(ValueError, "holds no sample"):
            script.setup_of_file(self.file_of("\n"), SETUP)

    def test_a_line_has_the_median_its_spread_and_who_measured(self):
        host = {"setup": SETUP, "tags": {"seen_torch": "2.9"}}
        line = script.sample((1, 2, 1, 4, 8, False), True, "pytorch_flash", [1.0, 2.0, 3.0], -1, host)
        self.assertEqual(line["median_s"], 2)
        self.assertAlmostEqual(line["spread"], (2.68 - 1.32) / 4)  # ranks 1.68 and 0.32 of 0..2
        self.assertEqual(line["setup"], SETUP)
        self.assertEqual(line["tags"]["seen_torch"], "2.9")
        self.assertEqual(line["operator"], "flash_backward")


if __name__ == "__main__":
    sys.exit(unittest.main())
