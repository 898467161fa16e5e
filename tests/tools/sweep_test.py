#!/usr/bin/env python3
"""Sweeps as a user runs them: the same bytes however the work is split, stopped and gone on with.

usage: sweep_test.py STAGECRAFT SOURCE_DIR [--mpi STAGECRAFT_MPI MPIRUN] [CLASS[.TEST]]
"""
import csv
import io
import json
import os
import random
import resource
import shlex
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PROGRAM = Path(sys.argv[1]).resolve()
SOURCE = Path(sys.argv[2]).resolve()
LIMIT_S = 300
DONE, NO, WRONG_INPUT = 0, 1, 2

# 240 points, some of which cannot run, some of which are the same.
SWEEP = f"""\
stagecraft: 1
base: {SOURCE}/scenarios/pipeline-4x8.yaml
vary:
  training.global_batch_size: {{from: 4, to: 256, factor: 2}}
  model.forward: [1 ms, 0.001 s, 2 ms, 3 ms]
  schedule: [gpipe, 1f1b, interleaved-1f1b, zb-h1]
  parallelism.virtual_stages: [1, 2, 3]
where: global_batch_size != 128 and (virtual_stages > 1 or schedule != 'gpipe')
"""
COUNT = 6 * 4 * (1 * 2 + 3 * 3)


def run(*words, program=PROGRAM, **more):
    return subprocess.run([str(program), *map(str, words)], capture_output=True, text=True, timeout=LIMIT_S, **more)


def figures(row, path=""):
    """All numbers of a row that are results, by their dotted names."""
    if isinstance(row, dict):
        parts = row.items()
    elif isinstance(row, list):
        parts = enumerate(row)
    else:
        return {path: row} if isinstance(row, (int, float)) and not isinstance(row, bool) else {}
    return {name: number for key, part in parts if path or key not in ("vary", "points", "reasons")
            for name, number in figures(part, f"{path}.{key}" if path else key).items()}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.sweep = self.folder / "sweep.yaml"
        self.sweep.write_text(SWEEP)

    def undisturbed(self) -> str:
        result = run("sweep", self.sweep, "--jobs", 1)
        self.assertEqual(result.returncode, DONE, result.stderr)
        return result.stdout


