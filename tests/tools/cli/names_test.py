#!/usr/bin/env python3
"""Names: what is installed is found and suggested by them, and no terminal gets them as escape sequences.

usage: names_test.py STAGECRAFT SOURCE_DIR [Names[.TEST]]
"""
import json

from harness import DONE, NO, PIPELINE, SOURCE, STAGES, WRONG_INPUT, Case, changed, main, stagecraft


class Names(Case):
    def test_an_installed_scenario_goes_by_its_name_unless_a_file_has_it(self):
        named = stagecraft("check", "gpt3-175b-1024xA100", cwd=self.folder)
        self.assertEqual(DONE, named.returncode, named.stderr)
        self.assertTrue(named.stdout.startswith("gpt3-175b-1024xA100: ok: 1024 GPUs"), named.stdout)
        ran = stagecraft("run", "pipeline-4x8", "goodput/oobleck", "--json", cwd=self.folder)
        self.assertEqual(["pipeline-4x8", "goodput/oobleck"],
                         [json.loads(line)["scenario"] for line in ran.stdout.splitlines()], ran.stderr)
        self.assertIn("a search needs GPUs", stagecraft("search", "pipeline-4x8", cwd=self.folder).stderr)
        self.assertEqual(DONE, stagecraft("explain", "pipeline-4x8", cwd=self.folder).returncode)
        self.assertEqual(DONE, stagecraft("check", "goodput/oobleck", cwd=self.folder).returncode)
        near = stagecraft("check", "gpt3-175b-1024xA10", cwd=self.folder)
        self.assert_refused(near)
        self.assertIn("gpt3-175b-1024xA10: error: no such file, nor an installed scenario\n"
                      "  hint: did you mean 'gpt3-175b-1024xA100'?", near.stderr)
        self.write("base.yaml", STAGES)
        for word, hint in (("gpt3-175b", "did you mean 'gpt3-175b-1024xA100' or 'gpt3-175b-1024xA100-1f1b' or "
                            "'gpt3-175b-1024xA100-1f1b-recompute'? 'gpt3-175b' is a model: a scenario names it as `model`"),
                           ("llama-3-8b", "'llama-3-8b' is a model: a scenario names it as `model`"),
                           ("dgx-h100", "'dgx-h100' is a node: a scenario names it as `cluster.node`"),
                           ("base", "did you mean 'base.yaml'?")):
            self.assertIn(f"\n  hint: {hint}\n", stagecraft("run", word, cwd=self.folder).stderr)
        self.assertIn("hint: installed: llama3-70b-128xH100", stagecraft("run", "llama3", cwd=self.folder).stderr)
        rows = stagecraft("compare", "sc21-1.7b-32xA100", "sc21-7.5b-128xA100", cwd=self.folder).stdout.splitlines()
        self.assertEqual(["sc21-1.7b-32xA100", "sc21-7.5b-128xA100"], [row.split()[0] for row in rows[1:3]])
        self.write("gpt-1.5b", STAGES)
        self.assertEqual("gpt-1.5b", stagecraft("run", "gpt-1.5b", cwd=self.folder).stdout.splitlines()[0])
        self.write("gpt3-175b-1024xA100", STAGES)
        own = stagecraft("check", "gpt3-175b-1024xA100", cwd=self.folder)
        self.assertTrue(own.stdout.startswith("gpt3-175b-1024xA100: ok: 4 GPUs"), own.stdout)

    def test_a_profile_that_is_not_installed_has_a_near_name(self):
        for word, hint in (("a100-sxm4-80g", "did you mean 'a100-sxm4-80gb'? `stagecraft doctor` lists what is installed"),
                           ("nope", "`stagecraft doctor` lists what is installed")):
            ran = stagecraft("calibrate", "show", word)
            self.assert_refused(ran)
            self.assertEqual(f"stagecraft: error: '{word}' is not a known profile, nor a file\n  hint: {hint}\n1 error\n", ran.stderr)

    def test_half_the_name_of_a_schedule_is_taken_for_its_beginning(self):
        for word, hint in (("interleaved", "did you mean 'interleaved-1f1b'"),
                           ("wibble", "`stagecraft schedule --help` lists them")):
            ran = stagecraft("check", "-", text_in=changed("schedule: 1f1b", f"schedule: {word}", STAGES))
            self.assert_refused(ran)
            self.assertIn(f"'{word}' is not a known schedule\n  hint: {hint}", ran.stderr)

    def test_doctor_lists_what_is_installed(self):
        installed = json.loads(stagecraft("doctor", "--json").stdout)
        for kind in ("models", "nodes", "fabrics", "software"):
            self.assertEqual(sorted(file.stem for file in (SOURCE / "scenarios" / kind).glob("*.yaml")), installed[kind])
        self.assertIn("goodput/oobleck", installed["scenarios"])
        self.assertIn("search/turing-530b-5040xA100", installed["scenarios"])
        self.assertNotIn("search/space", installed["scenarios"])
        self.assertIn("/search/turing-530b-5040xA100.yaml:", stagecraft("check", "search/turing-530b-5040xA100").stderr)
        text = stagecraft("doctor").stdout
        for name in installed["models"] + installed["nodes"] + [profile["name"] for profile in installed["profiles"]]:
            self.assertIn(name, text)

    def test_a_program_without_its_data_says_so(self):
        for root, why in ((self.folder, "where there is no scenarios/models"), (self.folder / "none", "which is no folder")):
            said = f"STAGECRAFT_DATA is '{root}', {why}"
            ran = stagecraft("run", PIPELINE, env={"STAGECRAFT_DATA": str(root)})
            self.assert_refused(ran)
            self.assertIn(said, ran.stderr)
            # What tells people what is wrong runs all the same, and says it.
            ran = stagecraft("doctor", env={"STAGECRAFT_DATA": str(root)})
            self.assertEqual(WRONG_INPUT, ran.returncode)
            self.assertRegex(ran.stdout, r"(?m)^schedules +gpipe ")
            self.assertIn("data         " + said, ran.stdout)
            self.assertIn("error: " + said, ran.stderr)

    def test_names_reach_no_terminal_as_escape_sequences(self):
        text = (SOURCE / PIPELINE).read_text(encoding="utf-8").replace("name: 4 stages, 8 micro-batches", r'name: "a\n\x1b[31mb"')
        machine = text + ('cluster:\n  node: {name: "c\\x1b[1m", device: A100-SXM4-80GB, gpus: 4, nvlink: 300 GB/s, nvlink_latency: 1 us,\n'
                          "         pcie: 30 GB/s, nics: 4, nic_bandwidth: 200 Gb/s, profile: a100-sxm4-80gb}\n  nodes: 1\n")
        self.write("escapes.yaml", text)
        self.write("machine.yaml", machine)
        for words in (["run", "escapes.yaml"], ["memory", "escapes.yaml"], ["search", "machine.yaml"], ["run", "machine.yaml"],
                      ["topology", "show", "machine.yaml"]):
            ran = stagecraft(*words, cwd=self.folder)
            self.assertIn(ran.returncode, (DONE, NO), ran.stderr)
            self.assertNotIn("\x1b", ran.stdout + ran.stderr, words)
        self.assertEqual(r"a\n\x1b[31mb", stagecraft("run", "escapes.yaml", cwd=self.folder).stdout.splitlines()[0])
        in_json = self.results(stagecraft("run", "escapes.yaml", "--json", cwd=self.folder))  # which has escapes of its own
        self.assertEqual("a\n\x1b[31mb", in_json[0]["name"])


if __name__ == "__main__":
    main()
