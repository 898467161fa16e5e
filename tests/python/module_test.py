#!/usr/bin/env python3
"""The Python module gives what the command line prints, to the bit; and docs/python.md tells what it does.

usage: module_test.py STAGECRAFT SOURCE_DIR [CLASS[.TEST]]      with PYTHONPATH at the module
"""
import doctest
import inspect
import json
import math
import os
import pickle
import pty
import re
import shutil
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

import stagecraft

PROGRAM = Path(sys.argv[1]).resolve()
SOURCE = Path(sys.argv[2]).resolve()
FLAGSHIP = "scenarios/gpt3-175b-1024xA100.yaml"
PIPELINE = "scenarios/pipeline-4x8.yaml"
ABSTRACT = {"stagecraft": 1, "model": {"family": "stages", "forward": "1 ms", "input_gradient": "1 ms", "weight_gradient": "1 ms"},
            "parallelism": {"pipeline": 4}, "training": {"global_batch_size": 8}}


def printed(*words):
    """What the program prints, line by line."""
    ran = subprocess.run([PROGRAM, *words, "--json"], cwd=SOURCE, capture_output=True, encoding="utf-8", timeout=120, check=False)
    return [json.loads(line) for line in ran.stdout.splitlines()]


class SameAsTheProgram(unittest.TestCase):
    def test_simulate_of_every_shipped_scenario_is_run(self):
        files = sorted(file.relative_to(SOURCE) for file in (SOURCE / "scenarios").glob("*.yaml"))
        self.assertGreater(len(files), 15)
        for file, document in zip(files, printed("run", *files), strict=True):
            self.assertEqual(document, stagecraft.simulate(file), file)

    def test_overrides_are_those_of_set(self):
        (document,) = printed("run", FLAGSHIP, "--set", "cluster.nodes=256", "--set", "parallelism.pipeline=16", "--set", "overlap.gradients=false")
        self.assertEqual(document, stagecraft.simulate(FLAGSHIP, set={"cluster.nodes": 256, "parallelism.pipeline": 16, "overlap.gradients": False}))

    def test_the_other_commands_about_one_scenario(self):
        self.assertEqual(printed("check", FLAGSHIP), [stagecraft.check(FLAGSHIP)])
        self.assertEqual(printed("memory", FLAGSHIP), [stagecraft.memory(FLAGSHIP)])
        self.assertEqual(printed("run", PIPELINE, "--why", "--unfold"), [stagecraft.simulate(PIPELINE, why=True, unfold=True)])
        self.assertEqual(printed("explain", PIPELINE, "iteration_time_s", "--depth", "1"),
                         [stagecraft.explain(PIPELINE, "iteration_time_s", depth=1)])
        self.assertEqual(printed("schedule", "show", "--schedule", "zb-h1", "--stages", "4", "--micro-batches", "8", "--message", "1 ms"),
                         [stagecraft.schedule("zb-h1", stages=4, micro_batches=8, message="1 ms")])

    def test_explain_of_several_figures_is_a_list(self):
        for path in ("bubble", "breakdown_s"):
            figures = stagecraft.explain(PIPELINE, path, sensitivities=False)
            self.assertGreater(len(figures), 1)
            self.assertEqual(printed("explain", PIPELINE, path, "--no-sensitivities"), figures)

    def test_goodput_with_a_seed(self):
        file = "scenarios/goodput/checkpoint-restart.yaml"
        few = {"failures.repeats": 3}
        (document,) = printed("goodput", file, "--seed", "7", "--set", "failures.repeats=3")
        self.assertEqual(document, stagecraft.goodput(file, set=few, seed=7))
        self.assertEqual(document, stagecraft.goodput(file, set=few, seed=7, jobs=2))

    def test_compare_gives_a_row_for_each_variant(self):
        rows = printed("compare", PIPELINE, "--vary", "schedule=gpipe,zb-h1", "--vary", "training.global_batch_size=8,16")
        self.assertEqual(rows, stagecraft.compare(PIPELINE, vary={"schedule": ["gpipe", "zb-h1"],
                                                                  "training.global_batch_size": [8, 16]}, jobs=2))

    def test_sweep_gives_a_row_for_each_point(self):
        file = "scenarios/sweeps/schedules.yaml"
        rows = printed("sweep", file)
        self.assertEqual(12, len(rows))
        self.assertEqual(rows, stagecraft.sweep(file, jobs=1))

    def test_search_ranks_the_same_plans(self):
        words = ["--top", "3", "--fix", "parallelism.context", "--vary", "schedule=1f1b", "--set", "cluster.nodes=1"]
        (document,) = printed("search", "scenarios/llama3-8b-64xA100.yaml", *words)
        self.assertEqual(document, stagecraft.search("scenarios/llama3-8b-64xA100.yaml", top=3, fix="parallelism.context",
                                                     vary={"schedule": ["1f1b"]}, set={"cluster.nodes": 1}))


