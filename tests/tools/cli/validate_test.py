#!/usr/bin/env python3
"""Published runs that `stagecraft validate` scores, and mistakes in their files.

usage: validate_test.py STAGECRAFT SOURCE_DIR [Validate[.TEST]]
"""
import json
import re

from harness import DONE, FLAGSHIP, NO, SOURCE, WRONG_INPUT, Case, main, stagecraft


class Validate(Case):
    def test_validate_scores_each_set_and_holds_a_limit(self):
        file = "calibrate/validation/megatron_sc21.yaml"
        ran = stagecraft("validate", file, "--json")
        scored = json.loads(ran.stdout)
        errors = [abs(row["predicted_s"] / row["measured_s"] - 1) for row in scored["rows"]]
        self.assertAlmostEqual(sum(errors) / len(errors), scored["mape"], places=12)
        self.assertAlmostEqual(max(errors), scored["worst"], places=12)
        self.assertEqual(DONE, stagecraft("validate", file, "--max-error", "1").returncode)
        ran = stagecraft("validate", file, "--max-error", "0.001")
        self.assertEqual(NO, ran.returncode)
        self.assertIn(f"megatron_sc21: mean error {100 * scored['mape']:.3g} % is above 0.1 %\n", ran.stderr)

    def test_validate_tells_sets_that_constants_were_fitted_on_from_others(self):
        sets = ["calibrate/validation/zero_bubble.yaml", "calibrate/validation/megatron_release_a100.yaml"]
        fitted, held_out, pooled = (json.loads(line) for line in stagecraft("validate", *sets, "--json").stdout.splitlines())
        self.assertEqual((False, True), (fitted["held_out"], held_out["held_out"]))
        for score, pool in ((fitted, pooled["fitted"]), (held_out, pooled["held_out"])):
            self.assertEqual((1, score["rows_scored"]), (pool["sets"], pool["rows"]))
            self.assertAlmostEqual(score["mape"], pool["mape"], places=12)
        said = stagecraft("validate", *sets).stdout
        self.assertEqual(1, " ".join(said.split()).count(", some on these rows"))
        self.assertEqual(1, " ".join(said.split()).count(", none on these rows (held out)"))
        self.assertEqual([], [line for line in said.splitlines() if len(line) > 80])
        self.assertIn(f"\nheld out: 1 set, {held_out['rows_scored']} rows: MAPE {100 * held_out['mape']:.1f} %, bias ", said)
        alone = [json.loads(line) for line in stagecraft("validate", sets[1], sets[1], "--json").stdout.splitlines()][-1]
        self.assertIsNone(alone["fitted"])

    def test_several_sets_end_with_their_errors_by_kind_of_job(self):
        names = ("zero_bubble", "own_pytorch_h100", "megatron_sc21_rest", "llm_c_h100", "megatron_release_a100")
        sets = [f"calibrate/validation/{name}.yaml" for name in names]
        *scores, pooled = self.results(stagecraft("validate", *sets, "--json"))
        kinds = pooled["kinds"]
        self.assertEqual([3, 1, 1], [kind["sets"] for kind in kinds])  # those of the others were not given
        for name in ("sets", "rows"):
            self.assertEqual(sum(pooled[fit][name] for fit in ("fitted", "held_out")), sum(kind[name] for kind in kinds))
        rows = [row for score in scores if score["set"] in ("megatron_sc21_rest", "megatron_release_a100") for row in score["rows"]]
        held_out = kinds[0]["held_out"]
        self.assertEqual((2, len(rows)), (held_out["sets"], held_out["rows"]))
        self.assertAlmostEqual(sum(abs(row["error"]) for row in rows) / len(rows), held_out["mape"], places=12)
        self.assertAlmostEqual(sum(row["error"] for row in rows) / len(rows), held_out["bias"], places=12)
        self.assertAlmostEqual(sum(row["covered"] for row in rows) / len(rows), held_out["coverage_90"], places=12)
        self.assertAlmostEqual(scores[0]["mape"], kinds[0]["fitted"]["mape"], places=12)
        self.assertIsNone(kinds[1]["fitted"])
        for form in ([], ["--quiet"]):
            said = stagecraft("validate", *sets, *form).stdout
            self.assertEqual([], [line for line in said.splitlines() if len(line) > 80])
            figures = re.search(rf"\n  {re.escape(kinds[0]['title'])}\n +3 +{kinds[0]['rows']} +([\d.]+) % ", said)
            self.assertEqual(f"{100 * held_out['mape']:.1f}", figures[1])
        self.assertNotIn("kind of job", stagecraft("validate", sets[0], sets[0].replace("zero_bubble", "nosuch")).stdout)

    def test_quiet_has_a_line_for_each_of_several_sets(self):
        names = ("megatron_sc21", "mlperf_v50_llama31_405b_gb200", "own_pytorch_h100")
        sets = [f"calibrate/validation/{name}.yaml" for name in names]
        said = stagecraft("validate", *sets, "--quiet").stdout
        for score in self.results(stagecraft("validate", *sets, "--json"))[:-1]:
            line = re.search(rf"\n  {score['set']}\s+(\d+) +([\d.]+) % +([-+][\d.]+) % +([\d.]+) % +[-+]([\d.]+) %  (.*)\n", said)
            self.assertEqual((str(score["rows_scored"]), *(f"{100 * score[name]:{sign}.1f}" for name, sign in
                                                           (("mape", ""), ("bias", "+"), ("median", ""), ("worst", ""))),
                              "held out" if score["held_out"] else "fitted"), line.groups())
        self.assertNotIn("null model", said)
        # Of one set, and where more is asked for than a line holds, all is said.
        for words in ([sets[0]], [*sets[::2], "--attribute"]):
            said = stagecraft("validate", *words, "--quiet").stdout
            self.assertTrue(said.startswith("megatron_sc21   Efficient"))
            self.assertEqual(len([word for word in words if word != "--attribute"]), said.count("null model"))

    def test_a_profile_of_ones_own_has_the_fitted_constants_of_its_base(self):
        profile = (SOURCE / "calibrate/profiles/a100-sxm4-80gb.yaml").read_text(encoding="utf-8")
        self.write("own.yaml", profile.replace("name: a100-sxm4-80gb", "name: own", 1))
        published = (SOURCE / "calibrate/validation/megatron_sc21.yaml").read_text(encoding="utf-8")
        for name, held_out in (("megatron_sc21", False), ("mine", True)):
            rows = published.replace("a100-sxm4-80gb", str(self.folder / "own.yaml"))
            self.write("rows.yaml", rows.replace("set: megatron_sc21\n", f"set: {name}\n"))
            score = self.results(stagecraft("validate", self.folder / "rows.yaml", "--json"))[0]
            self.assertEqual(["own", held_out], [score["profile"], score["held_out"]])
            said = " ".join(stagecraft("validate", self.folder / "rows.yaml").stdout.split())
            self.assertIn("profile own: constants of its base were fitted on whole iterations, "
                          + ("none on these rows (held out)" if held_out else "some on these rows"), said)

    # Names of rows are longer than what their figures leave: what they begin with is said once, the longest have their own line.
    def test_rows_of_validate_keep_to_a_terminal(self):
        for name, begin in (("dgxc_gb200", "dgxc_v25.05_gb200_"), ("megatron_bridge_gb200", "bridge_"), ("megatron_sc21", "")):
            file = f"calibrate/validation/{name}.yaml"
            said = stagecraft("validate", file).stdout
            of_memory = stagecraft("validate", file, "--memory").stdout
            self.assertEqual([], [line for line in (said + of_memory).splitlines() if len(line) > 80 and "http" not in line])
            self.assertRegex(said, rf"\n  {begin + '…' if begin else 'row'} +predicted  measured ")
            for row in self.results(stagecraft("validate", file, "--json"))[0]["rows"]:
                figures = re.search(rf"\n  {re.escape(row['id'].removeprefix(begin))}\s+([\d.]+)\s+([\d.]+)\s+([-+][\d.]+) %", said)
                predicted, measured, error = map(float, figures.groups())
                self.assertAlmostEqual(row["predicted_s"], predicted, delta=6e-4 * max(1, row["predicted_s"]))
                self.assertAlmostEqual(row["measured_s"], measured, delta=6e-4 * max(1, row["measured_s"]))
                self.assertAlmostEqual(100 * row["error"], error, delta=0.051)

    def test_scores_name_the_program_and_each_profile_once(self):
        sets = ["calibrate/validation/megatron_sc21.yaml", "calibrate/validation/megatron_sc21_rest.yaml"]
        run = self.results(stagecraft("run", FLAGSHIP, "--json"))[0]  # on the same profile
        for words in ([], ["--memory"]):
            for score in self.results(stagecraft("validate", *sets, *words, "--json")):
                self.assertEqual([run["stagecraft_version"], run["profile_hash"]],
                                 [score["stagecraft_version"], score["profile_hash"]], score["schema"])
                self.assertNotIn("scenario_hash", score)

    RUNS = """\
format: stagecraft.published/1
set: mine
source: {{title: our own}}
scenario:
  cluster: {{node: dgx-h100}}
  parallelism: {{data: 8}}
  training: {{global_batch_size: 8, micro_batch_size: 1, sequence_length: 512}}
rows: {rows}
"""

    def test_a_set_that_cannot_be_scored_passes_no_limit(self):
        rows = self.write("rows.yaml", self.RUNS.format(rows="[]"))
        for more, code in (((), DONE), (("--memory",), DONE), (("--max-error", "0.5"), NO)):
            ran = stagecraft("validate", rows, *more, cwd=self.folder)
            self.assertEqual((code, "mine: nothing could be scored\n"), (ran.returncode, ran.stderr))

    def test_a_study_of_sets_without_fitted_constants_says_so(self):
        rows = self.write("rows.yaml", self.RUNS.format(rows="[]"))
        for more in ((), ("--json",), ("--markdown",)):
            ran = stagecraft("validate", rows, "--leave-out", *more, cwd=self.folder)
            self.assertEqual(DONE, ran.returncode)
            self.assertIn("nothing to leave out: no constant was fitted on these sets", ran.stderr)

    def mistakes_of(self, text, *more):
        ran = stagecraft("validate", self.write("rows.yaml", text), *more, cwd=self.folder)
        self.assert_refused(ran)
        return [line.removeprefix("rows.yaml:") for line in ran.stderr.splitlines() if re.match(r"rows.yaml:.* error: ", line)]

    def test_what_was_not_measured_is_no_measurement(self):
        rows = """
  - [one, 1.5, null, 60, true]
  - [two, 0, null, -1, True]
  - [three, null, "9,000", .inf, yes]
  - {id: four, iteration_time_ms: 500 ms, memory_gib: .nan, peers: {other_s: fast}}
columns: [id, iteration_time_s, tokens_per_s_per_gpu, memory_gib, oom]
"""
        for more in ((), ("--memory",)):
            self.assertEqual(["10:11: error: iteration_time_s: 0 is no measurement",
                              "10:20: error: memory_gib: -1 is no measurement",
                              "11:19: error: tokens_per_s_per_gpu: 9,000 is no measurement",
                              "11:28: error: memory_gib: .inf is no measurement",
                              "11:34: error: oom: 'yes' is neither true nor false",
                              "12:35: error: iteration_time_ms: 500 ms is no measurement",
                              "12:55: error: memory_gib: .nan is no measurement",
                              "12:78: error: other_s: fast is no measurement"],
                             self.mistakes_of(self.RUNS.format(rows=rows), *more))
        ran = stagecraft("validate", "rows.yaml", "--json", cwd=self.folder)
        self.assertEqual((WRONG_INPUT, 8), (ran.returncode, len(self.results(ran)[0]["errors"])))

    # They were left out, and the whole model was scored.
    def test_layers_of_a_row_are_of_a_model_of_the_file(self):
        rows = """
  - {id: a, model: llama-3-8b, gpus: 8, layers: 2}
  - {id: b, gpus: 8, layers: 2}
  - {id: c, model: cut, gpus: 8, layers: 2, iteration_time_s: 1}
models: {cut: {family: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 32000}}
"""
        self.assertEqual(["9:49: error: layers: belongs to a model of `models`, and the row's is none",
                          "10:30: error: layers: belongs to a model of `models`, and the row's is none"],
                         self.mistakes_of(self.RUNS.format(rows=rows)))

    def test_a_row_does_not_have_the_keys_that_are_null(self):
        rows = """
  - [a, llama-3-8b, 8, null, 1.5, null, null]
  - {id: b, model: llama-3-8b, gpus: 8, tensor: null, iteration_time_s: 1.5, memory_gib: null}
columns: [id, model, gpus, tensor, iteration_time_s, recompute, memory_gib]
"""
        [score] = self.results(stagecraft("validate", self.write("rows.yaml", self.RUNS.format(rows=rows)), "--json", cwd=self.folder))
        self.assertEqual(([], ["a", "b"]), (score["skipped"], [row["id"] for row in score["rows"]]))

    # Of two times the first of iteration_time_s, iteration_time_ms and tokens_per_s_per_gpu is compared.
    def test_a_row_has_one_time(self):
        rows = self.write("rows.yaml", self.RUNS.format(
            rows="[{id: a, model: llama-3-8b, gpus: 8, tokens_per_s_per_gpu: 9000, iteration_time_s: 2}]"))
        ran = stagecraft("validate", rows, "--json", cwd=self.folder)
        [score] = self.results(ran)
        self.assertEqual([2.0], [row["measured_s"] for row in score["rows"]])
        ran = stagecraft("validate", rows, cwd=self.folder)
        self.assertIn("warning: tokens_per_s_per_gpu: stands beside iteration_time_s, which is the time compared", ran.stderr)

    # 20 GPUs are two and a half nodes, and were scored as two.
    def test_rows_are_of_whole_nodes_or_of_a_part_of_one(self):
        self.assertEqual(["8:25: error: gpus: 'many' is no number of GPUs"],
                         self.mistakes_of(self.RUNS.format(rows="[{id: many, gpus: many}]")))
        rows = self.write("rows.yaml", self.RUNS.format(
            rows="[{id: a, model: llama-3-8b, gpus: 20, data: 20, global_batch_size: 20, iteration_time_s: 1}]"))
        [score] = self.results(stagecraft("validate", rows, "--json", cwd=self.folder))
        self.assertEqual([("a", "20 GPUs are no multiple of the 8 of a node (`gpus_per_node`)")],
                         [(row["id"], row["reason"]) for row in score["skipped"]])
        # Said to be nodes of 4, on a node of 8: two of them have 16.
        rows = self.write("rows.yaml", "gpus_per_node: 4\n" + self.RUNS.format(
            rows="[{id: a, model: llama-3-8b, gpus: 8, data: 16, global_batch_size: 16, iteration_time_s: 1}]"))
        [score] = self.results(stagecraft("validate", rows, "--json", cwd=self.folder))
        self.assertEqual([("a", "8 GPUs were measured, its scenario has 16: does `gpus_per_node` fit its node?")],
                         [(row["id"], row["reason"]) for row in score["skipped"]])

    def test_paths_in_validation_files_begin_at_the_file(self):
        (self.folder / "sets").mkdir()
        self.write("sets/tiny.yaml", "{family: gpt, layers: 2, hidden: 1024, heads: 16, vocab: 32000, max_sequence_length: 512}\n")
        rows = self.write("sets/rows.yaml", self.RUNS.format(rows="[{id: a, model: ./tiny.yaml, gpus: 8, iteration_time_s: 1}]"))
        [score] = self.results(stagecraft("validate", rows, "--json", cwd=self.folder))
        self.assertEqual(([], ["a"]), (score["skipped"], [row["id"] for row in score["rows"]]))

    def test_keys_of_validation_files_are_checked(self):
        runs = self.RUNS.format(rows="\n  - [a, 8]\n  - [a, 8, 16]\n  - {gpus: 8}\n  - none\ncolumns: [id, gpus, gpus]\ncolums: x")
        self.assertEqual(["9:5: error: rows: a row of 2 values under 3 columns",
                          "12:5: error: expected a mapping, found 'none'",
                          "13:10: error: columns: 'gpus' is the name of two columns"],
                         self.mistakes_of(runs))
        self.assertEqual(["3:9: error: models: expected a mapping, found '6'",
                          "4:16: error: peers: expected a mapping, found '3'",
                          "5:11: error: scenario: expected a mapping, found '7'"],
                         self.mistakes_of("format: stagecraft.published/1\nset: x\nmodels: 6\n"
                                          "rows: [{peers: 3}]\nscenario: 7\nsource: {title: x}\n"))
        self.assertEqual(["1:1: error: set: is required, but not given"],
                         self.mistakes_of("format: stagecraft.published/1\nsource: {title: x}\n"))

    # What else a file holds is for its readers.
    def test_what_looks_like_a_slip_in_a_validation_file_is_mentioned(self):
        rows = self.write("rows.yaml", "system_figures: [1]\ncolums: [id]\n" + self.RUNS.format(rows="""
  - {id: a, model: llama-3-8b, gpus: 8, iteration_time_s: 1}
  - {id: a, model: llama-3-8b, gpus: 8, iteration_time_s: 1}
"""))
        ran = stagecraft("validate", rows, cwd=self.folder)
        self.assertEqual(0, ran.returncode, ran.stderr)
        self.assertIn("warning: colums: is not read", ran.stderr)
        self.assertIn("'a' is the id of a row before", ran.stderr)
        self.assertNotIn("system_figures", ran.stderr)
        ran = stagecraft("validate", self.write("rows.yaml", "format: stagecraft.published/1\nset: x\n"), cwd=self.folder)
        self.assertIn("rows: is no list of rows: nothing is scored", ran.stderr)
        ran = stagecraft("validate", self.write("rows.yaml", "format: stagecraft.published/1\nset: x\nrows: []\n"), cwd=self.folder)
        self.assertIn("warning: source: is not given", ran.stderr)

    def test_validate_goes_on_after_a_file_that_is_wrong(self):
        ran = stagecraft("validate", "nosuch.yaml", "calibrate/validation/megatron_sc21.yaml", "--json")
        self.assertEqual(["stagecraft.error/1", "stagecraft.validation/1"], [r["schema"] for r in self.results(ran)])
        self.assertEqual((WRONG_INPUT, ""), (ran.returncode, ran.stderr))


if __name__ == "__main__":
    main()
