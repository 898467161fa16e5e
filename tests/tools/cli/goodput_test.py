#!/usr/bin/env python3
"""What `stagecraft goodput` says of policies side by side, in tables, pictures and pages.

usage: goodput_test.py STAGECRAFT SOURCE_DIR [Goodput[.TEST]]
"""
import json
import re

from harness import DONE, FAILING, SOURCE, WRONG_INPUT, Case, main, stagecraft


class Goodput(Case):
    def test_a_page_of_several_files_names_their_variants_apart(self):
        job = (SOURCE / "scenarios/goodput/checkpoint-restart.yaml").read_text(encoding="utf-8")
        for names, words in ((("one", "one"), ("a.yaml", "b.yaml")), (("one", "two"), ("one", "two"))):
            for file, name in zip(("a.yaml", "b.yaml"), names):
                self.write(file, re.sub("^name: .*", f"name: {name}", job, flags=re.M))
            ran = stagecraft("goodput", "a.yaml", "b.yaml", "--vary", "failures.repeats=2,x", "--html", "page.html",
                             "--force", cwd=self.folder)
            self.assertEqual(WRONG_INPUT, ran.returncode)
            page = (self.folder / "page.html").read_text(encoding="utf-8")
            self.assertIn(f"<title>{', '.join(dict.fromkeys(names))} by failures.repeats · Stagecraft", page)
            self.assertIn(json.dumps([f"{word}, 2" for word in words], separators=(",", ":")), page)
            for word in words:
                self.assertIn(f"{word}, x: failures.repeats: ", page)

    def test_a_table_of_policies_says_whose_ideal_a_share_is_of(self):
        self.write("job.yaml", FAILING)
        rates = ("--vary", "failures.process.rate_per_node_day=0.1,1")
        two = stagecraft("goodput", "job.yaml", "--vary", "failures.policy=hot-spares,oobleck", *rates, cwd=self.folder).stdout
        self.assertIn("of ideal: of the row's own, 0.4444 to 0.6667 samples/s without failures", two)
        one = stagecraft("goodput", "job.yaml", *rates, cwd=self.folder).stdout
        self.assertNotIn("of ideal: ", one)
        for text in (one, two):
            self.assertIn("\nshare of the throughput without failures\n", text)

    def test_a_table_of_policies_says_who_gets_new_nodes(self):
        self.write("job.yaml", FAILING)
        def table(*policies):
            ran = stagecraft("goodput", "job.yaml", "--vary", "failures.policy=" + ",".join(policies), cwd=self.folder)
            return " ".join(ran.stdout.split())
        self.assertIn("for each that is lost, under checkpoint-restart; only what is repaired, beside spares, under oobleck. {name: "
                      "checkpoint-restart, lost: waited-for}", table("checkpoint-restart", "oobleck"))
        self.assertNotIn("nodes: ", table("{name: checkpoint-restart, lost: waited-for}", "oobleck"))
        self.assertNotIn("nodes: ", table("checkpoint-restart", "none"))

    # Rows and lines by the keys that tell policies of one name apart; of files called alike, by the file.
    def test_policies_of_one_name_are_told_apart(self):
        self.write("job.yaml", FAILING)
        self.write("again.yaml", FAILING)
        rates = ("--vary", "failures.process.rate_per_node_day=0.1,1", "--set", "failures.repeats=2")
        policies = "failures.policy={name: hot-spares, spares: 1, restart: 60 s},{name: hot-spares, spares: 3, restart: 60 s},bamboo"
        ran = stagecraft("goodput", "job.yaml", "--vary", policies, *rates, cwd=self.folder)
        self.assertEqual(DONE, ran.returncode)
        names = [line.split("  ")[0] for line in ran.stdout.splitlines()[1:7]]
        self.assertEqual(["hot-spares, spares 1"] * 2 + ["hot-spares, spares 3"] * 2 + ["bamboo"] * 2, names)
        self.assertIn("A hot-spares, spares 1   B hot-spares, spares 3   C bamboo\n", ran.stdout)
        picture = stagecraft("goodput", "job.yaml", "--vary", policies, *rates, "--format", "svg", cwd=self.folder).stdout
        self.assertIn(">hot-spares, spares 3</text>", picture)
        files = stagecraft("goodput", "job.yaml", "again.yaml", *rates, cwd=self.folder).stdout
        self.assertEqual(["scenario", "job.yaml", "job.yaml", "again.yaml", "again.yaml"],
                         [line.split()[0] for line in files.splitlines()[:5]])

    def test_goodput_of_an_iteration_without_time_is_refused(self):
        zero = ("stagecraft: 1\nmodel: {family: stages, forward: 0 ms, input_gradient: 0 ms, weight_gradient: 0 ms}\n"
                "parallelism: {pipeline: 4}\ntraining: {global_batch_size: 8}\nfailures: {process: {kind: exponential, "
                "rate_per_node_day: 0.1}, policy: checkpoint-restart, horizon: 1 days}\n")
        ran = stagecraft("goodput", "-", text_in=zero)
        self.assertEqual(WRONG_INPUT, ran.returncode, ran.stderr)
        self.assertIn("an iteration takes no time", ran.stderr)


if __name__ == "__main__":
    main()
