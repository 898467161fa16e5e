#!/usr/bin/env python3
"""docs/scenario.md and the JSON Schemas are what the readers of scenarios tell, and the schemas agree with them.

usage: reference_test.py STAGECRAFT STAGECRAFT_REFERENCE SOURCE_DIR [CLASS[.TEST]]

STAGECRAFT_BLESS=1 writes docs/scenario.md and docs/schema/ anew.
"""
import copy
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
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

    def test_a_default_that_its_key_refuses_is_told_in_words(self):
        """`0` of what counts from 1 stands for something else, which the page has to say."""
        page = (SOURCE / "docs/scenario.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| `(\w+)` \| (?:whole )?number, (?:at least )?(\d+)[^|]*\| `([\d.]+)` \|", page, re.MULTILINE)
        self.assertGreater(len(rows), 20)
        self.assertEqual([], [row for row in rows if float(row[2]) < float(row[1])])
        for key in ("nvswitch", "pcie_uplink", "host_memory_bandwidth", "nic_bandwidth", "global_bandwidth"):
            self.assertNotIn(f"| `{key}` | rate | `0` |", page)

    def loader_refuses(self, documents):
        """Of each document whether the loader refuses it: one process, in a copy of the probes' folder."""
        with tempfile.TemporaryDirectory() as folder:
            for file in (SOURCE / "tools/reference/probes").iterdir():
                shutil.copy(file, folder)
            names = [f"{number}-mistaken.yaml" for number in range(len(documents))]
            for name, document in zip(names, documents):
                (Path(folder) / name).write_text(json.dumps(document), encoding="utf-8")
            ran = subprocess.run([PROGRAM, "check", "--json", *names], cwd=folder, capture_output=True, encoding="utf-8", timeout=600, check=False)
        answers = [json.loads(line)["schema"] == "stagecraft.error/1" for line in ran.stdout.splitlines()]
        self.assertEqual(len(documents), len(answers), ran.stderr)
        return answers

    def changed(self, probe, path, value):
        """A probe with another value at a path."""
        document = place = load((SOURCE / f"tools/reference/probes/{probe}.yaml").read_text(encoding="utf-8"))
        for section in path[:-1]:
            place = place[section]
        place[path[-1]] = value
        return document

    def test_a_text_stands_for_a_list_of_one_where_the_page_says_so(self):
        page = (SOURCE / "docs/scenario.md").read_text(encoding="utf-8")
        lists = {("transformer", ("training", "recompute", "modules")): "core_attn",
                 ("failures-spares", ("failures", "policy", "slow_nodes", "rungs")): "rebalance"}
        documents = [self.changed(*place, text) for place, text in lists.items()]
        for (_, path), document, refused in zip(lists, documents, self.loader_refuses(documents)):
            self.assertIn(f"| `{path[-1]}` | text, or a list |", page)
            self.assertFalse(refused, f"the loader refuses {path}")
            self.assertEqual([], [error.message for error in validator("scenario").iter_errors(document)], path)

    def test_what_the_page_leaves_out_is_refused_by_the_loader_and_the_schema(self):
        page = (SOURCE / "docs/scenario.md").read_text(encoding="utf-8")
        self.assertIn("| `order` | list of all five |", page)
        self.assertIn("| `capacity_factor` | number, above 0 |", page)
        self.refused_by_both({"a text for an order": self.changed("transformer", ("parallelism", "order"), "tensor"),
                              "no capacity": self.changed("transformer", ("model", "experts", "capacity_factor"), 0)})

    def refused_by_both(self, mistakes):
        """`mistakes`: what is wrong -> the document."""
        schema = validator("scenario")
        for (what, document), refused in zip(mistakes.items(), self.loader_refuses(list(mistakes.values()))):
            self.assertTrue(refused, f"the loader takes {what}")
            self.assertFalse(schema.is_valid(document), f"the schema takes {what}")

    def test_unknown_keys_wrong_types_units_words_and_ranges_are_refused_by_the_loader_and_the_schema(self):
        base = load((SOURCE / "tools/reference/probes/transformer.yaml").read_text(encoding="utf-8"))
        recompute, links = ("training", "recompute"), ("cluster", "links", 0)
        places = [(("parallelism", "tensro"), 2), (("parallelism", "tensor"), 0), (("parallelism", "tensor"), "two"),
                  (("parallelism", "tensor"), 1.5), (("parallelism", "tensor"), [1]), (("parallelism",), 3), (("parallelism", "zero_stage"), 4),
                  (("parallelism", "sequence_parallel"), 1), (("training", "precision"), "fp4"), (("training", "global_batch_size"), None),
                  (recompute, "some"), ((*recompute, "granularity"), "all"), (("cluster", "node", "nvlink"), 300),
                  (("cluster", "node", "nvlink"), "300 GB"), (("cluster", "node", "nvlink_latency"), "1 parsec"),
                  (("cluster", "node", "host_memory"), "-1 GB"), (("cluster", "fabric", "kind"), "fat-treee"),
                  (("cluster", "fabric", "oversubscription"), 0.5), (("cluster", "links"), 3), ((*links, "share"), 2), ((*links, "color"), "red"),
                  (("model", "family"), "bert"), (("model", "layers"), "4"), (("model", "experts", "top_q"), 2), (("schedule",), "1f2b"),
                  (("overlap", "gradients"), "yes"), (("offload", "optimizer"), 1.5), (("assert", "mfu"), "about 0.4"),
                  (("assert", "speed"), "> 1"), (("network",), "wifi"), (("stagecraft",), "one"), (("colour",), "red")]
        mistakes = {}
        for path, value in places:
            document = copy.deepcopy(base)
            place = document
            for section in path[:-1]:
                place = place[section]
            place[path[-1]] = value
            mistakes[f"{'.'.join(map(str, path))} = {value}"] = document
        self.refused_by_both(mistakes)

    def test_a_key_of_another_kind_is_refused_by_the_loader_and_the_schema(self):
        job = load((SOURCE / "tools/reference/probes/failures-spot.yaml").read_text(encoding="utf-8"))
        processes = [{"kind": "exponential", "shape": 0.7}, {"kind": "maintenance", "notice": "1 h", "duration": "1 h", "shape": 1},
                     {"kind": "spot", "rate_per_node_day": 0.1}, {"kind": "silent-corruption"}]
        self.refused_by_both({str(process): {**job, "failures": {"process": process}} for process in processes})

    def test_what_the_schema_refuses_for_want_of_a_key_the_loader_refuses_as_well(self):
        """Every key of every probe is taken away, one at a time: a schema that asks for more than the loader does would nag."""
        def without_one(value):
            entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
            for key, inner in entries:
                if isinstance(value, dict):
                    yield f"{key}", {other: kept for other, kept in value.items() if other != key}
                for path, changed in without_one(inner):
                    copied = copy.copy(value)
                    copied[key] = changed
                    yield f"{key}.{path}", copied

        schema, documents = validator("scenario"), {}
        for file in sorted((SOURCE / "tools/reference/probes").glob("*.yaml")):
            document = load(file.read_text(encoding="utf-8"))
            if kind_of(file, document) == "scenario":
                documents.update({f"{file.name} without {path}": changed for path, changed in without_one(document)
                                  if not schema.is_valid(changed)})
        self.assertGreater(len(documents), 100)
        nags = [what for what, refused in zip(documents, self.loader_refuses(list(documents.values()))) if not refused]
        self.assertEqual("", "\n".join(nags))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
