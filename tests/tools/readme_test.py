"""What the README prints is what the program says: the flagship report, the schedule picture, the accuracy table, the
chart of recovery policies.

usage: readme_test.py STAGECRAFT SOURCE_DIR      with STAGECRAFT_BLESS=1 the README is written anew
"""
import json
import os
import re
import subprocess
import sys

SETS = {
    "bloom_jean_zay": "BLOOM, Jean Zay",
    "bloom_jean_zay_bf16": "BLOOM in bf16, Jean Zay",
    "bloom_jean_zay_rest": "BLOOM over 1 to 4 tensor ranks",
    "deepspeed_zero3_a100": "SC'21, Table 2: DeepSpeed's ZeRO-3",
    "dgxc_gb200": "DGX Cloud, GB200",
    "dgxc_gpt3_h100": "DGX Cloud, GPT-3 on H100",
    "dgxc_h100": "DGX Cloud recipes, H100",
    "dgxc_llama31_h100": "DGX Cloud, Llama 3.1 on H100",
    "dgxc_moe_h100": "DGX Cloud, experts on H100",
    "dgxc_nemotron4_h100": "DGX Cloud, Nemotron-4 on H100",
    "bignlp_a100": "NeMo of 2022, GPT-3 5B on up to 160 A100",
    "azure_nemo_a100": "NeMo 22.06, GPT-3 of 126M to 175B on up to 1,024 A100 of a cloud",
    "flagperf_a800": "FlagPerf, Llama 3 8B under Megatron-Core 0.6, seven layouts, A800",
    "atorch_fsdp_a100": "ATorch, Llama 2 7B under FSDP, A100",
    "atorch_deepspeed_3d_a100": "ATorch, Llama 2 7B over DeepSpeed's pipeline, A100",
    "llm_c_a100": "llm.c, GPT-2, A100",
    "easycontext_a100": "EasyContext, ring attention over 64 to 700 thousand tokens, A100",
    "hf_granite_7b_a100": "Hugging Face, Granite 7B, A100",
    "llm_c_h100": "llm.c, GPT-2, H100",
    "mlperf_v31_gpt3_h100": "MLPerf v3.1, GPT-3 175B on 10,752 H100",
    "nanotron_times_h100": "nanotron, a Llama of 1.2B in seven layouts, H100",
    "automodel_moe_h100": "NeMo AutoModel, five mixtures of experts on up to 1,024 H100",
    "lightning_thunder_h100": "Lightning Thunder's benchmarks, all in bf16, H100",
    "torchtitan_qwen3_h100": "torchtitan, Qwen3 32B on H100 of 500 W",
    "prime_rl_h100": "prime-rl, Qwen3 fine-tuned, H100",
    "aws_qwen3_30b_h100": "Qwen3 30B over expert ranks on EFA, H100",
    "pai_qwen3_235b_h800": "Pai-Megatron-Patch, Qwen3 235B on 256 H800",
    "te_gpt2_xl_h100": "GPT-2 XL in fp8 of Transformer Engine, one H100",
    "te_gpt2_xl_h200": "GPT-2 XL in fp8 of Transformer Engine, one H200",
    "nebius_llama8b_h200": "torchtitan uncompiled, Llama 3.1 8B on 16 H200 of a cloud",
    "prime_rl_h200": "prime-rl, Qwen3 fine-tuned, H200",
    "prime_rl_b200": "prime-rl, Qwen3 fine-tuned, B200",
    "fms_fsdp_a100": "fms-fsdp, FSDP on 128 A100",
    "fms_fsdp_h100": "fms-fsdp, FSDP on 96 H100",
    "gpu_recipes_b200": "Google GPU recipes, B200",
    "gpu_recipes_h100": "Google GPU recipes, H100",
    "gpu_recipes_h200": "Google GPU recipes, H200",
    "kempner_h200": "KempnerForge, FSDP2 and tensor ranks, H200",
    "large_runs_a100": "MegaScale's baseline on up to 12,288 A100, MT-NLG 530B",
    "llm_foundry_a100": "LLM Foundry, A100",
    "llm_foundry_a100_40gb": "LLM Foundry, 40 GB A100",
    "llm_foundry_a100_later": "LLM Foundry's later table, A100",
    "llm_foundry_h100": "LLM Foundry, H100",
    "llm_foundry_h100_later": "LLM Foundry's later table, H100",
    "megatron_bridge_2604_b200": "Megatron Bridge 26.04, B200",
    "megatron_bridge_2604_gb200": "Megatron Bridge 26.04 and 26.06, GB200",
    "megatron_bridge_2604_h100": "Megatron Bridge 26.04, H100",
    "megatron_bridge_b200": "Megatron Bridge, B200",
    "megatron_bridge_gb200": "Megatron Bridge, GB200",
    "megatron_bridge_h100": "Megatron Bridge, H100",
    "megatron_lm_h100": "Megatron-LM README, H100",
    "megatron_release_a100": "Megatron-LM's release tests, A100",
    "megatron_release_gb200": "Megatron-LM's release tests, GB200",
    "megatron_release_h100": "Megatron-LM's release tests, H100",
    "megatron_tests_a100": "Megatron-LM's own tests, small GPTs, A100",
    "megatron_tests_experts_gb200": "Megatron-LM's own tests, small mixtures of experts, GB200",
    "megatron_tests_experts_h100": "Megatron-LM's own tests, small mixtures of experts, H100",
    "megatron_tests_gb200": "Megatron-LM's own tests, small GPTs, GB200",
    "megatron_tests_h100": "Megatron-LM's own tests, small GPTs, H100",
    "own_pytorch_eager_h100": "Own runs, PyTorch eager, one H100",
    "own_pytorch_eager_h200": "Own runs, PyTorch eager, one H200",
    "own_pytorch_h100": "Own runs, PyTorch compiled, one H100",
    "own_pytorch_h200": "Own runs, PyTorch compiled, one H200",
    "parallel_folding_h100": "MoE Parallel Folding, mappings of experts on up to 1,024 H100",
    "megatron_moe_long_h100": "Qwen3 235B, long sequences, routing even and not",
    "megatron_moe_h100": "Qwen3 with one change at a time, H100",
    "megatron_sc21": "SC'21, Table 1",
    "megatron_sc21_rest": "SC'21, the other rows of Tables 1 and 2",
    "nemo_h100": "NeMo 24.07, H100 in fp8",
    "nemo_b200": "NeMo 25.02, B200 in fp8",
    "nemo_gb200": "NeMo 25.04, GB200 in fp8",
    "nemo_long_b200": "NeMo 25.04, long sequences on B200",
    "nebius_qwen3_h100": "Qwen3 on 16 H100 of a cloud",
    "automodel_llama70b_h100": "NeMo AutoModel, Llama 3 70B fully sharded, H100",
    "gb200_dense_bf16": "Dense models on GB200 of two clouds",
    "together_b200_nemotron15b": "Together AI, Nemotron-4 15B on B200",
    "torchtitan_a100_llama3": "torchtitan, Llama 3 on 64 A100",
    "torchtitan_h200_fp8": "torchtitan in fp8, H200",
    "torchtitan_a100_llama2": "torchtitan, Llama 2 on 64 A100",
    "nemotron4_reports": "Nemotron-4 15B and 340B on up to 6,144 H100",
    "sequence_parallel_selective_recompute": "2205.05198, Table 5",
    "sequence_parallel_175b_1t": "2205.05198, 175B, 530B on 2,240 GPUs, 1T",
    "simumax_b200": "SimuMax, 8 B200",
    "simumax_b200_experts_context": "SimuMax, experts and long sequences on 8 B200",
    "skywork_a800": "Skywork, layouts on 512 A800",
    "together_b200": "Together AI, B200",
    "mlperf_v50_llama31_405b_h100": "MLPerf v5.0, Llama 3.1 405B on up to 8,192 H100",
    "mlperf_v40_gpt3_h100": "MLPerf v4.0, GPT-3 175B on up to 11,616 H100",
    "mlperf_v41_gpt3_h100": "MLPerf v4.1, GPT-3 175B on H100",
    "mlperf_v51_llama31_8b_h200": "MLPerf v5.1, Llama 3.1 8B on 64 H200",
    "mlperf_v41_gpt3_b200": "MLPerf v4.1, GPT-3 175B on B200",
    "mlperf_v51_llama31_8b_b200": "MLPerf v5.1, Llama 3.1 8B on 64 B200",
    "mlperf_v50_llama31_405b_gb200": "MLPerf v5.0, Llama 3.1 405B on 256 GB200",
    "mlperf_v50_llama31_405b_gb200_data_last": "MLPerf v5.0, Llama 3.1 405B on 512 GB200",
    "olmo_core_h100": "OLMo-core, FSDP2 in bf16 and fp8, H100",
    "torchtitan_async_tp_h100": "torchtitan, asynchronous tensor parallelism, H100 of 500 W",
    "flagperf_h100": "FlagPerf, Llama 3 under Megatron-Core 0.6, H100",
    "flagperf_h800": "FlagPerf, Llama 2 70B under FlagScale, H800",
    "flash_attention_a100": "FlashAttention's own GPTs, A100",
    "internevo_a100": "InternEvo, ZeRO 1 on up to 1,024 A100",
    "xtuner_a100": "XTuner, DeepSpeed's ZeRO 3 and Ulysses, A100",
    "flagperf_deepspeed_a800": "FlagPerf, Llama 2 7B and ChatGLM3 6B under ZeRO 3, A800",
    "flagperf_deepspeed_h800": "FlagPerf, Llama 2 7B and Baichuan 2 13B under DeepSpeed, H800",
    "flagperf_deepspeed_a100_40gb": "FlagPerf, Llama 2 7B under Megatron-DeepSpeed, 40 GB A100",
    "swift_a800": "ms-swift, Megatron-Core, 14B and a mixture, A800",
    "swift_deepspeed_a800": "ms-swift, ZeRO 2 and 3, 14B, A800",
    "torchtune_a100": "torchtune, Llama 3.2 3B, one A100",
    "gdgpt_a100_40gb": "gdGPT, DeepSpeed's pipeline, LLaMA 7B, 40 GB A100",
    "gdgpt_zero_a100_40gb": "gdGPT, ZeRO 3, LLaMA 7B of short sequences, 40 GB A100",
    "vtrain_18b_175b": "vTrain, 18.4B and 175B",
    "vtrain_multi_node": "vTrain, multi-node",
    "zero_bubble": "Zero Bubble, 1F1B and ZB-1P rows",
    "zero_bubble_rest": "Zero Bubble, ZB-2p, ZB-V, interleaved and two more models",
}

