#!/usr/bin/env python3
"""What `stagecraft run` says of an iteration: figures, warnings, assertions met and missed, and that it never ends.

usage: run_test.py STAGECRAFT SOURCE_DIR [Run[.TEST]]
"""
import json

from harness import DONE, FLAGSHIP, NO, PIPELINE, SOURCE, STAGES, WRONG_INPUT, Case, main, stagecraft


class Run(Case):
    def test_a_delay_above_the_iteration_is_said_to_be_a_sum(self):
        shared = "scenarios/llama3-70b-128xH100-shared-links.yaml"
        note = "                 (delay: summed over the transfers that the link held up)\n"
        table = stagecraft("run", shared, "--set", "cluster.fabric.oversubscription=4").stdout
        self.assertEqual(1, table.count(note))
        self.assertLess(table.index(" delay\n"), table.index(note))
        self.assertNotIn(note, stagecraft("run", shared, "--set", "network=closed-form").stdout)

    def test_a_missed_assertion_is_exit_1_and_says_both_figures(self):
        text = STAGES + 'assert: {iteration_time: "< 1 ms", bubble_fraction: "<= 0.9"}\n'
        ran = stagecraft("run", self.write("a.yaml", text), cwd=self.folder)
        self.assertEqual(NO, ran.returncode)
        self.assertEqual("a.yaml:6:26: error: assert.iteration_time: 33.0 ms is not < 1 ms\n", ran.stderr)

    def test_json_says_why_the_answer_is_no(self):
        missed = self.write("a.yaml", STAGES + 'assert: {iteration_time: "< 1 ms"}\n')
        reasons = self.results(stagecraft("run", missed, "--json", cwd=self.folder))[0]["reasons"]
        self.assertEqual([{"code": "assertion-missed", "path": "assert.iteration_time",
                           "message": "33.0 ms is not < 1 ms", "hint": ""}], reasons)
        too_much = ["run", FLAGSHIP, "--set", "training.micro_batch_size=16", "--set", "schedule=gpipe", "--set",
                    "parallelism.virtual_stages=1", "--set", "training.attention=unfused", "--json"]
        self.assertNotIn("reasons", self.results(stagecraft(*too_much))[0])
        required = self.results(stagecraft(*too_much, "--require-fit"))[0]
        self.assertEqual(["out-of-memory"], [reason["code"] for reason in required["reasons"]])
        self.assertEqual("out-of-memory", required["memory"]["verdict"])

    def test_a_profile_of_another_device_than_the_nodes_is_said(self):
        message = "profile: is of NVIDIA H100 80GB HBM3, and the nodes have A100-SXM4-80GB"
        for profile, warnings in (("h100-sxm5-80gb", [message]), ("a100-sxm4-80gb", [])):
            command = ["check", FLAGSHIP, "--set", f"profile={profile}"]
            self.assertEqual(warnings, self.results(stagecraft(*command, "--json"))[0]["warnings"])
            self.assertEqual([f"--set profile={profile}: warning: {text}\n  hint: a100-sxm4-80gb is of this device\n"
                              for text in warnings], [said for said in [stagecraft(*command).stderr] if said])
            ran = self.results(stagecraft("run", *command[1:], "--json"))[0]
            self.assertEqual(bool(warnings), message in ran["warnings"])
        message = "cluster.node.device: is V100, and profile a100-sxm4-80gb is of NVIDIA A100-SXM4-80GB"
        self.assertIn(message, self.results(stagecraft("run", FLAGSHIP, "--set", "cluster.node.device=V100", "--json"))[0]["warnings"])

    def test_an_assertion_that_holds_is_silent(self):
        ran = stagecraft("run", PIPELINE, "--set", 'assert={iteration_time: "== 33 ms", bubble_over_ideal: "< 0.376"}')
        self.assertEqual((DONE, ""), (ran.returncode, ran.stderr))

    def test_a_value_may_begin_with_a_relation(self):
        for relation, code in ((">= 0.01", DONE), (">= 0.99", NO), ("< 0.99", DONE), (" >= 0.99", NO), ('"  >= 0.99"', NO)):
            self.assertEqual(code, stagecraft("run", FLAGSHIP, "--set", f"assert.mfu={relation}").returncode)

    def test_a_sample_of_a_billion_tokens_takes_longer_than_one_of_a_third(self):
        model = "model={family: llama, layers: 4, hidden: 1024, heads: 16, ffn_hidden: 4096, vocab: 32000}"
        time = [self.results(stagecraft("run", "scenarios/llama3-8b-64xA100.yaml", "--set", model, "--set",
                                        f"training.sequence_length={length}", "--json"))[0]["iteration_time_s"]
                for length in (300_000_000, 1_000_000_000)]
        self.assertGreater(time[1], 9 * time[0])

    def test_a_dead_node_is_an_answer_of_every_command(self):
        word = "faults=[{kind: dead-node, node: 0}]"
        self.write("job.yaml", self.LLAMA_8B)
        said = "error: faults: the iteration does not finish: a node died in it"
        self.assertEqual(NO, stagecraft("run", "job.yaml", "--set", word, cwd=self.folder).returncode)
        for paths in (["iteration_time_s"], ["interval_90_s.0"], ["critical_path"], ["tokens_per_s", "mfu"], ["memory"], []):
            ran = stagecraft("explain", "job.yaml", *paths, "--set", word, cwd=self.folder)
            self.assert_refused(ran, code=NO)
            self.assertIn(said, ran.stderr)
            self.assertIn("1 error, nothing was explained\n", ran.stderr)
        self.assert_refused(stagecraft("explain", "job.yaml", "iteration_tim", "--set", word, cwd=self.folder))
        vary = "faults=[],[{kind: dead-node, node: 0}]"
        self.assertEqual(NO, stagecraft("compare", "job.yaml", "--vary", vary, cwd=self.folder).returncode)
        wrong = stagecraft("compare", "job.yaml", "--vary", vary + ",[{kind: dead-nod, node: 0}]", cwd=self.folder)
        self.assertEqual(WRONG_INPUT, wrong.returncode)

    # Until it stops, little time goes with the work of the whole iteration.
    def test_of_an_iteration_that_stops_no_rate_is_explained(self):
        self.write("job.yaml", self.LLAMA_8B)
        stopped = stagecraft("run", "job.yaml", "--set", "faults=[{kind: dead-node, node: 0, at: 1 ms}]", "--json", cwd=self.folder)
        self.assertFalse(json.loads(stopped.stdout)["faults"]["finishes"])
        self.assertNotIn("above 100 %", stopped.stdout)

    def test_strict_refuses_shapes_without_data(self):
        self.assertEqual(DONE, stagecraft("run", FLAGSHIP, "--strict").returncode)
        odd = ["run", FLAGSHIP, "--set", "training.precision=fp32"]  # the A100 has no rows of TF32
        self.assertEqual(DONE, stagecraft(*odd).returncode)
        ran = stagecraft(*odd, "--strict", "--json")
        self.assertEqual(NO, ran.returncode)
        self.assertEqual(["no-data"], [reason["code"] for reason in json.loads(ran.stdout)["reasons"]])
        self.assertIn("error: profile: no rows near 17 of 17 shapes", ran.stderr)

    def test_unfolding_changes_no_figure(self):
        smaller = ("--set", "cluster.nodes=16", "--set", "parallelism.data=2", "--set", "training.global_batch_size=64")
        folded = json.loads(stagecraft("run", FLAGSHIP, "--json", *smaller).stdout)
        unfolded = json.loads(stagecraft("run", FLAGSHIP, "--json", *smaller, "--unfold").stdout)
        self.assertLess(folded["simulated_ranks"], unfolded["simulated_ranks"])
        for key in ("iteration_time_s", "breakdown_s", "memory", "mfu", "interval_90_s"):
            self.assertEqual(folded[key], unfolded[key], key)

    def test_the_same_words_give_the_same_bytes(self):
        words = ("run", FLAGSHIP, "--json", "--seed", "7", "--jobs", "2")
        self.assertEqual(stagecraft(*words).stdout, stagecraft(*words).stdout)

    def test_reports_fit_80_columns(self):
        for file in sorted((SOURCE / "scenarios").glob("*.yaml")):
            name = str(file.relative_to(SOURCE))
            for line in stagecraft("run", name, "--verbose").stdout.splitlines():
                self.assertLessEqual(len(line), 80, f"{name}: {line}")


if __name__ == "__main__":
    main()