class Splits(Case):
    def test_rows_are_in_grid_order(self):
        rows = [json.loads(line) for line in self.undisturbed().splitlines()]
        self.assertEqual([row["point"] for row in rows], list(range(COUNT)))
        self.assertEqual(rows[0]["vary"]["training.global_batch_size"], 4)
        self.assertEqual(rows[-1]["vary"]["schedule"], "zb-h1")
        self.assertTrue(any(row["feasible"] for row in rows))
        for row in rows:
            self.assertEqual(row["feasible"], not row["reasons"])

    def test_a_key_that_no_point_has_is_a_mistake_of_the_sweep(self):
        head = f"stagecraft: 1\nbase: {SOURCE}/scenarios/pipeline-4x8.yaml\nvary:\n"
        self.sweep.write_text(head + "  model.forward: [1 ms, 2 ms]\n  parallelism.tensr: [1, 2]\n")
        ran = run("sweep", self.sweep)
        self.assertEqual(WRONG_INPUT, ran.returncode)
        self.assertIn("sweep.yaml:5:3: error: vary.parallelism.tensr: is not a known key", ran.stderr)
        self.assertIn("did you mean 'tensor'?", ran.stderr)
        self.assertEqual("", ran.stdout)
        # At once with those of `where`.
        self.sweep.write_text(head + "  parallelism.tensr: [1, 2]\nwhere: nonsense < 3\n")
        ran = run("sweep", self.sweep)
        self.assertIn("sweep.yaml:4:3: error: vary.parallelism.tensr: is not a known key of any point", ran.stderr)
        self.assertIn("sweep.yaml:5:8: error: where: 'nonsense' is neither varied nor a key of the base", ran.stderr)
        # So is one of the base or of --set.
        self.sweep.write_text(head + "  model.forward: [1 ms, 2 ms]\n")
        ran = run("sweep", self.sweep, "--set", "schedul=gpipe")
        self.assertEqual(WRONG_INPUT, ran.returncode)
        self.assertIn("--set schedul=gpipe: error: schedul: is not a known key of any point", ran.stderr)
        # Nor is a value of them that cannot be read an answer of its points; one that varies is.
        for wrong in ("training.global_batch_size=few", "training.micro_batch_size=1.5"):
            ran = run("sweep", self.sweep, "--set", wrong)
            self.assertEqual(WRONG_INPUT, ran.returncode, wrong)
            self.assertIn(f"--set {wrong}: error: {wrong.split('=')[0]}: ", ran.stderr)
            self.assertIn("is not a whole number, in every point", ran.stderr)
        self.sweep.write_text(head + "  training.global_batch_size: [few, many]\n")
        self.assertEqual(1, run("sweep", self.sweep).returncode)
        # One that some points have is theirs: a failure policy's own key.
        self.sweep.write_text(f"stagecraft: 1\nbase: {SOURCE}/scenarios/goodput/checkpoint-restart.yaml\nvary:\n"
                              "  failures.policy.name: [checkpoint-restart, hot-spares]\n  failures.policy.spares: [1]\n"
                              "  failures.repeats: [2]\n")
        ran = run("sweep", self.sweep)
        self.assertEqual([False, True], [json.loads(line)["feasible"] for line in ran.stdout.splitlines()], ran.stdout)
        self.assertEqual(DONE, ran.returncode, ran.stderr)

    def test_a_key_that_is_set_and_varied_had_no_effect(self):
        ran = run("sweep", self.sweep, "--set", "schedule=gpipe", "--set", "model.weight_gradient=2 ms")
        self.assertEqual(DONE, ran.returncode, ran.stderr)
        self.assertIn("--set schedule=gpipe: warning: schedule: had no effect: the sweep varies it\n", ran.stderr)
        self.assertNotIn("model.weight_gradient", ran.stderr)
        self.assertNotIn("no effect", run("sweep", self.sweep, "--quiet", "--set", "schedule=gpipe").stderr)

    # That of what varies, however the files are called.
    def test_the_first_reason_of_a_point_is_that_of_its_values(self):
        (self.folder / "base.yaml").write_text("stagecraft: 1\nmodel: gpt-22b\ncluster: {node: dgx-a100-80gb, nodes: 2}\n"
                                               "parallelism: {tensor: 8, pipeline: 2}\ntraining: {global_batch_size: 8}\n")
        for name in ("a.yaml", "z.yaml"):
            (self.folder / name).write_text("stagecraft: 1\nbase: base.yaml\nvary: {parallelism.tensor: [3]}\n")
        rows = [json.loads(run("sweep", name, cwd=self.folder).stdout) for name in ("a.yaml", "z.yaml")]
        self.assertGreater(len(rows[0]["reasons"]), 1)
        self.assertEqual("parallelism.tensor", rows[0]["reasons"][0]["path"])
        self.assertEqual(rows[0], rows[1])

    def test_a_row_of_a_goodput_does_not_say_that_failures_are_left_out(self):
        self.sweep.write_text(f"stagecraft: 1\nbase: {SOURCE}/scenarios/goodput/checkpoint-restart.yaml\n"
                              "vary: {failures.repeats: [2]}\n")
        row = json.loads(run("sweep", self.sweep).stdout)
        self.assertIn("goodput", row)
        self.assertEqual([], [text for text in row["warnings"] if text.startswith("failures:")])

    # docs/sweeps.md, "The rows".
    def test_rows_lack_the_keys_that_the_manual_names(self):
        base = f"{SOURCE}/scenarios/goodput/checkpoint-restart.yaml"
        self.sweep.write_text(f"stagecraft: 1\nbase: {base}\nvary: {{failures.repeats: [2], network: [flow]}}\n")
        words = (base, "--json", "--set", "failures.repeats=2", "--set", "network=flow")
        result = json.loads(run("run", *words).stdout)
        made_from = {"stagecraft_version", "scenario_hash", "profile_hash"}
        goodput = json.loads(run("goodput", *words).stdout)
        self.assertNotEqual([], goodput["inputs"])
        for options, whole in (((), {"critical_path", "network", "shapes"}), (("--full",), set())):
            row = json.loads(run("sweep", self.sweep, *options).stdout)
            self.assertEqual(made_from | {"scenario"} | whole, result.keys() - row.keys(), options)
            self.assertEqual({"stages"} if whole else set(), result["memory"].keys() - row["memory"].keys(), options)
            self.assertEqual(made_from | {"inputs"}, goodput.keys() - row["goodput"].keys(), options)

    def test_warnings_of_loading_are_said_once(self):
        config = SOURCE / "tests/data/hf_config/made-nested-text-config.config.json"
        base = self.folder / "base.yaml"
        base.write_text(f"stagecraft: 1\nmodel: {config}\ncluster: {{node: dgx-a100-80gb, gpus: 8}}\n"
                        "parallelism: {zero_stage: 3}\ntraining: {global_batch_size: 16, sequence_length: 1024}\n")
        self.sweep.write_text("stagecraft: 1\nbase: base.yaml\nvary:\n  schedule: [1f1b, gpipe]\n"
                              "  training.global_batch_size: [16, 32]\n")
        said = "vision_config: a part beside the language model: neither its time nor its memory is counted"
        for form in ([], ["--json"], ["--table"], ["--csv"]):
            for jobs in (1, 4):
                ran = run("sweep", self.sweep, "--jobs", jobs, *form)
                self.assertEqual((DONE, 1), (ran.returncode, ran.stderr.count(f"warning: {said}\n")), ran.stderr)
        rows = [json.loads(line) for line in run("sweep", self.sweep, "--json").stdout.splitlines()]
        self.assertEqual([1] * 4, [row["warnings"].count(said) for row in rows])
        self.assertNotIn(said, run("sweep", self.sweep, "--quiet").stderr)

    def test_threads_give_the_same_bytes(self):
        self.assertEqual(run("sweep", self.sweep, "--jobs", 8).stdout, self.undisturbed())

    def test_failures_are_swept_with_the_same_bytes(self):
        self.sweep.write_text(f"""\
stagecraft: 1
base: {SOURCE}/scenarios/goodput/checkpoint-restart.yaml
vary:
  failures.process.rate_per_node_day: [0.01, 0.1, 0.5]
  failures.policy: [checkpoint-restart, hot-spares, recycle, elastic]
  failures.repeats: [3]
""")
        whole = self.undisturbed()
        rows = [json.loads(line) for line in whole.splitlines()]
        self.assertEqual(12, len(rows))
        for policy in range(4):  # more failures leave less, whatever the policy
            left = [rows[rate * 4 + policy]["goodput"]["fraction_of_ideal"] for rate in range(3)]
            self.assertEqual(sorted(left, reverse=True), left)
        self.assertEqual(run("sweep", self.sweep, "--jobs", 8).stdout, whole)
        shards = [self.folder / f"{k}.jsonl" for k in range(3)]
        for k, shard in enumerate(shards):
            self.assertEqual(run("sweep", self.sweep, "--shard", f"{k}/3", "--output", shard).returncode, DONE)
        self.assertEqual(run("merge", *shards).stdout, whole)

    def test_merged_shards_give_the_same_bytes(self):
        shards = []
        for k in range(3):
            shards.append(self.folder / f"{k}.jsonl")
            self.assertEqual(run("sweep", self.sweep, "--shard", f"{k}/3", "--output", shards[-1]).returncode, DONE)
        merged = run("merge", *reversed(shards))
        self.assertEqual(merged.returncode, DONE, merged.stderr)
        self.assertEqual(merged.stdout, self.undisturbed())
        incomplete = run("merge", shards[0], shards[2])
        self.assertEqual(incomplete.returncode, WRONG_INPUT)
        self.assertIn(f"{COUNT // 3} of {COUNT} rows are missing: 1, 4, 7, 10, 13, 16, 19, 22, ", incomplete.stderr)
        self.assertTrue(incomplete.stderr.startswith("stagecraft: error: "), incomplete.stderr)

    def test_shards_of_other_sweeps_are_refused(self):
        one, other = self.folder / "one.jsonl", self.folder / "other.jsonl"
        run("sweep", self.sweep, "--shard", "0/2", "--output", one)
        run("sweep", self.sweep, "--shard", "1/2", "--output", other, "--set", "model.weight_gradient=2 ms")
        merged = run("merge", one, other)
        self.assertEqual(merged.returncode, WRONG_INPUT)
        self.assertIn("other.jsonl:1: error: is a row of sweep", merged.stderr)

    def test_a_shard_without_a_point_says_so(self):
        result = run("sweep", self.sweep, "--shard", f"{COUNT}/{COUNT + 1}", "--table")
        self.assertEqual((DONE, "no point: the shard has none\n"), (result.returncode, result.stdout))
        self.assertEqual(f"the shard has none of the {COUNT} points\n", result.stderr)

    def test_bad_shards_are_refused(self):
        for shard in ("3/3", "1", "a/b", "0/0", "-1/3", "1/3x"):
            result = run("sweep", self.sweep, "--shard", shard)
            self.assertEqual(result.returncode, WRONG_INPUT, shard)
            self.assertIn("is no share of a sweep", result.stderr)