class Scenarios(unittest.TestCase):
    def test_a_mapping_a_text_and_a_file_are_one_scenario(self):
        text = (SOURCE / PIPELINE).read_text(encoding="utf-8")
        of_file, of_text = stagecraft.simulate(PIPELINE), stagecraft.simulate(text)
        self.assertEqual((PIPELINE, "<scenario>"), (of_file.pop("scenario"), of_text.pop("scenario")))
        self.assertEqual(of_file, of_text)
        # (m + p - 1)(F + B) = 11 x 3 ms
        self.assertEqual(0.033, stagecraft.simulate(ABSTRACT)["iteration_time_s"])
        self.assertEqual(0.033, stagecraft.simulate(json.dumps(ABSTRACT))["iteration_time_s"])

    def test_a_path_is_a_text_or_a_path(self):
        self.assertEqual(stagecraft.check(PIPELINE), stagecraft.check(Path(PIPELINE)))

    def test_paths_in_a_mapping_are_relative_to_the_working_directory(self):
        scenario = {"stagecraft": 1, "model": "scenarios/models/gpt-1.7b.yaml", "cluster": {"node": "dgx-a100-80gb", "nodes": 4},
                    "training": {"global_batch_size": 512}}
        self.assertEqual(32, stagecraft.check(scenario)["gpus"])

    def test_several_mappings_are_compared(self):
        longer = {**ABSTRACT, "training": {"global_batch_size": 16}}
        rows = stagecraft.compare([ABSTRACT, longer])
        self.assertEqual(["<scenario 1>", "<scenario 2>"], [row["scenario"] for row in rows])
        self.assertEqual([0.033, 0.057], [row["iteration_time_s"] for row in rows])  # 11 and 19 x 3 ms

    def test_a_sweep_may_be_a_mapping(self):
        rows = stagecraft.sweep({"stagecraft": 1, "base": ABSTRACT, "vary": {"training.global_batch_size": [8, 16]}}, jobs=1)
        self.assertEqual([0.033, 0.057], [row["iteration_time_s"] for row in rows])

    def test_what_is_no_scenario_is_refused(self):
        for wrong in (None, 3, ["a"]):
            with self.assertRaisesRegex(TypeError, "a path, YAML text or a mapping"):
                stagecraft.simulate(wrong)
        with self.assertRaisesRegex(ValueError, "no path of a scenario"):
            stagecraft.simulate("--help")
        with self.assertRaisesRegex(TypeError, "nothing that a scenario holds"):
            stagecraft.simulate({"stagecraft": object()})


    def test_a_mapping_may_hold_any_character(self):
        for name in ("run \N{ROCKET}", "\u00fcber \u03bc \u65e5", "\N{ROCKET}\N{SNOWMAN}\N{ROCKET}"):
            self.assertEqual(name, stagecraft.simulate({**ABSTRACT, "name": name})["name"])
            self.assertEqual(name, stagecraft.simulate(ABSTRACT, set={"name": name})["name"])
            (row,) = stagecraft.sweep({"stagecraft": 1, "base": ABSTRACT, "vary": {"name": [name]}}, jobs=1)
            self.assertEqual(name, row["vary"]["name"])

    def test_a_text_that_is_set_stays_that_text(self):
        texts = ("007", "1e3", "-1", ".5", "true", "null", "~", "a: b", "a #b", "[a", "{a", "'a'", '"a"', "- a", "&a", "*a", "!a", ">a", "a, b",
                 'a", b', "a  b", "plain words", "1f1b", "a\\b")
        for text in texts:
            with self.subTest(text):
                self.assertEqual(text, stagecraft.simulate(ABSTRACT, set={"name": text})["name"])
                (row,) = stagecraft.compare(ABSTRACT, vary={"name": [text]})
                self.assertEqual(text, row["name"])
        for text in ("4", "1_0", "true", "null"):  # as in a mapping
            with self.assertRaisesRegex(stagecraft.ScenarioError, f"found the text '{text}'"):
                stagecraft.simulate(ABSTRACT, set={"parallelism.pipeline": text})

    def test_half_a_character_is_refused(self):
        with self.assertRaisesRegex(stagecraft.ScenarioError, "stands for no character"):
            stagecraft.simulate({**ABSTRACT, "name": "run \ud83d"})
        with self.assertRaises(UnicodeEncodeError):
            stagecraft.simulate(ABSTRACT, set={"name": "run \ud83d"})

    def test_arguments_of_the_wrong_type_are_named(self):
        goodput = "scenarios/goodput/checkpoint-restart.yaml"
        for words, call in (
                ("set is a mapping of paths to values, not list", lambda: stagecraft.simulate(ABSTRACT, set=["a"])),
                ("set is a mapping of paths to values, not str", lambda: stagecraft.check(ABSTRACT, set="schedule=zb-h1")),
                ("a path of set is a text, not int", lambda: stagecraft.check(ABSTRACT, set={1: 2})),
                ("vary is a mapping of paths to values, not str", lambda: stagecraft.compare(ABSTRACT, vary="schedule=1f1b")),
                ("vary of schedule is a list, not int", lambda: stagecraft.compare(ABSTRACT, vary={"schedule": 1})),
                ("vary of schedule is a list, not dict", lambda: stagecraft.compare(ABSTRACT, vary={"schedule": {"name": "1f1b"}})),
                ("scenarios is a list, not int", lambda: stagecraft.compare(3)),
                ("unfold is True or False, not str", lambda: stagecraft.simulate(ABSTRACT, unfold="yes")),
                ("sensitivities is True or False, not str",
                 lambda: stagecraft.explain(ABSTRACT, "iteration_time_s", sensitivities="no")),
                ("path is a text, not int", lambda: stagecraft.explain(ABSTRACT, 3)),
                ("depth is a whole number, not float", lambda: stagecraft.explain(ABSTRACT, "mfu", depth=1.5)),
                ("seed is a whole number, not bool", lambda: stagecraft.goodput(goodput, seed=True)),
                ("jobs is a whole number, not str", lambda: stagecraft.goodput(goodput, jobs="2")),
                ("fix is a list, not int", lambda: stagecraft.search(FLAGSHIP, fix=3)),
                ("fix is a text, not int", lambda: stagecraft.search(FLAGSHIP, fix=[3])),
                ("gpus is a text or a number, not bool", lambda: stagecraft.search(FLAGSHIP, gpus=True)),
                ("micro_batches is a whole number, not bool",
                 lambda: stagecraft.schedule("1f1b", stages=4, micro_batches=True)),
                ("chunks is a text or a number, not bool",
                 lambda: stagecraft.schedule("1f1b", stages=4, micro_batches=8, chunks=True))):
            with self.subTest(words), self.assertRaisesRegex(TypeError, f"^{re.escape(words)}$"):
                call()

    def test_flags_follow_truth(self):
        self.assertEqual(stagecraft.simulate(ABSTRACT, why=True), stagecraft.simulate(ABSTRACT, why=1))
        self.assertEqual(stagecraft.simulate(ABSTRACT), stagecraft.simulate(ABSTRACT, why=0, unfold=None))
        plain = {"set": {"failures.repeats": 3}}
        file = "scenarios/goodput/checkpoint-restart.yaml"
        self.assertEqual(stagecraft.goodput(file, **plain), stagecraft.goodput(file, plan=0, timeline=[], **plain))


