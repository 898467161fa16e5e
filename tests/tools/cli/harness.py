"""What the tests of the command line share: how the program is run, a folder for each test, and scenarios.

A module beside this one is run as MODULE STAGECRAFT SOURCE_DIR [CLASS[.TEST]].
"""
import json
import os
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(sys.argv[1]).resolve()
SOURCE = Path(sys.argv[2]).resolve()
GOLDEN = SOURCE / "tests/tools/golden"
FLAGSHIP = "scenarios/gpt3-175b-1024xA100.yaml"
PIPELINE = "scenarios/pipeline-4x8.yaml"
LIMIT_S = 120  # of one command, sanitizers included: something hangs

DONE, NO, WRONG_INPUT = 0, 1, 2

# Most mistakes of the tests are made in this scenario.
GOOD = """\
stagecraft: 1
name: small
model: gpt3-175b
cluster: {node: dgx-a100-80gb, nodes: 128}
parallelism:
  tensor: 8
  pipeline: 8
  data: 16
schedule: 1f1b
training:
  global_batch_size: 1536
  micro_batch_size: 1
  sequence_length: 2048
  precision: bf16
"""

STAGES = """\
stagecraft: 1
model: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms}
parallelism: {pipeline: 4}
schedule: 1f1b
training: {global_batch_size: 8, micro_batch_size: 1}
"""

# 4 samples in (2 + 1) · 3 s on four nodes, each of which fails every tenth day.
FAILING = """\
stagecraft: 1
name: two pipelines
model: {family: stages, forward: 1 s, input_gradient: 1 s, weight_gradient: 1 s}
parallelism: {pipeline: 2, data: 2}
training: {global_batch_size: 4, micro_batch_size: 1}
failures:
  process: {kind: exponential, rate_per_node_day: 0.1, cause: gpu, severity: node, detect: 10 s}
  policy: checkpoint-restart
  checkpoint: {mode: sync, interval: optimal, block: 10 s, load: 20 s}
  repair: 6 h
  horizon: 10 days
  repeats: 20
"""


def changed(old: str, new: str, text: str = GOOD) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


def stagecraft(*words, cwd=SOURCE, text_in=None, env=None, **more):
    """Runs the program; standard output and error as text."""
    variables = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "STAGECRAFT_DATA")}
    variables.update({"STAGECRAFT_DATA": str(SOURCE)} | (env or {}))
    feed = {"stdin": subprocess.DEVNULL} if text_in is None else {"input": text_in}
    more.setdefault("stdout", subprocess.PIPE)
    more.setdefault("stderr", subprocess.PIPE)
    return subprocess.run([PROGRAM, *words], cwd=cwd, env=variables, encoding="utf-8", timeout=LIMIT_S, **feed, **more)


def transcript(lines, cwd=SOURCE, **more):
    """What a terminal would show of these command lines, with what went to standard error and the exit code."""
    shown = []
    for line in lines:
        ran = stagecraft(*shlex.split(line)[1:], cwd=cwd, **more)
        error = "".join(f"! {text}\n" for text in ran.stderr.splitlines())
        shown.append(f"$ {line}\n{ran.stdout}{error}[exit {ran.returncode}]\n")
    return "\n".join(shown)


class Case(unittest.TestCase):
    maxDiff = None

    # Llama 3 8B on one node: its memory, and the node dead.
    LLAMA_8B = ("stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-h100, nodes: 1}\nparallelism: {data: 8}\n"
                "training: {global_batch_size: 64, micro_batch_size: 1, sequence_length: 4096, recompute: full}\n")

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stagecraft-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def results(self, ran):
        return [json.loads(line) for line in ran.stdout.splitlines()]

    def assert_golden(self, name, text):
        file = GOLDEN / f"{name}.txt"
        if os.environ.get("STAGECRAFT_BLESS"):
            file.write_text(text, encoding="utf-8")
        self.assertEqual(file.read_text(encoding="utf-8"), text)

    def assert_refused(self, ran, *, code=WRONG_INPUT):
        """No answer, a message in our own words, and the exit code."""
        self.assertEqual("", ran.stdout)
        self.assertIn("error: ", ran.stderr)
        self.assertNotIn("internal error", ran.stderr)
        self.assertEqual(code, ran.returncode, ran.stderr)


def main():
    """Runs the tests of the module that was started, or of them what its command line names."""
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
