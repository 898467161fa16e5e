#!/usr/bin/env python3
"""docs/scenario.md and the JSON Schemas are what the readers of scenarios tell, and the schemas agree with them.

usage: reference_test.py STAGECRAFT STAGECRAFT_REFERENCE SOURCE_DIR [CLASS[.TEST]]

STAGECRAFT_BLESS=1 writes docs/scenario.md and docs/schema/ anew.
"""
import copy
import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import yaml
from jsonschema import Draft7Validator

PROGRAM, REFERENCE, SOURCE = (Path(word).resolve() for word in sys.argv[1:4])
KINDS = ("scenario", "sweep", "model", "node", "fabric")


class Loader(yaml.SafeLoader):
    """YAML 1.2, as editors read it: 1e3 is a number; on, off, yes and no are texts."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:float",
                                                                        "tag:yaml.org,2002:timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"), list("-+.0123456789"))


def load(text):
    # JSON has texts for keys only.
    return json.loads(json.dumps(yaml.load(text, Loader=Loader)))


def printed(what):
    ran = subprocess.run([REFERENCE, SOURCE, what], capture_output=True, encoding="utf-8", timeout=300, check=False)
    assert ran.returncode in (0, 1), ran.stderr
    return ran.stdout


def validator(kind):
    schema = json.loads((SOURCE / f"docs/schema/{kind}.schema.json").read_text(encoding="utf-8"))
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)


def kind_of(file, document):
    if file.parent.name in ("models", "nodes", "fabrics"):
        return file.parent.name[:-1]
    if "stagecraft" not in document:
        return None
    return "sweep" if "vary" in document else "scenario"


class Reference(unittest.TestCase):
    def test_the_page_and_the_schemas_are_what_the_readers_tell(self):
        kept = {SOURCE / "docs/scenario.md": "markdown", **{SOURCE / f"docs/schema/{kind}.schema.json": kind for kind in KINDS}}
        for file, what in kept.items():
            text = printed(what)
            if os.environ.get("STAGECRAFT_BLESS") == "1":
                file.write_text(text, encoding="utf-8")
            self.assertEqual(text, file.read_text(encoding="utf-8"), file)

    def test_every_key_is_reached_and_explained(self):
        self.assertEqual("", printed("gaps"))

    def test_no_key_that_a_reader_names_is_missing(self):
        """The literals that readers ask a mapping for, from their sources: a key that no document reaches shows here."""
        known = {part for key in printed("keys").split() for part in key.split(".")}
        asked = re.compile(r"\b(?:map|map_|in|in_|item|table|inner|fabric|node|root|root_|section|options|training|failures|network|model)"
                           r"(?:\.|->)(?:has|get|map|integer|number|boolean|text|choice|duration|bytes|bandwidth|integers|numbers|texts|"
                           r"durations|byte_sizes)\(\"([a-z_]+)\"")
        files = [*(SOURCE / "sim/scenario").glob("load_*.cpp"), *(SOURCE / "models").glob("load_*.cpp"),
                 *(SOURCE / "topology").glob("*.cpp"), SOURCE / "sim/study/sweep_spec.cpp"]
        files.remove(SOURCE / "sim/scenario/load_software.cpp")  # presets of software are no scenarios
        found = {key for file in files for key in asked.findall(file.read_text(encoding="utf-8"))}
        self.assertGreater(len(found), 150)
        self.assertEqual(set(), found - known)


class Schema(unittest.TestCase):
    def test_every_shipped_file_validates(self):
        validators, seen = {kind: validator(kind) for kind in KINDS}, dict.fromkeys(KINDS, 0)
        for folder in ("scenarios", "tools/reference/probes"):
            for file in sorted((SOURCE / folder).rglob("*.yaml")):
                document = load(file.read_text(encoding="utf-8"))
                if kind := kind_of(file, document):
                    seen[kind] += 1
                    self.assertEqual([], [f"{error.json_path}: {error.message}" for error in validators[kind].iter_errors(document)], file)
        self.assertTrue(all(count > 2 for count in seen.values()), seen)

    def test_every_key_that_shipped_scenarios_use_has_a_place_in_the_page(self):
        """A row in the table of its mapping: the page is for people, so it is read as they do."""
        page, keys = (SOURCE / "docs/scenario.md").read_text(encoding="utf-8"), set(printed("keys").split())
        tables = dict(re.findall(r"^### `(.*)`\n\n((?:\|.*\n)+)", page, re.MULTILINE))
        for key in keys:
            if "." in key:
                mapping, name = key.rsplit(".", 1)
                self.assertIn(f"| `{name}` |", tables[mapping], key)

    def refused_by_both(self, text):
        """By the loader with an error at that place, and by the schema."""
        ran = subprocess.run([PROGRAM, "check", "--json", "-"], input=text, cwd=SOURCE, capture_output=True, encoding="utf-8", timeout=60, check=False)
        self.assertEqual(2, ran.returncode, text)
        self.assertNotEqual([], list(validator("scenario").iter_errors(load(text))), text)

    def test_unknown_keys_wrong_types_units_words_and_ranges_are_refused_by_the_loader_and_the_schema(self):
        base = yaml.safe_load((SOURCE / "tools/reference/probes/transformer.yaml").read_text(encoding="utf-8"))
        mistakes = [("parallelism.tensro", 2), ("parallelism.tensor", 0), ("parallelism.tensor", "two"), ("parallelism.tensor", 1.5),
                    ("parallelism.tensor", [1]), ("parallelism", 3), ("parallelism.zero_stage", 4), ("parallelism.sequence_parallel", 1),
                    ("training.precision", "fp4"), ("training.global_batch_size", None), ("training.recompute", "some"),
                    ("training.recompute.granularity", "all"), ("cluster.node.nvlink", 300), ("cluster.node.nvlink", "300 GB"),
                    ("cluster.node.nvlink_latency", "1 parsec"), ("cluster.node.host_memory", "-1 GB"), ("cluster.fabric.kind", "fat-treee"),
                    ("cluster.fabric.oversubscription", 0.5), ("cluster.links", 3), ("model.family", "bert"), ("model.layers", "4"),
                    ("model.experts.top_q", 2), ("schedule", "1f2b"), ("overlap.gradients", "yes"), ("offload.optimizer", 1.5),
                    ("assert.mfu", "about 0.4"), ("assert.speed", "> 1"), ("network.background", 3), ("stagecraft", "one")]
        for path, value in mistakes:
            document = copy.deepcopy(base)
            *sections, key = path.split(".")
            place = document
            for section in sections:
                place = place[section]
            place[key] = value
            with self.subTest(path=path, value=value):
                self.refused_by_both(json.dumps(document))

    def test_a_key_of_another_kind_is_refused_by_the_loader_and_the_schema(self):
        job = load((SOURCE / "tools/reference/probes/failures-spot.yaml").read_text(encoding="utf-8"))
        for process in ({"kind": "exponential", "shape": 0.7}, {"kind": "maintenance", "period": "1 day", "notice": "1 h", "duration": "1 h",
                                                               "shape": 1}, {"kind": "spot", "rate_per_node_day": 0.1}):
            with self.subTest(process=process):
                self.refused_by_both(json.dumps({**job, "failures": {"process": process}}))

    def test_a_required_key_that_is_missing_is_refused_by_the_loader_and_the_schema(self):
        base = yaml.safe_load((SOURCE / "tools/reference/probes/transformer.yaml").read_text(encoding="utf-8"))
        schema, required = validator("scenario").schema, []

        def walk(schema, document, path):
            for name in schema.get("required", []):
                if name in document:
                    required.append((*path, name))
            for name, inner in schema.get("properties", {}).items():
                for form in inner.get("anyOf", [inner]) if isinstance(inner, dict) else []:
                    if isinstance(document.get(name), dict) and "properties" in form:
                        walk(form, document[name], (*path, name))

        walk(schema, base, ())
        self.assertGreater(len(required), 15)
        for path in required:
            document = copy.deepcopy(base)
            place = document
            for section in path[:-1]:
                place = place[section]
            del place[path[-1]]
            with self.subTest(path=path):
                self.refused_by_both(json.dumps(document))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
