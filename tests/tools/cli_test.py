#!/usr/bin/env python3
"""The command line as a user meets it: what is printed where, and with which exit code.

usage: cli_test.py STAGECRAFT SOURCE_DIR [CLASS[.TEST]]

What whole commands print is kept in golden/*.txt; STAGECRAFT_BLESS=1 writes those files anew. Predicted numbers are in
golden/flagship.txt alone: everything else here is about given numbers, or about no numbers at all.
"""
import csv
import gzip
import json
import os
import pty
import random
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PROGRAM = Path(sys.argv[1]).resolve()
SOURCE = Path(sys.argv[2]).resolve()
GOLDEN = SOURCE / "tests/tools/golden"
FLAGSHIP = "scenarios/gpt3-175b-1024xA100.yaml"
PIPELINE = "scenarios/pipeline-4x8.yaml"
LIMIT_S = 120  # of one command, sanitizers included: something hangs

DONE, NO, WRONG_INPUT = 0, 1, 2

# Every mistake below is made in this scenario.
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

ALIAS_BOMB = "stagecraft: 1\na0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))


def changed(old: str, new: str, text: str = GOOD) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


BAD_SCENARIOS = {
    "unknown-key.yaml": changed("  tensor: 8", "  tensro: 8"),
    "duplicate-key.yaml": changed("  pipeline: 8", "  tensor: 4\n  pipeline: 8"),
    "misspelt-model.yaml": changed("gpt3-175b", "gpt3-175"),
    "misspelt-schedule.yaml": changed("1f1b", "1fb1"),
    "no-unit.yaml": changed("forward: 1 ms", "forward: 1", STAGES),
    "out-of-range.yaml": changed("tensor: 8", "tensor: 0"),
    "contradictory.yaml": changed("data: 16", "data: 3"),
    "missing-keys.yaml": changed("  global_batch_size: 1536\n", ""),
    "does-not-divide.yaml": changed("tensor: 8", "tensor: 7"),
    "too-many-gpus.yaml": changed("nodes: 128", "nodes: 64"),
    "several.yaml": GOOD.replace("nodes:", "nodez:").replace("pipeline: 8", "pipeline: -1").replace("bf16", "bf61"),
    "alias-bomb.yaml": ALIAS_BOMB,
    "not-yaml.yaml": "stagecraft: 1\nmodel: [1, 2\n",
    "not-a-scenario.yaml": "prices: {tea: 3}\n",
    "empty.yaml": "",
}


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

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stagecraft-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

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


class Goldens(Case):
    def test_the_report_of_the_flagship(self):
        self.assert_golden("flagship", transcript([f"stagecraft run {FLAGSHIP}"]))

    def test_a_pipeline_of_given_costs(self):
        self.assert_golden("pipeline", transcript([
            f"stagecraft run {PIPELINE}",
            f"stagecraft check {PIPELINE}",
            f"stagecraft check {PIPELINE} --json",
            f"stagecraft memory {PIPELINE}",
            f"stagecraft memory {PIPELINE} --json",
        ]))

    def test_a_prediction_against_a_trace(self):
        pair = "tests/data/kineto/made_pipeline.yaml tests/data/kineto/made_pipeline.rank0.json"
        self.assert_golden("diff", transcript([
            f"stagecraft diff {pair}",
            f"stagecraft diff {pair} --step 8",
            f"stagecraft diff {pair} --step 8 --json",
            f"stagecraft diff {pair} --rank 1 --step 9",
            f"stagecraft diff {pair} --rank 2",
            f"stagecraft diff {pair} --step 10",
            "stagecraft diff tests/data/kineto/made_pipeline.yaml",
            "stagecraft diff tests/data/kineto/made_pipeline.yaml tests/data/kineto/made_pipeline.yaml",
        ]))

    def test_traces_of_training_runs_as_samples(self):
        folder = "tests/data/kineto"
        self.assert_golden("import-kineto", transcript([
            f"stagecraft import kineto {folder}/hta_nccl_data_excerpt.json",
            f"stagecraft import kineto {folder}/hta_nccl_data_excerpt.json --step 5 --gpus-per-node 1 --quiet",
            f"stagecraft import kineto {folder}/made_2x1.rank0.json",
            f"stagecraft import kineto {folder}/hta_triton_example.json.gz",
            f"stagecraft import kineto {folder}/made_2x1.yaml",
            f"stagecraft import kineto {folder}/hta_nccl_data_excerpt.json --step five",
        ]))

    def test_pictures_of_schedules(self):
        cost = "--forward 1ms --input-gradient 1ms --weight-gradient 1ms"
        shape = "--stages 4 --micro-batches 8"
        self.assert_golden("schedules", transcript([
            f"stagecraft schedule show --schedule 1f1b {shape} {cost}",
            f"stagecraft schedule show --schedule gpipe {shape} {cost}",
            f"stagecraft schedule show --schedule interleaved-1f1b {shape} --chunks 2 {cost}",
            f"stagecraft schedule show --schedule interleaved-group {shape} --chunks 2 {cost}",
            "stagecraft schedule show --schedule interleaved-group --stages 2 --micro-batches 4 --chunks 3 --width 40",
            "stagecraft schedule show --schedule 1f1b --stages 2 --micro-batches 3 --recompute 1s",
            "stagecraft schedule show --schedule 1f1b --stages 2 --micro-batches 3 --message 250ms",
            "stagecraft schedule show --schedule 1f1b --stages 2 --micro-batches 3 --message 500ms --p2p blocking",
            "stagecraft schedule show --schedule 1f1b --stages 2 --micro-batches 12 --width 20",
            "stagecraft schedule show --schedule 1f1b --stages 4 --micro-batches 8 --message 250ms --p2p batched",
            "stagecraft schedule show --schedule zb-v --stages 4 --micro-batches 8 --verbose",
            "stagecraft schedule show --schedule dualpipe --stages 4 --micro-batches 8 --fused 2s",
            "stagecraft schedule show --schedule dualpipe-v --stages 2 --micro-batches 6 --json",
            "stagecraft schedule show --schedule chimera --stages 4 --micro-batches 4",
            "stagecraft schedule show --schedule varuna --stages 3 --micro-batches 4",
            "stagecraft schedule show --schedule pipedream-2bw --stages 3 --micro-batches 4",
            "stagecraft schedule show tests/data/schedules/csv/made_overlap_cell.csv",
            "stagecraft schedule check tests/data/schedules/csv/made_1f1b_p2_m3_compute_only.csv",
            "stagecraft schedule import tests/data/schedules/csv/made_overlap_cell.csv",
            "stagecraft schedule export --schedule zb-h1 --stages 2 --micro-batches 3",
            "stagecraft schedule export --schedule 1f1b --stages 2 --micro-batches 2 --format csv-calls",
            "stagecraft schedule compare --stages 4 --micro-batches 16 --message 100ms --memory-limit 5",
            "stagecraft schedule show --schedule zb-2p --stages 3 --micro-batches 6 --weight-gradient 500ms",
            "stagecraft schedule search --stages 3 --micro-batches 5 --memory-limit 3 --message 100ms",
            "stagecraft schedule search --stages 2 --micro-batches 3 --chunks 2 --memory-limit 3 --goal makespan --json",
            "stagecraft schedule show --schedule 1f1b --stages 2 --micro-batches 2 --forward 0s",
            "stagecraft schedule show --schedule 1f1b --stages 2 --micro-batches 2 --fused 3s",
            "stagecraft schedule show --schedule 1f1b --stages 2 --micro-batches 2 --color always",
            "stagecraft schedule show --schedule 1f1b --stages 2 --micro-batches 2 --json",
        ]))

    def test_imported_jobs_of_megatron(self):
        data = "tests/data/megatron"

        def with_its_variables(name):  # "# TP=8" in its comments
            lines = (SOURCE / data / f"{name}.args.txt").read_text().splitlines()
            defined = [f"--define {line[2:].strip()}" for line in lines if re.fullmatch(r"# [A-Z0-9_]+=\S+", line)]
            return " ".join([f"stagecraft import megatron {data}/{name}.args.txt", *defined])

        header, *rows = [line.split() for line in (SOURCE / data / "sc21_scenarios.tsv").read_text().splitlines()]
        sc21 = " ".join(f"--define {name}={value}" for name, value in zip(header[1:], rows[1][1:]) if value.isalnum())
        gpt3 = f"stagecraft import megatron {data}/train_gpt3_175b_distributed.args.txt"
        self.assert_golden("import-megatron", transcript([
            f"stagecraft import megatron {data}/args_dump_gpt_64layer_tp4_pp16.log.txt",
            f"stagecraft import megatron {data}/made_args_dump_traps.log.txt --node dgx-h100",
            gpt3,
            f"{gpt3} --define GPUS_PER_NODE=8 --define NUM_NODES=1",
            f"{gpt3} --gpus 1024 --vocab 50257 --node dgx-a100-80gb",
            with_its_variables("train_llama3_8b_h100_fp8"),
            f"{with_its_variables('train_mixtral_8x7b_distributed')} --vocab 32000",
            f"{with_its_variables('modelopt_DeepSeek-R1')} --gpus 1024 --node dgx-h100",
            f"{with_its_variables('modelopt_Qwen3-235B-A22B')} --gpus 256 --node dgx-h100",
            f"{with_its_variables('sbatch_mfsdp_deepseek_v3')} --gpus 512 --node dgx-h100",
            f"stagecraft import megatron {data}/sc21_common.args.txt --json",
            f"stagecraft import megatron {data}/sc21_common.args.txt {sc21} --gpus 128 --vocab 51200",
            "stagecraft import megatron --gpus 16 --vocab 1000 --node dgx-h100 -- --num-layers 8 --hidden-size 64 "
            "--num-attention-heads 4 --max-position-embeddings 32 --seq-length 32 --micro-batch-size 1 --bf16 --wibble 3",
            "stagecraft import megatron no-such-file",
            "stagecraft import megatron a b",
            f"{gpt3} --define TP",
            f"{gpt3} --node dgx-h10",
        ]))

    def test_imported_configurations_of_deepspeed(self):
        data = "tests/data/deepspeed"
        self.assert_golden("import-deepspeed", transcript([
            *(f"stagecraft import deepspeed {data}/ds_config_fp16_z{stage}.json" for stage in (0, 1, 2, 3)),
            f"stagecraft import deepspeed {data}/deepcompile_ds_config.json.template",
            "stagecraft import deepspeed tests/data/neox/20B.yml",
            "stagecraft import deepspeed tests/data/neox/20B.yml --gpus 96 --vocab 50257 --node dgx-a100-40gb",
            "stagecraft import deepspeed tests/data/neox/175B.yml --gpus 1024 --vocab 50257",
            "stagecraft import deepspeed README.md",
            "stagecraft import deepspeed",
        ]))

    def test_what_failures_leave(self):
        self.write("job.yaml", FAILING)
        goodput = "stagecraft goodput job.yaml"
        rates = "--vary failures.process.rate_per_node_day=0.1,1,10"
        self.assert_golden("goodput", transcript([
            goodput,
            f"{goodput} --json",
            f"{goodput} --timeline --quiet --set failures.horizon=2days --seed 3",
            f"{goodput} --set failures.policy=hot-spares --quiet",
            f"{goodput} --set failures.policy=oobleck --plan --quiet",
            f"{goodput} --set failures.policy=elastic --verbose",
            f"{goodput} --vary failures.policy=checkpoint-restart,hot-spares,oobleck,bamboo,varuna,recycle,elastic {rates}",
            f"{goodput} --vary failures.policy=bamboo,recycle --json --set failures.repeats=2",
            f"{goodput} --plan",
            f"{goodput} --set 'failures.policy={{name: oobleck, max_failures: 4}}'",
            f"{goodput} --set failures=null",
            f"{goodput} --set failures.policy=oobelck",
            f"{goodput} {rates} --timeline",
            f"{goodput} --format svg",
            f"{goodput} --vary failures.policy=oobleck,none --format svg",
            f"{goodput} --vary failures.horizon=foo",
            "stagecraft goodput",
        ], cwd=self.folder))

    def test_scenarios_side_by_side(self):
        compare = f"stagecraft compare {PIPELINE}"
        self.assert_golden("compare", transcript([
            f"{compare} --vary schedule=gpipe,1f1b",
            f"{compare} --vary schedule=gpipe,1f1b --vary training.global_batch_size=4,8,16 --jobs 3",
            f"{compare} --vary parallelism.virtual_stages=1,2,4 --set schedule=interleaved-group",
            f"{compare} --vary schedule=gpipe,1f1b,interleaved-1f1b,zb-h1",
            f"{compare} --vary schedule=1f1b,2f2b,interleaved-1f1b",
            f"{compare} --vary schedule=1f1b,2f2b,interleaved-1f1b --format markdown",
            f"{compare} --vary schedule=1f1b,2f2b --format csv",
            f"{compare} --vary schedule=1f1b,zb-h1 --format html",
            f"{compare} --vary schedule=2f2b,1f1b",
            f"{compare} {PIPELINE} --set 'assert={{iteration_time: \"<= 30 ms\"}}'",
            f"{compare} no-such-file.yaml",
            f"{compare} --vary training.global_batch_size=8,eight --quiet",
            "stagecraft compare",
            compare,
            f"{compare} --vary schedule",
            f"{compare} --vary schedule=1f1b,",
            f"{compare} --vary schedule=1f1b --vary schedule=gpipe",
            f"{compare} --vary schedule.name=zb-h1 --vary schedule=1f1b,gpipe",
            f"{compare} --vary 'schedule,parallelism.virtual_stages=[1f1b,1],[zb-v,2]'",
            f"stagecraft search {FLAGSHIP} --vary 'schedule, parallelism.virtual_stages=[1f1b,1],[zb-v,2]'",
        ]))

    def test_where_figures_come_from(self):
        explain = f"stagecraft explain {PIPELINE}"
        self.assert_golden("explain", transcript([
            explain,
            f"{explain} breakdown_s.forward --depth 5",
            f"{explain} bubble.over_ideal --set schedule=gpipe",
            f"{explain} memory.peak_bytes --no-sensitivities",
            f"{explain} bubbel",
            f"{explain} bubble --no-sensitivities --depth 0",
            "stagecraft explain not-divisible",
            "stagecraft explain not-divisibel",
            "stagecraft explain",
            f"stagecraft run {PIPELINE} --set schedule=gpipe --why",
            "stagecraft run - --why",
        ]))

    def test_clusters_as_text_and_graphs(self):
        llama = "scenarios/llama3-8b-64xA100.yaml"
        one = "scenarios/seqsel-22b-8xA100-full.yaml"
        show = "stagecraft topology show"
        dragonfly = ("{kind: dragonfly, groups: 2, routers_per_group: 2, nodes_per_router: 2, link_bandwidth: 100 GB/s,"
                     " global_links: 2}")
        rails = "--set cluster.fabric=hdr-rail-optimized --set cluster.fabric.nodes_per_leaf=4"
        self.assert_golden("topology", transcript([
            f"{show} {llama}",
            f"{show} {llama} {rails} --set cluster.fabric.oversubscription=2",
            f"{show} {one}",
            f"{show} {FLAGSHIP} --color always",
            f"{show} {one} --json",
            f"{show} {llama} {rails} --graphviz",
            f"{show} {one} --graphviz --full",
            f"stagecraft topology check {llama} {FLAGSHIP}",
            f"stagecraft topology check {one} --json",
            f"stagecraft topology check {llama} --set 'cluster.links=[{{name: \"node 3 nic 1 -> *\", share: 0.5}}]'",
            f"stagecraft topology check {one} --set 'cluster.links=[{{name: \"node 0 gpu 3 -> *\", missing: true}}]'",
            f"{show} {llama} --set 'cluster.fabric={{kind: torus, dims: [4, 2], link_bandwidth: 50 GB/s}}'",
            f"{show} {llama} --graphviz --set 'cluster.fabric={{kind: torus, dims: [4, 2], link_bandwidth: 50 GB/s}}'",
            f"{show} {llama} --set 'cluster.fabric={dragonfly}'",
            f"{show} {llama} --graphviz --set 'cluster.fabric={dragonfly}'",
            f"{show} {llama} --set cluster.node.nvlink_domain=4",
            f"{show} {llama} --graphviz --set cluster.node.nvlink_domain=4",
            f"{show} {PIPELINE}",
            f"{show} {llama} --set parallelism.tensor=3",
            "stagecraft topology",
            "stagecraft topology draw",
            show,
            f"{show} {one} --full",
            f"{show} {one} --graphviz --json",
            f"stagecraft topology check {one} --graphviz",
        ]))

    def test_imported_topologies(self):
        nccl = "stagecraft import topology tests/data/nccl_topo"
        smi = "stagecraft import topology tests/data/nvidia_smi"
        slurm = "stagecraft import topology tests/data/slurm"
        self.assert_golden("import-topology", transcript([
            f"{nccl}/made_hgx8_dump.xml",
            f"{nccl}/made_vm_2gpu_dump.xml",
            f"{nccl}/azure_ndv5-topo.xml",
            f"{nccl}/azure_ndv4-topo.xml --device A100-SXM4-40GB --link 200Gb/s",
            f"{nccl}/aws_p4d-24xl-topo.xml",
            f"{nccl}/azure_ncv4-topo.xml",
            f"{nccl}/made_version2.xml",
            f"{nccl}/azure_ncv4-graph.xml",
            f"{smi}/topo_m_b200_8gpu_8nic_respaced.txt --device B200-SXM-180GB --link 400Gb/s",
            f"{smi}/made_topo_m_tabs.txt",
            f"{slurm}/made_tree.conf --link 400Gb/s",
            f"{slurm}/made_forest.conf",
            f"{slurm}/made_block.conf",
            f"{slurm}/made_topology.yaml",
            "stagecraft import topology README.md",
            "stagecraft import topology no-such-file.xml",
            "stagecraft import topology",
            f"{slurm}/made_tree.conf --link 400",
            f"{slurm}/made_tree.conf --json",
            f"{nccl}/made_version2.xml --json",
        ]))

    def test_words_that_are_wrong(self):
        shape = "--stages 4 --micro-batches 8"
        self.assert_golden("usage", transcript([
            "stagecraft run --sched 1f1b",
            f"stagecraft run {FLAGSHIP} --jsn",
            f"stagecraft run {FLAGSHIP} --recompute full",
            f"stagecraft run {FLAGSHIP} --max-eror 3",
            f"stagecraft run {FLAGSHIP} -x",
            f"stagecraft run {FLAGSHIP} --wibble",
            f"stagecraft run {FLAGSHIP} --json=3",
            f"stagecraft run {FLAGSHIP} --color red",
            f"stagecraft run {FLAGSHIP} --color auto --color never",
            f"stagecraft run {FLAGSHIP} --seed many",
            f"stagecraft run {FLAGSHIP} --jobs 0",
            f"stagecraft run {FLAGSHIP} --jobs",
            f"stagecraft run {FLAGSHIP} --set",
            f"stagecraft run {FLAGSHIP} ---",
            f"stagecraft run {FLAGSHIP} --=3",
            f"stagecraft run {FLAGSHIP} -=",
            "stagecraft run",
            "stagecraft run --json",
            "stagecraft run ''",
            "stagecraft run - -",
            "stagecraft rnu",
            "stagecraft rnu --json",
            "stagecraft wibble",
            "stagecraft sweep x.yaml",
            "stagecraft --jobs 3 run",
            "stagecraft help wibble",
            "stagecraft --print-completion csh",
            "stagecraft doctor now",
            "stagecraft schedule",
            "stagecraft schedule sho",
            "stagecraft schedule search x.csv --stages 2 --micro-batches 2",
            "stagecraft schedule search --stages 2 --micro-batches 2 --chunks 2 --memory-limit 1",
            "stagecraft schedule search --stages 2 --micro-batches 2 --schedule 1f1b",
            "stagecraft schedule check x.csv",
            "stagecraft schedule check",
            "stagecraft schedule show x.csv --chunks 2",
            "stagecraft schedule export --schedule dualpipe --stages 4 --micro-batches 8",
            "stagecraft schedule compare --schedule 1f1b --stages 4 --micro-batches 8",
            "stagecraft schedule compare --stages 2048 --micro-batches 8000",
            "stagecraft schedule check tests/data/schedules/csv/made_bad_deadlock.csv",
            "stagecraft schedule check tests/data/schedules/csv/made_bad_missing_backward.csv",
            "stagecraft schedule check tests/data/schedules/csv/torchtitan_custom_schedule.csv --memory-limit 15",
            f"stagecraft schedule show {shape}",
            f"stagecraft schedule show --schedule 1fb1 {shape}",
            f"stagecraft schedule show --schedule zb-h9 {shape}",
            "stagecraft schedule show --schedule 1f1b --stages 4",
            "stagecraft schedule show --schedule 1f1b --stages 0 --micro-batches 8",
            "stagecraft schedule show --schedule 1f1b --stages 4 --micro-batches 1.5",
            "stagecraft schedule show --schedule 1f1b --stages 60000 --micro-batches 1000000",
            f"stagecraft schedule show --schedule 1f1b {shape} --chunks 2",
            "stagecraft schedule show --schedule interleaved-1f1b --stages 4 --micro-batches 7 --chunks 2",
            f"stagecraft schedule show --schedule 1f1b {shape} --forward 1",
            f"stagecraft schedule show --schedule 1f1b {shape} --forward=-1s",
            f"stagecraft schedule show --schedule 1f1b {shape} --fused soon",
            f"stagecraft schedule show --schedule zb-h1 {shape} --p2p batched",
            f"stagecraft schedule show --schedule 1f1b {shape} --p2p block",
            f"stagecraft schedule show --schedule 1f1b {shape} --width 3",
            "stagecraft validate --max-error lots",
            "stagecraft calibrate residuals extra-word",
        ]))

    def test_scenarios_that_are_wrong(self):
        for name, text in BAD_SCENARIOS.items():
            self.write(name, text)
        before = sorted(self.folder.iterdir())
        text = transcript([f"stagecraft run {name}" for name in BAD_SCENARIOS] +
                          ["stagecraft check several.yaml --json",
                           "stagecraft memory several.yaml --verbose",
                           "stagecraft run severl.yaml",
                           "stagecraft validate several.yaml"], cwd=self.folder)
        self.assert_golden("bad-scenarios", text)
        self.assertEqual(len(BAD_SCENARIOS) + 4, text.count(f"[exit {WRONG_INPUT}]"))
        self.assertEqual(before, sorted(self.folder.iterdir()), "nothing is written")

    def test_overrides_that_are_wrong(self):
        self.write("good.yaml", GOOD)
        self.assert_golden("bad-overrides", transcript([
            "stagecraft check good.yaml --set parallelism.tensor=4 --set parallelism.data=32",
            "stagecraft check good.yaml --set training.precison=fp16 --set parallelism.tensor=many --set wibble",
            "stagecraft check good.yaml --set training.precison=fp16 --set wibble --json",
            "stagecraft check good.yaml --set =3",
            "stagecraft check good.yaml --set parallelism..tensor=3",
            "stagecraft check good.yaml --set parallelism.tensor=",
            "stagecraft check good.yaml --set training.precision.bits=16",
            "stagecraft check good.yaml --set 'assert={mfu: 3, mfo: \"> 1\"}'",
        ], cwd=self.folder))


