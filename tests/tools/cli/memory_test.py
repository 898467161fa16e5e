#!/usr/bin/env python3
"""What `stagecraft memory` itemises, whether it fits, and the changes that would make it fit.

usage: memory_test.py STAGECRAFT SOURCE_DIR [Memory[.TEST]]
"""
import re
import tempfile

from harness import DONE, FLAGSHIP, NO, PIPELINE, Case, main, stagecraft


class Memory(Case):
    def test_what_does_not_fit_is_exit_1_only_where_fitting_is_required(self):
        for command in ("run", "memory"):
            too_much = [command, FLAGSHIP, "--set", "training.micro_batch_size=16", "--set", "schedule=gpipe",
                        "--set", "parallelism.virtual_stages=1", "--set", "training.attention=unfused"]
            with self.subTest(command):
                self.assertEqual(DONE, stagecraft(*too_much).returncode)
                ran = stagecraft(*too_much, "--require-fit")
                self.assertEqual(NO, ran.returncode)
                self.assertRegex(ran.stderr, r"^verdict: out-of-memory on stage \d: [\d.]+ [GT]iB of 79.1 GiB, of which "
                                             r"activations [\d.]+ [GT]iB\n  hint: --set [^\n]*\n$")
                self.assertEqual(DONE, stagecraft(command, FLAGSHIP, "--require-fit").returncode)

    def test_a_fit_that_nobody_can_check_is_said(self):
        for command in ("run", "memory"):
            ran = stagecraft(command, PIPELINE, "--require-fit")
            self.assertEqual(DONE, ran.returncode)
            self.assertIn("note: --require-fit checked nothing: no capacity is given", ran.stderr)
            self.assertNotIn("checked nothing", stagecraft(command, FLAGSHIP, "--require-fit").stderr)

    # What is advised is the first of the what-ifs: alone it does, or the hint says what it leaves and where to look on.
    def test_advice_that_would_do_is_the_fastest_that_fits(self):
        for command in ("run", "memory"):
            too_much = [command, FLAGSHIP, "--require-fit", "--set", "training.micro_batch_size=6"]
            ran = stagecraft(*too_much)
            self.assertEqual(NO, ran.returncode)
            advice = re.search(r"\n  hint: (--set .*): ([\d.]+) GiB, ([\d.]+) s an iteration; `stagecraft memory` prices other "
                               r"changes\n$", ran.stderr)
            self.assertTrue(advice, ran.stderr)
            followed, = self.results(stagecraft(*too_much, *advice[1].split(), "--json"))
            self.assertAlmostEqual(followed["memory"]["peak_bytes"] / 2**30, float(advice[2]), delta=0.05)
            self.assertAlmostEqual(followed["iteration_time_s"], float(advice[3]), delta=0.05)

    # Eight times the layers of GPT-3, and no tensor ranks: neither one change nor two are enough.
    FOR_NO_PLAN = ["--set", "model.layers=768", "--set", "parallelism.tensor=1", "--set", "parallelism.data=null",
                   "--set", "training.global_batch_size=2048", "--set", "options.software=megatron-lm-2021"]

    def test_advice_that_would_not_do_says_what_it_leaves(self):
        too_large = [FLAGSHIP, *self.FOR_NO_PLAN]
        ran = stagecraft("run", *too_large, "--require-fit")
        leaves = re.search(r"hint: --set (\S+) alone leaves ([\d.]+) GiB; `stagecraft memory` prices other changes, "
                           r"`stagecraft search` looks for plans that fit\n$", ran.stderr)
        self.assertTrue(leaves, ran.stderr)
        changed, = self.results(stagecraft("run", *too_large, "--json", "--set", leaves[1]))
        self.assertEqual("out-of-memory", changed["memory"]["verdict"])
        self.assertAlmostEqual(changed["memory"]["peak_bytes"] / 2**30, float(leaves[2]), delta=0.5)

    def test_an_iteration_that_does_not_fit_says_where_room_is_priced(self):
        too_much = ["run", FLAGSHIP, "--set", "training.micro_batch_size=6"]
        note = (f"memory: `stagecraft memory {FLAGSHIP}` prices changes that make room, `stagecraft search {FLAGSHIP}` looks for "
                "plans that fit")
        said = lambda *words: " ".join(stagecraft(*words).stdout.split())
        self.assertIn(note, said(*too_much))
        self.assertNotIn(note, said(*too_much, "--quiet") + said(*too_much, "--json") + said("run", FLAGSHIP))

    def test_a_job_that_no_change_makes_fit_is_sent_to_search(self):
        sent = f"none of these changes fits; `stagecraft search {FLAGSHIP}` looks for plans that do\n"
        self.assertTrue(stagecraft("memory", FLAGSHIP, *self.FOR_NO_PLAN).stdout.endswith(sent))
        self.assertNotIn(sent, stagecraft("memory", FLAGSHIP, "--set", "training.micro_batch_size=6").stdout)

    def test_what_ifs_come_true(self):
        scenario = "scenarios/llama3-8b-64xA100.yaml"
        what_ifs = self.results(stagecraft("memory", scenario, "--json"))[0]["what_ifs"]
        self.assertIn("parallelism.zero_stage=2", [what_if["set"][0] for what_if in what_ifs])
        for what_if in what_ifs:
            changes = [word for change in what_if["set"] for word in ("--set", change)]
            ran = self.results(stagecraft("run", scenario, "--json", *changes))[0]
            self.assertEqual((what_if["peak_bytes"], what_if["iteration_time_s"]),
                             (ran["memory"]["peak_bytes"], ran["iteration_time_s"]), what_if["set"])

    def what_ifs_of(self, text, *words):
        """Each change with its verdict and time."""
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            answer = self.results(stagecraft("memory", file.name, "--json", *words))[0]
        return {" ".join(one["set"]): (one["verdict"], one["iteration_time_s"]) for one in answer["what_ifs"]}, answer

    def test_what_ifs_see_the_memory_of_hosts(self):
        what_ifs, answer = self.what_ifs_of(self.LLAMA_8B, "--set", "offload={optimizer: 1}", "--set", "cluster.node.host_memory=512 GiB")
        self.assertEqual("out-of-memory", answer["memory"]["host"]["verdict"])
        self.assertEqual("fits", what_ifs["parallelism.zero_stage=1"][0])
        first = next(iter(what_ifs.values()))
        self.assertLessEqual(first[1], what_ifs["parallelism.zero_stage=1"][1])
        what_ifs, _ = self.what_ifs_of(self.LLAMA_8B, "--set", "offload={optimizer: 1}", "--set", "parallelism.zero_stage=3",
                                       "--set", "cluster.node.host_memory=64 GiB")
        self.assertEqual("fits", what_ifs["offload.optimizer=0"][0])

    def test_what_ifs_shard_over_more_replicas_and_recompute_more(self):
        scenario = "scenarios/llama3-8b-fsdp-64xH100.yaml"
        answer = self.results(stagecraft("memory", scenario, "--json", "--set", "model=llama-3-70b", "--set", "training.recompute=full"))[0]
        self.assertEqual("out-of-memory", answer["memory"]["verdict"])
        self.assertIn((["parallelism.zero_group=64"], "fits"), [(one["set"], one["verdict"]) for one in answer["what_ifs"]])
        what_ifs, answer = self.what_ifs_of(self.LLAMA_8B, "--set", "training.recompute={granularity: full, method: block, layers: 2}",
                                            "--set", "training.sequence_length=32768", "--set", "training.micro_batch_size=2")
        self.assertEqual("out-of-memory", answer["memory"]["verdict"])
        self.assertIn("training.recompute=full", what_ifs)

    def test_what_ifs_offload_to_the_hosts(self):
        what_ifs, answer = self.what_ifs_of(self.LLAMA_8B.replace("llama-3-8b", "llama-3-70b"), "--set", "parallelism.zero_stage=3")
        self.assertEqual("out-of-memory", answer["memory"]["verdict"])
        verdict, time = what_ifs["offload.optimizer=1"]
        self.assertEqual("fits", verdict)
        self.assertGreater(time, answer["iteration_time_s"])
        self.assertEqual("out-of-memory", what_ifs["offload.activations=1"][0])
        what_ifs, _ = self.what_ifs_of(self.LLAMA_8B, "--set", "offload={optimizer: 1}")
        self.assertNotIn("offload.optimizer=1", what_ifs)

    def test_what_ifs_spread_experts(self):
        answer = self.results(stagecraft("memory", "scenarios/mixtral-8x7b-64xH100.yaml", "--json", "--set", "parallelism.expert=1"))[0]
        self.assertEqual("out-of-memory", answer["memory"]["verdict"])
        verdicts = {" ".join(one["set"]): one["verdict"] for one in answer["what_ifs"]}
        self.assertEqual(("fits", "fits"), (verdicts["parallelism.expert=4"], verdicts["parallelism.expert=8"]))

    def test_what_ifs_of_an_iteration_that_a_dead_node_stops_have_times(self):
        ran = stagecraft("memory", "scenarios/llama3-8b-64xA100.yaml", "--json", "--set", "faults=[{kind: dead-node, node: 0}]")
        self.assertIn("does not finish", ran.stderr)
        answer = self.results(ran)[0]
        healthy = self.results(stagecraft("memory", "scenarios/llama3-8b-64xA100.yaml", "--json"))[0]
        self.assertEqual(healthy["iteration_time_s"], answer["iteration_time_s"])
        self.assertEqual(healthy["what_ifs"], answer["what_ifs"])
        self.assertEqual(healthy["warnings"] + ["faults: the iteration does not finish; these times are without them"],
                         answer["warnings"])

    def test_advice_on_optimizer_states_is_one_that_can_be_taken(self):
        for gpus, shards in ((8, True), (1, False)):
            ran = stagecraft("memory", "scenarios/llama3-8b-64xA100.yaml", "--require-fit", "--set", "parallelism={}",
                             "--set", f"cluster={{node: dgx-a100-80gb, gpus: {gpus}}}", "--set", "training.recompute=full",
                             "--set", "training.global_batch_size=8")
            self.assertEqual(NO, ran.returncode, ran.stderr)
            self.assertEqual(shards, "parallelism.zero_stage=" in ran.stderr, ran.stderr)

    def test_memory_itemises_and_tries_what_would_make_it_fit(self):
        ran = stagecraft("memory", FLAGSHIP, "--set", "training.micro_batch_size=6", "--json")
        answer = self.results(ran)[0]
        for stage in answer["memory"]["stages"]:
            for kind in ("weights", "gradients", "optimizer", "activations", "buffers", "overhead"):
                items = [item["bytes"] for item in stage["items"] if item["class"] == kind]
                self.assertEqual(stage[f"{kind}_bytes"], sum(items))
            self.assertLessEqual(stage["allocated_bytes"], stage["reserved_bytes"])
            self.assertLessEqual(stage["reserved_bytes"], stage["peak_bytes"])
        what_ifs = answer["what_ifs"]
        self.assertIn(["training.micro_batch_size=2"], [what_if["set"] for what_if in what_ifs])
        for what_if in what_ifs:
            self.assertLess(what_if["peak_bytes"], answer["memory"]["peak_bytes"])
        fitting = [w["iteration_time_s"] for w in what_ifs if w["verdict"] != "out-of-memory"]
        self.assertEqual(sorted(fitting), fitting)
        self.assertEqual(fitting, [w["iteration_time_s"] for w in what_ifs[:len(fitting)]])
        # What is offered can be asked for.
        changes = [word for change in what_ifs[0]["set"] for word in ("--set", change)]
        again = stagecraft("memory", FLAGSHIP, "--set", "training.micro_batch_size=6", *changes, "--json")
        self.assertEqual(what_ifs[0]["peak_bytes"], self.results(again)[0]["memory"]["peak_bytes"])

    def test_memory_tries_weights_in_fp8_where_products_are(self):
        for precision, parameters, offered in (("fp8", "false", True), ("fp8", "true", False), ("bf16", "false", False)):
            ran = stagecraft("memory", "scenarios/llama3-8b-64xA100.yaml", "--set", "cluster={node: dgx-h100, nodes: 8}",
                             "--set", "profile=h100-sxm5-80gb", "--set", f"training.precision={precision}",
                             "--set", f"options.fp8_parameters={parameters}", "--json")
            offers = [what_if["set"] for what_if in self.results(ran)[0]["what_ifs"]]
            self.assertEqual(offered, ["options.fp8_parameters=true"] in offers, (precision, parameters))

    def test_memory_tries_narrow_moments_where_they_are_wide(self):
        for moments, offered in (("fp32", True), ("bf16", False)):
            ran = stagecraft("memory", "scenarios/llama3-8b-64xA100.yaml", "--set", f"training.moment_dtype={moments}", "--json")
            offers = [what_if["set"] for what_if in self.results(ran)[0]["what_ifs"]]
            self.assertEqual(offered, ["training.moment_dtype=bf16"] in offers, moments)

    def test_memory_has_a_second_opinion_for_models_that_it_describes(self):
        ran = stagecraft("memory", "scenarios/llama3-8b-64xA100.yaml", "--model", "fujii", "--json")
        estimate = self.results(ran)[0]["fujii"]
        self.assertEqual(estimate["total_bytes"], estimate["state_bytes"] + estimate["activations_bytes"])
        self.assertEqual([], self.results(ran)[0]["not_read"])
        more = stagecraft("memory", "scenarios/llama3-8b-64xA100.yaml", "--model", "fujii", "--set", "training.recompute=full",
                          "--set", "parallelism.zero_stage=3")
        self.assertIn("not read by these formulas: training.recompute, parallelism.zero_stage beyond 1", more.stdout)
        unlike = stagecraft("memory", "scenarios/llama3-8b-64xA100.yaml", "--model", "fujii", "--set", "profile=h100-sxm5-80gb")
        self.assertIn("warning: profile: is of NVIDIA H100 80GB HBM3, and the nodes have A100-SXM4-80GB", unlike.stderr)
        refused = stagecraft("memory", FLAGSHIP, "--model", "fujii")
        self.assert_refused(refused)
        self.assertIn("dense models with SwiGLU", refused.stderr)


if __name__ == "__main__":
    main()
