#!/usr/bin/env python3
"""What stands in calibrate/measured/*.jsonl.gz, beyond what the reader of samples asks: samples_test.py FOLDER"""

import gzip
import json
import math
import pathlib
import sys
import unittest

FOLDER = pathlib.Path(sys.argv[1])
FILES = {"h100-sxm5-80gb.jsonl.gz": "NVIDIA H100 80GB HBM3", "h200-again.jsonl.gz": "NVIDIA H200",
         "h200-sxm-141gb.jsonl.gz": "NVIDIA H200"}
KEYS = ["schema", "family", "operator", "shape", "tags", "median_s", "min_s", "spread", "repeats", "flops", "bytes",
        "max_error", "sm_mhz", "power_w", "setup", "date"]


def only(number):
    raise ValueError(f"{number} is no number of JSON")


def samples_of(name):
    """[(file:line, sample)]"""
    text = gzip.decompress((FOLDER / name).read_bytes()).decode("utf-8")
    assert text.endswith("\n"), f"{name} was cut off"
    return [(f"{name}:{number}", json.loads(line, parse_constant=only)) for number, line in enumerate(text.splitlines(), 1)]


def point(sample):
    """As sample_key() of calibrate/samples/sample.hpp: what was seen makes no other point."""
    tags = {key: value for key, value in sample["tags"].items() if not key.startswith("seen_")}
    return json.dumps([sample["family"], sample["operator"], sample["shape"], tags], sort_keys=True)


class Samples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.samples = {name: samples_of(name) for name in FILES}

    def each(self):
        for samples in self.samples.values():
            yield from samples

    def test_no_other_files_are_there(self):
        self.assertEqual(sorted(FILES), sorted(file.name for file in FOLDER.glob("*.gz")))

    def test_a_line_has_the_keys_of_a_sample(self):
        for place, sample in self.each():
            self.assertEqual((KEYS, "stagecraft.sample/1"), (list(sample), sample["schema"]), place)

    def test_a_file_is_of_one_setup_at_700_watts(self):
        for name, device in FILES.items():
            setups = {json.dumps(sample["setup"], sort_keys=True) for _, sample in self.samples[name]}
            self.assertEqual(1, len(setups), name)
            setup = json.loads(setups.pop())
            self.assertEqual((device, "default", 700), (setup["device"], setup["clock_policy"], setup["power_limit_w"]))

    def test_times_are_positive_and_the_least_is_no_longer_than_the_median(self):
        for place, sample in self.each():
            self.assertTrue(0 < sample["min_s"] <= sample["median_s"] < math.inf, place)

    # -1 where there is nothing to check: copies and launches, and the backward through PyTorch, whose forward is checked.
    def test_results_were_within_their_bounds(self):
        for place, sample in self.each():
            if sample["max_error"] != -1:
                self.assertTrue(0 <= sample["max_error"] <= 1, place)
            else:
                of_pytorch = sample["tags"].get("implementation", "").startswith("pytorch_")
                self.assertTrue(sample["family"] == "system" or (sample["operator"] == "flash_backward" and of_pytorch), place)

    def test_a_file_holds_a_point_once(self):
        for samples in self.samples.values():
            seen = {}
            for place, sample in samples:
                self.assertEqual(place, seen.setdefault(point(sample), place))

    def test_what_was_measured_again_are_points_of_the_first_time(self):
        first = {point(sample) for _, sample in self.samples["h200-sxm-141gb.jsonl.gz"]}
        self.assertFalse([place for place, sample in self.samples["h200-again.jsonl.gz"] if point(sample) not in first])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