class Answers(Case):
    def test_what_was_imported_from_megatron_is_a_scenario(self):
        options = ["--num-layers", "8", "--hidden-size", "64", "--num-attention-heads", "4", "--seq-length", "32", "--bf16",
                   "--max-position-embeddings", "32", "--micro-batch-size", "1", "--pipeline-model-parallel-size", "4"]
        jobs = [["tests/data/megatron/args_dump_gpt_64layer_tp4_pp16.log.txt"],
                ["--gpus", "1024", "--vocab", "50257", "tests/data/megatron/train_gpt3_175b_distributed.args.txt"],
                ["--gpus", "16", "--vocab", "1000", "--", *options]]
        for job in jobs:
            with self.subTest(job=job):
                imported = stagecraft("import", "megatron", *job)
                self.assertEqual(DONE, imported.returncode, imported.stderr)
                checked = stagecraft("check", "-", text_in=imported.stdout)
                self.assertEqual(DONE, checked.returncode, checked.stderr)

    def test_a_launcher_behind_dashes_is_read_as_from_a_file(self):
        line = ("torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 64 --num-attention-heads 4 "
                "--seq-length 32 --max-position-embeddings 32 --micro-batch-size 1 --bf16 --vocab-size 1000")
        read = stagecraft("import", "megatron", "-", text_in=line)
        given = stagecraft("import", "megatron", "--", *line.split())
        self.assertEqual((DONE, DONE), (read.returncode, given.returncode), given.stderr)
        self.assertEqual(read.stdout.replace("From -:", "From command line:"), given.stdout)
        self.assertIn("nodes: 2  # --nnodes", given.stdout)
        self.assertNotIn("torchrun", given.stderr)
        self.write("job.txt", line)
        file = stagecraft("import", "megatron", "--define", "A=--", "--", "job.txt", cwd=self.folder)  # one word is a file
        self.assertEqual(read.stdout.replace("From -:", "From job.txt:"), file.stdout)
        for words in (["job.txt", "--", "--num-layers", "8"], ["job.txt", "torchrun"]):
            self.assert_refused(stagecraft("import", "megatron", *words, cwd=self.folder))

    def test_of_few_sizes_of_nccl_tests_the_times_are_kept(self):
        file = str(SOURCE / "tests/data/nccl_tests/made_all_gather_periter_timestamps.txt")
        ran = stagecraft("import", "nccl-tests", file)
        self.assertEqual(DONE, ran.returncode, ran.stderr)
        self.assertIn(f"{file}: warning: 2 sizes, and 4 are needed to fit latency, bandwidth and root\n"
                      "  hint: measure from 1 KiB to 1 GiB (-b 1K -e 1G -f 2)\n", ran.stderr)
        self.assertIn("# the bus reaches 69.9 GB/s at the largest size", ran.stdout)

    def test_a_trace_that_names_no_device_is_imported_with_device(self):
        def imported(trace, *words):
            return stagecraft("import", "kineto", "-", *words, text_in=json.dumps(trace))

        trace = json.loads((SOURCE / "tests/data/kineto/hta_nccl_data_excerpt.json").read_text(encoding="utf-8"))
        named = imported(trace)
        self.assertEqual(DONE, named.returncode, named.stderr)
        device = trace.pop("deviceProperties")[0]["name"]
        nameless = imported(trace)
        self.assert_refused(nameless)
        self.assertIn("does not name the device (deviceProperties)\n  hint: --device", nameless.stderr)
        given = imported(trace, "--device", device, "--gpus-per-node", "8")
        self.assertEqual(DONE, given.returncode, given.stderr)
        self.assertEqual(len(named.stdout.splitlines()), len(given.stdout.splitlines()))
        self.assertIn(f'"device":"{device}"', given.stdout.replace('": "', '":"'))
        trace["deviceProperties"] = [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]
        other = imported(trace, "--device", "H200")
        self.assert_refused(other)
        self.assertIn("H200 is asked for, and the file says", other.stderr)

    def test_of_a_fragment_check_misses_keys_and_accepts_the_others(self):
        for kind, file in (("hf", "hf_config/llama-3-8b.config.json"), ("deepspeed", "deepspeed/ds_config_fp16_z3.json"),
                           ("topology", "nccl_topo/made_hgx8_dump.xml"), ("topology", "slurm/made_tree.conf")):
            with self.subTest(file=file):
                self.write("fragment.yaml", stagecraft("import", kind, str(SOURCE / "tests/data" / file)).stdout)
                said = json.loads(stagecraft("check", "fragment.yaml", "--json", cwd=self.folder).stdout)
                self.assertEqual({"missing-key"}, {error["code"] for error in said["errors"]}, said)

    def test_compressed_files_are_imported_as_what_they_hold(self):
        files = {"hf": "hf_config/llama-3-8b.config.json", "megatron": "megatron/made_args_dump_traps.log.txt",
                 "deepspeed": "deepspeed/ds_config_fp16_z3.json", "nccl-tests": "nccl_tests/all_reduce_gh200_2x4_fast.txt",
                 "topology": "nccl_topo/made_hgx8_dump.xml"}
        for kind, file in files.items():
            with self.subTest(kind=kind):
                packed = self.folder / "file.gz"
                packed.write_bytes(gzip.compress((SOURCE / "tests/data" / file).read_bytes()))
                plain = stagecraft("import", kind, str(SOURCE / "tests/data" / file))
                ran = stagecraft("import", kind, str(packed))
                self.assertEqual(DONE, ran.returncode, ran.stderr)
                self.assertEqual(plain.stdout.replace(str(SOURCE / "tests/data" / file), str(packed)), ran.stdout)
                packed.write_bytes(packed.read_bytes()[:100])
                cut = stagecraft("import", kind, str(packed))
                self.assert_refused(cut)
                self.assertIn("file.gz: error: is compressed, and damaged or cut off", cut.stderr)
        bomb = self.folder / "bomb.gz"
        bomb.write_bytes(gzip.compress(bytes(65 << 20)))
        ran = stagecraft("import", "hf", str(bomb))
        self.assert_refused(ran)
        self.assertIn("is larger than 64 MiB when unpacked", ran.stderr)

    def results(self, ran):
        return [json.loads(line) for line in ran.stdout.splitlines()]

    def test_each_scenario_is_one_line_of_json(self):
        ran = stagecraft("run", PIPELINE, FLAGSHIP, "--json")
        self.assertEqual([PIPELINE, FLAGSHIP], [result["scenario"] for result in self.results(ran)])
        self.assertEqual(["stagecraft.result/1"] * 2, [result["schema"] for result in self.results(ran)])
        self.assertEqual((DONE, ""), (ran.returncode, ran.stderr))

    def test_variants_are_results_with_what_varies_in_them(self):
        vary = "schedule=gpipe,2f2b,1f1b"
        ran = stagecraft("compare", PIPELINE, "--set", "parallelism.data=null", "--vary", vary, "--json", "--jobs", "2")
        gpipe, unknown, one_f = self.results(ran)
        self.assertEqual([{"schedule": "gpipe"}, {"schedule": "2f2b"}, {"schedule": "1f1b"}],
                         [result["vary"] for result in (gpipe, unknown, one_f)])
        self.assertEqual([1.0, None, 1.0], [result["relative_time"] for result in (gpipe, unknown, one_f)])
        self.assertEqual((PIPELINE, "stagecraft.error/1"), (unknown["scenario"], unknown["schema"]))
        self.assertEqual("--vary schedule=2f2b", unknown["errors"][0]["file"])
        self.assertEqual((0.033, 0.033), (gpipe["iteration_time_s"], one_f["iteration_time_s"]))
        self.assertEqual([(0.0, []), (None, None), (0.0, [])],
                         [(result["difference_s"], result["moved"]) for result in (gpipe, unknown, one_f)])
        self.assertEqual((WRONG_INPUT, ""), (ran.returncode, ran.stderr))

    # As a sweep and a search write it.
    def test_what_varies_is_a_value_in_json(self):
        vary = ["--vary", "training.global_batch_size=8", "--vary", "overlap.gradients=false", "--vary", "assert.iteration_time=<= 1 h"]
        value = {"training.global_batch_size": 8, "overlap.gradients": False, "assert.iteration_time": "<= 1 h"}
        self.write("job.yaml", FAILING)
        for command, file in (("compare", SOURCE / PIPELINE), ("goodput", "job.yaml")):
            self.assertEqual(value, self.results(stagecraft(command, file, *vary, "--json", cwd=self.folder))[0]["vary"])

    def test_a_variant_that_misses_an_assertion_is_told_by_name(self):
        limit = 'assert={peak_memory: "<= 600 MiB"}'  # gpipe holds 640 MiB, 1f1b 576; both take 33 ms, 2f2b is no order
        compare = ["compare", PIPELINE, "--vary", "schedule=gpipe,1f1b,2f2b", "--set", limit]
        table = stagecraft(*compare)
        self.assertEqual(["assert", "missed", "met", "–"],
                         [line.split()[-1] for line in table.stdout.splitlines()[:4]])
        self.assertIn("\nfastest that meets its assert: 1f1b\n", table.stdout)
        said = "assert.peak_memory: gpipe: 640 MiB is not <= 600 MiB"
        self.assertEqual((WRONG_INPUT, f"--set {limit}: error: {said}\n"), (table.returncode, table.stderr))
        rows = list(csv.DictReader(stagecraft(*compare, "--format", "csv").stdout.splitlines()))
        self.assertEqual(["gpipe misses assert.peak_memory: 640 MiB is not <= 600 MiB", ""],
                         [row["reason"] for row in rows[:2]])
        gpipe, one_f, _ = self.results(stagecraft(*compare, "--json"))
        self.assertEqual([{"code": "assertion-missed", "path": "assert.peak_memory",
                           "message": "640 MiB is not <= 600 MiB", "hint": ""}], gpipe["reasons"])
        self.assertNotIn("reasons", one_f)

    def test_a_page_of_several_files_names_their_variants_apart(self):
        job = (SOURCE / "scenarios/goodput/checkpoint-restart.yaml").read_text(encoding="utf-8")
        for names, words in ((("one", "one"), ("a.yaml", "b.yaml")), (("one", "two"), ("one", "two"))):
            for file, name in zip(("a.yaml", "b.yaml"), names):
                self.write(file, re.sub("^name: .*", f"name: {name}", job, flags=re.M))
            ran = stagecraft("goodput", "a.yaml", "b.yaml", "--vary", "failures.repeats=2,x", "--html", "page.html",
                             "--force", cwd=self.folder)
            self.assertEqual(WRONG_INPUT, ran.returncode)
            page = (self.folder / "page.html").read_text(encoding="utf-8")
            self.assertIn(f"<title>{', '.join(dict.fromkeys(names))} by failures.repeats · Stagecraft", page)
            self.assertIn(json.dumps([f"{word}, 2" for word in words], separators=(",", ":")), page)
            for word in words:
                self.assertIn(f"{word}, x: failures.repeats: ", page)

    def test_variants_are_counted_before_they_are_made(self):
        ten = [word for key in ("seed", "batch", "a", "b", "c", "d", "e", "f") for word in
               ("--vary", f"{key}={','.join(map(str, range(10)))}")]
        for command, scenario, most in (("compare", PIPELINE, "10,000"),
                                        ("goodput", "scenarios/goodput/checkpoint-restart.yaml", "1,000")):
            ran = stagecraft(command, scenario, *ten)
            self.assert_refused(ran)
            self.assertIn(f"error: more than {most} variants\n", ran.stderr)

    def test_of_variants_that_all_miss_an_assertion_none_is_fastest(self):
        limit = "assert={iteration_time: '<= 1 ms'}"
        ran = stagecraft("compare", PIPELINE, "--vary", "schedule=gpipe,1f1b", "--set", limit)
        self.assertEqual(NO, ran.returncode)
        self.assertIn("\nnone meets its assert\n", ran.stdout)
        self.assertEqual(["gpipe", "1f1b"], re.findall(r"assert.iteration_time: (\S+): ", ran.stderr))
        varied = stagecraft("compare", PIPELINE, "--vary", "assert.iteration_time='<= 1 ms','<= 1 h'")
        self.assertIn("\nfastest that meets its assert: iteration_time '<= 1 h'\n", varied.stdout)
        self.assertRegex(varied.stderr, r"^--vary assert.iteration_time=")

    def test_what_moved_between_variants_explains_the_difference(self):
        ran = stagecraft("compare", PIPELINE, "--vary", "schedule=gpipe,zb-h1", "--format", "json")
        gpipe, zb_h1 = self.results(ran)
        self.assertEqual(-0.006, zb_h1["difference_s"])
        self.assertEqual([{"part": "bubble", "first_s": 0.009, "here_s": 0.003, "difference_s": -0.006, "share": 1.0}],
                         zb_h1["moved"])

    def test_variants_of_unequal_iterations_are_ranked_by_what_they_train_on(self):
        batches = "training.global_batch_size=4,16"  # 21 ms and 57 ms: 57 / 16 over 21 / 4
        small, large = self.results(stagecraft("compare", PIPELINE, "--vary", batches, "--json"))
        self.assertEqual(1.0, small["relative_time"])
        self.assertAlmostEqual(57 / 16 / (21 / 4), large["relative_time"], places=9)
        self.assertEqual(["sample"] * 2, [result["relative_per"] for result in (small, large)])
        header, *rows = stagecraft("compare", PIPELINE, "--vary", batches, "--format", "csv").stdout.splitlines()
        per = header.split(",").index("relative_per")
        self.assertEqual(["sample"] * 2, [row.split(",")[per] for row in rows])
        alike = self.results(stagecraft("compare", PIPELINE, "--vary", "schedule=gpipe,1f1b", "--json"))
        self.assertEqual(["iteration"] * 2, [result["relative_per"] for result in alike])
        table = stagecraft("compare", PIPELINE, "--vary", batches).stdout
        self.assertIn("relative/sample", table)
        self.assertIn("fastest by samples/s: global_batch_size 16, 1.47x over global_batch_size 4\n", table)
        tokens = stagecraft("compare", FLAGSHIP, "--vary", "training.global_batch_size=768,1536").stdout
        self.assertIn("relative/token", tokens)
        self.assertIn("fastest by tokens/s: global_batch_size 1536, ", tokens)

    def test_small_relative_times_have_three_digits(self):
        table = stagecraft("compare", PIPELINE, "--vary", "model.forward=1 s,1 ms,500 ms", "--set", "model.input_gradient=0 s",
                           "--set", "model.weight_gradient=0 s").stdout.splitlines()
        self.assertEqual(["1.00", "0.00100", "0.50"], [re.split(r"\s{2,}", line)[2] for line in table[1:4]])

    def test_a_first_variant_that_cannot_run_is_said_to_leave_nothing_relative(self):
        said = "times are relative to the first variant, which cannot run"
        self.assertIn(said, stagecraft("compare", PIPELINE, "--vary", "parallelism.pipeline=0,4,8").stdout)
        for values in ("4,0,8", "0"):
            self.assertNotIn(said, stagecraft("compare", PIPELINE, "--vary", f"parallelism.pipeline={values}").stdout)

    def test_a_variant_that_cannot_run_says_all_reasons_with_their_places(self):
        words = ["--vary", "schedule=1f1b,2f2b", "--set", "foo.bar=2", "--set", "training.global_batch_size=x"]
        said = " ".join(stagecraft("compare", PIPELINE, *words).stdout.split())
        wrong = said[said.index("2f2b cannot run: "):]
        for reason in ("--set foo.bar=2: foo: is not a known key", "--set training.global_batch_size=x: training.global_batch_size: 'x'",
                       "--vary schedule=2f2b: schedule: '2f2b' is not a known schedule (did you mean '1f1b'?)"):
            self.assertIn(reason, wrong)

    # 2 and 4 ranks: 27 ms and 33 ms for 8 samples.
    def test_variants_on_unlike_numbers_of_gpus_are_compared_by_each(self):
        stages = "parallelism.pipeline=2,4"
        ran = stagecraft("compare", PIPELINE, "--vary", stages)
        table = [line.split("  ") for line in ran.stdout.splitlines()[:3]]
        head, two, four = ([cell.strip() for cell in row if cell] for row in table)
        gpus, rate = head.index("GPUs"), head.index("samples/s/GPU")
        self.assertEqual([("2", "148.1"), ("4", "60.61")], [(row[gpus], row[rate]) for row in (two, four)])
        self.assertIn("\nthe variants run on 2 to 4 GPUs: samples/s/GPU compares them\nfastest: pipeline 2 on 2 GPUs\n"
                      "most samples/s/GPU: pipeline 2 on 2 GPUs\nleast memory", ran.stdout)
        nodes = stagecraft("compare", FLAGSHIP, "--vary", "cluster.nodes=128,64", "--set", "parallelism.data=null")
        self.assertRegex(nodes.stdout, r"\nthe variants run on 512 to 1,024 GPUs: tokens/s/GPU compares them\n"
                                       r"fastest: nodes 128 on 1,024 GPUs\nmost tokens/s/GPU: nodes 64 on 512 GPUs, 1.\d\dx "
                                       r"over nodes 128\n")
        rows = list(csv.DictReader(stagecraft("compare", PIPELINE, "--vary", stages, "--format", "csv").stdout.splitlines()))
        self.assertEqual([("2", "0"), ("4", "0")], [(row["gpus"], row["tokens_per_s_per_gpu"]) for row in rows])
        alike = stagecraft("compare", PIPELINE, "--vary", "schedule=gpipe,1f1b").stdout
        self.assertNotIn("GPU", alike)

    def test_latencies_of_pairs_say_what_a_message_between_nodes_adds(self):
        self.assertIn("a message between nodes takes 30.0 us more, point_to_point_latency", stagecraft("topology", "show", FLAGSHIP).stdout)
        inside, *between = json.loads(stagecraft("topology", "show", FLAGSHIP, "--json").stdout)["pairs"]
        self.assertEqual(inside["latency_s"], inside["message_latency_s"])
        for pair in between:
            self.assertAlmostEqual(30e-6, pair["message_latency_s"] - pair["latency_s"])

    def test_varied_values_that_change_nothing_are_said(self):
        rates = stagecraft("compare", FLAGSHIP, "--vary", "cluster.fabric.nic_bandwidth=200 Gb/s,400 Gb/s")
        self.assertEqual(1, rates.stderr.count("warning"))
        self.assertIn("--vary cluster.fabric.nic_bandwidth=400 Gb/s: warning: cluster.fabric.nic_bandwidth: counts in part: a GPU has "
                      "NICs of 50 GB/s, and reaches them over PCIe of 31.5 GB/s", rates.stderr)

    def test_a_difference_of_nothing_is_attributed_to_no_part(self):
        # 8 + 4 - 1 of 100 ns: 1.1 us of 33 ms.
        steps = stagecraft("compare", PIPELINE, "--vary", "model.forward=1 ms,1000.1 us,2 ms").stdout
        self.assertIn("\nforward 1000.1 us: 1.10 us (0.0 %) longer than forward 1 ms\n", steps)
        self.assertIn("forward 2 ms: 11.0 ms (33.3 %) longer than forward 1 ms: forward +8.00 ms (73 %), ",
                      " ".join(steps.split()))

    # Forward +100 ms, backward -98 ms; the reduction +0.9 ms is little beside them, and much of the difference.
    def test_what_is_small_beside_large_movements_is_summed_up(self):
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for name, forward, input_gradient, gradient in (("a", 100, 100, 400), ("b", 200, 2, 409)):
                files.append(Path(folder) / f"{name}.yaml")
                files[-1].write_text(
                    f"stagecraft: 1\nmodel: {{family: stages, forward: {forward} ms, input_gradient: {input_gradient} ms, weight_gradient: 100 ms, "
                    f"gradient: {gradient} MB}}\ncluster: {{node: {{device: toy, gpus: 1, nics: 1, nic_bandwidth: 10 GB/s, pcie: 100 GB/s}}, nodes: 2, "
                    "fabric: {kind: single-switch}}\nparallelism: {data: 2}\noverlap: {gradients: false}\ntraining: {global_batch_size: 2}\n")
            said = " ".join(stagecraft("compare", *files).stdout.split())
            self.assertIn("b: 2.90 ms (0.9 %) longer than a: forward +100 ms, backward -98.0 ms, the rest +900 us", said)

    def test_numbers_and_switches_are_told_with_their_key(self):
        for varied, name in (("training.global_batch_size=8,8", "global_batch_size 8"), ("overlap.gradients=true,false", "gradients true"),
                             ("model.gradient=[1 MiB],2 MiB", "gradient [1 MiB]"), ("schedule=1f1b,gpipe", "1f1b")):
            self.assertIn(f": as long as {name}, in every part\n", stagecraft("compare", PIPELINE, "--vary", varied).stdout)
        self.assertIn("\nfastest: forward 1 ms\n", stagecraft("compare", PIPELINE, "--vary", "model.forward=1 ms,2 ms").stdout)
        grid = ["--vary", "schedule=1f1b,gpipe", "--vary", "model.forward=1 ms,2 ms"]
        self.assertIn("\nfastest: 1f1b 1 ms, gpipe 1 ms\n", stagecraft("compare", PIPELINE, *grid).stdout)

    def test_variants_that_are_as_fast_are_all_named(self):
        for values, said in (("1 ms,1 ms", "all are as fast"), ("2 ms,1 ms,1 ms", "forward 1 ms, forward 1 ms, 1."),
                             ("1 ms,1 ms,1 ms,1 ms,1 ms,2 ms", "forward 1 ms, forward 1 ms, forward 1 ms, 2 more\n")):
            self.assertIn("\nfastest: " + said, stagecraft("compare", PIPELINE, "--vary", "model.forward=" + values).stdout)
        some_fit = ["--vary", "training.micro_batch_size=1,4", "--vary", "overlap.pipeline=true,false"]
        ran = stagecraft("compare", "scenarios/llama3-8b-64xA100.yaml", *some_fit).stdout
        self.assertIn("\nfastest that fits: 1 true, 1 false\n", ran)

    def test_one_variant_is_a_table_of_one_row(self):
        ran = stagecraft("compare", PIPELINE, "--vary", "schedule=zb-h1")
        self.assertEqual((DONE, ""), (ran.returncode, ran.stderr))
        head, row = ran.stdout.splitlines()
        self.assertEqual(["zb-h1", "27.0", "ms", "1.00"], row.split()[:4])
        self.assert_refused(stagecraft("compare", PIPELINE))

    def test_every_variant_reads_the_one_standard_input(self):
        given = (SOURCE / PIPELINE).read_text(encoding="utf-8")
        for form in ([], ["--json"]):
            vary = ["--vary", "schedule=gpipe,zb-h1", "--jobs", "2", *form]
            read = stagecraft("compare", "-", *vary, text_in=given)
            self.assertEqual((DONE, ""), (read.returncode, read.stderr))
            self.assertEqual(stagecraft("compare", PIPELINE, *vary).stdout.replace(PIPELINE, "-"), read.stdout)
        beside = stagecraft("compare", "-", PIPELINE, text_in=given)
        self.assertEqual(DONE, beside.returncode, beside.stderr)
        self.write("job.yaml", FAILING)
        rates = ["--vary", "failures.process.rate_per_node_day=0.1,0.2"]
        self.assertEqual(stagecraft("goodput", "job.yaml", *rates, cwd=self.folder).stdout,
                         stagecraft("goodput", "-", *rates, text_in=FAILING).stdout)
        wrong = stagecraft("compare", "-", "--vary", "schedule=gpipe,zb-h1", text_in="stagecraft: 1\nmodel: [1, 2\n")
        self.assertEqual(WRONG_INPUT, wrong.returncode)
        self.assertIn("this '[' is never closed", wrong.stdout)

    def test_an_imported_order_says_that_it_is_for_people(self):
        text = stagecraft("schedule", "import", "tests/data/schedules/csv/made_1f1b_p2_m3_compute_only.csv").stdout
        self.assertEqual(["# 2 ranks, 2 stages, 3 micro-batches, the order of 1f1b",
                          "# for people: check, show and `schedule: {file: …}` read the CSV itself"], text.splitlines()[:2])

    def test_options_of_a_schedule_are_judged_at_once(self):
        ran = stagecraft("schedule", "show", "--schedule", "1f1bb", "--stages", "0", "--micro-batches", "-3", "--forward", "1",
                         "--p2p", "foo")
        self.assertEqual(WRONG_INPUT, ran.returncode)
        said = [line.split(": ")[2] for line in ran.stderr.splitlines() if line.startswith("stagecraft: error: ")]
        self.assertEqual(["--schedule", "--stages", "--micro-batches", "--forward", "--p2p"], said)

    def test_parts_of_schedule_refuse_options_that_they_do_not_take(self):
        order, sizes = ["--schedule", "1f1b"], ["--stages", "4", "--micro-batches", "8"]
        search = {"--memory-limit": "2", "--goal": "makespan", "--effort": "1"}
        for part, words, refused in (("show", order + sizes, search | {"--format": "csv-calls"}),
                                     ("export", order + sizes, search | {"--width": "80", "--p2p": "batched"}),
                                     ("compare", sizes, {"--goal": "makespan", "--effort": "1", "--format": "csv", "--width": "80"})):
            for option, value in refused.items():
                ran = stagecraft("schedule", part, *words, option, value)
                self.assertEqual((WRONG_INPUT, ""), (ran.returncode, ran.stdout), (part, option))
                self.assertIn(f"{option} is nothing that `schedule {part}` takes", ran.stderr)

    def test_standard_output_is_no_file_and_standard_input_is_read_once(self):
        for words in (["run", PIPELINE, "--html", "-"], ["search", FLAGSHIP, "--write-best", "-"], ["sweep", "sweeps/schedules", "--csv", "--output", "-"]):
            ran = stagecraft(*words)
            self.assert_refused(ran)
            self.assertIn(f"{words[-2]} writes a file, and - is none\n", ran.stderr)
        self.assertFalse((SOURCE / "-").exists())
        ran = stagecraft("compare", "-", "-", text_in=GOOD)
        self.assert_refused(ran)
        self.assertIn("standard input can be read only once", ran.stderr)

    def test_options_of_a_wrong_kind_are_one_error(self):
        for value in ("[]", "text"):
            ran = stagecraft("check", FLAGSHIP, "--set", f"options={value}")
            self.assert_refused(ran)
            self.assertTrue(ran.stderr.endswith("\n1 error, nothing was simulated\n"), ran.stderr)

    def test_words_of_which_one_would_be_left_out_in_silence_are_refused(self):
        two_forms = "are two forms of one answer"
        for line, reason in (("validate --memory --markdown", "--markdown is about predicted times, not --memory"),
                             ("validate --memory --ablation", "--ablation is about predicted times, not --memory"),
                             ("validate --ablation --json", "--ablation is a table in Markdown and has no JSON"),
                             ("validate --markdown --json", two_forms),
                             (f"compare {PIPELINE} --vary schedule=1f1b --json --format csv", two_forms),
                             (f"diff {PIPELINE} trace.json --json --format text", two_forms),
                             ("goodput scenarios/goodput/oobleck.yaml --vary failures.repeats=1,2 --json --format svg", two_forms)):
            ran = stagecraft(*line.split())
            self.assertEqual(WRONG_INPUT, ran.returncode, line)
            self.assertIn(reason, ran.stdout if "--json" in line else ran.stderr)

    # 8 micro-batches of 4 stages: the costs of a chunk are those of a stage divided by the chunks, fused pairs included.
    def test_orders_are_compared_at_costs_of_a_stage(self):
        sizes = ["--stages", "4", "--micro-batches", "8"]

        def compared(*words):
            table, = self.results(stagecraft("schedule", "compare", *sizes, "--json", *words))
            self.assertEqual("stage", table["costs_of"])
            return {row["name"]: row.get("makespan_s") for row in table["schedules"]}

        def shown(name, *words):
            return self.results(stagecraft("schedule", "show", "--schedule", name, *sizes, "--chunks", "2", "--json", *words))[0]["makespan_s"]

        of_a_chunk = ["--forward", "500ms", "--input-gradient", "500ms", "--weight-gradient", "500ms"]
        self.assertEqual(compared()["interleaved-1f1b"], shown("interleaved-1f1b", *of_a_chunk))
        self.assertEqual(compared("--fused", "2s")["dualpipe-v"], shown("dualpipe-v", *of_a_chunk, "--fused", "1s"))
        group = ["--micro-batch-group", "8"]
        self.assertEqual(compared(*group)["interleaved-1f1b"], shown("interleaved-1f1b", *of_a_chunk, *group))
        text = stagecraft("schedule", "compare", *sizes).stdout
        self.assertIn("costs are of one stage", text)
        self.assertEqual([], [line for line in text.splitlines() if len(line) > 80])
        longest, = [line for line in text.splitlines() if line.startswith("varuna ")]  # its bar has what is left
        self.assertEqual(80, len(longest))

    def test_orders_that_need_more_chunks_than_are_given_are_not_compared(self):
        refused = {}
        for given in ("1", "2"):
            table, = self.results(stagecraft("schedule", "compare", "--stages", "4", "--micro-batches", "8", "--json", "--chunks", given))
            refused[given] = {row["name"]: (row["chunks"], row["refused"]) for row in table["schedules"] if "refused" in row}
        self.assertEqual((1, "1 chunk a rank: interleaved-1f1b needs at least 2"), refused["1"]["interleaved-1f1b"])
        self.assertEqual((1, "1 chunk a rank: zb-v runs 2, down the ranks and back"), refused["1"]["zb-v"])
        self.assertEqual({}, refused["2"])

    def test_bubbles_of_compared_orders_are_those_that_are_shown(self):
        sizes = ["--stages", "4", "--micro-batches", "8", "--message", "100ms"]
        table, = self.results(stagecraft("schedule", "compare", *sizes, "--json"))
        compared = {row["name"]: row for row in table["schedules"]}
        for name in ("gpipe", "1f1b", "zb-h1", "chimera", "pipedream-2bw"):
            shown, = self.results(stagecraft("schedule", "show", "--schedule", name, *sizes, "--json"))
            self.assertEqual(shown["bubble"], compared[name]["bubble"], name)

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

    def test_a_fused_pair_lasts_from_the_longer_of_its_passes_to_both(self):
        sizes = ["--stages", "4", "--micro-batches", "8"]
        for part in (["show", "--schedule", "dualpipe"], ["show", "--schedule", "dualpipe-v"], ["compare"]):
            for time, written in (("0s", "0 s"), ("1999999us", "1.999999 s"), ("3001ms", "3.001 s")):
                ran = stagecraft("schedule", *part, *sizes, "--fused", time)
                self.assert_refused(ran)
                self.assertEqual(f"stagecraft: error: --fused: a pair of passes of 1 s and 2 s does not last {written}\n"
                                 "  hint: it lasts 2 s, the longer of them, to 3 s, both\n", ran.stderr)
            for time in ("2s", "3s"):
                self.assertEqual(DONE, stagecraft("schedule", *part, *sizes, "--fused", time).returncode)
        nothing = ["--forward", "0s", "--input-gradient", "0s", "--weight-gradient", "0s"]
        show = ["schedule", "show", "--schedule", "dualpipe", *sizes, *nothing, "--fused"]
        self.assertEqual(DONE, stagecraft(*show, "0s").returncode)
        self.assertIn("hint: it lasts 0 s\n", stagecraft(*show, "1s").stderr)
        # An order without pairs has none that could last too long.
        self.assertEqual(DONE, stagecraft("schedule", "show", "--schedule", "1f1b", *sizes, "--fused", "9s").returncode)

    def test_a_key_that_is_set_and_varied_had_no_effect(self):
        for command in ("compare", "goodput"):
            ran = stagecraft(command, PIPELINE, "--set", "schedule.name=zb-h1", "--set", "model.forward=2 ms", "--vary", "schedule=gpipe,1f1b")
            self.assertIn("--set schedule.name=zb-h1: warning: schedule.name: had no effect: --vary varies it\n", ran.stderr)
            self.assertNotIn("model.forward", ran.stderr)
            quiet = stagecraft(command, PIPELINE, "--quiet", "--set", "schedule=zb-h1", "--vary", "schedule=gpipe,1f1b")
            self.assertNotIn("had no effect", quiet.stderr)

    def test_an_explanation_is_a_tree_of_values(self):
        ran = stagecraft("explain", PIPELINE, "bubble.over_ideal", "--json", "--set", "schedule=gpipe")
        tree, = self.results(ran)
        self.assertEqual(("stagecraft.explain/1", PIPELINE, 0.375), (tree["schema"], tree["scenario"], tree["value"]))
        idle, ideal = tree["inputs"]
        self.assertEqual((0.009, 0.024, "s"), (idle["value"], ideal["value"], ideal["unit"]))
        forward = next(result for result in tree["sensitivities"] if result["input"] == "forward of a stage")
        self.assertEqual(("+10 %", 0.375), (forward["change"], forward["value"]))
        self.assertEqual((DONE, ""), (ran.returncode, ran.stderr))

    def test_a_table_of_policies_says_whose_ideal_a_share_is_of(self):
        self.write("job.yaml", FAILING)
        rates = ("--vary", "failures.process.rate_per_node_day=0.1,1")
        two = stagecraft("goodput", "job.yaml", "--vary", "failures.policy=hot-spares,oobleck", *rates, cwd=self.folder).stdout
        self.assertIn("of ideal: of the row's own, 0.4444 to 0.6667 samples/s without failures", two)
        one = stagecraft("goodput", "job.yaml", *rates, cwd=self.folder).stdout
        self.assertNotIn("of ideal: ", one)
        for text in (one, two):
            self.assertIn("\nshare of the throughput without failures\n", text)

    def test_a_table_of_policies_says_who_gets_new_nodes(self):
        self.write("job.yaml", FAILING)
        def table(*policies):
            ran = stagecraft("goodput", "job.yaml", "--vary", "failures.policy=" + ",".join(policies), cwd=self.folder)
            return " ".join(ran.stdout.split())
        self.assertIn("for each that is lost, under checkpoint-restart; only what is repaired, beside spares, under oobleck. {name: "
                      "checkpoint-restart, lost: waited-for}", table("checkpoint-restart", "oobleck"))
        self.assertNotIn("nodes: ", table("{name: checkpoint-restart, lost: waited-for}", "oobleck"))
        self.assertNotIn("nodes: ", table("checkpoint-restart", "none"))

    # Rows and lines by the keys that tell policies of one name apart; of files called alike, by the file.
    def test_policies_of_one_name_are_told_apart(self):
        self.write("job.yaml", FAILING)
        self.write("again.yaml", FAILING)
        rates = ("--vary", "failures.process.rate_per_node_day=0.1,1", "--set", "failures.repeats=2")
        policies = "failures.policy={name: hot-spares, spares: 1, restart: 60 s},{name: hot-spares, spares: 3, restart: 60 s},bamboo"
        ran = stagecraft("goodput", "job.yaml", "--vary", policies, *rates, cwd=self.folder)
        self.assertEqual(DONE, ran.returncode)
        names = [line.split("  ")[0] for line in ran.stdout.splitlines()[1:7]]
        self.assertEqual(["hot-spares, spares 1"] * 2 + ["hot-spares, spares 3"] * 2 + ["bamboo"] * 2, names)
        self.assertIn("A hot-spares, spares 1   B hot-spares, spares 3   C bamboo\n", ran.stdout)
        picture = stagecraft("goodput", "job.yaml", "--vary", policies, *rates, "--format", "svg", cwd=self.folder).stdout
        self.assertIn(">hot-spares, spares 3</text>", picture)
        files = stagecraft("goodput", "job.yaml", "again.yaml", *rates, cwd=self.folder).stdout
        self.assertEqual(["scenario", "job.yaml", "job.yaml", "again.yaml", "again.yaml"],
                         [line.split()[0] for line in files.splitlines()[:5]])

    def test_a_delay_above_the_iteration_is_said_to_be_a_sum(self):
        shared = "scenarios/llama3-70b-128xH100-shared-links.yaml"
        note = "                 (delay: summed over the transfers that the link held up)\n"
        table = stagecraft("run", shared, "--set", "cluster.fabric.oversubscription=4").stdout
        self.assertEqual(1, table.count(note))
        self.assertLess(table.index(" delay\n"), table.index(note))
        self.assertNotIn(note, stagecraft("run", shared, "--set", "network=closed-form").stdout)

    def test_why_is_three_sentences_in_json(self):
        result, = self.results(stagecraft("run", PIPELINE, "--set", "schedule=gpipe", "--why", "--json"))
        self.assertEqual((3, "backward"), (len(result["why"]["sentences"]), result["why"]["bound_by"]))
        best = result["why"]["best"]
        self.assertEqual((["schedule=interleaved-zb"], 0.0255), (best["set"], best["iteration_time_s"]))

    def test_an_imported_model_is_a_scenario_once_the_rest_is_added(self):
        sample = (SOURCE / "tests/data/hf_config/llama-3-8b.config.json").read_text(encoding="utf-8")
        ran = stagecraft("import", "hf", "-", text_in=sample)
        self.assertEqual((DONE, ""), (ran.returncode, ran.stderr))
        fragment = self.write("llama.yaml", ran.stdout)
        rest = "cluster: {node: dgx-a100-80gb, nodes: 1}\ntraining: {global_batch_size: 8, micro_batch_size: 1}\n"
        self.write("whole.yaml", ran.stdout + rest)
        self.write("config.json", sample)
        self.write("names.yaml", f"stagecraft: 1\nmodel: ./{fragment}\n{rest}")
        self.write("names-json.yaml", f"stagecraft: 1\nmodel: config.json\n{rest}")
        for scenario in ("whole.yaml", "names.yaml"):
            checked = stagecraft("check", scenario, cwd=self.folder)
            self.assertEqual((DONE, ""), (checked.returncode, checked.stderr), scenario)
        # The configuration alone does not say what length its job trains with.
        length = "training.sequence_length: is not given: 8192 tokens, the longest that the model's file allows"
        checked = stagecraft("check", "names-json.yaml", cwd=self.folder)
        self.assertEqual(DONE, checked.returncode)
        self.assertIn(length, checked.stderr)
        compared = stagecraft("compare", "names-json.yaml", "--vary", "training.micro_batch_size=1,2", cwd=self.folder)
        self.assertEqual(1, compared.stderr.count(length), compared.stderr)
        result, = self.results(stagecraft("run", "names-json.yaml", "--set", "training.recompute=full", "--json", cwd=self.folder))
        self.assertIn(length, result["warnings"])

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

    def test_a_model_that_is_not_covered_is_refused_by_name(self):
        ran = stagecraft("import", "hf", "tests/data/hf_config/hybrid-qwen3-next-80b-a3b.config.json")
        self.assert_refused(ran)
        self.assertIn("linear attention in 36 of 48 layers (full_attention_interval: 4)", ran.stderr)
        self.assert_refused(stagecraft("import", "hf", "no-such.json"))
        self.assert_refused(stagecraft("import", "hf"))

    def test_the_worst_exit_code_wins_and_the_good_ones_still_print(self):
        bad = self.write("bad.yaml", GOOD.replace("nodes:", "nodez:"))
        missed = self.write("missed.yaml", STAGES + 'assert: {iteration_time: "< 1 ms"}\n')
        good = self.write("good.yaml", STAGES)
        for files, code in (((good, good), DONE), ((missed, good), NO), ((missed, bad, good), WRONG_INPUT),
                            ((bad, missed, good), WRONG_INPUT)):
            with self.subTest(files):
                ran = stagecraft("run", *files, "--json", cwd=self.folder)
                self.assertEqual(code, ran.returncode)
                schemas = {good: "stagecraft.result/1", missed: "stagecraft.result/1", bad: "stagecraft.error/1"}
                self.assertEqual([schemas[file] for file in files], [r["schema"] for r in self.results(ran)])
                self.assertEqual(list(files), [r["scenario"] for r in self.results(ran)])

    def test_an_error_of_an_option_says_which_scenario_it_is_of(self):
        one, two = self.write("one.yaml", STAGES), self.write("two.yaml", STAGES)
        for command in ("run", "check", "search"):
            ran = stagecraft(command, one, two, "--set", "training.nope=1", "--json", cwd=self.folder)
            self.assertEqual([one, two], [document["scenario"] for document in self.results(ran)])

    def assert_answered_one_by_one(self, command, files, codes):
        """On any number of threads: what each file alone gives, one behind the other, and the worst of their codes.
        Of several files one that is refused does not say that nothing was simulated."""
        alone = [stagecraft(*command, file, cwd=self.folder) for file in files]
        self.assertEqual(codes, [ran.returncode for ran in alone])
        for jobs in ("1", "2", "5"):
            with self.subTest(command, jobs=jobs):
                ran = stagecraft(*command, *files, "--jobs", jobs, cwd=self.folder)
                self.assertEqual("".join(one.stdout for one in alone), ran.stdout)
                self.assertEqual("".join(one.stderr.replace("nothing was simulated", f"{file} was not simulated")
                                         for file, one in zip(files, alone)), ran.stderr)
                self.assertEqual(max(codes), ran.returncode)

    def test_several_scenarios_give_the_same_bytes_on_any_number_of_threads(self):
        files = [self.write("slow.yaml", STAGES.replace("batch_size: 8", "batch_size: 4000")),
                 self.write("bad.yaml", GOOD.replace("nodes:", "nodez:")),
                 self.write("missed.yaml", STAGES + 'assert: {iteration_time: "< 1 ms"}\n'),
                 "nosuch.yaml", self.write("good.yaml", STAGES),
                 self.write("infeasible.yaml", STAGES.replace("batch_size: 8", "batch_size: 9").replace(
                     "schedule: 1f1b", "schedule: interleaved-1f1b"))]
        for form in ([], ["--json"]):
            self.assert_answered_one_by_one(["run", *form], files, [DONE, WRONG_INPUT, NO, WRONG_INPUT, DONE, WRONG_INPUT])
            for command in ("check", "memory"):
                self.assert_answered_one_by_one([command, *form], files,
                                                [DONE, WRONG_INPUT, DONE, WRONG_INPUT, DONE, WRONG_INPUT])

    def test_sets_are_scored_to_the_same_bytes_on_any_number_of_threads(self):
        sets = [str(SOURCE / "calibrate/validation" / name) for name in ("megatron_sc21.yaml", "llm_foundry_h100.yaml")]
        one, two = (stagecraft("validate", *sets, "nosuch.yaml", "--jobs", jobs) for jobs in ("1", "2"))
        self.assertEqual((one.stdout, one.stderr), (two.stdout, two.stderr))
        self.assertEqual((WRONG_INPUT, WRONG_INPUT), (one.returncode, two.returncode))
        self.assertLess(one.stdout.index("megatron_sc21"), one.stdout.index("llm_foundry_h100"))

    def test_an_interrupt_ends_behind_whole_answers(self):
        job = subprocess.Popen([PROGRAM, "run", *[FLAGSHIP] * 500, "--json", "--jobs", "2"], cwd=SOURCE, text=True,
                               env=os.environ | {"STAGECRAFT_DATA": str(SOURCE)}, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        self.addCleanup(job.stderr.close)
        self.addCleanup(job.stdout.close)
        first = job.stdout.readline()
        job.send_signal(signal.SIGINT)
        lines, said = [first, *job.stdout], job.stderr.read()
        self.assertEqual(128 + signal.SIGINT, job.wait(LIMIT_S))
        self.assertTrue(all(line == first for line in lines), "an answer was cut off")
        self.assertEqual(f"stopped: {len(lines)} of 500 scenarios are done\n", said)

    def test_an_interrupt_does_not_wait_for_scenarios_that_run(self):
        long = ["scenarios/goodput/varuna.yaml"] * 2
        job = subprocess.Popen([PROGRAM, "goodput", *long, "--json", "--jobs", "2", "--set", "failures.repeats=1000000"],
                               cwd=SOURCE, text=True, env=os.environ | {"STAGECRAFT_DATA": str(SOURCE)},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(1)
        job.send_signal(signal.SIGINT)
        began = time.monotonic()
        out, said = job.communicate(timeout=LIMIT_S)
        self.assertLess(time.monotonic() - began, 5)
        self.assertEqual((128 + signal.SIGINT, "", "stopped: 0 of 2 scenarios are done\n"), (job.returncode, out, said))

    def test_a_missed_assertion_is_exit_1_and_says_both_figures(self):
        text = STAGES + 'assert: {iteration_time: "< 1 ms", bubble_fraction: "<= 0.9"}\n'
        ran = stagecraft("run", self.write("a.yaml", text), cwd=self.folder)
        self.assertEqual(NO, ran.returncode)
        self.assertEqual("a.yaml:6:26: error: assert.iteration_time: 33.0 ms is not < 1 ms\n", ran.stderr)

    def test_json_says_why_the_answer_is_no(self):
        missed = self.write("a.yaml", STAGES + 'assert: {iteration_time: "< 1 ms"}\n')
        reasons = self.results(stagecraft("run", missed, "--json", cwd=self.folder))[0]["reasons"]
        self.assertEqual([{"code": "assertion-missed", "path": "assert.iteration_time",
                           "message": "33.0 ms is not < 1 ms", "hint": ""}], reasons)
        too_much = ["run", FLAGSHIP, "--set", "training.micro_batch_size=16", "--set", "schedule=gpipe", "--set",
                    "parallelism.virtual_stages=1", "--set", "training.attention=unfused", "--json"]
        self.assertNotIn("reasons", self.results(stagecraft(*too_much))[0])
        required = self.results(stagecraft(*too_much, "--require-fit"))[0]
        self.assertEqual(["out-of-memory"], [reason["code"] for reason in required["reasons"]])
        self.assertEqual("out-of-memory", required["memory"]["verdict"])

    def test_several_values_of_an_option_are_none_of_them(self):
        for value in ("auto|always", "|auto", "al"):
            ran = stagecraft("run", PIPELINE, f"--color={value}")
            self.assert_refused(ran)
            self.assertIn(f"--color: '{value}' is not one of its values\n  hint: one of auto|always|never\n", ran.stderr)
        self.assertEqual(DONE, stagecraft("run", PIPELINE, "--color=never").returncode)

    def test_options_may_stand_before_the_command(self):
        for options in (["--json"], ["--color", "never", "--json"]):
            ran = stagecraft(*options, "run", PIPELINE)
            self.assertEqual((DONE, stagecraft("run", PIPELINE, "--json").stdout), (ran.returncode, ran.stdout))
        self.assertIn("--jsn", stagecraft("--jsn", "run", PIPELINE).stderr)
        self.assertIn("--jsn is not an option of `stagecraft`", stagecraft("--jsn").stderr)

    def test_a_profile_of_another_device_than_the_nodes_is_said(self):
        message = "profile: is of NVIDIA H100 80GB HBM3, and the nodes have A100-SXM4-80GB"
        for profile, warnings in (("h100-sxm5-80gb", [message]), ("a100-sxm4-80gb", [])):
            command = ["check", FLAGSHIP, "--set", f"profile={profile}"]
            self.assertEqual(warnings, self.results(stagecraft(*command, "--json"))[0]["warnings"])
            self.assertEqual([f"--set profile={profile}: warning: {text}\n  hint: a100-sxm4-80gb is of this device\n"
                              for text in warnings], [said for said in [stagecraft(*command).stderr] if said])
            ran = self.results(stagecraft("run", *command[1:], "--json"))[0]
            self.assertEqual(bool(warnings), message in ran["warnings"])
        message = "cluster.node.device: is V100, and profile a100-sxm4-80gb is of NVIDIA A100-SXM4-80GB"
        self.assertIn(message, self.results(stagecraft("run", FLAGSHIP, "--set", "cluster.node.device=V100", "--json"))[0]["warnings"])

    def test_an_assertion_that_holds_is_silent(self):
        ran = stagecraft("run", PIPELINE, "--set", 'assert={iteration_time: "== 33 ms", bubble_over_ideal: "< 0.376"}')
        self.assertEqual((DONE, ""), (ran.returncode, ran.stderr))

    def test_what_does_not_fit_is_exit_1_only_where_fitting_is_required(self):
        for command in ("run", "memory"):
            too_much = [command, FLAGSHIP, "--set", "training.micro_batch_size=16", "--set", "schedule=gpipe",
                        "--set", "parallelism.virtual_stages=1", "--set", "training.attention=unfused"]
            with self.subTest(command):
                self.assertEqual(DONE, stagecraft(*too_much).returncode)
                ran = stagecraft(*too_much, "--require-fit")
                self.assertEqual(NO, ran.returncode)
                self.assertRegex(ran.stderr, r"^verdict: out-of-memory on stage \d: [\d.]+ [GT]iB of 79.1 GiB, of which "
                                             r"activations [\d.]+ [GT]iB\n  hint: --set [^\n]*\n$")
                self.assertEqual(DONE, stagecraft(command, FLAGSHIP, "--require-fit").returncode)

    def test_a_fit_that_nobody_can_check_is_said(self):
        for command in ("run", "memory"):
            ran = stagecraft(command, PIPELINE, "--require-fit")
            self.assertEqual(DONE, ran.returncode)
            self.assertIn("note: --require-fit checked nothing: no capacity is given", ran.stderr)
            self.assertNotIn("checked nothing", stagecraft(command, FLAGSHIP, "--require-fit").stderr)

    # What is advised is the first of the what-ifs: alone it does, or the hint says what it leaves and where to look on.
    def test_advice_that_would_do_is_the_fastest_that_fits(self):
        for command in ("run", "memory"):
            too_much = [command, FLAGSHIP, "--require-fit", "--set", "training.micro_batch_size=4"]
            ran = stagecraft(*too_much)
            self.assertEqual(NO, ran.returncode)
            advice = re.search(r"\n  hint: (--set .*): ([\d.]+) GiB, ([\d.]+) s an iteration; `stagecraft memory` prices other "
                               r"changes\n$", ran.stderr)
            self.assertTrue(advice, ran.stderr)
            followed, = self.results(stagecraft(*too_much, *advice[1].split(), "--json"))
            self.assertAlmostEqual(followed["memory"]["peak_bytes"] / 2**30, float(advice[2]), delta=0.05)
            self.assertAlmostEqual(followed["iteration_time_s"], float(advice[3]), delta=0.05)

    # Eight times the layers of GPT-3, and no tensor ranks: neither one change nor two are enough.
    FOR_NO_PLAN = ["--set", "model.layers=768", "--set", "parallelism.tensor=1", "--set", "parallelism.data=null",
                   "--set", "training.global_batch_size=2048", "--set", "options.software=megatron-lm-2021"]

    def test_advice_that_would_not_do_says_what_it_leaves(self):
        too_large = [FLAGSHIP, *self.FOR_NO_PLAN]
        ran = stagecraft("run", *too_large, "--require-fit")
        leaves = re.search(r"hint: --set (\S+) alone leaves ([\d.]+) GiB; `stagecraft memory` prices other changes, "
                           r"`stagecraft search` looks for plans that fit\n$", ran.stderr)
        self.assertTrue(leaves, ran.stderr)
        changed, = self.results(stagecraft("run", *too_large, "--json", "--set", leaves[1]))
        self.assertEqual("out-of-memory", changed["memory"]["verdict"])
        self.assertAlmostEqual(changed["memory"]["peak_bytes"] / 2**30, float(leaves[2]), delta=0.5)

    def test_an_iteration_that_does_not_fit_says_where_room_is_priced(self):
        too_much = ["run", FLAGSHIP, "--set", "training.micro_batch_size=4"]
        note = (f"memory: `stagecraft memory {FLAGSHIP}` prices changes that make room, `stagecraft search {FLAGSHIP}` looks for "
                "plans that fit")
        said = lambda *words: " ".join(stagecraft(*words).stdout.split())
        self.assertIn(note, said(*too_much))
        self.assertNotIn(note, said(*too_much, "--quiet") + said(*too_much, "--json") + said("run", FLAGSHIP))

    def test_a_job_that_no_change_makes_fit_is_sent_to_search(self):
        sent = f"none of these changes fits; `stagecraft search {FLAGSHIP}` looks for plans that do\n"
        self.assertTrue(stagecraft("memory", FLAGSHIP, *self.FOR_NO_PLAN).stdout.endswith(sent))
        self.assertNotIn(sent, stagecraft("memory", FLAGSHIP, "--set", "training.micro_batch_size=4").stdout)

    def test_what_ifs_come_true(self):
        scenario = "scenarios/llama3-8b-64xA100.yaml"
        what_ifs = self.results(stagecraft("memory", scenario, "--json"))[0]["what_ifs"]
        self.assertIn("parallelism.zero_stage=2", [what_if["set"][0] for what_if in what_ifs])
        for what_if in what_ifs:
            changes = [word for change in what_if["set"] for word in ("--set", change)]
            ran = self.results(stagecraft("run", scenario, "--json", *changes))[0]
            self.assertEqual((what_if["peak_bytes"], what_if["iteration_time_s"]),
                             (ran["memory"]["peak_bytes"], ran["iteration_time_s"]), what_if["set"])

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

    LLAMA_8B = ("stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-h100, nodes: 1}\nparallelism: {data: 8}\n"
                "training: {global_batch_size: 64, micro_batch_size: 1, sequence_length: 4096, recompute: full}\n")

    def what_ifs_of(self, text, *words):
        """Each change with its verdict and time."""
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            answer = self.results(stagecraft("memory", file.name, "--json", *words))[0]
        return {" ".join(one["set"]): (one["verdict"], one["iteration_time_s"]) for one in answer["what_ifs"]}, answer

    def test_what_ifs_see_the_memory_of_hosts(self):
        what_ifs, answer = self.what_ifs_of(self.LLAMA_8B, "--set", "offload={optimizer: 1}", "--set", "cluster.node.host_memory=512 GiB")
        self.assertEqual("out-of-memory", answer["memory"]["host"]["verdict"])
        self.assertEqual("fits", what_ifs["parallelism.zero_stage=1"][0])
        first = next(iter(what_ifs.values()))
        self.assertLessEqual(first[1], what_ifs["parallelism.zero_stage=1"][1])
        what_ifs, _ = self.what_ifs_of(self.LLAMA_8B, "--set", "offload={optimizer: 1}", "--set", "parallelism.zero_stage=3",
                                       "--set", "cluster.node.host_memory=64 GiB")
        self.assertEqual("fits", what_ifs["offload.optimizer=0"][0])

    def test_what_ifs_shard_over_more_replicas_and_recompute_more(self):
        scenario = "scenarios/llama3-8b-fsdp-64xH100.yaml"
        answer = self.results(stagecraft("memory", scenario, "--json", "--set", "model=llama-3-70b", "--set", "training.recompute=full"))[0]
        self.assertEqual("out-of-memory", answer["memory"]["verdict"])
        self.assertIn((["parallelism.zero_group=64"], "fits"), [(one["set"], one["verdict"]) for one in answer["what_ifs"]])
        what_ifs, answer = self.what_ifs_of(self.LLAMA_8B, "--set", "training.recompute={granularity: full, method: block, layers: 2}",
                                            "--set", "training.sequence_length=32768", "--set", "training.micro_batch_size=2")
        self.assertEqual("out-of-memory", answer["memory"]["verdict"])
        self.assertIn("training.recompute=full", what_ifs)

    def test_what_ifs_offload_to_the_hosts(self):
        what_ifs, answer = self.what_ifs_of(self.LLAMA_8B.replace("llama-3-8b", "llama-3-70b"), "--set", "parallelism.zero_stage=3")
        self.assertEqual("out-of-memory", answer["memory"]["verdict"])
        verdict, time = what_ifs["offload.optimizer=1"]
        self.assertEqual("fits", verdict)
        self.assertGreater(time, answer["iteration_time_s"])
        self.assertEqual("out-of-memory", what_ifs["offload.activations=1"][0])
        what_ifs, _ = self.what_ifs_of(self.LLAMA_8B, "--set", "offload={optimizer: 1}")
        self.assertNotIn("offload.optimizer=1", what_ifs)

    def test_what_ifs_spread_experts(self):
        answer = self.results(stagecraft("memory", "scenarios/mixtral-8x7b-64xH100.yaml", "--json", "--set", "parallelism.expert=1"))[0]
        self.assertEqual("out-of-memory", answer["memory"]["verdict"])
        verdicts = {" ".join(one["set"]): one["verdict"] for one in answer["what_ifs"]}
        self.assertEqual(("fits", "fits"), (verdicts["parallelism.expert=4"], verdicts["parallelism.expert=8"]))

    def test_what_ifs_of_an_iteration_that_a_dead_node_stops_have_times(self):
        ran = stagecraft("memory", "scenarios/llama3-8b-64xA100.yaml", "--json", "--set", "faults=[{kind: dead-node, node: 0}]")
        self.assertIn("does not finish", ran.stderr)
        answer = self.results(ran)[0]
        healthy = self.results(stagecraft("memory", "scenarios/llama3-8b-64xA100.yaml", "--json"))[0]
        self.assertEqual(healthy["iteration_time_s"], answer["iteration_time_s"])
        self.assertEqual(healthy["what_ifs"], answer["what_ifs"])
        self.assertEqual(healthy["warnings"] + ["faults: the iteration does not finish; these times are without them"],
                         answer["warnings"])

    def test_passes_of_an_order_are_of_lengths_that_can_be_added(self):
        order = ["schedule", "show", "--schedule", "1f1b", "--stages", "4", "--micro-batches", "8", "--forward"]
        self.assertEqual(DONE, stagecraft(*order, "60 s").returncode)
        ran = stagecraft(*order, "50000 days")
        self.assertEqual((WRONG_INPUT, ""), (ran.returncode, ran.stdout))
        self.assertIn("--forward: 50000 days is more than 60.0 s", ran.stderr)
        search = ["schedule", "search", "--stages", "4", "--micro-batches", "8", "--effort", "0"]
        for option in ("--forward", "--input-gradient", "--weight-gradient", "--message"):
            ran = stagecraft(*search, option, "50000 days")
            self.assert_refused(ran)
            self.assertIn(f"{option}: 50000 days is more than 60.0 s", ran.stderr)

    COMPARE = ["schedule", "compare", "--stages", "4", "--micro-batches", "8", "--json"]

    # Chunks of 1.5 ns: a makespan is the nearest whole nanosecond of the one that is a billion times longer.
    def test_costs_of_a_few_nanoseconds_are_cut_into_chunks_exactly(self):
        def rows(unit):
            times = [word for option in ("--forward", "--input-gradient", "--weight-gradient", "--message")
                     for word in (option, f"3 {unit}")]
            return {row["name"]: row for row in self.results(stagecraft(*self.COMPARE, *times))[0]["schedules"]}

        seconds, nanoseconds = rows("s"), rows("ns")
        for name in ("1f1b", "interleaved-1f1b", "looped-bfs", "dualpipe-v"):
            with self.subTest(name):
                self.assertAlmostEqual(seconds[name]["makespan_s"], nanoseconds[name]["makespan_s"] * 1e9, delta=0.51)
                self.assertEqual(seconds[name]["bubble"], nanoseconds[name]["bubble"])

    def test_an_exported_order_is_its_cells_in_json(self):
        export = ["schedule", "export", "--schedule", "dualpipe-v", "--stages", "2", "--micro-batches", "4"]
        for form in ("csv", "csv-calls"):
            document, = self.results(stagecraft(*export, "--format", form, "--json"))
            csv_text = stagecraft(*export, "--format", form).stdout
            self.assertEqual([line.split(",") for line in csv_text.splitlines()], document["ranks"])
            self.assertEqual(["stagecraft.schedule-export/1", "dualpipe-v", 2, 4, 2, form],
                             [document[key] for key in ("schema", "name", "stages", "micro_batches", "chunks", "format")])

    def test_orders_of_files_are_compared_with_those_by_name(self):
        for name, size in (("1f1b", 8), ("interleaved-1f1b", 8), ("gpipe", 4)):
            export = ["schedule", "export", "--schedule", name, "--stages", "4", "--micro-batches", str(size)]
            self.write(f"{name}.csv", stagecraft(*export).stdout)
        files = ["1f1b.csv", "interleaved-1f1b.csv"]
        ran = stagecraft(*self.COMPARE, *files, "gpipe.csv", "--message", "10ms", cwd=self.folder)
        self.assertEqual(DONE, ran.returncode, ran.stderr)
        rows = {row.pop("name"): row for row in self.results(ran)[0]["schedules"]}
        for file in files:
            self.assertEqual(rows[file.removesuffix(".csv")], rows[file])
        self.assertEqual("it is of 4 stages and 4 micro-batches", rows["gpipe.csv"]["refused"])
        self.write("bad.csv", "0F0,0F0\n")
        ran = stagecraft(*self.COMPARE[:-1], "bad.csv", cwd=self.folder)
        self.assert_refused(ran, code=NO)
        self.assertIn("bad.csv:1:", ran.stderr)

    def test_a_value_may_begin_with_a_relation(self):
        for relation, code in ((">= 0.01", DONE), (">= 0.99", NO), ("< 0.99", DONE), (" >= 0.99", NO), ('"  >= 0.99"', NO)):
            self.assertEqual(code, stagecraft("run", FLAGSHIP, "--set", f"assert.mfu={relation}").returncode)

    def test_advice_on_optimizer_states_is_one_that_can_be_taken(self):
        for gpus, shards in ((8, True), (1, False)):
            ran = stagecraft("memory", "scenarios/llama3-8b-64xA100.yaml", "--require-fit", "--set", "parallelism={}",
                             "--set", f"cluster={{node: dgx-a100-80gb, gpus: {gpus}}}", "--set", "training.recompute=full",
                             "--set", "training.global_batch_size=8")
            self.assertEqual(NO, ran.returncode, ran.stderr)
            self.assertEqual(shards, "parallelism.zero_stage=" in ran.stderr, ran.stderr)

    def test_memory_itemises_and_tries_what_would_make_it_fit(self):
        ran = stagecraft("memory", FLAGSHIP, "--set", "training.micro_batch_size=4", "--json")
        answer = self.results(ran)[0]
        for stage in answer["memory"]["stages"]:
            for kind in ("weights", "gradients", "optimizer", "activations", "buffers", "overhead"):
                items = [item["bytes"] for item in stage["items"] if item["class"] == kind]
                self.assertEqual(stage[f"{kind}_bytes"], sum(items))
            self.assertLessEqual(stage["allocated_bytes"], stage["reserved_bytes"])
            self.assertLessEqual(stage["reserved_bytes"], stage["peak_bytes"])
        what_ifs = answer["what_ifs"]
        self.assertIn(["training.micro_batch_size=2"], [what_if["set"] for what_if in what_ifs])
        for what_if in what_ifs:
            self.assertLess(what_if["peak_bytes"], answer["memory"]["peak_bytes"])
        fitting = [w["iteration_time_s"] for w in what_ifs if w["verdict"] != "out-of-memory"]
        self.assertEqual(sorted(fitting), fitting)
        self.assertEqual(fitting, [w["iteration_time_s"] for w in what_ifs[:len(fitting)]])
        # What is offered can be asked for.
        changes = [word for change in what_ifs[0]["set"] for word in ("--set", change)]
        again = stagecraft("memory", FLAGSHIP, "--set", "training.micro_batch_size=4", *changes, "--json")
        self.assertEqual(what_ifs[0]["peak_bytes"], self.results(again)[0]["memory"]["peak_bytes"])

    def test_goodput_of_an_iteration_without_time_is_refused(self):
        zero = ("stagecraft: 1\nmodel: {family: stages, forward: 0 ms, input_gradient: 0 ms, weight_gradient: 0 ms}\n"
                "parallelism: {pipeline: 4}\ntraining: {global_batch_size: 8}\nfailures: {process: {kind: exponential, "
                "rate_per_node_day: 0.1}, policy: checkpoint-restart, horizon: 1 days}\n")
        ran = stagecraft("goodput", "-", text_in=zero)
        self.assertEqual(WRONG_INPUT, ran.returncode, ran.stderr)
        self.assertIn("an iteration takes no time", ran.stderr)

    def test_a_sample_of_a_billion_tokens_takes_longer_than_one_of_a_third(self):
        model = "model={family: llama, layers: 4, hidden: 1024, heads: 16, ffn_hidden: 4096, vocab: 32000}"
        time = [self.results(stagecraft("run", "scenarios/llama3-8b-64xA100.yaml", "--set", model, "--set",
                                        f"training.sequence_length={length}", "--json"))[0]["iteration_time_s"]
                for length in (300_000_000, 1_000_000_000)]
        self.assertGreater(time[1], 9 * time[0])

    def test_memory_tries_weights_in_fp8_where_products_are(self):
        for precision, parameters, offered in (("fp8", "false", True), ("fp8", "true", False), ("bf16", "false", False)):
            ran = stagecraft("memory", "scenarios/llama3-8b-64xA100.yaml", "--set", "cluster={node: dgx-h100, nodes: 8}",
                             "--set", "profile=h100-sxm5-80gb", "--set", f"training.precision={precision}",
                             "--set", f"options.fp8_parameters={parameters}", "--json")
            offers = [what_if["set"] for what_if in self.results(ran)[0]["what_ifs"]]
            self.assertEqual(offered, ["options.fp8_parameters=true"] in offers, (precision, parameters))

    def test_memory_tries_narrow_moments_where_they_are_wide(self):
        for moments, offered in (("fp32", True), ("bf16", False)):
            ran = stagecraft("memory", "scenarios/llama3-8b-64xA100.yaml", "--set", f"training.moment_dtype={moments}", "--json")
            offers = [what_if["set"] for what_if in self.results(ran)[0]["what_ifs"]]
            self.assertEqual(offered, ["training.moment_dtype=bf16"] in offers, moments)

    def test_memory_has_a_second_opinion_for_models_that_it_describes(self):
        ran = stagecraft("memory", "scenarios/llama3-8b-64xA100.yaml", "--model", "fujii", "--json")
        estimate = self.results(ran)[0]["fujii"]
        self.assertEqual(estimate["total_bytes"], estimate["state_bytes"] + estimate["activations_bytes"])
        self.assertEqual([], self.results(ran)[0]["not_read"])
        more = stagecraft("memory", "scenarios/llama3-8b-64xA100.yaml", "--model", "fujii", "--set", "training.recompute=full",
                          "--set", "parallelism.zero_stage=3")
        self.assertIn("not read by these formulas: training.recompute, parallelism.zero_stage beyond 1", more.stdout)
        unlike = stagecraft("memory", "scenarios/llama3-8b-64xA100.yaml", "--model", "fujii", "--set", "profile=h100-sxm5-80gb")
        self.assertIn("warning: profile: is of NVIDIA H100 80GB HBM3, and the nodes have A100-SXM4-80GB", unlike.stderr)
        refused = stagecraft("memory", FLAGSHIP, "--model", "fujii")
        self.assert_refused(refused)
        self.assertIn("dense models with SwiGLU", refused.stderr)

    def test_standard_input_is_a_scenario(self):
        ran = stagecraft("check", "-", text_in=GOOD)
        self.assertEqual(DONE, ran.returncode, ran.stderr)
        self.assertTrue(ran.stdout.startswith("-: ok: 1024 GPUs"), ran.stdout)
        wrong = stagecraft("check", "-", text_in=GOOD.replace("tensor:", "tensro:"))
        self.assert_refused(wrong)
        self.assertIn("<stdin>:6:3: error: parallelism.tensro: ", wrong.stderr)
        for command, text in ((["check"], "family: gpt"), (["goodput"], GOOD), (["schedule", "check"], "0F0,"),
                              (["import", "hf"], "family")):
            refused = stagecraft(*command, "-", text_in=text)
            self.assertIn("<stdin>:", refused.stderr, command)
            in_json = stagecraft(*command, "-", "--json", text_in=text).stdout
            self.assertTrue("<stdin>" in in_json and '"file":"-"' not in in_json, in_json)

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

    def test_a_dead_node_is_an_answer_of_every_command(self):
        word = "faults=[{kind: dead-node, node: 0}]"
        self.write("job.yaml", self.LLAMA_8B)
        said = "error: faults: the iteration does not finish: a node died in it"
        self.assertEqual(NO, stagecraft("run", "job.yaml", "--set", word, cwd=self.folder).returncode)
        for paths in (["iteration_time_s"], ["interval_90_s.0"], ["critical_path"], ["tokens_per_s", "mfu"], ["memory"], []):
            ran = stagecraft("explain", "job.yaml", *paths, "--set", word, cwd=self.folder)
            self.assert_refused(ran, code=NO)
            self.assertIn(said, ran.stderr)
            self.assertIn("1 error, nothing was explained\n", ran.stderr)
        self.assert_refused(stagecraft("explain", "job.yaml", "iteration_tim", "--set", word, cwd=self.folder))
        vary = "faults=[],[{kind: dead-node, node: 0}]"
        self.assertEqual(NO, stagecraft("compare", "job.yaml", "--vary", vary, cwd=self.folder).returncode)
        wrong = stagecraft("compare", "job.yaml", "--vary", vary + ",[{kind: dead-nod, node: 0}]", cwd=self.folder)
        self.assertEqual(WRONG_INPUT, wrong.returncode)

    # Until it stops, little time goes with the work of the whole iteration.
    def test_of_an_iteration_that_stops_no_rate_is_explained(self):
        self.write("job.yaml", self.LLAMA_8B)
        stopped = stagecraft("run", "job.yaml", "--set", "faults=[{kind: dead-node, node: 0, at: 1 ms}]", "--json", cwd=self.folder)
        self.assertFalse(json.loads(stopped.stdout)["faults"]["finishes"])
        self.assertNotIn("above 100 %", stopped.stdout)

    def test_strict_refuses_shapes_without_data(self):
        self.assertEqual(DONE, stagecraft("run", FLAGSHIP, "--strict").returncode)
        odd = ["run", FLAGSHIP, "--set", "training.precision=fp32"]  # the A100 has no rows of TF32
        self.assertEqual(DONE, stagecraft(*odd).returncode)
        ran = stagecraft(*odd, "--strict", "--json")
        self.assertEqual(NO, ran.returncode)
        self.assertEqual(["no-data"], [reason["code"] for reason in json.loads(ran.stdout)["reasons"]])
        self.assertIn("error: profile: no rows near 17 of 17 shapes", ran.stderr)

    def test_quiet_leaves_only_the_answer(self):
        keys = ["--set", "overlap.expert=true"]  # without effect: the model has no experts
        self.assertIn("overlap.expert", stagecraft("run", FLAGSHIP, *keys).stdout)
        ran = stagecraft("run", FLAGSHIP, *keys, "--quiet")
        self.assertNotIn("overlap.expert", ran.stdout + ran.stderr)
        self.assertIn("iteration", ran.stdout)
        imported = ["import", "deepspeed", str(SOURCE / "tests/data/deepspeed/ds_config_fp16_z1.json"), "--gpus", "8"]
        self.assertIn("warning", stagecraft(*imported).stderr)
        self.assertEqual("", stagecraft(*imported, "--quiet").stderr)

    def test_verbose_adds_to_the_answer(self):
        short, long = stagecraft("run", PIPELINE).stdout, stagecraft("run", PIPELINE, "--verbose").stdout
        self.assertTrue(long.startswith(short))
        self.assertIn("formulas", long[len(short):])

    def test_unfolding_changes_no_figure(self):
        smaller = ("--set", "cluster.nodes=16", "--set", "parallelism.data=2", "--set", "training.global_batch_size=64")
        folded = json.loads(stagecraft("run", FLAGSHIP, "--json", *smaller).stdout)
        unfolded = json.loads(stagecraft("run", FLAGSHIP, "--json", *smaller, "--unfold").stdout)
        self.assertLess(folded["simulated_ranks"], unfolded["simulated_ranks"])
        for key in ("iteration_time_s", "breakdown_s", "memory", "mfu", "interval_90_s"):
            self.assertEqual(folded[key], unfolded[key], key)

    def test_the_same_words_give_the_same_bytes(self):
        words = ("run", FLAGSHIP, "--json", "--seed", "7", "--jobs", "2")
        self.assertEqual(stagecraft(*words).stdout, stagecraft(*words).stdout)

    def test_reports_fit_80_columns(self):
        for file in sorted((SOURCE / "scenarios").glob("*.yaml")):
            name = str(file.relative_to(SOURCE))
            for line in stagecraft("run", name, "--verbose").stdout.splitlines():
                self.assertLessEqual(len(line), 80, f"{name}: {line}")

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

    def test_a_hint_to_leave_a_key_out_says_how_without_an_edit(self):
        one_stage = ["check", FLAGSHIP, "--set", "parallelism.pipeline=1"]
        ran = stagecraft(*one_stage)
        self.assert_refused(ran)
        hints = re.findall(r"  hint: (.*)", ran.stderr)
        self.assertEqual(["leave `data` out to use what is left (--set parallelism.data=null)",
                          "leave virtual_stages out, or use a pipeline of 2 or more (--set parallelism.virtual_stages=null)"], hints)
        followed = [word for hint in hints for word in ("--set", hint.split("--set ")[1].rstrip(")"))]
        self.assertEqual(DONE, stagecraft(*one_stage, *followed, "--set", "schedule=1f1b").returncode)

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

    def test_codes_of_the_command_line_are_explained(self):
        for code in ("usage", "internal"):
            ran = stagecraft("explain", code)
            self.assertEqual((DONE, ""), (ran.returncode, ran.stderr))
            self.assertTrue(ran.stdout.startswith(code + ": "), ran.stdout)

    def test_a_time_that_would_be_nothing_is_refused(self):
        show = ("schedule", "show", "--schedule", "1f1b", "--stages", "2", "--micro-batches", "2", "--forward")
        for time in ("1e-300s", "0.4ns"):
            ran = stagecraft(*show, time)
            self.assert_refused(ran)
            self.assertIn(f"--forward: {time} is less than half a nanosecond", ran.stderr)
        self.assertIn("--forward: '1e30s' is too large", stagecraft(*show, "1e30s").stderr)
        for time in ("0s", "0e5s", "0.5ns"):
            self.assertEqual(DONE, stagecraft(*show, time).returncode, time)

    def test_validate_scores_each_set_and_holds_a_limit(self):
        file = "calibrate/validation/megatron_sc21.yaml"
        ran = stagecraft("validate", file, "--json")
        scored = json.loads(ran.stdout)
        errors = [abs(row["predicted_s"] / row["measured_s"] - 1) for row in scored["rows"]]
        self.assertAlmostEqual(sum(errors) / len(errors), scored["mape"], places=12)
        self.assertAlmostEqual(max(errors), scored["worst"], places=12)
        self.assertEqual(DONE, stagecraft("validate", file, "--max-error", "1").returncode)
        ran = stagecraft("validate", file, "--max-error", "0.001")
        self.assertEqual(NO, ran.returncode)
        self.assertIn(f"megatron_sc21: mean error {100 * scored['mape']:.3g} % is above 0.1 %\n", ran.stderr)

    def test_validate_tells_sets_that_constants_were_fitted_on_from_others(self):
        sets = ["calibrate/validation/zero_bubble.yaml", "calibrate/validation/megatron_release_a100.yaml"]
        fitted, held_out, pooled = (json.loads(line) for line in stagecraft("validate", *sets, "--json").stdout.splitlines())
        self.assertEqual((False, True), (fitted["held_out"], held_out["held_out"]))
        for score, pool in ((fitted, pooled["fitted"]), (held_out, pooled["held_out"])):
            self.assertEqual((1, score["rows_scored"]), (pool["sets"], pool["rows"]))
            self.assertAlmostEqual(score["mape"], pool["mape"], places=12)
        said = stagecraft("validate", *sets, "--quiet").stdout
        self.assertEqual(1, " ".join(said.split()).count(", some on these rows"))
        self.assertEqual(1, " ".join(said.split()).count(", none on these rows (held out)"))
        self.assertEqual([], [line for line in said.splitlines() if len(line) > 80])
        self.assertIn(f"\nheld out: 1 set, {held_out['rows_scored']} rows: MAPE {100 * held_out['mape']:.1f} %, bias ", said)
        alone = [json.loads(line) for line in stagecraft("validate", sets[1], sets[1], "--json").stdout.splitlines()][-1]
        self.assertIsNone(alone["fitted"])

    def test_a_profile_of_ones_own_has_the_fitted_constants_of_its_base(self):
        profile = (SOURCE / "calibrate/profiles/a100-sxm4-80gb.yaml").read_text(encoding="utf-8")
        self.write("own.yaml", profile.replace("name: a100-sxm4-80gb", "name: own", 1))
        published = (SOURCE / "calibrate/validation/megatron_sc21.yaml").read_text(encoding="utf-8")
        for name, held_out in (("megatron_sc21", False), ("mine", True)):
            rows = published.replace("a100-sxm4-80gb", str(self.folder / "own.yaml"))
            self.write("rows.yaml", rows.replace("set: megatron_sc21\n", f"set: {name}\n"))
            score = self.results(stagecraft("validate", self.folder / "rows.yaml", "--json"))[0]
            self.assertEqual(["own", held_out], [score["profile"], score["held_out"]])
            said = " ".join(stagecraft("validate", self.folder / "rows.yaml").stdout.split())
            self.assertIn("profile own: constants of its base were fitted on whole iterations, "
                          + ("none on these rows (held out)" if held_out else "some on these rows"), said)

    # Names of rows are longer than what their figures leave: what they begin with is said once, the longest have their own line.
    def test_rows_of_validate_keep_to_a_terminal(self):
        for name, begin in (("dgxc_gb200", "dgxc_v25.05_gb200_"), ("megatron_bridge_gb200", "bridge_"), ("megatron_sc21", "")):
            file = f"calibrate/validation/{name}.yaml"
            said = stagecraft("validate", file).stdout
            of_memory = stagecraft("validate", file, "--memory").stdout
            self.assertEqual([], [line for line in (said + of_memory).splitlines() if len(line) > 80 and "http" not in line])
            self.assertRegex(said, rf"\n  {begin + '…' if begin else 'row'} +predicted  measured ")
            for row in self.results(stagecraft("validate", file, "--json"))[0]["rows"]:
                figures = re.search(rf"\n  {re.escape(row['id'].removeprefix(begin))}\s+([\d.]+)\s+([\d.]+)\s+([-+][\d.]+) %", said)
                predicted, measured, error = map(float, figures.groups())
                self.assertAlmostEqual(row["predicted_s"], predicted, delta=6e-4 * max(1, row["predicted_s"]))
                self.assertAlmostEqual(row["measured_s"], measured, delta=6e-4 * max(1, row["measured_s"]))
                self.assertAlmostEqual(100 * row["error"], error, delta=0.051)

    def test_scores_name_the_program_and_each_profile_once(self):
        sets = ["calibrate/validation/megatron_sc21.yaml", "calibrate/validation/megatron_sc21_rest.yaml"]
        run = self.results(stagecraft("run", FLAGSHIP, "--json"))[0]  # on the same profile
        for words in ([], ["--memory"]):
            for score in self.results(stagecraft("validate", *sets, *words, "--json")):
                self.assertEqual([run["stagecraft_version"], run["profile_hash"]],
                                 [score["stagecraft_version"], score["profile_hash"]], score["schema"])
                self.assertNotIn("scenario_hash", score)

    RUNS = """\
format: stagecraft.published/1
set: mine
source: {{title: our own}}
scenario:
  cluster: {{node: dgx-h100}}
  parallelism: {{data: 8}}
  training: {{global_batch_size: 8, micro_batch_size: 1, sequence_length: 512}}
rows: {rows}
"""

    def test_a_set_that_cannot_be_scored_passes_no_limit(self):
        rows = self.write("rows.yaml", self.RUNS.format(rows="[]"))
        for more, code in (((), DONE), (("--memory",), DONE), (("--max-error", "0.5"), NO)):
            ran = stagecraft("validate", rows, *more, cwd=self.folder)
            self.assertEqual((code, "mine: nothing could be scored\n"), (ran.returncode, ran.stderr))

    def test_a_study_of_sets_without_fitted_constants_says_so(self):
        rows = self.write("rows.yaml", self.RUNS.format(rows="[]"))
        for more in ((), ("--json",), ("--markdown",)):
            ran = stagecraft("validate", rows, "--leave-out", *more, cwd=self.folder)
            self.assertEqual(DONE, ran.returncode)
            self.assertIn("nothing to leave out: no constant was fitted on these sets", ran.stderr)

    def mistakes_of(self, text, *more):
        ran = stagecraft("validate", self.write("rows.yaml", text), *more, cwd=self.folder)
        self.assert_refused(ran)
        return [line.removeprefix("rows.yaml:") for line in ran.stderr.splitlines() if re.match(r"rows.yaml:.* error: ", line)]

    def test_what_was_not_measured_is_no_measurement(self):
        rows = """
  - [one, 1.5, null, 60, true]
  - [two, 0, null, -1, True]
  - [three, null, "9,000", .inf, yes]
  - {id: four, iteration_time_ms: 500 ms, memory_gib: .nan, peers: {other_s: fast}}
columns: [id, iteration_time_s, tokens_per_s_per_gpu, memory_gib, oom]
"""
        for more in ((), ("--memory",)):
            self.assertEqual(["10:11: error: iteration_time_s: 0 is no measurement",
                              "10:20: error: memory_gib: -1 is no measurement",
                              "11:19: error: tokens_per_s_per_gpu: 9,000 is no measurement",
                              "11:28: error: memory_gib: .inf is no measurement",
                              "11:34: error: oom: 'yes' is neither true nor false",
                              "12:35: error: iteration_time_ms: 500 ms is no measurement",
                              "12:55: error: memory_gib: .nan is no measurement",
                              "12:78: error: other_s: fast is no measurement"],
                             self.mistakes_of(self.RUNS.format(rows=rows), *more))
        ran = stagecraft("validate", "rows.yaml", "--json", cwd=self.folder)
        self.assertEqual((WRONG_INPUT, 8), (ran.returncode, len(self.results(ran)[0]["errors"])))

    # They were left out, and the whole model was scored.
    def test_layers_of_a_row_are_of_a_model_of_the_file(self):
        rows = """
  - {id: a, model: llama-3-8b, gpus: 8, layers: 2}
  - {id: b, gpus: 8, layers: 2}
  - {id: c, model: cut, gpus: 8, layers: 2, iteration_time_s: 1}
models: {cut: {family: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 32000}}
"""
        self.assertEqual(["9:49: error: layers: belongs to a model of `models`, and the row's is none",
                          "10:30: error: layers: belongs to a model of `models`, and the row's is none"],
                         self.mistakes_of(self.RUNS.format(rows=rows)))

    def test_a_row_does_not_have_the_keys_that_are_null(self):
        rows = """
  - [a, llama-3-8b, 8, null, 1.5, null, null]
  - {id: b, model: llama-3-8b, gpus: 8, tensor: null, iteration_time_s: 1.5, memory_gib: null}
columns: [id, model, gpus, tensor, iteration_time_s, recompute, memory_gib]
"""
        [score] = self.results(stagecraft("validate", self.write("rows.yaml", self.RUNS.format(rows=rows)), "--json", cwd=self.folder))
        self.assertEqual(([], ["a", "b"]), (score["skipped"], [row["id"] for row in score["rows"]]))

    # Of two times the first of iteration_time_s, iteration_time_ms and tokens_per_s_per_gpu is compared.
    def test_a_row_has_one_time(self):
        rows = self.write("rows.yaml", self.RUNS.format(
            rows="[{id: a, model: llama-3-8b, gpus: 8, tokens_per_s_per_gpu: 9000, iteration_time_s: 2}]"))
        ran = stagecraft("validate", rows, "--json", cwd=self.folder)
        [score] = self.results(ran)
        self.assertEqual([2.0], [row["measured_s"] for row in score["rows"]])
        ran = stagecraft("validate", rows, cwd=self.folder)
        self.assertIn("warning: tokens_per_s_per_gpu: stands beside iteration_time_s, which is the time compared", ran.stderr)

    # 20 GPUs are two and a half nodes, and were scored as two.
    def test_rows_are_of_whole_nodes_or_of_a_part_of_one(self):
        self.assertEqual(["8:25: error: gpus: 'many' is no number of GPUs"],
                         self.mistakes_of(self.RUNS.format(rows="[{id: many, gpus: many}]")))
        rows = self.write("rows.yaml", self.RUNS.format(
            rows="[{id: a, model: llama-3-8b, gpus: 20, data: 20, global_batch_size: 20, iteration_time_s: 1}]"))
        [score] = self.results(stagecraft("validate", rows, "--json", cwd=self.folder))
        self.assertEqual([("a", "20 GPUs are no multiple of the 8 of a node (`gpus_per_node`)")],
                         [(row["id"], row["reason"]) for row in score["skipped"]])
        # Said to be nodes of 4, on a node of 8: two of them have 16.
        rows = self.write("rows.yaml", "gpus_per_node: 4\n" + self.RUNS.format(
            rows="[{id: a, model: llama-3-8b, gpus: 8, data: 16, global_batch_size: 16, iteration_time_s: 1}]"))
        [score] = self.results(stagecraft("validate", rows, "--json", cwd=self.folder))
        self.assertEqual([("a", "8 GPUs were measured, its scenario has 16: does `gpus_per_node` fit its node?")],
                         [(row["id"], row["reason"]) for row in score["skipped"]])

    def test_paths_in_validation_files_begin_at_the_file(self):
        (self.folder / "sets").mkdir()
        self.write("sets/tiny.yaml", "{family: gpt, layers: 2, hidden: 1024, heads: 16, vocab: 32000, max_sequence_length: 512}\n")
        rows = self.write("sets/rows.yaml", self.RUNS.format(rows="[{id: a, model: ./tiny.yaml, gpus: 8, iteration_time_s: 1}]"))
        [score] = self.results(stagecraft("validate", rows, "--json", cwd=self.folder))
        self.assertEqual(([], ["a"]), (score["skipped"], [row["id"] for row in score["rows"]]))

    def test_keys_of_validation_files_are_checked(self):
        runs = self.RUNS.format(rows="\n  - [a, 8]\n  - [a, 8, 16]\n  - {gpus: 8}\n  - none\ncolumns: [id, gpus, gpus]\ncolums: x")
        self.assertEqual(["9:5: error: rows: a row of 2 values under 3 columns",
                          "12:5: error: expected a mapping, found 'none'",
                          "13:10: error: columns: 'gpus' is the name of two columns"],
                         self.mistakes_of(runs))
        self.assertEqual(["3:9: error: models: expected a mapping, found '6'",
                          "4:16: error: peers: expected a mapping, found '3'",
                          "5:11: error: scenario: expected a mapping, found '7'"],
                         self.mistakes_of("format: stagecraft.published/1\nset: x\nmodels: 6\n"
                                          "rows: [{peers: 3}]\nscenario: 7\nsource: {title: x}\n"))
        self.assertEqual(["1:1: error: set: is required, but not given"],
                         self.mistakes_of("format: stagecraft.published/1\nsource: {title: x}\n"))

    # What else a file holds is for its readers.
    def test_what_looks_like_a_slip_in_a_validation_file_is_mentioned(self):
        rows = self.write("rows.yaml", "system_figures: [1]\ncolums: [id]\n" + self.RUNS.format(rows="""
  - {id: a, model: llama-3-8b, gpus: 8, iteration_time_s: 1}
  - {id: a, model: llama-3-8b, gpus: 8, iteration_time_s: 1}
"""))
        ran = stagecraft("validate", rows, cwd=self.folder)
        self.assertEqual(0, ran.returncode, ran.stderr)
        self.assertIn("warning: colums: is not read", ran.stderr)
        self.assertIn("'a' is the id of a row before", ran.stderr)
        self.assertNotIn("system_figures", ran.stderr)
        ran = stagecraft("validate", self.write("rows.yaml", "format: stagecraft.published/1\nset: x\n"), cwd=self.folder)
        self.assertIn("rows: is no list of rows: nothing is scored", ran.stderr)
        ran = stagecraft("validate", self.write("rows.yaml", "format: stagecraft.published/1\nset: x\nrows: []\n"), cwd=self.folder)
        self.assertIn("warning: source: is not given", ran.stderr)

    def test_validate_goes_on_after_a_file_that_is_wrong(self):
        ran = stagecraft("validate", "nosuch.yaml", "calibrate/validation/megatron_sc21.yaml", "--json")
        self.assertEqual(["stagecraft.error/1", "stagecraft.validation/1"], [r["schema"] for r in self.results(ran)])
        self.assertEqual((WRONG_INPUT, ""), (ran.returncode, ran.stderr))


class BadFiles(Case):
    """What is no text at all is refused with a message that names it, and never crashes, hangs or eats the memory."""

    def test_a_wrong_search_section_is_refused_by_every_command(self):
        text = STAGES + "search: {fixx: [schedule], gpus: 256...4096}\n"
        for command in ("check", "run", "search"):
            ran = stagecraft(command, self.write("a.yaml", text), cwd=self.folder)
            self.assert_refused(ran)
            self.assertIn("error: search.fixx: is not a known key\n  hint: did you mean 'fix'?\n", ran.stderr)
            self.assertIn("error: search.gpus: is no list of GPU counts", ran.stderr)

    def assert_file_refused(self, name, reason):
        for command in ("run", "check", "memory", "validate"):
            with self.subTest(command, name=name):
                ran = stagecraft(command, name, cwd=self.folder)
                self.assert_refused(ran)
                self.assertRegex(ran.stderr, rf"^{re.escape(name)}(:\d+:\d+)?: error: ")
                self.assertIn(reason, ran.stderr)
                self.assertIn("  hint: ", ran.stderr)

    def test_a_file_that_is_not_there(self):
        self.assert_file_refused("nosuch.yaml", "no such file")

    def test_a_link_to_nowhere(self):
        (self.folder / "link.yaml").symlink_to("nowhere.yaml")
        self.assert_file_refused("link.yaml", "no such file")

    def test_a_file_in_what_is_no_folder(self):
        self.write("file", GOOD)
        self.assert_file_refused("file/scenario.yaml", "no such file")

    def test_a_file_that_may_not_be_read(self):
        name = self.write("secret.yaml", GOOD)
        (self.folder / name).chmod(0)
        readable = os.access(self.folder / name, os.R_OK)  # by root
        if readable:
            self.assertEqual(DONE, stagecraft("check", name, cwd=self.folder).returncode)
        else:
            self.assert_file_refused(name, "cannot be read: Permission denied")

    def test_a_directory(self):
        (self.folder / "folder").mkdir()
        self.assert_file_refused("folder", "is a directory")

    def test_a_pipe(self):
        os.mkfifo(self.folder / "pipe.yaml")
        self.assert_file_refused("pipe.yaml", "is a pipe or a device")

    def test_a_socket(self):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.folder / "socket.yaml"))
            self.assert_file_refused("socket.yaml", "is a pipe or a device")

    def test_devices(self):
        self.assert_file_refused("/dev/zero", "larger than 64 MiB")
        ran = stagecraft("run", "/dev/null")
        self.assert_refused(ran)
        self.assertIn("/dev/null:1:1: error: the file is empty", ran.stderr)

    def test_a_line_of_a_gigabyte_is_refused_unread(self):
        with open(self.folder / "huge.yaml", "w", encoding="utf-8") as file:
            file.write("stagecraft: 1 # " + "x" * 5000)
            file.truncate(1 << 30)  # a hole: no disk is used
        self.assert_file_refused("huge.yaml", "larger than 64 MiB")

    def test_binary_rubbish(self):
        (self.folder / "rubbish.yaml").write_bytes(random.Random(7).randbytes(1 << 20))
        self.assert_file_refused("rubbish.yaml", "")
        (self.folder / "nul.yaml").write_bytes(b"stagecraft: 1\nname: a\0b\n")
        self.assert_file_refused("nul.yaml", "")

    def test_scenarios_cut_off_anywhere_never_crash(self):
        for length in range(0, len(GOOD), 7):
            ran = stagecraft("check", "-", text_in=GOOD[:length])
            self.assertIn(ran.returncode, (DONE, WRONG_INPUT), f"{GOOD[:length]}\n{ran.stderr}")

    def test_bytes_changed_anywhere_never_crash(self):
        dice = random.Random(11)
        for _ in range(150):
            text = list(GOOD if dice.random() < 0.5 else STAGES)
            for _ in range(dice.randint(1, 3)):
                text[dice.randrange(len(text))] = dice.choice("0189-.:[]{},&*!#%@\"'\n\t eE\x7fé")
            scenario = "".join(text)
            ran = stagecraft("run", "-", "--json", text_in=scenario)
            self.assertIn(ran.returncode, (DONE, WRONG_INPUT), f"{scenario}\n{ran.stderr}")
            json.loads(ran.stdout)


