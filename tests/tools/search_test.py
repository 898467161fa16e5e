#!/usr/bin/env python3
"""Searches as a user runs them.

usage: search_test.py STAGECRAFT SOURCE_DIR
"""
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(sys.argv[1]).resolve()
SOURCE = Path(sys.argv[2]).resolve()
LIMIT_S = 300
DONE, NO, WRONG_INPUT = 0, 1, 2

SMALL = """\
stagecraft: 1
name: small
model: {family: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 51200, max_sequence_length: 1024}
cluster: {node: dgx-a100-80gb, gpus: 8}
training: {global_batch_size: 16, attention: unfused}
search: {fix: [parallelism.zero_stage], price: 2 USD/h}
"""


class Search(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.file = self.folder / "small.yaml"
        self.file.write_text(SMALL)

    def run_it(self, *words, code=DONE, cwd=None):
        done = subprocess.run([str(PROGRAM), *map(str, words)], capture_output=True, text=True, timeout=LIMIT_S, cwd=cwd)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def document(self, *words):
        lines = self.run_it("search", self.file, "--json", *words).stdout.splitlines()
        self.assertEqual(len(lines), 1)
        return json.loads(lines[0])

    def test_every_plan_is_listed_refused_left_out_or_simulated(self):
        answer = self.document()
        self.assertEqual(answer["schema"], "stagecraft.search/1")
        refused = sum(reason["count"] for reason in answer["rejected"])
        self.assertEqual(answer["plans"], refused + answer["bounded"] + answer["simulated"])
        self.assertEqual(len(answer["ranked"]), 10)
        times = [plan["iteration_time_s"] for plan in answer["ranked"]]
        self.assertEqual(times, sorted(times))

    def test_plans_with_sequence_parallelism_are_tried_with_tensor_overlap(self):
        wide = ["--set", "model.hidden=8192", "--fix", "schedule", "--vary", "parallelism.tensor=2"]  # waits for no host
        search = [*wide, "--vary", "parallelism.sequence_parallel=true"]
        tried, *_ = self.document(*search)["ranked"]
        values = [word for path, value in tried["plan"].items() for word in ("--set", f"{path}={json.dumps(value)}")]
        result = json.loads(self.run_it("run", self.file, "--json", *wide[:2], *values, "--set", "overlap.tensor=true").stdout)
        self.assertEqual(result["iteration_time_s"], tried["with_tensor_overlap"]["iteration_time_s"])
        self.assertEqual(result["memory"]["peak_bytes"], tried["with_tensor_overlap"]["peak_bytes"])
        text = " ".join(self.run_it("search", self.file, *search).stdout.split())
        self.assertRegex(text, r"overlap\.tensor, where the software has it, would bring plan \d+ to [\d.]+ m?s "
                         r"\([\d.]+ m?s without\); --vary overlap\.tensor=false,true ranks all plans")
        for words in ([*wide, "--vary", "parallelism.sequence_parallel=false"], [*search, "--set", "overlap.tensor=false"],
                      [*search, "--vary", "overlap.tensor=false,true"]):
            self.assertNotIn("would bring", self.run_it("search", self.file, *words).stdout)
            self.assertNotIn("with_tensor_overlap", self.document(*words)["ranked"][0])

    def test_every_reason_has_an_example(self):
        rejected = self.document("--set", "model.hidden=16384")["rejected"]
        self.assertNotIn("", [reason["example"] for reason in rejected])
        self.assertRegex(*[reason["example"] for reason in rejected if reason["code"] == "out-of-memory"],
                         r"^stage \d+ needs .* of 79\.1 GiB$")
        self.assertEqual(["memory"], [reason["path"] for reason in rejected if reason["code"] == "out-of-memory"])

    def test_the_key_that_plans_need_besides_is_said(self):
        words = ["--set", "model.experts={count: 8, top_k: 2, ffn_hidden: 4096}", "--vary", "parallelism.tensor=1,2", "--fix",
                 "parallelism.sequence_parallel", "--fix", "schedule"]
        text = " ".join(self.run_it("search", self.file, *words).stdout.split())
        self.assertRegex(text, r"\d need another key \(parallelism\.tensor\): set parallelism\.sequence_parallel: true, or "
                         r"parallelism\.tensor: 1 ")

    def test_the_table_of_the_front_says_where_its_other_plans_are(self):
        text = self.run_it("search", self.file).stdout
        front = self.document()["pareto"]
        self.assertGreater(len(front), 12)
        self.assertIn(f"nobody is better in both (12 of {len(front)}; --json has all)\n", text)

    def test_the_front_names_of_its_plans_what_is_there(self):
        self.file.write_text(SMALL.replace(", price: 2 USD/h", ""))
        answer, text = self.document(), self.run_it("search", self.file).stdout
        self.assertEqual([], [line for line in text.splitlines() if len(line) > 80])
        head, *lines = text[text.index("nobody is better in both"):].splitlines()[1:]
        self.assertEqual(["time", "memory", "plan"], head.split())
        at, rows = head.index("plan"), []
        for line in lines:  # a plan may go on in the next line
            if line[:at].strip():
                rows.append(line[at:])
            else:
                rows[-1] += " " + line[at:]
        self.assertEqual(12, len(rows))
        for row, plan in zip(rows, answer["pareto"]):
            said = set(row.split(", "))
            for title, key in (("tp", "tensor"), ("pp", "pipeline"), ("dp", "data")):
                degree = plan["plan"]["parallelism." + key]
                self.assertEqual(degree > 1, f"{title} {degree}" in said, row)
            self.assertEqual(plan["plan"]["parallelism.sequence_parallel"], "sp" in said, row)

    def test_orders_that_the_software_does_not_run_are_said(self):
        def orders(*words):
            answer = self.document("--exhaustive", "--top", 100000, *words)
            return {plan["plan"]["schedule"] for plan in answer["ranked"]}, answer["left_aside"]

        tried, aside = orders()
        self.assertEqual(tried, {"1f1b", "interleaved-1f1b"})
        self.assertEqual([entry["software"] for entry in aside], ["megatron-lm-2021"])
        self.assertIn("zb-h1", aside[0]["schedules"])
        self.assertGreater(aside[0]["plans"], 0)
        self.assertIn(f"left aside       {aside[0]['plans']} plans of orders that megatron-lm-2021 does not run:\n"
                      "                 interleaved-pytorch, ", self.run_it("search", self.file).stdout)
        # ZeRO 2 and 3 are FSDP's without a pipeline, and FSDP2's with one: nothing of the former is dropped.
        spread = ["--vary", "parallelism.zero_stage=1,2"]
        self.assertEqual({entry["software"] for entry in orders(*spread)[1]}, {"megatron-lm-2021", "fsdp2"})
        self.assertNotIn("fsdp-2023", self.run_it("search", self.file, *spread).stdout)
        self.assertEqual(orders("--vary", "schedule=1f1b,zb-h1"), ({"1f1b", "zb-h1"}, []))
        sharded = ["--set", "options.software=fsdp-2023", "--vary", "parallelism.zero_stage=2", "--vary", "parallelism.tensor=1"]
        aside, = orders(*sharded)[1]
        self.assertIn(f"left aside       {aside['plans']} plans with pipelines: fsdp-2023 has none\n",
                      self.run_it("search", self.file, *sharded).stdout)

    def test_blocks_of_replicas_vary_where_they_are_asked_for(self):
        answer = self.document("--vary", "parallelism.zero_stage=3", "--vary", "parallelism.zero_group=all",
                               "--vary", "parallelism.tensor=1", "--vary", "parallelism.pipeline=1", "--top", 100)
        plans = [plan["plan"] for plan in answer["ranked"] + answer["pareto"]]
        self.assertEqual({2, 4, 8}, {plan["parallelism.zero_group"] for plan in plans})
        self.assertNotIn("parallelism.expert_tensor", plans[0])

    def test_the_exhaustive_search_has_the_same_list(self):
        pruned, whole = self.document("--top", 5), self.document("--top", 5, "--exhaustive")
        self.assertEqual(whole["bounded"], 0)
        self.assertGreater(pruned["bounded"], 0)
        self.assertEqual(pruned["ranked"], whole["ranked"])
        self.assertEqual(pruned["pareto"], whole["pareto"])

    def test_threads_change_no_byte(self):
        for form in ([], ["--json"]):
            texts = {self.run_it("search", self.file, "--jobs", jobs, *form).stdout for jobs in (1, 3)}
            self.assertEqual(len(texts), 1)

    def test_the_winner_runs_and_has_the_figure(self):
        best = self.folder / "best.yaml"
        answer = self.document("--write-best", best)
        result = json.loads(self.run_it("run", best, "--json").stdout)
        self.assertEqual(result["iteration_time_s"], answer["ranked"][0]["iteration_time_s"])
        self.assertEqual(result["memory"]["peak_bytes"], answer["ranked"][0]["peak_bytes"])
        self.assertEqual(result["mfu"], answer["ranked"][0]["mfu"])
        self.assertEqual(result["tokens_per_s"], answer["ranked"][0]["tokens_per_s"])
        self.run_it("search", self.file, "--write-best", best, code=WRONG_INPUT)  # it is there
        link = self.folder / "link.yaml"
        link.symlink_to(best.name)
        best.write_text("old")
        best.chmod(0o600)
        self.run_it("search", self.file, "--write-best", link, "--force")
        self.assertTrue(link.is_symlink())
        self.assertEqual(best.stat().st_mode & 0o777, 0o600)
        self.assertIn("stagecraft: 1", best.read_text())

    # A profile of the user's own, named from the scenario's folder, and a best plan that is written into another.
    def test_the_winner_runs_from_another_folder(self):
        profiles = SOURCE / "calibrate/profiles"
        slow = (profiles / "a100-sxm4-80gb.yaml").read_text().replace("peak_bf16: 312 TFLOP/s", "peak_bf16: 200 TFLOP/s")
        (self.folder / "mine.yaml").write_text(slow.replace("name: a100-sxm4-80gb", "name: mine"))
        self.file.write_text(SMALL + "profile: mine.yaml\n")
        (self.folder / "out").mkdir()
        best = self.folder / "out/best.yaml"
        answer = self.document("--write-best", best, "--fix", "schedule")
        result = json.loads(self.run_it("run", best, "--json").stdout)
        self.assertEqual(result["iteration_time_s"], answer["ranked"][0]["iteration_time_s"])

    # Files beside the scenario are named from the other folder; installed names, as that of the repairs, stay.
    def test_the_winner_names_its_files_from_another_folder(self):
        software = (SOURCE / "scenarios/software/megatron-core.yaml").read_text()
        repairs = (SOURCE / "scenarios/traces/infinitehbd_faults.csv").read_text()
        (self.folder / "soft.yaml").write_text(software)
        (self.folder / "repairs.csv").write_text(repairs)
        (self.folder / "out").mkdir()
        best = self.folder / "out/best.yaml"
        mine = "{kind: empirical, file: repairs.csv}"
        cause = f"{{kind: exponential, causes: [{{name: disk, repair: {mine}}}]}}"
        for failures in ("{}", f"{{repair: {mine}}}", f"{{process: {cause}}}", "{process: {kind: trace, file: bamboo_p3_spot}}"):
            with self.subTest(failures):
                self.file.write_text(SMALL + f"options: {{software: soft.yaml}}\nfailures: {failures}\n")
                self.run_it("search", self.file, "--write-best", best, "--force", "--fix", "schedule", "--top", "1")
                self.run_it("check", best)
                self.assertIn('software: "../soft.yaml"', best.read_text())
        self.run_it("search", self.file.name, "--write-best", "here.yaml", "--fix", "schedule", "--top", "1", cwd=self.folder)
        self.assertIn('software: "soft.yaml"', (self.folder / "here.yaml").read_text())

    # A plan that a dead node stops early would be the best one.
    def test_iterations_that_never_end_are_not_ranked(self):
        done = self.run_it("search", self.file, "--set", "faults=[{kind: dead-node, node: 0, at: 1 ms}]", code=WRONG_INPUT)
        self.assertIn("no time to rank plans by", done.stderr)

    # 2 USD an hour for each of 8 GPUs, and 16 samples of 1,024 tokens in an iteration.
    def test_a_price_gives_the_cost_of_tokens(self):
        for plan in self.document()["ranked"]:
            cost = 2 * 8 * plan["iteration_time_s"] / 3600 / (16 * 1024) * 1e6
            self.assertAlmostEqual(plan["cost_per_million_tokens"], cost, places=12)
            self.assertEqual(plan["currency"], "USD")

    def test_more_gpus_are_a_line_each(self):
        scaling = self.document("--gpus", "2..8", "--fix", "schedule")["scaling"]
        self.assertEqual([plan["gpus"] for plan in scaling], [2, 4, 8])
        for plan in scaling:
            degrees = ("tensor", "pipeline", "data", "context")
            product = 1
            for degree in degrees:
                product *= plan["plan"]["parallelism." + degree]
            self.assertEqual(product, plan["gpus"])

        text = self.run_it("search", self.file, "--gpus", "2..8", "--fix", "schedule").stdout
        table = text.split("best plan of each number of GPUs\n")[1].splitlines()
        self.assertEqual(["GPUs", "2", "4", "8"], [line.split()[0] for line in table[:4]])

    def test_the_best_plans_of_several_numbers_of_gpus_are_listed_too(self):
        words = ["--gpus", "2..8", "--fix", "schedule", "--top", "3"]
        answer, text = self.document(*words), self.run_it("search", self.file, *words).stdout
        ranked = text[text.index("#  GPUs"):text.index("best plan of each")].splitlines()
        self.assertEqual([[str(i + 1), str(plan["gpus"])] for i, plan in enumerate(answer["ranked"])],
                         [line.split()[:2] for line in ranked[1:4]])
        front = text[text.index("time against memory and GPUs: nobody is better in all"):].splitlines()
        self.assertEqual({str(plan["gpus"]) for plan in answer["pareto"]}, {line.split()[0] for line in front[2:] if line[0:4].strip()})

    # 16 samples over 3 GPUs, whose only degrees are 1 and 3.
    def test_numbers_of_gpus_without_a_plan_are_named_with_the_reasons(self):
        words = ["--gpus", "4,3", "--fix", "schedule"]
        *ranked, without = self.document(*words)["scaling"]
        self.assertEqual([4], [plan["gpus"] for plan in ranked])
        self.assertEqual((3, None), (without["gpus"], without["plan"]))
        self.assertIn("training.global_batch_size", [reason["path"] for reason in without["rejected"]])
        text = " ".join(self.run_it("search", self.file, *words).stdout.split())
        self.assertRegex(text, r"no plan of 3 GPUs: .*\d do not divide \(training\.global_batch_size\).*; "
                         r"--set search\.batch=at-most takes the largest batch")
        alone = self.run_it("search", self.file, "--gpus", "3", "--fix", "schedule", code=NO).stdout
        self.assertIn("--set search.batch=at-most takes the largest batch", alone)
        self.assertNotIn("no plan ", alone)
        self.run_it("search", self.file, "--gpus", "3", "--fix", "schedule", "--set", "search.batch=at-most")

    def test_plans_that_leave_little_room_are_marked(self):
        for hidden, verdicts in ((1024, {"fits"}), (12288, {"fits", "tight"})):
            words = ["--set", f"model.hidden={hidden}", "--vary", "parallelism.tensor=1,2", "--fix", "schedule", "--top", "6"]
            ranked = self.document(*words)["ranked"]
            self.assertEqual(verdicts, {plan["verdict"] for plan in ranked})
            text = self.run_it("search", self.file, *words).stdout
            rows = [line for line in text.splitlines() if re.match(r" ?\d+ +\d+ ", line)][:len(ranked)]
            self.assertEqual([plan["verdict"] for plan in ranked], [re.search("fits|tight", row)[0] for row in rows])
            self.assertEqual("tight" in verdicts, "--set 'assert.peak_memory=<= 63 GiB' asks for" in text)
        asked = self.document(*words, "--set", "assert.peak_memory=<= 63 GiB")
        self.assertEqual({"fits"}, {plan["verdict"] for plan in asked["ranked"]})

    def test_what_never_fits_is_the_answer_no(self):
        def said(*words):
            done = self.run_it("search", self.file, "--set", "model.layers=20000", "--fix", "schedule", *words, code=NO)
            self.assertIn("out of memory", done.stdout)
            return " ".join(done.stdout[done.stdout.index("none fits: "):].split())

        # What was tried is no advice: the file fixes the ZeRO stage.
        self.assertEqual("none fits: more GPUs make room, or what was not tried: parallelism.zero_stage=3, "
                         "offload.optimizer=1, offload.activations=1, offload.weights=1", said())
        self.assertIn("not tried: training.recompute=full, offload.optimizer=1, offload.activations=1",
                      said("--fix", "training.recompute", "--vary", "parallelism.zero_stage=3", "--vary", "offload.weights=0,1"))

    # The fastest plan that keeps the promise is written, and runs without a complaint.
    def test_a_plan_that_misses_an_assertion_is_not_listed(self):
        limit = self.document()["ranked"][0]["peak_bytes"]
        promise = ["--set", f"assert={{peak_memory: '< {limit} B'}}"]
        best = self.folder / "best.yaml"
        answer = self.document(*promise, "--write-best", best)
        self.assertLess(max(plan["peak_bytes"] for plan in answer["ranked"] + answer["pareto"]), limit)
        missed = [reason for reason in answer["rejected"] if reason["code"] == "assertion-missed"]
        self.assertEqual(["assert.peak_memory"], [reason["path"] for reason in missed])
        refused = sum(reason["count"] for reason in answer["rejected"])
        self.assertEqual(answer["plans"], refused + answer["bounded"] + answer["simulated"])
        self.run_it("run", best)
        none = self.run_it("search", self.file, "--set", "assert={iteration_time: '< 1 us'}", code=NO).stdout
        self.assertIn(" miss what the scenario promises (assert.iteration_time)", none)
        fit, simulated = re.search(r": (\d+) fit, (\d+) simulated", none).groups()
        self.assertEqual(fit, simulated)
        near = max(plan["mfu"] for plan in self.document("--exhaustive", "--top", 1000)["ranked"])
        none = " ".join(self.run_it("search", self.file, "--set", "assert.mfu=>= 0.9", code=NO).stdout.split())
        self.assertAlmostEqual(near, float(re.search(r"the nearest: ([\d.]+) is not >= 0\.9", none)[1]), places=3)
        self.assertIn("none of those that fit keeps what `assert` promises", none)

    def test_all_that_is_wrong_with_the_options_is_said_at_once(self):
        done = self.run_it("search", self.file, "--fix", "schedul", "--vary", "nope=1", "--gpus", "12", "--top", "0", "--price", "5",
                           code=WRONG_INPUT)
        for said in ("--top: 0 is not between", "--fix schedul: error: ", "--vary nope=1: error: nope: is not a known key",
                     "--gpus 12: error: ", "--price 5: error: ", "\n5 errors, "):
            self.assertIn(said, done.stderr)

    def test_values_keep_their_types(self):
        answer = self.document("--vary", "training.global_batch_size=16,32", "--vary", "overlap.shared_experts=true,false",
                               "--vary", "schedule=1f1b")
        for plan in answer["ranked"]:
            self.assertIn(plan["plan"]["training.global_batch_size"], (16, 32))
            self.assertIn(plan["plan"]["overlap.shared_experts"], (True, False))
        self.assertEqual([16, 32], answer["space"]["training.global_batch_size"])

    # Each listed plan, laid over the scenario, is what was ranked.
    def assert_plans_run_as_printed(self, answer):
        for plan in answer["ranked"] + answer["pareto"]:
            values = [word for path, value in plan["plan"].items() for word in ("--set", f"{path}={json.dumps(value)}")]
            result = json.loads(self.run_it("run", self.file, "--json", *values).stdout)
            self.assertEqual(result["iteration_time_s"], plan["iteration_time_s"])
            self.assertEqual(result["memory"]["peak_bytes"], plan["peak_bytes"])

    # As they are written: their names alone are other plans.
    def test_plans_say_mappings_of_the_scenario_whole(self):
        for lines, fixed in (("schedule: {name: interleaved-1f1b, micro_batch_group: 8}\n", "schedule"),
                             ("training: {global_batch_size: 16, attention: unfused, recompute: {granularity: full, method: block, "
                              "layers: 2}}\n", "training.recompute"),
                             ("training: {global_batch_size: 16, attention: unfused, recompute: {granularity: selective, modules: "
                              "[mlp]}}\n", "training.recompute")):
            self.file.write_text(SMALL.replace("training: {global_batch_size: 16, attention: unfused}\n",
                                               lines if fixed != "schedule" else lines + "training: {global_batch_size: 16}\n"))
            answer = self.document("--fix", fixed, "--vary", "parallelism.pipeline=2", "--top", 2)
            self.assertIsInstance(answer["ranked"][0]["plan"][fixed], dict)
            self.assert_plans_run_as_printed(answer)

    # A whole comes before its parts, and nodes with the numbers of GPUs.
    def test_plans_of_listed_mappings_and_of_several_gpu_counts_run_as_printed(self):
        few = ["--vary", "training.micro_batch_size=1", "--fix", "schedule", "--fix", "training.recompute", "--top", 2]
        self.assert_plans_run_as_printed(self.document(*few, "--vary", "parallelism={tensor: 2},{tensor: 4, pipeline: 2}"))
        answer = self.document(*few, "--vary", "parallelism.tensor=2", "--gpus", "4,16")
        self.assert_plans_run_as_printed(answer)
        self.assertEqual({(None, 4), (2, None)},
                         {(plan["plan"]["cluster.nodes"], plan["plan"]["cluster.gpus"]) for plan in answer["scaling"]})
        recompute = "training.recompute=none,{granularity: full, method: block, layers: 3}"
        self.assert_plans_run_as_printed(self.document("--vary", "training.micro_batch_size=1", "--fix", "schedule", "--vary", recompute))

    # In short where that tells them apart, else whole.
    def test_rows_show_the_values_that_they_differ_in(self):
        few = ["--vary", "parallelism.tensor=2", "--vary", "parallelism.pipeline=2", "--vary", "training.micro_batch_size=1", "--fix",
               "training.recompute", "--fix", "parallelism.sequence_parallel"]
        orders = "[tensor, context, expert, data, pipeline],[pipeline, data, tensor, context, expert]"
        fabrics = "{kind: single-switch, switch_latency: 1 us},{kind: single-switch, switch_latency: 9 us}"
        for path, values in (("parallelism.order", orders), ("schedule", "{name: 1f1b, global_step: false},1f1b"),
                             ("cluster.fabric", fabrics)):
            text = self.run_it("search", self.file, *few, "--vary", f"{path}={values}",
                               *([] if path == "schedule" else ["--vary", "schedule=1f1b"])).stdout
            table = text[:text.index("in all of them")]
            for value in re.split(r"(?<=[\]}]),", values):
                self.assertRegex(table, r"  " + re.escape(value) + r"  ")
        named = "{name: one, kind: single-switch, switch_latency: 1 us},{name: two, kind: single-switch, switch_latency: 9 us}"
        text = self.run_it("search", self.file, *few, "--vary", "schedule=1f1b", "--vary", f"cluster.fabric={named}").stdout
        self.assertRegex(text, r"  (one|two)  ")
        self.assertNotIn("{", text)

    def test_values_that_make_no_scenario_are_refused_and_named(self):
        words = [*self.SHORT, "--vary", "training.gradient_dtype=bf16,fp32,fp16"]
        answer = self.document(*words)
        [refused] = answer["refused_values"]
        self.assertEqual(("contradiction", "training.gradient_dtype", 1), tuple(refused[key] for key in ("code", "path", "choices")))
        self.assertEqual({"schedule": "1f1b", "training.gradient_dtype": "fp16"}, refused["values"])
        self.assertEqual({"bf16", "fp32"}, {plan["plan"]["training.gradient_dtype"] for plan in answer["ranked"]})
        text = " ".join(self.run_it("search", self.file, *words).stdout.split())
        self.assertIn("refused 1 choice of values: training.gradient_dtype: fp16 gradients do not go with bf16 training", text)
        said = self.run_it("search", self.file, "--vary", "training.gradient_dtype=fp16", code=WRONG_INPUT).stderr
        self.assertEqual(1, said.count("error: "))

    SHORT = ["--vary", "schedule=1f1b", "--vary", "parallelism.tensor=1", "--vary", "training.micro_batch_size=1", "--top", 3]

    def test_plans_say_how_layers_that_do_not_divide_are_spread(self):
        self.file.write_text(SMALL.replace("layers: 8", "layers: 7").replace("{fix:", "{stages: uneven, fix:"))
        answer = self.document(*self.SHORT, "--vary", "parallelism.pipeline=2,4")
        splits = {tuple(plan["plan"]["parallelism.stage_layers"]) for plan in answer["ranked"]}
        self.assertLessEqual(splits, {(4, 3), (2, 2, 2, 1)})
        self.assert_plans_run_as_printed(answer)
        text = self.run_it("search", self.file, *self.SHORT, "--vary", "parallelism.pipeline=2").stdout
        self.assertRegex(text, r"dp +layers +")
        self.assertIn("  4 3  ", text)

    # 2 stages have the scenario's own split; the 3 other numbers of stages are as even as ever.
    def test_the_split_of_the_scenario_is_kept_or_named_as_dropped(self):
        self.file.write_text(SMALL + "parallelism: {pipeline: 2, stage_layers: [3, 5]}\n")
        answer = self.document(*self.SHORT[:-2], "--exhaustive", "--top", 100)
        for plan in answer["ranked"]:
            own = plan["plan"]["parallelism.pipeline"] == 2
            self.assertEqual(plan["plan"]["parallelism.stage_layers"], [3, 5] if own else None)
        self.assert_plans_run_as_printed(answer)
        [dropped] = answer["dropped"]
        self.assertEqual((dropped["path"], dropped["value"]), ("parallelism.stage_layers", [3, 5]))
        self.assertGreater(dropped["plans"], 0)
        self.assertIn("dropped          the scenario's stage_layers, in ", self.run_it("search", self.file, *self.SHORT).stdout)
        fixed = self.document(*self.SHORT, "--fix", "parallelism.stage_layers")
        self.assertEqual({2}, {plan["plan"]["parallelism.pipeline"] for plan in fixed["ranked"]})
        self.assertEqual([], fixed["dropped"])
        self.assertIn("parallelism.stage_layers", [reason["path"] for reason in fixed["rejected"]])

    def test_warnings_of_loading_are_said_once(self):
        config = SOURCE / "tests/data/hf_config/made-nested-text-config.config.json"
        self.file.write_text(f"stagecraft: 1\nmodel: {config}\ncluster: {{node: dgx-a100-80gb, gpus: 8}}\n"
                             "training: {global_batch_size: 16, sequence_length: 1024}\n")
        said = "warning: vision_config: a part beside the language model"
        for form in ([], ["--json"]):
            self.assertEqual(1, self.run_it("search", self.file, *form).stderr.count(said), form)
        self.assertNotIn(said, self.run_it("search", self.file, "--quiet").stderr)

    def test_what_is_set_and_searched_had_no_effect(self):
        said = self.run_it("search", self.file, *self.SHORT, "--set", "parallelism.tensor=4", "--set", "parallelism.pipeline=2",
                           "--set", "parallelism.zero_stage=1", "--set", "parallelism.data=2", "--gpus", 8, "--set", "cluster.gpus=4").stderr
        for path, why in (("tensor=4", "the search varies it"), ("pipeline=2", "the search varies it (--fix parallelism.pipeline keeps it)"),
                          ("data=2", "it is what the other degrees leave")):
            key = "parallelism." + path.split("=")[0]
            self.assertIn(f"--set parallelism.{path}: warning: {key}: had no effect: {why}", said)
        self.assertIn("--set cluster.gpus=4: warning: cluster.gpus: had no effect: the search has numbers of GPUs", said)
        self.assertNotIn("zero_stage", said)  # `search` fixes it

    def test_abstract_stages_keep_what_their_costs_are_of(self):
        self.file.write_text((SOURCE / "scenarios/pipeline-4x8.yaml").read_text() + "cluster: {node: dgx-a100-80gb, nodes: 1}\n")
        answer = self.document()
        self.assertIn("parallelism.pipeline", answer["kept"])
        for plan in answer["ranked"]:
            self.assertEqual(plan["plan"]["parallelism.pipeline"], 4)
            values = [word for path, value in plan["plan"].items() for word in ("--set", f"{path}={json.dumps(value)}")]
            alone = json.loads(self.run_it("run", self.file, "--json", *values).stdout)
            self.assertEqual(alone["iteration_time_s"], plan["iteration_time_s"])
        self.assertIn("kept             the scenario's tensor, pipeline, ", self.run_it("search", self.file).stdout)
        self.assertIn("parallelism.tensor: abstract stages have costs for the scenario's own alone",
                      self.run_it("search", self.file, "--vary", "parallelism.tensor=1,2", code=WRONG_INPUT).stderr)

    # 16 samples without tokens, in 27, 15 and 11 ms.
    def test_plans_without_tokens_are_told_in_samples(self):
        self.file.write_text("""\
stagecraft: 1
name: stages
model: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms}
cluster: {node: dgx-a100-80gb, gpus: 8}
parallelism: {pipeline: 4}
schedule: zb-h1
training: {global_batch_size: 16}
search: {fix: [schedule]}
""")
        text = self.run_it("search", self.file, "--gpus", "8,16,32", "--price", "2 USD/h").stdout
        head, *rows = [line.split() for line in text[text.index("\nGPUs  tp"):].strip().splitlines()[:4]]
        self.assertEqual(["iteration", "samples/s", "memory", "USD/Mtok"], head[-4:])
        self.assertEqual([["27.0", "ms", "592.6"], ["15.0", "ms", "1067"], ["11.0", "ms", "1455"]], [row[4:7] for row in rows])
        self.assertEqual(["–"] * 3, [row[-1] for row in rows])
        speedups = text[text.index("GPUs  speed-up"):].splitlines()[1:4]
        self.assertEqual([["8", "1.00", "100.0", "%"], ["16", "1.80", "90.0", "%"], ["32", "2.45", "61.4", "%"]],
                         [row.split() for row in speedups])
        self.assertNotIn("tok/s/GPU", text)
        self.assertNotIn("MFU", text)

    def test_what_is_wrong_is_said(self):
        for words, text in (
            (["--vary", "parallelism.tensr=1"], "is not a known key"),
            (["--vary", "parallelism.tensor"], "there is no '=' in it"),
            (["--fix", "parallelism.tensr"], "did you mean 'parallelism.tensor'?"),
            (["--gpus", "12"], "12 GPUs are no whole nodes of 8"),
            (["--price", "cheap"], "2 USD/h"),
            (["--vary", "parallelism.tensor=1", "--vary", "parallelism.tensor=2"],
             "--vary parallelism.tensor=2: error: parallelism.tensor: is varied twice"),
            (["--vary", "parallelism.tensor=1", "--fix", "parallelism.tensor"],
             "--fix parallelism.tensor: error: parallelism.tensor: is varied as well"),
        ):
            self.assertIn(text, self.run_it("search", self.file, *words, code=WRONG_INPUT).stderr)
        pipeline = SOURCE / "scenarios/pipeline-4x8.yaml"
        self.assertIn("a search needs GPUs", self.run_it("search", pipeline, code=WRONG_INPUT).stderr)

    def test_other_commands_do_not_mind_the_space(self):
        self.run_it("run", self.file, "--set", "parallelism.zero_stage=1")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