POLICIES = "{name: checkpoint-restart, lost: done-without},hot-spares,oobleck,bamboo,varuna,recycle,elastic,none"
RATES = "0.001,0.003,0.01,0.03,0.1,0.3,1"
# A file beside the README -> the words that draw it.
FIGURES = {
    "docs/figures/goodput-policies.svg": [
        "goodput", "scenarios/goodput/checkpoint-restart.yaml", "--set", "failures.repeats=10", "--vary",
        f"failures.policy={POLICIES}", "--vary", f"failures.process.rate_per_node_day={RATES}", "--format", "svg",
        "--jobs", "2"],
}


def run(program, source, *words):
    done = subprocess.run([program, *words], cwd=source, capture_output=True, text=True, check=True,
                          env={**os.environ, "NO_COLOR": "1"})
    return done.stdout


def accuracy_row(scores):
    cells = [scores["rows_scored"], f"{100 * scores['mape']:.1f} %", f"{100 * scores['bias']:+.1f} %",
             f"{100 * scores['median']:.1f} %", f"{100 * scores['worst']:.1f} %"]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def blocks(program, source):
    """Command as the README shows it -> what it prints."""
    schedule = ["schedule", "show", "--schedule", "1f1b", "--stages", "4", "--micro-batches", "8", "--forward", "1ms",
                "--input-gradient", "1ms", "--weight-gradient", "1ms"]
    commands = [["run", "scenarios/gpt3-175b-1024xA100.yaml"], schedule]
    return {"$ stagecraft " + " ".join(words) + "\n": run(program, source, *words) for words in commands}