class Output(Case):
    def page(self, name, *more):
        return stagecraft("run", str(SOURCE / PIPELINE), "--html", name, "--force", "--quiet", *more, cwd=self.folder)

    def test_a_file_that_is_replaced_keeps_its_mode(self):
        self.write("page.html", "old")
        for mode in (0o600, 0o664):
            (self.folder / "page.html").chmod(mode)
            self.assertEqual(DONE, self.page("page.html").returncode)
            self.assertEqual(mode, (self.folder / "page.html").stat().st_mode & 0o777)
            self.assertIn("<html", (self.folder / "page.html").read_text(encoding="utf-8"))
        self.assertEqual(["page.html"], os.listdir(self.folder))

    def test_of_a_link_the_file_behind_it_is_written(self):
        (self.folder / "pages").mkdir()
        for name, there in (("old.html", True), ("new.html", False)):
            with self.subTest(name):
                file, link, far = self.folder / "pages" / name, self.folder / name, self.folder / f"far-{name}"
                if there:
                    file.write_text("old", encoding="utf-8")
                link.symlink_to(f"pages/{name}")
                far.symlink_to(link)
                self.assertEqual(DONE, self.page(far.name).returncode)
                self.assertTrue(link.is_symlink() and far.is_symlink())
                self.assertIn("<html", file.read_text(encoding="utf-8"))
        (self.folder / "round").symlink_to("round")
        self.assert_refused(self.page("round"))
        self.assertTrue((self.folder / "round").is_symlink())
        self.assertIn("pages: error: is a directory\n", self.page("pages").stderr)

    def test_a_device_is_written_to_and_not_replaced(self):
        for device, code in (("/dev/null", DONE), ("/dev/full", WRONG_INPUT)):
            with self.subTest(device):
                link = self.folder / Path(device).name  # a link, so that a program that replaces it does no harm
                link.symlink_to(device)
                ran = self.page(link.name)
                self.assertEqual((code, device), (ran.returncode, os.readlink(link)))
                self.assertEqual(code == WRONG_INPUT, f"{link.name}: error: cannot be written: No space left on device\n"
                                 "  hint: make room, or write to another disk\n" in ran.stderr)
                kept = stagecraft("run", str(SOURCE / PIPELINE), "--html", link.name, cwd=self.folder)
                self.assertIn("exists and is left as it is\n  hint: --force writes to it\n", kept.stderr)

    def test_a_file_that_cannot_be_written_is_refused_before_the_work(self):
        self.write("there.yaml", "precious")
        self.write("there.yaml.0.et", "precious")
        for command, option in (("run", "--html"), ("run", "--chakra"), ("search", "--write-best"), ("compare", "--html"),
                                ("goodput", "--html"), ("validate", "--html")):
            for name, why in (("there.yaml", "exists and is left as it is"), ("nosuch/new.yaml", "cannot be written: No such file or directory")):
                with self.subTest(f"{command} {option} {name}"):
                    ran = stagecraft(command, "nosuch-scenario.yaml", option, name, cwd=self.folder)
                    self.assert_refused(ran)
                    first = name + ".0.et" if option == "--chakra" else name
                    self.assertTrue(ran.stderr.startswith(f"{first}: error: {why}\n"), ran.stderr)
                    self.assertNotIn("nosuch-scenario", ran.stderr)
        ran = stagecraft("run", "nosuch-scenario.yaml", "--html", "there.yaml", "--trace", "nosuch/new.json", "--json", cwd=self.folder)
        self.assertEqual((WRONG_INPUT, ""), (ran.returncode, ran.stderr))
        self.assertEqual(["cannot-write", "exists"], [error["code"] for error in json.loads(ran.stdout)["errors"]])
        for name in ("there.yaml", "there.yaml.0.et"):
            self.assertEqual("precious", (self.folder / name).read_text(encoding="utf-8"))

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_of_others_is_said_to_be_one(self):
        (self.folder / "theirs").mkdir(mode=0o555)
        ran = self.page("theirs/page.html")
        self.assert_refused(ran)
        self.assertIn("theirs/page.html: error: cannot be written: Permission denied\n"
                      "  hint: this folder is not yours to write to: name a file in another\n", ran.stderr)

    def test_a_page_has_the_hash_of_its_document(self):
        for order in ("1f1b", "gpipe"):  # the contents of a file of one name
            cells = stagecraft("schedule", "export", "--schedule", order, "--stages", "4", "--micro-batches", "8").stdout
            file = self.folder / self.write("order.csv", cells)
            ran = stagecraft("run", str(SOURCE / PIPELINE), "--set", f"schedule={{file: {file}}}", "--json", "--html", "page.html",
                             "--force", cwd=self.folder)
            page = (self.folder / "page.html").read_text(encoding="utf-8")
            self.assertIn('"scenario_hash":"{}"'.format(json.loads(ran.stdout)["scenario_hash"]), page, order)

    def test_the_traces_of_all_ranks_are_written_or_none(self):
        self.write("trace.2.et", "precious")
        ran = stagecraft("run", str(SOURCE / PIPELINE), "--quiet", "--chakra", "trace", cwd=self.folder)
        self.assert_refused(ran)
        self.assertIn("trace.2.et: error: exists and is left as it is\n", ran.stderr)
        self.assertEqual(["trace.2.et"], os.listdir(self.folder))

    def test_a_file_is_written_beside_what_another_process_writes(self):
        (self.folder / "page.html.part").mkdir()
        self.assertEqual(DONE, self.page("page.html").returncode)
        self.assertEqual({"page.html", "page.html.part"}, set(os.listdir(self.folder)))

    def test_a_pipe_is_written_to_and_not_replaced(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, encoding="utf-8") as reader:
            try:
                self.assertEqual(DONE, self.page("pipe").returncode)
                self.assertTrue(pipe.is_fifo())
                self.assertIn("<html", reader.stdout.read())
            finally:
                reader.kill()  # it waits where nobody wrote

    def test_a_full_disk_is_an_error(self):
        for words in (["run", PIPELINE], ["run", PIPELINE, "--json"], ["run", "nosuch.yaml", "--json"], ["--help"],
                      ["run", "--json"], ["doctor"], ["--version"]):
            with self.subTest(words), open("/dev/full", "w", encoding="utf-8") as full:
                ran = stagecraft(*words, stdout=full)
                self.assertEqual(WRONG_INPUT, ran.returncode)
                self.assertEqual("stagecraft: error: standard output could not be written\n", ran.stderr)

    def test_a_closed_output_is_an_error(self):
        line = f"{shlex.quote(str(PROGRAM))} run {PIPELINE} >&-"
        ran = subprocess.run(["sh", "-c", line], cwd=SOURCE, capture_output=True, timeout=LIMIT_S, check=False)
        self.assertEqual(WRONG_INPUT, ran.returncode)

    def test_a_reader_that_leaves_is_no_error_of_ours(self):
        show = f"{shlex.quote(str(PROGRAM))} schedule show --schedule gpipe --stages 500 --micro-batches 2000"
        line = f"{show} --json | head -c 1; exit ${{PIPESTATUS[0]}}"
        for ignored in (False, True):  # the signal ends the program, or the write fails
            with self.subTest(ignored=ignored):
                before = signal.getsignal(signal.SIGPIPE)
                signal.signal(signal.SIGPIPE, signal.SIG_IGN if ignored else signal.SIG_DFL)
                try:
                    ran = subprocess.run(["bash", "-c", line], cwd=SOURCE, capture_output=True, encoding="utf-8",
                                         timeout=LIMIT_S, check=False, restore_signals=False)
                finally:
                    signal.signal(signal.SIGPIPE, before)
                self.assertEqual("{", ran.stdout)
                self.assertNotIn("internal error", ran.stderr)
                self.assertEqual(WRONG_INPUT if ignored else 128 + signal.SIGPIPE, ran.returncode, ran.stderr)

    def on_terminal(self, *words, env=None):
        """What a terminal shows: both streams."""
        ours, theirs = pty.openpty()
        ran = stagecraft(*words, env=env, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = b""
        try:
            while block := os.read(ours, 1 << 16):
                shown += block
        except OSError:  # the terminal is closed and empty
            pass
        os.close(ours)
        return ran.returncode, shown.decode("utf-8").replace("\r\n", "\n")

    def test_colour_is_for_terminals_and_can_be_had_or_not(self):
        show = ("schedule", "show", "--schedule", "1f1b", "--stages", "2", "--micro-batches", "2")
        self.assertIn("\x1b[", self.on_terminal(*show)[1])
        self.assertNotIn("\x1b", self.on_terminal(*show, env={"NO_COLOR": "1"})[1])
        self.assertIn("\x1b[", self.on_terminal(*show, env={"NO_COLOR": ""})[1])
        self.assertNotIn("\x1b", self.on_terminal(*show, "--color", "never")[1])
        self.assertNotIn("\x1b", stagecraft(*show).stdout)
        self.assertIn("\x1b[", stagecraft(*show, "--color", "always", env={"NO_COLOR": "1"}).stdout)

    def test_colour_changes_nothing_but_the_colour(self):
        show = ("schedule", "show", "--schedule", "interleaved-group", "--stages", "2", "--micro-batches", "4",
                "--chunks", "2")
        painted = stagecraft(*show, "--color", "always").stdout
        self.assertEqual(stagecraft(*show).stdout, re.sub("\x1b\\[[0-9]*m", "", painted))

    def test_a_terminal_shows_the_line_that_is_wrong(self):
        file = self.folder / self.write("bad.yaml", changed("tensor: 8", "tensor: 0"))
        code, shown = self.on_terminal("check", str(file))
        self.assertEqual(WRONG_INPUT, code)
        self.assertIn("    6 |   tensor: 0\n      |           ^\n", shown)
        self.assertNotIn("^", stagecraft("check", str(file)).stderr)

    def test_the_picture_is_the_published_one(self):
        """The ten-second demonstration, character for character."""
        ran = stagecraft("schedule", "show", "--schedule", "1f1b", "--stages", "4", "--micro-batches", "8", "--forward",
                         "1ms", "--input-gradient", "1ms", "--weight-gradient", "1ms")
        self.assertEqual("""\
1f1b   4 stages, 8 micro-batches   F 1 ms, B 2 ms                 one column = 0.5 ms
rank 0  0▁1▁2▁3▁············0▓▓▓4▁1▓▓▓5▁2▓▓▓6▁3▓▓▓7▁4▓▓▓··5▓▓▓··6▓▓▓··7▓▓▓   live 4
rank 1  ··0▁1▁2▁········0▓▓▓3▁1▓▓▓4▁2▓▓▓5▁3▓▓▓6▁4▓▓▓7▁5▓▓▓··6▓▓▓··7▓▓▓····   live 3
rank 2  ····0▁1▁····0▓▓▓2▁1▓▓▓3▁2▓▓▓4▁3▓▓▓5▁4▓▓▓6▁5▓▓▓7▁6▓▓▓··7▓▓▓········   live 2
rank 3  ······0▁0▓▓▓1▁1▓▓▓2▁2▓▓▓3▁3▓▓▓4▁4▓▓▓5▁5▓▓▓6▁6▓▓▓7▁7▓▓▓············   live 1
        ▁ forward  ▓ backward  · idle                 digit: micro-batch (mod 10)
makespan 33 ms   ideal 24 ms   bubble 9 ms = 37.5 % over ideal, 27.3 % of rank time
""", ran.stdout)


class Help(Case):
    def commands(self):
        overview = stagecraft("--help").stdout
        return re.findall(r"^  ([a-z]+) ", overview.split("commands\n")[1].split("\n\n")[0], re.MULTILINE)

    def test_what_it_says(self):
        lines = ["stagecraft --help"] + [f"stagecraft {command} --help" for command in self.commands()]
        self.assert_golden("help", transcript(lines))

    def test_each_fits_a_screen_and_begins_with_examples(self):
        for words in [()] + [(command,) for command in self.commands()]:
            with self.subTest(words):
                ran = stagecraft(*words, "--help")
                self.assertEqual((DONE, ""), (ran.returncode, ran.stderr))
                lines = ran.stdout.splitlines()
                self.assertLessEqual(len(lines), 40)
                self.assertLessEqual(max(map(len, lines)), 100)
                self.assertTrue(any(line.startswith("  stagecraft ") for line in lines[:3]), lines[:3])

    def test_every_example_works(self):
        for words in [()] + [(command,) for command in self.commands()]:
            head = re.split(r"\n(?:usage|commands)", stagecraft(*words, "--help").stdout)[0]
            examples = re.findall(r"^  (stagecraft .*)$", head, re.MULTILINE)
            self.assertGreaterEqual(len(examples), 2, words)
            for example in examples:
                with self.subTest(example):
                    ran = stagecraft(*shlex.split(example)[1:])
                    self.assertEqual(DONE, ran.returncode, ran.stderr)
                    self.assertNotEqual("", ran.stdout)

    def test_there_are_several_ways_to_ask(self):
        wanted = stagecraft("run", "--help").stdout
        for words in (("run", "-h"), ("help", "run"), ("run", FLAGSHIP, "--help")):
            self.assertEqual(wanted, stagecraft(*words).stdout, words)
        self.assertEqual(stagecraft("--help").stdout, stagecraft("help").stdout)
        self.assertEqual(stagecraft("--help").stdout, stagecraft("-h").stdout)

    def test_no_words_at_all_give_help_and_are_wrong(self):
        ran = stagecraft()
        self.assertEqual((WRONG_INPUT, ""), (ran.returncode, ran.stdout))
        self.assertEqual(stagecraft("--help").stdout, ran.stderr)

    def test_version(self):
        self.assertRegex(stagecraft("--version").stdout, r"^stagecraft \d+\.\d+\.\d+\n$")


class Completion(Case):
    def completed(self, line):
        """What bash offers after this line and a tab; it splits words at '='."""
        words = [part for word in line.split(" ") for part in re.findall("=|[^=]+", word) or [""]]
        script = self.folder / "completion.bash"
        if not script.exists():
            self.write("completion.bash", stagecraft("--print-completion", "bash").stdout)
        ask = (f"set -u; source {shlex.quote(str(script))}; COMP_WORDS=({' '.join(map(shlex.quote, words))}); "
               f"COMP_CWORD={len(words) - 1}; _stagecraft; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        ran = subprocess.run(["bash", "--norc", "-c", ask], cwd=SOURCE, capture_output=True, encoding="utf-8",
                             timeout=LIMIT_S, check=False)
        self.assertEqual((0, ""), (ran.returncode, ran.stderr))
        return ran.stdout.split()

    def test_commands(self):
        self.assertEqual(["schedule"], self.completed("stagecraft sch"))

    def test_options(self):
        self.assertEqual(["--set", "--seed"], self.completed("stagecraft run --se"))
        self.assertEqual(["--require-fit"], self.completed("stagecraft memory --req"))

    def test_values_of_options(self):
        self.assertEqual(["auto", "always", "never"], self.completed("stagecraft run --color "))
        self.assertEqual(["overlapped", "batched", "blocking"], self.completed("stagecraft schedule show --p2p "))
        self.assertEqual(["dualpipe", "dualpipe-v"], self.completed("stagecraft schedule show --schedule du"))

    def test_names_of_schedules_are_those_that_the_program_knows(self):
        listed = re.search(r"^schedules +(.*(?:\n +.*)*)$", stagecraft("doctor").stdout, re.MULTILINE)[1].split()
        self.assertEqual(listed, self.completed("stagecraft schedule show --schedule "))

    def test_names_of_models_nodes_and_scenarios(self):
        self.assertEqual(["gpt3-175b"], self.completed("stagecraft run --set model=gpt3"))
        self.assertIn("dgx-h100", self.completed("stagecraft compare x.yaml --vary cluster.node="))
        self.assertIn("cluster.node=dgx-h100", self.completed("stagecraft check --set clus"))
        self.assertEqual(["mixtral-8x7b-64xH100"], self.completed("stagecraft run mixtral"))
        self.assertEqual([], self.completed("stagecraft sweep mixtral"))

    PARTS = {"schedule": ["show", "compare", "check", "export", "import", "search"], "topology": ["show", "check"],
             "calibrate": ["fit", "plan", "residuals", "show"],
             "import": ["deepspeed", "hf", "kineto", "megatron", "nccl-tests", "topology"]}

    def test_words_and_files(self):
        for command, parts in self.PARTS.items():
            self.assertEqual(parts, self.completed(f"stagecraft {command} ")[-len(parts):])
            self.assertNotIn("README.md", self.completed(f"stagecraft {command} "))
            self.assertEqual(["README.md"], self.completed(f"stagecraft {command} {parts[0]} READ"))
            unknown = stagecraft(command, "no-such-part", "no-such-file").stderr
            for part in parts:  # the command knows what is completed
                self.assertRegex(unknown, rf"\b{part}\b")
        self.assertEqual(["show"], self.completed("stagecraft schedule sh"))
        self.assertEqual(["show"], self.completed("stagecraft schedule --stages 4 sh"))
        self.assertEqual([PIPELINE], self.completed("stagecraft run scenarios/pipel"))
        self.assertEqual([], self.completed("stagecraft run --seed "))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
