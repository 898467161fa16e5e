#!/usr/bin/env python3
"""Where `stagecraft explain` and `run --why` say that figures come from.

usage: explain_test.py STAGECRAFT SOURCE_DIR [Explain[.TEST]]
"""
from harness import DONE, PIPELINE, Case, main, stagecraft


class Explain(Case):
    def test_an_explanation_is_a_tree_of_values(self):
        ran = stagecraft("explain", PIPELINE, "bubble.over_ideal", "--json", "--set", "schedule=gpipe")
        tree, = self.results(ran)
        self.assertEqual(("stagecraft.explain/1", PIPELINE, 0.375), (tree["schema"], tree["scenario"], tree["value"]))
        idle, ideal = tree["inputs"]
        self.assertEqual((0.009, 0.024, "s"), (idle["value"], ideal["value"], ideal["unit"]))
        forward = next(result for result in tree["sensitivities"] if result["input"] == "forward of a stage")
        self.assertEqual(("+10 %", 0.375), (forward["change"], forward["value"]))
        self.assertEqual((DONE, ""), (ran.returncode, ran.stderr))

    # Of 16 micro-batches the gathers of weights cut the first forward, and the reductions the last backward.
    def test_pieces_of_a_pass_are_told_as_the_pass_that_they_are(self):
        tree, = self.results(stagecraft("explain", "scenarios/llama3-8b-64xA100.yaml", "breakdown_s.tensor_comm", "--depth", "3", "--json"))
        passes, = tree["inputs"]
        backward, forward, _ = passes["inputs"]
        for one, name in ((backward, "B passes of stage 0"), (forward, "F passes of stage 0")):
            self.assertEqual((name, 16), (one["name"], one["inputs"][0]["value"]))
            self.assertRegex(one["inputs"][0]["source"]["text"], r", 1 of them in \d+ pieces between the traffic of buckets$")
            self.assertAlmostEqual(one["value"], 16 * one["inputs"][1]["value"], places=9)

    def test_why_is_three_sentences_in_json(self):
        result, = self.results(stagecraft("run", PIPELINE, "--set", "schedule=gpipe", "--why", "--json"))
        self.assertEqual((3, "backward"), (len(result["why"]["sentences"]), result["why"]["bound_by"]))
        best = result["why"]["best"]
        self.assertEqual((["schedule=interleaved-zb"], 0.0255), (best["set"], best["iteration_time_s"]))

    def test_codes_of_the_command_line_are_explained(self):
        for code in ("usage", "internal"):
            ran = stagecraft("explain", code)
            self.assertEqual((DONE, ""), (ran.returncode, ran.stderr))
            self.assertTrue(ran.stdout.startswith(code + ": "), ran.stdout)


if __name__ == "__main__":
    main()