def updated(readme, program, source):
    for command, text in blocks(program, source).items():
        before, found, rest = readme.partition(command)
        if not found:
            sys.exit(f"README.md does not show: {command}")
        readme = before + command + text + rest[rest.index("```"):]
    seen, errors = set(), {}
    for line in run(program, source, "validate", "--json").splitlines():
        scores = json.loads(line)
        if "set" not in scores:  # all sets together
            continue
        seen.add(scores["set"])
        errors[scores["set"]] = {row["id"]: row["error"] for row in scores["rows"]}
        row = re.compile(r"(\| \[[^\]]*" + re.escape(SETS[scores["set"]]) + r"[^\]]*\]\([^)]*\) )\|(?:[^|]*\|){5}")
        readme, count = row.subn(lambda match: match[1] + accuracy_row(scores), readme)
        if count != 1:
            sys.exit(f"README.md has {count} rows of {scores['set']}")
    if seen != set(SETS):
        sys.exit(f"sets validated: {sorted(seen)}, sets in this test: {sorted(SETS)}")
    return with_memory_sentence(with_ptdp_sentences(readme, errors), program, source)


def rewritten(readme, sentence, figure):
    """The README with `figure` in place of the number that `sentence` has as its group 2."""
    readme, count = re.subn(sentence, lambda match: match[1] + figure + match[3], readme)
    if count != 1:
        sys.exit(f"README.md has {count} sentences like: {sentence}")
    return readme