class Errors(unittest.TestCase):
    def test_all_mistakes_come_with_their_places(self):
        with self.assertRaises(stagecraft.ScenarioError) as caught:
            stagecraft.simulate("stagecraft: 1\nmodell: gpt\ntraining:\n  global_batch_size: -1\n")
        by_path = {found["path"]: found for found in caught.exception.diagnostics}
        self.assertEqual({"model", "modell", "training.global_batch_size"}, set(by_path))
        wrong = by_path["training.global_batch_size"]
        self.assertEqual(("<scenario>", 4, 22), (wrong["file"], wrong["line"], wrong["column"]))
        self.assertIn("did you mean 'model'?", by_path["modell"]["hint"])
        self.assertIn("<scenario>:4:22: error: training.global_batch_size: -1 is less than 1", str(caught.exception))

    def test_they_are_the_errors_of_the_program(self):
        (document,) = printed("run", PIPELINE, "--set", "parallelism.pipeline=no")
        with self.assertRaises(stagecraft.ScenarioError) as caught:
            stagecraft.simulate(PIPELINE, set={"parallelism.pipeline": "no"})
        self.assertEqual(document["errors"], caught.exception.diagnostics)

    def test_a_missing_file_an_unknown_figure_and_a_wrong_option_are_scenario_errors(self):
        for call in (lambda: stagecraft.simulate("no/such.yaml"), lambda: stagecraft.explain(PIPELINE, "no_such_figure"),
                     lambda: stagecraft.goodput(PIPELINE), lambda: stagecraft.sweep(PIPELINE), lambda: stagecraft.compare(PIPELINE),
                     lambda: stagecraft.schedule("1f1b", stages=4, micro_batches=8, no_such_option=1)):
            with self.assertRaises(stagecraft.ScenarioError) as caught:
                call()
            self.assertTrue(caught.exception.diagnostics[0]["message"])

    def test_a_mistake_in_every_point_of_a_sweep_is_an_error_and_no_row(self):
        with self.assertRaisesRegex(stagecraft.ScenarioError, "vary.trainin: is not a known key of any point"):
            stagecraft.sweep({"stagecraft": 1, "base": ABSTRACT, "vary": {"trainin.global_batch_size": [8, 16]}}, jobs=1)
        rows = stagecraft.sweep({"stagecraft": 1, "base": ABSTRACT, "vary": {"schedule": ["1f1b", "nope"]}}, jobs=1)
        self.assertEqual([True, False], [row["feasible"] for row in rows])

    def test_an_error_survives_another_process(self):
        error = stagecraft.ScenarioError([{"code": "a", "message": "b", "hint": ""}])
        self.assertEqual(error.diagnostics, pickle.loads(pickle.dumps(error)).diagnostics)

    def test_a_variant_that_cannot_run_is_a_row(self):
        good, bad = stagecraft.compare(ABSTRACT, vary={"parallelism.pipeline": [4, 0]})
        self.assertEqual(0.033, good["iteration_time_s"])
        self.assertEqual("parallelism.pipeline", bad["errors"][0]["path"])


