#!/usr/bin/env python3
"""`stagecraft calibrate` and `stagecraft import` as a user meets them: calibrate_cli_test.py PROGRAM SOURCE_FOLDER"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()


def stagecraft(*words, cwd=SOURCE):
    return subprocess.run([PROGRAM, *words], cwd=cwd, env=os.environ | {"STAGECRAFT_DATA": str(SOURCE)},
                          capture_output=True, encoding="utf-8", timeout=60)


def all_reduce(size, **changes):
    """One sample: 15 us + S * 7/4 / 200 GB/s over the 8 GPUs of a node."""
    seconds = 15e-6 + size * 1.75 / 200e9
    sample = {"schema": "stagecraft.sample/1", "family": "nccl", "operator": "all_reduce",
              "shape": {"bytes": size, "ranks": 8}, "tags": {}, "median_s": seconds, "min_s": seconds, "spread": 0.004,
              "repeats": 40, "flops": 0, "bytes": 0, "max_error": 0, "sm_mhz": 1410, "power_w": 300,
              "setup": {"device": "NVIDIA A100-SXM4-80GB", "driver": "550.54", "cuda": "", "cublas": "", "cudnn": "",
                        "nccl": "2.20", "clock_policy": "default", "power_limit_w": 400},
              "date": "2026-11-20"}
    return json.dumps(sample | changes)


SIZES = (1 << 16, 1 << 20, 1 << 24, 1 << 28)


class Fit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def fit(self, lines, *more):
        (self.folder / "samples.jsonl").write_text("".join(line + "\n" for line in lines))
        return stagecraft("calibrate", "fit", "samples.jsonl", "--base", "a100-sxm4-80gb", "--name", "mine", "--output",
                          "mine.yaml", *more, cwd=self.folder)

    def assert_refused(self, ran, place):
        self.assertEqual(2, ran.returncode, ran.stderr)
        self.assertIn(place, ran.stderr)
        self.assertEqual(["samples.jsonl"], sorted(os.listdir(self.folder)))

    def test_a_profile_is_written_that_show_reads(self):
        ran = self.fit(map(all_reduce, SIZES))
        self.assertEqual((0, ""), (ran.returncode, ran.stdout), ran.stderr)
        self.assertIn("all-reduce, 8 ranks, 1 node", ran.stderr)
        shown = stagecraft("calibrate", "show", "mine.yaml", "--json", cwd=self.folder)
        summary = json.loads(shown.stdout)
        self.assertEqual("mine", summary["name"])
        self.assertEqual(1, summary["provenance"]["measured"]["collectives"])

    def test_show_counts_every_constant_of_a_profile(self):
        for name in ("a100-sxm4-80gb", "h100-sxm5-80gb", "gb200-186gb"):
            text = (SOURCE / f"calibrate/profiles/{name}.yaml").read_text().split("\nresiduals:")[0]
            constants = len(re.findall(r"\{value:|(?:causal|dense): \{rate", text))
            shown = json.loads(stagecraft("calibrate", "show", name, "--json").stdout)
            self.assertEqual(constants, sum(known["constants"] for known in shown["provenance"].values()), name)

    def test_show_tells_rows_of_fp8_from_those_of_its_table(self):
        text = stagecraft("calibrate", "show", "h100-sxm5-80gb").stdout
        rows = sum(int(line.split()[1]) for line in text.splitlines() if line.strip()[:3] in ("TN ", "NN ", "NT "))
        wide, narrow = map(int, re.search(r"GEMM rows are (\d+) of 16 bit, above, and (\d+) of fp8", text).groups())
        self.assertEqual(rows, wide)
        shown = json.loads(stagecraft("calibrate", "show", "h100-sxm5-80gb", "--json").stdout)
        self.assertEqual(wide + narrow, sum(known["gemm_rows"] for known in shown["provenance"].values()))

    def test_json_is_one_document(self):
        ran = self.fit(map(all_reduce, SIZES), "--json")
        self.assertEqual((0, ""), (ran.returncode, ran.stderr))
        answer = json.loads(ran.stdout)
        self.assertEqual(("stagecraft.fit/1", "mine", "mine.yaml", 0),
                         tuple(answer[key] for key in ("schema", "profile", "output", "unused_samples")))
        self.assertEqual(["all-reduce, 8 ranks, 1 node"], [family["family"] for family in answer["families"]])
        self.assertLess(answer["families"][0]["median_error"], 0.01)

    def test_times_that_give_no_profile_write_nothing(self):
        slow = [all_reduce(size, median_s=1e3 + size, min_s=1e3) for size in SIZES]
        self.assert_refused(self.fit(slow), "the samples give a profile that is refused")

    def test_a_file_that_is_there_stays_unless_forced(self):
        (self.folder / "mine.yaml").write_text("precious")
        ran = self.fit(map(all_reduce, SIZES))
        self.assertEqual(2, ran.returncode)
        self.assertIn("mine.yaml: error: exists and is left as it is", ran.stderr)
        self.assertEqual("precious", (self.folder / "mine.yaml").read_text())
        self.assertEqual(0, self.fit(map(all_reduce, SIZES), "--force").returncode)
        self.assertNotEqual("precious", (self.folder / "mine.yaml").read_text())

    def test_bad_samples_are_refused_with_their_line_and_write_nothing(self):
        good = [all_reduce(size) for size in SIZES]
        for bad in (all_reduce(1 << 12, schema="stagecraft.sample/9"), all_reduce(1 << 12, median_s=-1.0),
                    all_reduce(1 << 12).replace("0.004", "NaN"), all_reduce(1 << 12)[:-30]):
            with self.subTest(bad):
                self.assert_refused(self.fit([*good, bad]), "samples.jsonl:5: error: ")

    def test_samples_of_two_devices_are_refused(self):
        other = all_reduce(1 << 12).replace("A100-SXM4-80GB", "H200")
        self.assert_refused(self.fit([all_reduce(SIZES[0]), other]), "samples.jsonl:2: error: measured on NVIDIA H200")

    def test_samples_of_another_device_than_the_base_are_refused(self):
        lines = [all_reduce(size).replace("A100-SXM4-80GB", "H200") for size in SIZES]
        self.assert_refused(self.fit(lines), "the base profile is of 'NVIDIA A100-SXM4-80GB'")

    def test_a_missing_option_is_said(self):
        ran = stagecraft("calibrate", "fit", "x.jsonl", "--name", "mine", "--output", "mine.yaml", cwd=self.folder)
        self.assertEqual(2, ran.returncode)
        self.assertIn("--base is missing", ran.stderr)


# Attention has been measured where the profile of the H100 stands now; here it is published.
PUBLISHED_H100 = ("--set", "profile=../calibrate/published/h100-published.yaml")


class Plan(unittest.TestCase):
    def test_shapes_come_in_the_order_of_their_time_and_once(self):
        scenario = "scenarios/gpt3-175b-1024xA100.yaml"
        ran = stagecraft("calibrate", "plan", scenario, scenario)
        self.assertEqual(0, ran.returncode, ran.stderr)
        lines = [json.loads(line) for line in ran.stdout.splitlines()]
        values = [line["value"] for line in lines]
        self.assertEqual(sorted(values, reverse=True), values)
        self.assertAlmostEqual(100, sum(values))
        shapes = [json.dumps([line["operator"], line["shape"], line["tags"]]) for line in lines]
        self.assertEqual(len(set(shapes)), len(shapes))
        # The up projection of GPT-3 at tensor 8: 2048 tokens, 49152 / 8 columns, 12288 deep.
        self.assertIn({"m": 2048, "n": 6144, "k": 12288, "batch": 1}, [line["shape"] for line in lines])

    def test_what_is_planned_is_enough_for_a_fit(self):
        ran = stagecraft("calibrate", "plan", "scenarios/llama3-8b-64xA100.yaml")
        lines = [json.loads(line) for line in ran.stdout.splitlines()]
        self.assertEqual(15, sum(line["family"] == "gemm" for line in lines))
        for operator in ("flash_forward", "flash_backward"):
            lengths = [line["shape"]["sequence"] for line in lines if line["operator"] == operator]
            self.assertEqual([2048, 4096, 8192], sorted(lengths))
        # Twelve of these products are rows of the profile's published table, whose place a fitted one takes.
        shared = stagecraft("calibrate", "plan", "scenarios/llama3-8b-64xA100.yaml", "--set", "parallelism.context=2",
                            "--set", "parallelism.data=16")
        self.assertEqual(15, shared.stdout.count('"family":"gemm"'))

    def test_a_measured_profile_gets_as_many_products_as_a_fit_takes(self):
        # Three products are no rows of the profile: those of the output layer.
        for options in ((), ("--set", "training.precision=fp8")):
            ran = stagecraft("calibrate", "plan", "scenarios/llama3-8b-fsdp-64xH100.yaml", *options)
            lines = [json.loads(line) for line in ran.stdout.splitlines()]
            rows = [line for line in lines if line["family"] == "gemm" and line["tags"]["dtype"] == "bf16"]
            self.assertGreaterEqual(len(rows), 12)
            self.assertEqual(len(rows), len({json.dumps([row["shape"], row["tags"]]) for row in rows}))
            self.assertAlmostEqual(100, sum(line["value"] for line in lines))
        # In fp8 the output layer is what is left of 16 bit: 8192 tokens, and halves, quarters and eighths of them.
        self.assertEqual({8192, 4096, 2048, 1024}, {row["shape"]["m"] for row in rows if row["tags"]["layout"] == "TN"})
        self.assertEqual({8192, 4096, 2048, 1024}, {row["shape"]["k"] for row in rows if row["tags"]["layout"] == "NT"})

    def test_blocks_of_a_context_ring_are_asked_for_by_their_keys(self):
        ran = stagecraft("calibrate", "plan", "scenarios/llama3.1-405b-128k-16384xH100.yaml", *PUBLISHED_H100)
        lines = [json.loads(line) for line in ran.stdout.splitlines()]
        self.assertIn(131072, [line["shape"].get("sequence") for line in lines])

    def test_fp8_is_asked_for_as_the_suite_takes_it(self):
        ran = stagecraft("calibrate", "plan", "scenarios/llama3-8b-fsdp-64xH100.yaml", "--set", "training.precision=fp8",
                         *PUBLISHED_H100)
        kinds = {(line["family"], line["tags"]["dtype"], line["tags"].get("layout"))
                 for line in map(json.loads, ran.stdout.splitlines())}
        self.assertLessEqual({("gemm", "e4m3", "TN"), ("gemm", "e5m2", "TN"), ("attention", "bf16", None)}, kinds)
        self.assertFalse([kind for kind in kinds if kind[1] in ("e4m3", "e5m2") and kind[2] != "TN"])

    def test_experts_ask_for_grouped_products_and_cores_for_the_heads_that_tensor_ranks_leave(self):
        ran = stagecraft("calibrate", "plan", "scenarios/mixtral-8x7b-64xH100.yaml", *PUBLISHED_H100)
        self.assertEqual(0, ran.returncode, ran.stderr)
        lines = [json.loads(line) for line in ran.stdout.splitlines()]
        grouped = [line["shape"] for line in lines if line["tags"].get("grouped") == "strided"]
        # One expert a rank: 4096 tokens x 2 of 8 experts, from 8 ranks of 2048 tokens each, is 4096; gate and up 2 x 14336.
        self.assertIn({"m": 4096, "n": 28672, "k": 4096, "batch": 1}, grouped)
        cores = [line["shape"] for line in lines if line["family"] == "attention"]
        self.assertIn({"batch": 1, "heads": 16, "kv_heads": 4, "head_size": 128, "sequence": 4096}, cores)

    def test_a_scenario_that_is_refused_takes_no_points_of_others_away(self):
        alone = stagecraft("calibrate", "plan", "scenarios/gpt3-175b-1024xA100.yaml")
        ran = stagecraft("calibrate", "plan", "scenarios/gpt3-175b-1024xA100.yaml", "nosuch.yaml")
        self.assertEqual((2, alone.stdout), (ran.returncode, ran.stdout))
        self.assertIn("nosuch.yaml", ran.stderr)
        none = stagecraft("calibrate", "plan", "nosuch.yaml")
        self.assertEqual((2, ""), (none.returncode, none.stdout))


class Import(unittest.TestCase):
    def test_a_file_that_does_not_name_its_collective_needs_op(self):
        file = "tests/data/nccl_tests/all_gather_b200_2x8.txt"
        ran = stagecraft("import", "nccl-tests", file)
        self.assertEqual((2, ""), (ran.returncode, ran.stdout))
        self.assertIn("--op", ran.stderr)
        self.assertIn("[all-gather, 16, 2, any,", stagecraft("import", "nccl-tests", file, "--op", "all_gather").stdout)

    def test_op_contradicts_a_file_that_names_another_collective(self):
        named = "tests/data/nccl_tests/made_all_reduce_2x2.txt"
        self.assertEqual(0, stagecraft("import", "nccl-tests", named, "--op", "all-reduce").returncode)
        other = stagecraft("import", "nccl-tests", named, "--op", "all-gather")
        self.assertEqual(2, other.returncode)
        self.assertIn("--op: all-gather is asked for, and the file says all_reduce_perf", other.stderr)

    def test_the_environment_of_the_run_is_not_told(self):
        ran = stagecraft("import", "nccl-tests", "tests/data/nccl_tests/made_all_reduce_2x2.json")
        self.assertEqual(0, ran.returncode, ran.stderr)
        self.assertNotIn("secret", (ran.stdout + ran.stderr).lower())


class Options(unittest.TestCase):
    def test_an_option_that_a_part_has_no_use_for_is_refused(self):
        plan = "scenarios/gpt3-175b-1024xA100.yaml"
        config = "tests/data/hf_config/llama-3-8b.config.json"
        for option, part, words in (
                ("output", "calibrate plan", ["calibrate", "plan", plan, "--output", "f"]),
                ("write", "calibrate show", ["calibrate", "show", "a100-sxm4-80gb", "--write"]),
                ("set", "calibrate show", ["calibrate", "show", "a100-sxm4-80gb", "--set", "a=b"]),
                ("end-to-end", "calibrate show", ["calibrate", "show", "a100-sxm4-80gb", "--end-to-end"]),
                ("base", "calibrate residuals", ["calibrate", "residuals", "--base", "nosuch"]),
                ("output", "calibrate fit --end-to-end", ["calibrate", "fit", "--end-to-end", "--output", "f"]),
                ("vocab", "import hf", ["import", "hf", config, "--vocab", "6"]),
                ("op", "import topology", ["import", "topology", "tests/data/slurm/made_tree.conf", "--op", "all-gather"])):
            with self.subTest(part=part, option=option):
                ran = stagecraft(*words)
                self.assertEqual((2, ""), (ran.returncode, ran.stdout))
                self.assertIn(f"stagecraft: error: --{option} is nothing that `{part}` takes\n  hint: see stagecraft "
                              f"{words[0]} --help\n", ran.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