def with_ptdp_sentences(readme, errors):
    """The figures of PTD-P between the tables; `errors` of the rows of its sets, by set and row."""
    def table_1(name):
        rows = [abs(error) for row, error in errors[name].items() if "_t1_" in row]
        return f"{100 * sum(rows) / len(rows):.1f}"

    first, rest = table_1("megatron_sc21"), table_1("megatron_sc21_rest")
    rows = [abs(error) for name in ("megatron_sc21", "megatron_sc21_rest") for row, error in errors[name].items() if "_t1_" in row]
    readme = rewritten(readme, r"(ten rows of Table 1 of PTD-P )([\d.]+)( % mean\s+error)", f"{100 * sum(rows) / len(rows):.1f}")
    readme = rewritten(readme, r"(five fitted )([\d.]+)( %)", first)
    readme = rewritten(readme, r"(five held out )([\d.]+)( %)", rest)
    balanced = [abs(error) for row, error in errors["megatron_moe_long_h100"].items() if row.endswith("balanced")]
    readme = rewritten(readme, r"(, )([\d.]+)( % on Qwen3 235B)", f"{100 * sum(balanced) / len(balanced):.1f}")
    zero3 = [abs(error) for error in errors["deepspeed_zero3_a100"].values()]
    return rewritten(readme, r"(held-out ZeRO-3 runs of its Table 2: )([\d.]+)( %)", f"{100 * sum(zero3) / len(zero3):.1f}")


def with_memory_sentence(readme, program, source):
    """What `validate --memory` counts in all sets."""
    sets = [json.loads(line) for line in run(program, source, "validate", "--memory", "--quiet", "--json").splitlines()]
    errors = [abs(row["error"]) for one in sets for row in one["rows"] if row.get("error") is not None]
    verdicts, wrong = sum(one["verdicts"] for one in sets), sum(one["wrong_verdicts"] for one in sets)
    near = sum(error <= 0.1 for error in errors)
    for sentence, figure in ((r"(for memory: )(\d+)( published figures)", len(errors)), (r"(figures, )(\d+)( of them within 10 %)", near),
                             (r"(within 10 % \()(\d+)( rows miss)", len(errors) - near),
                             (r"(rows miss by 10 to )(\d+)( %)", f"{100 * max(errors):.0f}"),
                             (r"(and )([\d,]+)( runs whose end is known)", f"{verdicts:,}")):
        readme = rewritten(readme, sentence, str(figure))
    if f"all but {('none', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten')[wrong]} told right" not in readme:
        sys.exit(f"README.md does not say that {wrong} verdicts are wrong")
    return readme


def figures_are_current(program, source, bless):
    current = True
    for name, words in FIGURES.items():
        path = os.path.join(source, name)
        now = run(program, source, *words)
        known = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                known = file.read()
        if now == known:
            continue
        if bless:
            with open(path, "w", encoding="utf-8") as file:
                file.write(now)
            continue
        print(f"{name} is not what the program draws: stagecraft {' '.join(words)}")
        current = False
    return current


def main():
    program, source = sys.argv[1:3]
    bless = os.environ.get("STAGECRAFT_BLESS") == "1"
    current = figures_are_current(program, source, bless)
    path = os.path.join(source, "README.md")
    with open(path, encoding="utf-8") as file:
        readme = file.read()
    now = updated(readme, program, source)
    if now == readme:
        return 0 if current else 1
    if bless:
        with open(path, "w", encoding="utf-8") as file:
            file.write(now)
        return 0
    for old, new in zip(readme.splitlines(), now.splitlines()):
        if old != new:
            print(f"README.md says:    {old}\nthe program says:  {new}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
