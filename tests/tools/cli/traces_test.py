#!/usr/bin/env python3
"""Traces: those of Chakra that `run` writes and `replay` reads, and those that `diff` lays beside a prediction.

usage: traces_test.py STAGECRAFT SOURCE_DIR [Traces[.TEST]]
"""
from harness import DONE, FLAGSHIP, NO, PIPELINE, Case, main, stagecraft


class Traces(Case):
    # Without a cluster messages are free; 16 MiB at 50 GB/s are in the way 16 times: 2 (4 + 8 - 2 - 8/4).
    def test_a_pipeline_of_free_messages_is_replayed_from_its_trace(self):
        self.assertEqual(DONE, stagecraft("run", PIPELINE, "--quiet", "--chakra", self.folder / "trace").returncode)
        replay = ["replay", *(self.folder / f"trace.{rank}.et" for rank in range(4)), "--json"]
        result, = self.results(stagecraft(*replay))
        self.assertEqual(0.033, result["makespan_s"])
        result, = self.results(stagecraft(*replay, "--link", "50GB/s"))
        self.assertAlmostEqual(0.033 + 16 * 2**24 / 50e9, result["makespan_s"], delta=1e-7)

    def test_what_is_no_chakra_trace_is_refused_with_its_own_way_out(self):
        model = "{family: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 32000, max_sequence_length: 1024}"
        self.write("job.yaml", f"stagecraft: 1\nmodel: {model}\ncluster: {{node: dgx-a100-80gb, nodes: 2}}\n"
                   "parallelism: {tensor: 4, pipeline: 4, data: 1}\ntraining: {global_batch_size: 8}\n")
        run = ["run", "job.yaml", "--quiet", "--chakra", "trace", "--set", "model.tied_embeddings=false"]
        self.assertEqual(DONE, stagecraft(*run, cwd=self.folder).returncode)
        # Ranks that step when they have heard the norm of those before them, one number.
        own_step = [*run, "--force", "--set", "schedule={name: 1f1b, global_step: false}"]
        self.assertEqual(DONE, stagecraft(*own_step, cwd=self.folder).returncode)
        for change, hint in (("network=flow", "--set network=closed-form"),
                             ("overlap.pipeline=false", "--set overlap.pipeline=true"),
                             ("model.tied_embeddings=true", "--set model.tied_embeddings=false"),
                             ("faults=[{kind: dead-node, node: 0}]", "without its faults it does: --set 'faults=[]'"),
                             ("schedule=dualpipe", "an order that holds the weights once has none: --set schedule=1f1b")):
            ran = stagecraft(*run, "--force", "--set", change, cwd=self.folder)
            self.assert_refused(ran)
            self.assertIn(f"  hint: {hint}\n", ran.stderr)
        ran = stagecraft(*run, "--force", "--set", "parallelism={tensor: 4, pipeline: 2, data: 2}", cwd=self.folder)
        self.assert_refused(ran)
        self.assertIn("hint: one replica of a pipeline is: --set parallelism.data=1", ran.stderr)

    def test_two_scenarios_are_not_for_diff(self):
        ran = stagecraft("diff", PIPELINE, FLAGSHIP)
        self.assert_refused(ran)
        self.assertIn(f"hint: of two scenarios: stagecraft compare {PIPELINE} {FLAGSHIP}\n", ran.stderr)

    def test_an_iteration_that_never_ends_is_laid_beside_no_trace(self):
        files = [f"tests/data/kineto/made_2x1.{end}" for end in ("yaml", "rank0.json")]
        word = "faults=[{kind: dead-node, node: 0}]"
        dead = ["diff", *files, "--set", word]
        ran = stagecraft(*dead)
        self.assert_refused(ran, code=NO)
        self.assertIn(f"--set {word}: error: faults: the iteration does not finish: a node died in it\n", ran.stderr)
        refused, = self.results(stagecraft(*dead, "--json"))
        self.assertEqual(["never-ends"], [error["code"] for error in refused["errors"]])
        self.assert_refused(stagecraft(*dead, "--rank", "9"))  # a mistake weighs more


if __name__ == "__main__":
    main()