class Resume(Case):
    def test_killed_at_twenty_moments_and_resumed(self):
        expected = self.undisturbed()
        begin = time.monotonic()
        self.undisturbed()
        whole = time.monotonic() - begin
        dice = random.Random(20)
        for moment in range(20):
            rows = self.folder / f"{moment}.jsonl"
            kills = 0
            while kills < 4:  # more than once: also a resumed one is killed
                job = subprocess.Popen([PROGRAM, "sweep", self.sweep, "--resume", rows, "--quiet", "--jobs", "2"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(dice.uniform(0, whole))
                job.kill()
                if job.wait() == DONE:
                    break
                kills += 1
            done = run("sweep", self.sweep, "--resume", rows)
            self.assertEqual(done.returncode, DONE, done.stderr)
            self.assertEqual(rows.read_text(), expected, f"moment {moment}")

    def test_a_torn_line_at_any_byte_is_made_anew(self):
        expected = self.undisturbed()
        rows = self.folder / "rows.jsonl"
        dice = random.Random(7)
        for length in [0, 1, len(expected) - 1, len(expected), *(dice.randrange(len(expected)) for _ in range(20))]:
            rows.write_text(expected[:length])
            self.assertEqual(run("sweep", self.sweep, "--resume", rows).returncode, DONE)
            self.assertEqual(rows.read_text(), expected, length)

    def test_a_file_of_another_sweep_is_left_alone(self):
        rows = self.folder / "rows.jsonl"
        run("sweep", self.sweep, "--output", rows)
        before = rows.read_text()
        result = run("sweep", self.sweep, "--resume", rows, "--set", "model.forward=5 ms")
        self.assertEqual(result.returncode, WRONG_INPUT)
        self.assertIn("rows.jsonl:1: error: is not the row of point 0 of this sweep", result.stderr)
        self.assertEqual(rows.read_text(), before)

    # The seed of the program is that of a sample which gives none.
    def test_a_sample_is_drawn_with_the_seed(self):
        head = f"stagecraft: 1\nbase: {SOURCE}/scenarios/pipeline-4x8.yaml\nvary: {{training.global_batch_size: {{from: 4, to: 4000}}}}\n"
        drawn = {}
        for sample in ("", ", seed: 7"):
            self.sweep.write_text(head + f"sample: {{method: random, points: 3{sample}}}\n")
            for seed in (1, 2):
                rows = run("sweep", self.sweep, "--seed", seed).stdout.splitlines()
                drawn[sample, seed] = [json.loads(row)["vary"] for row in rows]
        self.assertNotEqual(drawn["", 1], drawn["", 2])
        self.assertEqual(drawn[", seed: 7", 1], drawn[", seed: 7", 2])

    def test_a_file_of_another_seed_is_told_what_it_may_be_of(self):
        first, second = self.folder / "first.jsonl", self.folder / "second.jsonl"
        run("sweep", self.sweep, "--output", first, "--shard", "0/2")
        run("sweep", self.sweep, "--output", second, "--shard", "1/2", "--seed", 2)
        self.assertIn("--seed", run("sweep", self.sweep, "--resume", first, "--shard", "0/2", "--seed", 2).stderr)
        self.assertIn("--seed", run("merge", first, second).stderr)

    def test_rows_of_a_file_that_was_edited_are_of_another_sweep(self):
        order = self.folder / "order.csv"
        profile = self.folder / "profile.yaml"
        measured = (SOURCE / "calibrate/profiles/a100-sxm4-80gb.yaml").read_text()
        abstract = (SOURCE / "scenarios/pipeline-4x8.yaml").read_text()
        self.assertIn("schedule: 1f1b", abstract)
        (self.folder / "stages.yaml").write_text(abstract.replace("schedule: 1f1b", "schedule: {file: order.csv}"))
        (self.folder / "job.yaml").write_text(
            (SOURCE / "scenarios/llama3-8b-64xA100.yaml").read_text() + "\nprofile: ./profile.yaml\n")

        def orders(schedule):
            return run("schedule", "export", "--schedule", schedule, "--stages", 4, "--micro-batches", 8).stdout

        for base, vary, file, before, after in (
                ("stages.yaml", "model.forward: [1 ms, 2 ms]", order, orders("1f1b"), orders("gpipe")),
                # The first point does not resolve, so that it reads no profile.
                ("job.yaml", "parallelism.data: [5, 32]", profile, measured, measured + "# another fit\n")):
            with self.subTest(base):
                self.sweep.write_text(f"stagecraft: 1\nbase: {base}\nvary: {{{vary}}}\n")
                file.write_text(before)
                shards = [self.folder / f"{base}-{k}.jsonl" for k in range(2)]
                rows = self.folder / f"{base}.jsonl"
                first = run("sweep", self.sweep, "--shard", "0/2", "--output", shards[0])
                self.assertNotEqual(WRONG_INPUT, first.returncode, first.stderr)
                self.assertEqual(DONE, run("sweep", self.sweep, "--output", rows).returncode)
                kept = rows.read_text()
                file.write_text(after)
                run("sweep", self.sweep, "--shard", "1/2", "--output", shards[1])
                merged = run("merge", *shards)
                self.assertEqual(WRONG_INPUT, merged.returncode, merged.stderr)
                self.assertIn(f"{base}-1.jsonl:1: error: is a row of sweep", merged.stderr)
                resumed = run("sweep", self.sweep, "--resume", rows)
                self.assertEqual(WRONG_INPUT, resumed.returncode, resumed.stderr)
                self.assertIn("1: error: is not the row of point 0 of this sweep", resumed.stderr)
                self.assertEqual(kept, rows.read_text())

    def test_output_does_not_overwrite(self):
        rows = self.folder / "rows.jsonl"
        rows.write_text("precious")
        result = run("sweep", self.sweep, "--output", rows)
        self.assertEqual(result.returncode, WRONG_INPUT)
        self.assertEqual(rows.read_text(), "precious")
        self.assertEqual(run("sweep", self.sweep, "--output", rows, "--force").returncode, DONE)
        self.assertEqual(rows.read_text(), self.undisturbed())

    def test_nothing_is_emptied_before_all_is_checked(self):
        rows, database, page = (self.folder / name for name in ("rows.jsonl", "rows.db", "page.html"))
        if "built without SQLite" in run("sweep", self.sweep, "--output", rows, "--sqlite", database).stderr:
            self.skipTest("the program has no SQLite")
        page.write_text("precious")
        kept = [file.read_bytes() for file in (rows, database, page)]
        for words in (("sweep", self.sweep, "--resume", rows, "--sqlite", database, "--set", "model.forward=5 ms"),
                      ("sweep", self.sweep, "--resume", rows, "--sqlite", database, "--html", page),
                      ("sweep", self.sweep, "--output", rows, "--sqlite", database),
                      ("merge", rows, "--output", self.folder / "new.jsonl", "--sqlite", database)):
            ran = run(*words)
            self.assertEqual(WRONG_INPUT, ran.returncode, ran.stderr)
            self.assertEqual(kept, [file.read_bytes() for file in (rows, database, page)], words)
        self.assertFalse((self.folder / "new.jsonl").exists())
        # What is gone on with reaches the database as a whole.
        whole = rows.read_text()
        rows.write_text(whole[:len(whole) // 2])
        self.assertEqual(DONE, run("sweep", self.sweep, "--resume", rows, "--sqlite", database).returncode)
        with sqlite3.connect(database) as connection:
            stored = connection.execute("SELECT row FROM points ORDER BY point").fetchall()
        connection.close()
        self.assertEqual(whole.splitlines(), [row for row, in stored])

    def test_two_outputs_are_two_files(self):
        link = self.folder / "link"
        link.symlink_to("new")
        for first, second in (("--output", "--html"), ("--resume", "--sqlite"), ("--html", "--sqlite")):
            ran = run("sweep", self.sweep, first, self.folder / "new", second, link, "--force")
            self.assertEqual(WRONG_INPUT, ran.returncode, ran.stderr)
            self.assertRegex(ran.stderr, f"error: (?=.*{first})(?=.*{second})--.* and --.* are both '")
            self.assertFalse((self.folder / "new").exists())

    def test_no_output_is_what_the_command_reads(self):
        rows, link = self.folder / "rows.jsonl", self.folder / "link"
        self.assertEqual(DONE, run("sweep", self.sweep, "--output", rows).returncode)
        for file in (self.sweep, rows):
            link.unlink(missing_ok=True)
            link.symlink_to(file)
            text = file.read_bytes()
            for option, name in (("--output", file), ("--html", link), ("--sqlite", file)):
                ran = run("sweep" if file == self.sweep else "merge", file, option, name, "--force")
                self.assertEqual(WRONG_INPUT, ran.returncode, ran.stderr)
                self.assertIn(f"error: {option} is '{name}', which the command reads", ran.stderr)
                self.assertEqual(text, file.read_bytes())

    def test_a_full_disk_is_told_and_loses_no_row(self):
        rows = self.folder / "rows.jsonl"

        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))

        result = run("sweep", self.sweep, "--output", rows, preexec_fn=small_files, restore_signals=False)
        self.assertEqual(result.returncode, WRONG_INPUT)
        self.assertRegex(result.stderr, r"rows.jsonl: error: cannot be written: File too large\n  \d+ of \d+ rows are in it")
        expected = self.undisturbed()
        kept = rows.read_text()
        self.assertTrue(kept.endswith("\n") and expected.startswith(kept))
        self.assertGreater(len(kept), 48_000)
        self.assertEqual(run("sweep", self.sweep, "--resume", rows).returncode, DONE)
        self.assertEqual(rows.read_text(), expected)

    @unittest.skipUnless(Path("/dev/full").exists(), "a full disk to write to is Linux's")
    def test_standard_output_that_is_full_is_told(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([PROGRAM, "sweep", self.sweep], stdout=full, stderr=subprocess.PIPE, text=True,
                                    timeout=LIMIT_S)
        self.assertEqual(result.returncode, WRONG_INPUT)
        self.assertIn("standard output could not be written", result.stderr)

    def test_an_interrupt_keeps_rows_and_says_how_to_go_on(self):
        rows = self.folder / "rows.jsonl"
        big = self.folder / "big.yaml"
        big.write_text(SWEEP.replace("to: 256", "to: 131072"))
        job = subprocess.Popen([PROGRAM, "sweep", big, "--output", rows], stderr=subprocess.PIPE, text=True)
        while not rows.exists() or rows.stat().st_size == 0:
            time.sleep(0.01)
        job.send_signal(signal.SIGINT)
        _, said = job.communicate(timeout=LIMIT_S)
        self.assertEqual(job.returncode, 130)
        self.assertIn(f"go on with: stagecraft sweep {big} --resume {rows}", said)
        self.assertTrue(rows.read_text().endswith("\n"))

    def test_the_way_to_go_on_has_all_options_and_can_be_followed(self):
        rows, page = self.folder / "my rows.jsonl", self.folder / "a.html"
        long = self.folder / "it's long.yaml"
        long.write_text(f"stagecraft: 1\nbase: {SOURCE}/scenarios/goodput/varuna.yaml\n"
                        "vary: {failures.repeats: [10, 11, 12, 13, 1000000, 999999]}\n")
        words = [PROGRAM, "sweep", long, "--shard", "0/2", "--set", "name='a b'", "--full", "--html", page, "--output", rows]
        job = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        while job.poll() is None and (not rows.exists() or rows.read_text().count("\n") < 2):
            time.sleep(0.01)
        job.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, said = job.communicate(timeout=LIMIT_S)
        self.assertLess(time.monotonic() - began, 5, "points that still run hold the end up")
        self.assertEqual(job.returncode, 130)
        way = next(line for line in said.splitlines() if "go on with: stagecraft " in line)
        again = shlex.split(way.split("go on with: stagecraft ")[1])
        self.assertEqual(again, ["sweep", str(long), "--set", "name='a b'", "--shard", "0/2", "--html", str(page), "--full",
                                 "--force", "--resume", str(rows)])
        job = subprocess.Popen([PROGRAM, *again], stderr=subprocess.PIPE, text=True)
        self.addCleanup(job.stderr.close)
        self.assertEqual("2 of 3 points are there already\n", job.stderr.readline())
        job.kill()
        job.wait()


class Forms(Case):
    def test_csv_has_the_figures_of_the_rows(self):
        table = list(csv.DictReader(io.StringIO(run("sweep", self.sweep, "--csv").stdout)))
        rows = [json.loads(line) for line in self.undisturbed().splitlines()]
        self.assertEqual(len(table), COUNT)
        for cells, row in zip(table, rows):
            self.assertEqual(int(cells["point"]), row["point"])
            self.assertEqual(cells["schedule"], row["vary"]["schedule"])
            self.assertEqual(cells["feasible"], "true" if row["feasible"] else "false")
            if row["feasible"]:
                self.assertEqual(float(cells["iteration_time_s"]), row["iteration_time_s"])
                self.assertEqual(float(cells["bubble.over_ideal"]), row["bubble"]["over_ideal"])
                self.assertEqual(cells["reason"], "")
                flat = figures(row)
                self.assertEqual(flat, {name: float(cells[name]) for name in flat})
            else:
                reason = row["reasons"][0]
                self.assertEqual(cells["reason"], f"{reason['code']}: {reason['path']}: {reason['message']}")

    # 10^(-8/3) has a digit for each bit in the rows, and six in the table, where these tell it from the others.
    def test_a_table_shows_six_digits_of_a_sampled_number(self):
        sweep = self.folder / "digits.yaml"
        vary = {"[0.12345678, 0.12345679, 0.5]": ["0.12345678", "0.12345679", "0.5"],
                "{from: 0.001, to: 0.01, points: 4, scale: log}": ["0.001", "0.00215443", "0.00464159", "0.01"]}
        for values, shown in vary.items():
            sweep.write_text(f"stagecraft: 1\nbase: {SOURCE}/scenarios/pipeline-4x8.yaml\n"
                             f"vary: {{failures.process.rate_per_node_day: {values}}}\n")
            head, *table = run("sweep", sweep, "--table").stdout.splitlines()[:len(shown) + 1]
            self.assertEqual("rate_per_node_day", head.split()[0])
            self.assertCountEqual(shown, [line.split()[0] for line in table])
        rows = [json.loads(line) for line in run("sweep", sweep).stdout.splitlines()]
        self.assertGreater(len(str(rows[1]["vary"]["failures.process.rate_per_node_day"])), len("0.00215443"))

    def test_merge_believes_no_number_of_points(self):
        rows = self.folder / "rows.jsonl"
        line = self.undisturbed().splitlines()[0]
        for points, why in ((10**15, "1: error: says that its sweep has 1,000,000,000,000,000 points"),
                            (COUNT - 1, f"2: error: is a row of sweep {json.loads(line)['sweep']} of {COUNT} points")):
            rows.write_text(line.replace(f'"points":{COUNT}', f'"points":{points}') + "\n" + line + "\n")
            merged = run("merge", rows)
            self.assertEqual(WRONG_INPUT, merged.returncode, merged.stderr)
            self.assertIn(f"{rows.name}:{why}", merged.stderr)

    def test_a_page_says_the_command_that_made_it(self):
        rows, page = self.folder / "rows.jsonl", self.folder / "page.html"
        rows.write_text(self.undisturbed())
        self.assertEqual(DONE, run("merge", rows, "--html", page).returncode)
        self.assertIn(f"stagecraft merge {rows}", page.read_text())

    def test_merge_makes_csv_of_rows(self):
        rows = self.folder / "rows.jsonl"
        rows.write_text(self.undisturbed())
        self.assertEqual(run("merge", rows, "--csv").stdout, run("sweep", self.sweep, "--csv").stdout)

    def test_sqlite_has_the_documented_schema(self):
        database = self.folder / "rows.db"
        result = run("sweep", self.sweep, "--sqlite", database)
        if "built without SQLite" in result.stderr:
            self.assertEqual(result.returncode, WRONG_INPUT)
            return
        self.assertEqual(result.stdout, self.undisturbed())
        with sqlite3.connect(database) as connection:
            facts = dict(connection.execute("SELECT key, value FROM sweep"))
            self.assertEqual(facts["schema"], "stagecraft.sweep/1")
            self.assertEqual(facts["points"], str(COUNT))
            rows = connection.execute('SELECT point, schedule, "training.global_batch_size", iteration_time_s, row FROM points '
                                      "ORDER BY point").fetchall()
            self.assertEqual([row[0] for row in rows], list(range(COUNT)))
            for point, schedule, batch, seconds, text in rows:
                row = json.loads(text)
                self.assertEqual((schedule, batch), (row["vary"]["schedule"], row["vary"]["training.global_batch_size"]))
                self.assertEqual(seconds, row.get("iteration_time_s"))
            best = connection.execute("SELECT schedule FROM points WHERE feasible = 'true' ORDER BY samples_per_s DESC, point "
                                      "LIMIT 1").fetchone()
        self.assertEqual(best, ("zb-h1",))
        self.assertEqual(run("sweep", self.sweep, "--sqlite", database).returncode, WRONG_INPUT)
        connection.close()
        database.chmod(0o600)
        link = self.folder / "link.sqlite"
        link.symlink_to(database.name)
        self.assertEqual(run("sweep", self.sweep, "--sqlite", link, "--force").returncode, DONE)
        self.assertTrue(link.is_symlink())
        self.assertEqual(database.stat().st_mode & 0o777, 0o600)
        with sqlite3.connect(database) as connection:
            self.assertEqual(connection.execute("SELECT COUNT(*) FROM points").fetchone()[0], COUNT)
        connection.close()

    def test_the_table_has_the_best_first_and_the_refused_below(self):
        table = run("sweep", SOURCE / "scenarios/sweeps/schedules.yaml", "--set", "parallelism.virtual_stages=1",
                    "--table").stdout.splitlines()
        self.assertEqual(table[0].split(), ["global_batch_size", "schedule", "iteration", "bubble", "memory"])
        self.assertEqual(table[1].split()[:4], ["32", "zb-h1", "99.0", "ms"])
        self.assertTrue(table[1].endswith("MiB"), "a verdict without a capacity: " + table[1])
        self.assertTrue(table[-1].startswith("schedule-constraint: 3 points, first: "), table[-1])

    def test_where_no_point_can_be_the_table_has_those_that_run(self):
        self.sweep.write_text(f"stagecraft: 1\nbase: {SOURCE}/scenarios/pipeline-4x8.yaml\n"
                              "vary: {schedule: [gpipe, zb-h1, 2f2b], assert: [{iteration_time: '<= 1 ms'}]}\n")
        ran = run("sweep", self.sweep, "--table")
        self.assertEqual(NO, ran.returncode)
        head, first, second, *rest = ran.stdout.splitlines()
        self.assertEqual(["schedule", "iteration", "bubble", "memory"], head.split())
        self.assertEqual([["zb-h1", "27.0", "ms"], ["gpipe", "33.0", "ms"]], [first.split()[:3], second.split()[:3]])
        self.assertTrue(rest[0].startswith("assertion-missed: 2 points, first: "), rest)
        self.assertEqual("no point can run and fits", rest[-1])

    def test_no_control_character_of_a_value_reaches_the_table(self):
        self.sweep.write_text(f"stagecraft: 1\nbase: {SOURCE}/scenarios/pipeline-4x8.yaml\n"
                              'vary: {name: ["a\\n\\x1b[31mb", "c"], schedule: [1f1b, "\\x1b[1mgpipe"]}\n')
        table = run("sweep", self.sweep, "--table").stdout
        self.assertIn(r"a\n\x1b[31mb", table)
        self.assertIn(r"'\x1b[1mgpipe'", table)
        self.assertNotIn("\x1b", table)
        # Nor does one of a row that somebody else has written.
        rows = self.folder / "rows.jsonl"
        rows.write_text('{"schema":"stagecraft.sweep/1","sweep":"0","point":0,"points":1,"vary":{"a\\u001bb":1},"hash":null,'
                        '"feasible":false,"reasons":[{"code":"x\\u001by","path":"","message":"z","hint":""}]}\n')
        self.assertIn(r"x\x1by: 1 point", run("merge", rows, "--table").stdout)

    def test_one_number_that_varies_gets_a_chart(self):
        self.sweep.write_text(f"stagecraft: 1\nbase: {SOURCE}/scenarios/pipeline-4x8.yaml\n"
                              "vary: {training.global_batch_size: [4, 8, 16]}\n")
        chart = run("sweep", self.sweep, "--table").stdout.split("\n\n")[1].splitlines()
        # (m + 3) * 3 ms for m samples: 190.5, 242.4 and 280.7 samples/s; 40 columns for the most.
        self.assertEqual([line.split()[0] for line in chart[1:]], ["4", "8", "16"])
        self.assertIn("█" * 27 + "▏ 190.5", chart[1])
        self.assertIn("█" * 40 + " 280.7", chart[3])

    def test_full_rows_are_whole_results(self):
        row = json.loads(run("sweep", SOURCE / "scenarios/sweeps/schedules.yaml", "--full", "--shard", "0/12").stdout)
        single = json.loads(run("run", SOURCE / "scenarios/pipeline-4x8.yaml", "--json", "--set", "schedule=gpipe").stdout)
        for key, value in single.items():
            if key not in ("schema", "scenario", "stagecraft_version", "scenario_hash", "profile_hash"):  # a row has `hash`
                self.assertEqual(row[key], value, key)

    def test_nothing_that_can_run_is_the_answer_no(self):
        self.sweep.write_text(f"stagecraft: 1\nbase: {SOURCE}/scenarios/pipeline-4x8.yaml\nvary: {{schedule: [none, nowhere]}}\n")
        result = run("sweep", self.sweep)
        self.assertEqual(result.returncode, NO)
        self.assertEqual(len(result.stdout.splitlines()), 2)

    def test_mistakes_are_located(self):
        self.sweep.write_text("stagecraft: 1\nbase: nowhere.yaml\nvary:\n  schedule: 1f1b\nwhere: tensor <\n")
        result = run("sweep", self.sweep)
        self.assertEqual(result.returncode, WRONG_INPUT)
        self.assertEqual(result.stdout, "")
        for line, column in ((2, 7), (4, 13), (5, 8)):
            self.assertIn(f"sweep.yaml:{line}:{column}: error: ", result.stderr)

    def test_contradicting_options_are_refused(self):
        for options in (("--json", "--csv"), ("--output", "a", "--resume", "b")):
            self.assertEqual(run("sweep", self.sweep, *options, cwd=self.folder).returncode, WRONG_INPUT, options)


class Mpi(Case):
    """1, 2 and 3 ranks; only where the program and mpirun are there (CMake adds this class then)."""

    def mpi(self, ranks, *words):
        command = [MPIRUN, "--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-np", str(ranks),
                   str(MPI_PROGRAM), *map(str, words)]
        environment = {**os.environ, "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment)

    def test_ranks_give_the_same_bytes(self):
        expected = self.undisturbed()
        for ranks in (1, 2, 3):
            result = self.mpi(ranks, "sweep", self.sweep)
            self.assertEqual(result.returncode, DONE, result.stderr)
            self.assertEqual(result.stdout, expected, f"{ranks} ranks")

    def test_ranks_go_on_with_a_file(self):
        expected = self.undisturbed()
        rows = self.folder / "rows.jsonl"
        rows.write_text(expected[: len(expected) // 3])
        result = self.mpi(3, "sweep", self.sweep, "--resume", rows)
        self.assertEqual(result.returncode, DONE, result.stderr)
        self.assertEqual(rows.read_text(), expected)

    def test_mistakes_end_all_ranks(self):
        self.assertEqual(self.mpi(3, "sweep", self.folder / "nowhere.yaml").returncode, WRONG_INPUT)
        self.assertEqual(self.mpi(2, "sweep").returncode, WRONG_INPUT)
        result = self.mpi(2, "run", SOURCE / "scenarios/pipeline-4x8.yaml")
        self.assertEqual(result.returncode, WRONG_INPUT)
        self.assertIn("`run` does not run on the ranks of an MPI job", result.stderr)


if __name__ == "__main__":
    words = sys.argv[3:]
    if words[:1] == ["--mpi"]:
        MPI_PROGRAM, MPIRUN = Path(words[1]).resolve(), words[2]
        words = words[3:]
    unittest.main(argv=[sys.argv[0], *words])
