#!/usr/bin/env python3
"""Clusters as `stagecraft topology` shows and checks them: latencies, cables, and whatever job they have.

usage: topology_test.py STAGECRAFT SOURCE_DIR [Topology[.TEST]]
"""
import json

from harness import DONE, FLAGSHIP, Case, changed, main, stagecraft

# A NIC and an uplink of leaf 1 have a tenth of their rate.
UNLIKE_CABLES = """\
stagecraft: 1
model: {family: stages, forward: 10 ms, input_gradient: 10 ms, weight_gradient: 10 ms}
cluster:
  node: {device: toy, gpus: 2, nics: 2, nvlink: 100 GB/s, nvlink_latency: 0 ms, nic_bandwidth: 10 GB/s, pcie: 100 GB/s}
  nodes: 4
  fabric: {kind: fat-tree, nodes_per_leaf: 2, spines: 4}
  links: [{name: node 2 nic 1 -> leaf 1, share: 0.1}, {name: leaf 1 -> spine 0, share: 0.1}]
parallelism: {data: 8}
training: {global_batch_size: 8}
"""


class Topology(Case):
    def test_latencies_of_pairs_say_what_a_message_between_nodes_adds(self):
        self.assertIn("a message between nodes takes 30.0 us more, point_to_point_latency", stagecraft("topology", "show", FLAGSHIP).stdout)
        inside, *between = json.loads(stagecraft("topology", "show", FLAGSHIP, "--json").stdout)["pairs"]
        self.assertEqual(inside["latency_s"], inside["message_latency_s"])
        for pair in between:
            self.assertAlmostEqual(30e-6, pair["message_latency_s"] - pair["latency_s"])

    def test_cables_of_unlike_rates_are_told_apart(self):
        self.write("rates.yaml", UNLIKE_CABLES)
        shown = stagecraft("topology", "show", "rates.yaml", cwd=self.folder).stdout
        table = shown[shown.index("  level "):shown.index("bisection")]
        self.assertEqual(["spine 3 2 x 10 GB/s – –",
                          "spine 1 1 x 10 GB/s, 1 x 1 GB/s – –",
                          "leaf 1 4 x 10 GB/s 4 x 10 GB/s 1",
                          "leaf 1 3 x 10 GB/s, 1 x 1 GB/s 3 x 10 GB/s, 1 x 1 GB/s 1"],
                         [" ".join(row.split()) for row in table.splitlines()[1:]])
        graph = stagecraft("topology", "show", "rates.yaml", "--graphviz", cwd=self.folder).stdout
        self.assertIn('"node 2" -- "leaf 1" [label="1 x 10 GB/s, 1 x 1 GB/s"];', graph)
        self.assertIn('"node 0,1" -- "leaf 0" [label="4 x 10 GB/s"];', graph)

    # Neither a plan that does not hold nor a node without a profile says anything of cables.
    def test_a_cluster_is_shown_whatever_its_job_is(self):
        self.write("small.yaml", changed("nodes: 128", "nodes: 2"))
        ran = stagecraft("topology", "show", "small.yaml", cwd=self.folder)
        self.assertEqual(DONE, ran.returncode, ran.stderr)
        self.assertIn("warning: parallelism.data: ", ran.stderr)
        self.assertIn("pairs of GPUs", ran.stdout)
        self.assertNotIn("neighbours of the plan", ran.stdout)
        in_json = self.results(stagecraft("topology", "show", "small.yaml", "--json", cwd=self.folder))[0]
        self.assertEqual((16, None), (in_json["gpus"], in_json["axes"]))
        for part in ("show", "check"):
            self.assertEqual(DONE, stagecraft("topology", part, FLAGSHIP, "--set", "cluster.node=dgx-1v").returncode, part)
        self.assert_refused(stagecraft("topology", "check", FLAGSHIP, "--set", "parallelism.tensr=3"))


if __name__ == "__main__":
    main()