class Threads(unittest.TestCase):
    def test_other_threads_run_meanwhile(self):
        """The scenario is a terminal that waits for this thread to type: with the lock held neither would ever go on."""
        master, terminal = pty.openpty()
        found = []
        worker = threading.Thread(target=lambda: found.append(stagecraft.simulate(os.ttyname(terminal))))
        worker.start()
        time.sleep(0.2)  # until the worker reads
        os.write(master, json.dumps(ABSTRACT).encode() + b"\n\x04")
        worker.join()
        os.close(master)
        os.close(terminal)
        self.assertEqual(0.033, found[0]["iteration_time_s"])

    def test_many_threads_give_the_same_figures(self):
        found = [None] * 8

        def work(i):
            found[i] = stagecraft.simulate(ABSTRACT, set={"training.global_batch_size": 8 + i})["iteration_time_s"]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(found))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i, time_s in enumerate(found):
            self.assertTrue(math.isclose((11 + i) * 0.003, time_s, rel_tol=1e-12), (i, time_s))


class Words(unittest.TestCase):
    def test_the_version_is_the_programs(self):
        said = subprocess.run([PROGRAM, "--version"], capture_output=True, encoding="utf-8", check=True).stdout
        self.assertEqual(f"stagecraft {stagecraft.__version__}\n", said)

    def test_the_stubs_have_the_names_and_parameters_of_the_module(self):
        stub = (SOURCE / "python/stagecraft/__init__.pyi").read_text(encoding="utf-8")
        for name in set(stagecraft.__all__) - {"__version__"}:
            thing = getattr(stagecraft, name)
            self.assertIn(f"{'class' if inspect.isclass(thing) else 'def'} {name}", stub)
            if inspect.isfunction(thing):
                given = re.search(rf"^def {name}\((.*?)\) ->", stub, re.MULTILINE | re.DOTALL)[1]
                names = re.findall(r"(\w+): ", re.sub(r"\[[^\[\]]*(\[[^\[\]]*\][^\[\]]*)*\]", "", given))
                self.assertEqual(list(inspect.signature(thing).parameters), names, name)

    def test_mypy_finds_nothing_wrong(self):
        mypy = shutil.which("mypy", path="/usr/bin")
        if mypy is None:
            self.skipTest("mypy is not installed")
        user = "import stagecraft\nt: float = stagecraft.simulate('a.yaml', set={'b': 1})['iteration_time_s']\n"
        environment = {**os.environ, "MYPYPATH": str(Path(stagecraft.__file__).parent.parent)}
        for code, status in ((user, 0), (user + "stagecraft.simulate(3)\n", 1), (user + "stagecraft.simulat('a')\n", 1)):
            ran = subprocess.run([mypy, "--strict", "--cache-dir", os.devnull, "-c", code], env=environment, cwd=SOURCE,
                                 capture_output=True, encoding="utf-8", timeout=300, check=False)
            self.assertEqual(status, ran.returncode, ran.stdout)

    def test_what_the_documentation_shows_is_what_happens(self):
        failed, tried = doctest.testfile(str(SOURCE / "docs/python.md"), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
        self.assertEqual(0, failed)
        self.assertGreater(tried, 10)


if __name__ == "__main__":
    os.chdir(SOURCE)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
