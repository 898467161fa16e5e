#!/usr/bin/env python3
"""Whole commands print what is kept in ../golden/*.txt.

usage: goldens_test.py STAGECRAFT SOURCE_DIR [Goldens[.TEST]]

Predicted numbers are in golden/flagship.txt alone: everything else here is about given numbers, or about no numbers at all.
STAGECRAFT_BLESS=1 writes the files of golden/ anew.
"""
import re

from harness import FAILING, FLAGSHIP, GOOD, PIPELINE, SOURCE, STAGES, WRONG_INPUT, Case, changed, main, transcript

ALIAS_BOMB = "stagecraft: 1\na0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))

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


if __name__ == "__main__":
    main()
