#!/usr/bin/env python3
"""What `stagecraft compare` says of variants side by side, and what `--vary` takes.

usage: compare_test.py STAGECRAFT SOURCE_DIR [Compare[.TEST]]
"""
import csv
import re
import tempfile
from pathlib import Path

from harness import DONE, FAILING, FLAGSHIP, NO, PIPELINE, SOURCE, WRONG_INPUT, Case, main, stagecraft


class Compare(Case):
    def test_variants_are_results_with_what_varies_in_them(self):
        vary = "schedule=gpipe,2f2b,1f1b"
        ran = stagecraft("compare", PIPELINE, "--set", "parallelism.data=null", "--vary", vary, "--json", "--jobs", "2")
        gpipe, unknown, one_f = self.results(ran)
        self.assertEqual([{"schedule": "gpipe"}, {"schedule": "2f2b"}, {"schedule": "1f1b"}],
                         [result["vary"] for result in (gpipe, unknown, one_f)])
        self.assertEqual([1.0, None, 1.0], [result["relative_time"] for result in (gpipe, unknown, one_f)])
        self.assertEqual((PIPELINE, "stagecraft.error/1"), (unknown["scenario"], unknown["schema"]))
        self.assertEqual("--vary schedule=2f2b", unknown["errors"][0]["file"])
        self.assertEqual((0.033, 0.033), (gpipe["iteration_time_s"], one_f["iteration_time_s"]))
        self.assertEqual([(0.0, []), (None, None), (0.0, [])],
                         [(result["difference_s"], result["moved"]) for result in (gpipe, unknown, one_f)])
        self.assertEqual((WRONG_INPUT, ""), (ran.returncode, ran.stderr))

    # As a sweep and a search write it.
    def test_what_varies_is_a_value_in_json(self):
        vary = ["--vary", "training.global_batch_size=8", "--vary", "overlap.gradients=false", "--vary", "assert.iteration_time=<= 1 h"]
        value = {"training.global_batch_size": 8, "overlap.gradients": False, "assert.iteration_time": "<= 1 h"}
        self.write("job.yaml", FAILING)
        for command, file in (("compare", SOURCE / PIPELINE), ("goodput", "job.yaml")):
            self.assertEqual(value, self.results(stagecraft(command, file, *vary, "--json", cwd=self.folder))[0]["vary"])

    def test_a_variant_that_misses_an_assertion_is_told_by_name(self):
        limit = 'assert={peak_memory: "<= 600 MiB"}'  # gpipe holds 640 MiB, 1f1b 576; both take 33 ms, 2f2b is no order
        compare = ["compare", PIPELINE, "--vary", "schedule=gpipe,1f1b,2f2b", "--set", limit]
        table = stagecraft(*compare)
        self.assertEqual(["assert", "missed", "met", "–"],
                         [line.split()[-1] for line in table.stdout.splitlines()[:4]])
        self.assertIn("\nfastest that meets its assert: 1f1b\n", table.stdout)
        said = "assert.peak_memory: gpipe: 640 MiB is not <= 600 MiB"
        self.assertEqual((WRONG_INPUT, f"--set {limit}: error: {said}\n"), (table.returncode, table.stderr))
        rows = list(csv.DictReader(stagecraft(*compare, "--format", "csv").stdout.splitlines()))
        self.assertEqual(["gpipe misses assert.peak_memory: 640 MiB is not <= 600 MiB", ""],
                         [row["reason"] for row in rows[:2]])
        gpipe, one_f, _ = self.results(stagecraft(*compare, "--json"))
        self.assertEqual([{"code": "assertion-missed", "path": "assert.peak_memory",
                           "message": "640 MiB is not <= 600 MiB", "hint": ""}], gpipe["reasons"])
        self.assertNotIn("reasons", one_f)

    def test_variants_are_counted_before_they_are_made(self):
        ten = [word for key in ("seed", "batch", "a", "b", "c", "d", "e", "f") for word in
               ("--vary", f"{key}={','.join(map(str, range(10)))}")]
        for command, scenario, most in (("compare", PIPELINE, "10,000"),
                                        ("goodput", "scenarios/goodput/checkpoint-restart.yaml", "1,000")):
            ran = stagecraft(command, scenario, *ten)
            self.assert_refused(ran)
            self.assertIn(f"error: more than {most} variants\n", ran.stderr)

    def test_of_variants_that_all_miss_an_assertion_none_is_fastest(self):
        limit = "assert={iteration_time: '<= 1 ms'}"
        ran = stagecraft("compare", PIPELINE, "--vary", "schedule=gpipe,1f1b", "--set", limit)
        self.assertEqual(NO, ran.returncode)
        self.assertIn("\nnone meets its assert\n", ran.stdout)
        self.assertEqual(["gpipe", "1f1b"], re.findall(r"assert.iteration_time: (\S+): ", ran.stderr))
        varied = stagecraft("compare", PIPELINE, "--vary", "assert.iteration_time='<= 1 ms','<= 1 h'")
        self.assertIn("\nfastest that meets its assert: iteration_time '<= 1 h'\n", varied.stdout)
        self.assertRegex(varied.stderr, r"^--vary assert.iteration_time=")

    def test_what_moved_between_variants_explains_the_difference(self):
        ran = stagecraft("compare", PIPELINE, "--vary", "schedule=gpipe,zb-h1", "--format", "json")
        gpipe, zb_h1 = self.results(ran)
        self.assertEqual(-0.006, zb_h1["difference_s"])
        self.assertEqual([{"part": "bubble", "first_s": 0.009, "here_s": 0.003, "difference_s": -0.006, "share": 1.0}],
                         zb_h1["moved"])

    def test_variants_of_unequal_iterations_are_ranked_by_what_they_train_on(self):
        batches = "training.global_batch_size=4,16"  # 21 ms and 57 ms: 57 / 16 over 21 / 4
        small, large = self.results(stagecraft("compare", PIPELINE, "--vary", batches, "--json"))
        self.assertEqual(1.0, small["relative_time"])
        self.assertAlmostEqual(57 / 16 / (21 / 4), large["relative_time"], places=9)
        self.assertEqual(["sample"] * 2, [result["relative_per"] for result in (small, large)])
        header, *rows = stagecraft("compare", PIPELINE, "--vary", batches, "--format", "csv").stdout.splitlines()
        per = header.split(",").index("relative_per")
        self.assertEqual(["sample"] * 2, [row.split(",")[per] for row in rows])
        alike = self.results(stagecraft("compare", PIPELINE, "--vary", "schedule=gpipe,1f1b", "--json"))
        self.assertEqual(["iteration"] * 2, [result["relative_per"] for result in alike])
        table = stagecraft("compare", PIPELINE, "--vary", batches).stdout
        self.assertIn("relative/sample", table)
        self.assertIn("fastest by samples/s: global_batch_size 16, 1.47x over global_batch_size 4\n", table)
        tokens = stagecraft("compare", FLAGSHIP, "--vary", "training.global_batch_size=768,1536").stdout
        self.assertIn("relative/token", tokens)
        self.assertIn("fastest by tokens/s: global_batch_size 1536, ", tokens)

    def test_small_relative_times_have_three_digits(self):
        table = stagecraft("compare", PIPELINE, "--vary", "model.forward=1 s,1 ms,500 ms", "--set", "model.input_gradient=0 s",
                           "--set", "model.weight_gradient=0 s").stdout.splitlines()
        self.assertEqual(["1.00", "0.00100", "0.50"], [re.split(r"\s{2,}", line)[2] for line in table[1:4]])

    def test_a_first_variant_that_cannot_run_is_said_to_leave_nothing_relative(self):
        said = "times are relative to the first variant, which cannot run"
        self.assertIn(said, stagecraft("compare", PIPELINE, "--vary", "parallelism.pipeline=0,4,8").stdout)
        for values in ("4,0,8", "0"):
            self.assertNotIn(said, stagecraft("compare", PIPELINE, "--vary", f"parallelism.pipeline={values}").stdout)

    def test_a_variant_that_cannot_run_says_all_reasons_with_their_places(self):
        words = ["--vary", "schedule=1f1b,2f2b", "--vary", "training.global_batch_size=8,x"]
        said = " ".join(stagecraft("compare", PIPELINE, *words).stdout.split())
        wrong = said[said.index("2f2b x cannot run: "):]
        for reason in ("--vary training.global_batch_size=x: training.global_batch_size: 'x'",
                       "--vary schedule=2f2b: schedule: '2f2b' is not a known schedule (did you mean '1f1b'?)"):
            self.assertIn(reason, wrong)

    def test_a_mistake_that_all_variants_share_is_told_once(self):
        for words in (["compare", "nosuch.yaml", "--vary", "schedule=1f1b,zb-h1"],
                      ["goodput", "nosuch.yaml", "--vary", "failures.policy=oobleck,none"]):
            ran = stagecraft(*words)
            self.assertEqual((WRONG_INPUT, ""), (ran.returncode, ran.stdout))
            self.assertEqual("nosuch.yaml: error: no such file", ran.stderr.splitlines()[0])
            self.assertEqual("1 error, nothing was simulated", ran.stderr.splitlines()[-1])
        # What others have beside it is told as well, each once.
        ran = stagecraft("compare", PIPELINE, "--vary", "schedule=1f1b,2f2b,3f3b", "--set", "foo.bar=2")
        self.assertEqual(1, ran.stderr.count("foo: is not a known key"))
        self.assertIn("'2f2b' is not a known schedule", ran.stderr)
        self.assertTrue(ran.stderr.endswith("3 errors, nothing was simulated\n"), ran.stderr)

    # 2 and 4 ranks: 27 ms and 33 ms for 8 samples.
    def test_variants_on_unlike_numbers_of_gpus_are_compared_by_each(self):
        stages = "parallelism.pipeline=2,4"
        ran = stagecraft("compare", PIPELINE, "--vary", stages)
        table = [line.split("  ") for line in ran.stdout.splitlines()[:3]]
        head, two, four = ([cell.strip() for cell in row if cell] for row in table)
        gpus, rate = head.index("GPUs"), head.index("samples/s/GPU")
        self.assertEqual([("2", "148.1"), ("4", "60.61")], [(row[gpus], row[rate]) for row in (two, four)])
        self.assertIn("\nthe variants run on 2 to 4 GPUs: samples/s/GPU compares them\nfastest: pipeline 2 on 2 GPUs\n"
                      "most samples/s/GPU: pipeline 2 on 2 GPUs\nleast memory", ran.stdout)
        nodes = stagecraft("compare", FLAGSHIP, "--vary", "cluster.nodes=128,64", "--set", "parallelism.data=null")
        self.assertRegex(nodes.stdout, r"\nthe variants run on 512 to 1,024 GPUs: tokens/s/GPU compares them\n"
                                       r"fastest: nodes 128 on 1,024 GPUs\nmost tokens/s/GPU: nodes 64 on 512 GPUs, 1.\d\dx "
                                       r"over nodes 128\n")
        rows = list(csv.DictReader(stagecraft("compare", PIPELINE, "--vary", stages, "--format", "csv").stdout.splitlines()))
        self.assertEqual([("2", "0"), ("4", "0")], [(row["gpus"], row["tokens_per_s_per_gpu"]) for row in rows])
        alike = stagecraft("compare", PIPELINE, "--vary", "schedule=gpipe,1f1b").stdout
        self.assertNotIn("GPU", alike)

    def test_varied_values_that_change_nothing_are_said(self):
        rates = stagecraft("compare", FLAGSHIP, "--vary", "cluster.fabric.nic_bandwidth=200 Gb/s,400 Gb/s")
        self.assertEqual(1, rates.stderr.count("warning"))
        self.assertIn("--vary cluster.fabric.nic_bandwidth=400 Gb/s: warning: cluster.fabric.nic_bandwidth: counts in part: a GPU has "
                      "NICs of 50 GB/s, and reaches them over PCIe of 31.5 GB/s", rates.stderr)

    def test_a_difference_of_nothing_is_attributed_to_no_part(self):
        # 8 + 4 - 1 of 100 ns: 1.1 us of 33 ms.
        steps = stagecraft("compare", PIPELINE, "--vary", "model.forward=1 ms,1000.1 us,2 ms").stdout
        self.assertIn("\nforward 1000.1 us: 1.10 us (0.0 %) longer than forward 1 ms\n", steps)
        self.assertIn("forward 2 ms: 11.0 ms (33.3 %) longer than forward 1 ms: forward +8.00 ms (73 %), ",
                      " ".join(steps.split()))

    # Forward +100 ms, backward -98 ms; the reduction +0.9 ms is little beside them, and much of the difference.
    def test_what_is_small_beside_large_movements_is_summed_up(self):
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for name, forward, input_gradient, gradient in (("a", 100, 100, 400), ("b", 200, 2, 409)):
                files.append(Path(folder) / f"{name}.yaml")
                files[-1].write_text(
                    f"stagecraft: 1\nmodel: {{family: stages, forward: {forward} ms, input_gradient: {input_gradient} ms, weight_gradient: 100 ms, "
                    f"gradient: {gradient} MB}}\ncluster: {{node: {{device: toy, gpus: 1, nics: 1, nic_bandwidth: 10 GB/s, pcie: 100 GB/s}}, nodes: 2, "
                    "fabric: {kind: single-switch}}\nparallelism: {data: 2}\noverlap: {gradients: false}\ntraining: {global_batch_size: 2}\n")
            said = " ".join(stagecraft("compare", *files).stdout.split())
            self.assertIn("b: 2.90 ms (0.9 %) longer than a: forward +100 ms, backward -98.0 ms, the rest +900 us", said)

    def test_numbers_and_switches_are_told_with_their_key(self):
        for varied, name in (("training.global_batch_size=8,8", "global_batch_size 8"), ("overlap.gradients=true,false", "gradients true"),
                             ("model.gradient=[1 MiB],2 MiB", "gradient [1 MiB]"), ("schedule=1f1b,gpipe", "1f1b")):
            self.assertIn(f": as long as {name}, in every part\n", stagecraft("compare", PIPELINE, "--vary", varied).stdout)
        self.assertIn("\nfastest: forward 1 ms\n", stagecraft("compare", PIPELINE, "--vary", "model.forward=1 ms,2 ms").stdout)
        grid = ["--vary", "schedule=1f1b,gpipe", "--vary", "model.forward=1 ms,2 ms"]
        self.assertIn("\nfastest: 1f1b 1 ms, gpipe 1 ms\n", stagecraft("compare", PIPELINE, *grid).stdout)

    def test_variants_that_are_as_fast_are_all_named(self):
        for values, said in (("1 ms,1 ms", "all are as fast"), ("2 ms,1 ms,1 ms", "forward 1 ms, forward 1 ms, 1."),
                             ("1 ms,1 ms,1 ms,1 ms,1 ms,2 ms", "forward 1 ms, forward 1 ms, forward 1 ms, 2 more\n")):
            self.assertIn("\nfastest: " + said, stagecraft("compare", PIPELINE, "--vary", "model.forward=" + values).stdout)
        some_fit = ["--vary", "training.micro_batch_size=1,4", "--vary", "overlap.pipeline=true,false"]
        ran = stagecraft("compare", "scenarios/llama3-8b-64xA100.yaml", *some_fit).stdout
        self.assertIn("\nfastest that fits: 1 true, 1 false\n", ran)

    def test_one_variant_is_a_table_of_one_row(self):
        ran = stagecraft("compare", PIPELINE, "--vary", "schedule=zb-h1")
        self.assertEqual((DONE, ""), (ran.returncode, ran.stderr))
        head, row = ran.stdout.splitlines()
        self.assertEqual(["zb-h1", "27.0", "ms", "1.00"], row.split()[:4])
        self.assert_refused(stagecraft("compare", PIPELINE))

    def test_every_variant_reads_the_one_standard_input(self):
        given = (SOURCE / PIPELINE).read_text(encoding="utf-8")
        for form in ([], ["--json"]):
            vary = ["--vary", "schedule=gpipe,zb-h1", "--jobs", "2", *form]
            read = stagecraft("compare", "-", *vary, text_in=given)
            self.assertEqual((DONE, ""), (read.returncode, read.stderr))
            self.assertEqual(stagecraft("compare", PIPELINE, *vary).stdout.replace(PIPELINE, "-"), read.stdout)
        beside = stagecraft("compare", "-", PIPELINE, text_in=given)
        self.assertEqual(DONE, beside.returncode, beside.stderr)
        self.write("job.yaml", FAILING)
        rates = ["--vary", "failures.process.rate_per_node_day=0.1,0.2"]
        self.assertEqual(stagecraft("goodput", "job.yaml", *rates, cwd=self.folder).stdout,
                         stagecraft("goodput", "-", *rates, text_in=FAILING).stdout)
        wrong = stagecraft("compare", "-", "--vary", "schedule=gpipe,zb-h1", text_in="stagecraft: 1\nmodel: [1, 2\n")
        self.assertEqual(WRONG_INPUT, wrong.returncode)
        self.assertEqual(1, wrong.stderr.count("this '[' is never closed"))

    def test_a_key_that_is_set_and_varied_had_no_effect(self):
        for command in ("compare", "goodput"):
            ran = stagecraft(command, PIPELINE, "--set", "schedule.name=zb-h1", "--set", "model.forward=2 ms", "--vary", "schedule=gpipe,1f1b")
            self.assertIn("--set schedule.name=zb-h1: warning: schedule.name: had no effect: --vary varies it\n", ran.stderr)
            self.assertNotIn("model.forward", ran.stderr)
            quiet = stagecraft(command, PIPELINE, "--quiet", "--set", "schedule=zb-h1", "--vary", "schedule=gpipe,1f1b")
            self.assertNotIn("had no effect", quiet.stderr)


if __name__ == "__main__":
    main()
