#!/usr/bin/env python3
"""Files of other programs that `stagecraft import` reads.

usage: imports_test.py STAGECRAFT SOURCE_DIR [Imports[.TEST]]
"""
import gzip
import json

from harness import DONE, SOURCE, Case, main, stagecraft


class Imports(Case):
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

    def test_a_model_with_a_sliding_window_is_a_model_of_the_zoo(self):
        for name in ("gpt-oss-20b", "mistral-7b"):
            config = f"tests/data/hf_config/{name}.config.json"
            imported = stagecraft("import", "hf", config)
            self.assertEqual((DONE, ""), (imported.returncode, imported.stderr), name)
            self.assertIn("  sliding_window:\n", imported.stdout)
            times = [self.results(stagecraft("run", "scenarios/llama3-8b-64xA100.yaml", "--set", f"model={model}", "--json"))[0]["iteration_time_s"]
                     for model in (name, f"../{config}")]
            self.assertEqual(*times, name)

    def test_a_model_that_is_not_covered_is_refused_by_name(self):
        ran = stagecraft("import", "hf", "tests/data/hf_config/hybrid-qwen3-next-80b-a3b.config.json")
        self.assert_refused(ran)
        self.assertIn("linear attention in 36 of 48 layers (full_attention_interval: 4)", ran.stderr)
        self.assert_refused(stagecraft("import", "hf", "no-such.json"))
        self.assert_refused(stagecraft("import", "hf"))


if __name__ == "__main__":
    main()
