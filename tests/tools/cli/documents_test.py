#!/usr/bin/env python3
"""What documents in JSON hold: a line for each scenario, warnings of loading, what made them, and keys that are explained.

usage: documents_test.py STAGECRAFT SOURCE_DIR [Documents[.TEST]]
"""
import re
import tempfile
from pathlib import Path

from harness import DONE, FLAGSHIP, PIPELINE, SOURCE, Case, main, stagecraft


class Documents(Case):
    def test_each_scenario_is_one_line_of_json(self):
        ran = stagecraft("run", PIPELINE, FLAGSHIP, "--json")
        self.assertEqual([PIPELINE, FLAGSHIP], [result["scenario"] for result in self.results(ran)])
        self.assertEqual(["stagecraft.result/1"] * 2, [result["schema"] for result in self.results(ran)])
        self.assertEqual((DONE, ""), (ran.returncode, ran.stderr))

    def altered(self):
        """A scenario whose model's file has two altered keys."""
        return self.write("altered.yaml", "stagecraft: 1\n"
                          f"model: {SOURCE}/tests/data/hf_config/altered-deepseek-v3.config.json\n"
                          "cluster: {node: dgx-h100, nodes: 2}\n"
                          "training: {global_batch_size: 64, sequence_length: 4096}\n"
                          "failures: {process: {kind: exponential, rate_per_node_day: 0.1}, policy: checkpoint-restart,\n"
                          "           horizon: 30 days, repeats: 2}\n")

    ALTERED = ["num_routed_experts: not a key of deepseek_v3, read as 'n_routed_experts' (256 experts)",
               "num_shared_experts: not a key of deepseek_v3, read as 'n_shared_experts' (1 shared)"]

    def test_warnings_of_loading_are_in_the_document(self):
        file = self.altered()
        for key, *words in (["warnings", "check", file], ["warnings", "run", file], ["warnings", "memory", file],
                            ["warnings", "compare", file, "--vary", "schedule=1f1b"], ["notes", "goodput", file],
                            ["notes", "goodput", file, "--vary", "failures.repeats=2"]):
            ran = stagecraft(*words, "--json", cwd=self.folder)
            document, = self.results(ran)
            self.assertEqual((DONE, self.ALTERED), (ran.returncode, [one for one in document[key] if one in self.ALTERED]), words)
            self.assertNotIn("not a key", ran.stderr, words)
            # Text has each once, and stays as silent as it is asked to be.
            ran = stagecraft(*words, cwd=self.folder)
            for said in self.ALTERED:
                self.assertEqual(1, ran.stderr.count(said), words)
            self.assertNotIn("num_routed_experts", ran.stdout, words)
            ran = stagecraft(*words, "--quiet", cwd=self.folder)
            self.assertNotIn("num_routed_experts", ran.stdout + ran.stderr, words)

    def test_warnings_of_loading_are_said_where_the_document_has_none(self):
        file = self.altered()
        for words in (["explain", file], ["topology", "show", file], ["topology", "check", file]):
            for form in ([], ["--json"]):
                ran = stagecraft(*words, *form, cwd=self.folder)
                self.assertEqual(DONE, ran.returncode, ran.stderr)
                for said in self.ALTERED:
                    self.assertEqual(1, ran.stderr.count(said), [*words, *form])
            self.assertEqual("", stagecraft(*words, "--json", "--quiet", cwd=self.folder).stderr)

    def test_documents_name_the_program_the_scenario_and_the_profile_that_made_them(self):
        version = stagecraft("--version").stdout.split()[1]
        origin = lambda document: [document.get(key) for key in ("stagecraft_version", "scenario_hash", "profile_hash")]
        job = "scenarios/goodput/checkpoint-restart.yaml"
        few = ["--set", "failures.repeats=1"]
        of = {command: origin(self.results(stagecraft(*command.split(), job, *few, "--json"))[0])
              for command in ("run", "check", "memory", "goodput")}
        of["explain"] = origin(self.results(stagecraft("explain", job, "mfu", *few, "--json"))[0])
        of["search"] = origin(self.results(stagecraft("search", job, *few, "--fix", "schedule", "--json"))[0])
        of["compare"] = origin(self.results(stagecraft("compare", job, job, *few, "--json"))[1])
        self.assertEqual([of["run"]], [one for i, one in enumerate(of.values()) if one not in list(of.values())[:i]])
        self.assertEqual(version, of["run"][0])
        self.assertRegex(of["run"][1], "^[0-9a-f]{16}$")
        self.assertRegex(of["run"][2], "^[0-9a-f]{16}$")
        other = origin(self.results(stagecraft("run", job, "--set", "failures.repeats=2", "--json"))[0])
        self.assertNotEqual(of["run"][1], other[1])
        self.assertEqual(of["run"][2], other[2])
        with tempfile.TemporaryDirectory() as folder:
            edited = Path(folder) / "edited.yaml"
            edited.write_text((SOURCE / "calibrate/profiles/a100-sxm4-80gb.yaml").read_text(encoding="utf-8") + "# edited\n",
                              encoding="utf-8")
            other = origin(self.results(stagecraft("run", job, *few, "--set", f"profile={edited}", "--json"))[0])
            neighbour = Path(folder) / "neighbour.yaml"
            text = (SOURCE / "scenarios/llama3-70b-128xH100-shared-links.yaml").read_text(encoding="utf-8")
            neighbour.write_text(f"{text}profile: {edited}\n", encoding="utf-8")
            beside = [f"network.jobs=[{{scenario: {path}, nodes: [4-7, 12-15, 20-23, 28-31]}}]"
                      for path in (SOURCE / "scenarios/llama3-70b-128xH100-shared-links.yaml", neighbour)]
            alike, unlike = (origin(self.results(stagecraft("check", "scenarios/llama3-70b-three-jobs-320xH100.yaml", "--set",
                                                            jobs, "--json"))[0])[2] for jobs in beside)
        self.assertEqual(of["run"][1], other[1])
        self.assertNotEqual(of["run"][2], other[2])
        self.assertEqual(f"{alike}, {other[2]}", unlike)
        self.assertEqual([version, None], origin(self.results(stagecraft("run", PIPELINE, "--json"))[0])[::2])

    def test_every_key_of_a_result_is_explained(self):
        section = (SOURCE / "docs/reports.md").read_text(encoding="utf-8").split("## Keys of `run --json`")[1].split("\n## ")[0]
        explained = set(re.findall(r"[a-z0-9_]+", " ".join(re.findall(r"`([^`]+)`", section))))
        jobs = [[FLAGSHIP], ["scenarios/llama3-70b-three-jobs-320xH100.yaml", "--set", "network.iterations=2"],
                ["scenarios/llama3-8b-64xA100.yaml", "--set", "offload={optimizer: 1, activations: 0.5}"],
                ["scenarios/llama3-8b-64xA100.yaml", "--set", "faults=[{kind: dead-node, node: 0}]"]]

        def keys(value):
            if isinstance(value, dict):
                for key, inner in value.items():
                    yield key
                    yield from keys(inner)
            elif isinstance(value, list):
                for inner in value:
                    yield from keys(inner)

        for job in jobs:
            result = self.results(stagecraft("run", "--json", *job))[0]
            self.assertEqual(set(), set(keys(result)) - explained, job)


if __name__ == "__main__":
    main()
