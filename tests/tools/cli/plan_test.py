#!/usr/bin/env python3
"""The points that `stagecraft calibrate plan` wants measured.

usage: plan_test.py STAGECRAFT SOURCE_DIR [Plan[.TEST]]
"""
import json

from harness import DONE, FLAGSHIP, PIPELINE, WRONG_INPUT, Case, main, stagecraft


class Plan(Case):
    def test_wanted_points_have_a_schema_where_json_is_asked_for(self):
        plan = ("calibrate", "plan", FLAGSHIP)
        lines, asked = (stagecraft(*plan, *form).stdout.splitlines() for form in ([], ["--json"]))
        self.assertGreater(len(lines), 0)
        points = [json.loads(line) for line in asked]
        self.assertEqual({"stagecraft.plan/1"}, {point.pop("schema") for point in points})
        self.assertEqual([json.loads(line) for line in lines], points)

    def test_a_scenario_without_a_cluster_has_no_points_to_measure(self):
        ran = stagecraft("calibrate", "plan", PIPELINE)
        self.assert_refused(ran)
        self.assertIn(f"{PIPELINE}: error: cluster: the scenario has no cluster\n", ran.stderr)

    def test_a_plan_without_points_says_so(self):
        plan = ("calibrate", "plan", PIPELINE, "--set", "cluster={node: dgx-h100, gpus: 4}")
        said = "nothing to measure: the profiles have every shape, or the times are given\n"
        for options, wanted in (((), said), (("--quiet",), "")):
            ran = stagecraft(*plan, *options)
            self.assertEqual((DONE, "", wanted), (ran.returncode, ran.stdout, ran.stderr))

    def test_refused_scenarios_take_no_points_of_others_away(self):
        good = stagecraft("calibrate", "plan", FLAGSHIP)
        self.assertEqual((DONE, ""), (good.returncode, good.stderr))
        ran = stagecraft("calibrate", "plan", "nope.yaml", FLAGSHIP, PIPELINE)
        self.assertEqual((WRONG_INPUT, good.stdout), (ran.returncode, ran.stdout))
        self.assertIn("nope.yaml: error: no such file\n", ran.stderr)
        self.assertIn("the scenario has no cluster\n", ran.stderr)
        lines = stagecraft("calibrate", "plan", "nope.yaml", FLAGSHIP, "--json").stdout.splitlines()
        schemas = [json.loads(line)["schema"] for line in lines]
        self.assertEqual("stagecraft.error/1", schemas.pop(0))
        self.assertEqual(["stagecraft.plan/1"] * len(good.stdout.splitlines()), schemas)

    def test_what_is_wanted_is_what_stages_run(self):
        def wanted(*options):
            lines = stagecraft("calibrate", "plan", "scenarios/llama3-8b-64xA100.yaml", *options).stdout.splitlines()
            return {json.dumps([point["shape"], point["tags"]]): point["value"] for point in map(json.loads, lines)}
        projection = [{"batch": 1, "k": 2 * 4096, "m": 8192, "n": 4096 // 2}, {"dtype": "bf16", "layout": "TN"}]
        self.assertNotIn(json.dumps(projection), wanted())
        self.assertIn(json.dumps(projection), wanted("--set", "model.mtp_layers=1"))
        # One layer of 32 has its forward again, not all.
        full = "training.recompute={granularity: full, method: %s, layers: 1}"
        none, one, all_layers = wanted(), wanted("--set", full % "block"), wanted("--set", full % "uniform")
        head = next(point for point in none if '"n": 64128' in point)
        self.assertGreater(none[head], one[head])
        self.assertGreater(one[head], 1.1 * all_layers[head])


if __name__ == "__main__":
    main()
