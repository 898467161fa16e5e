"""What a B300 or GB300 has in place of the constants of a B200 or GB200.

The chip is Blackwell with more memory, a higher power limit and twice the rate of exponentials. Kernels keep the shares of the peak
that they have on its predecessor, and products in short runs are as fast (MAMF, 1,769 for 1,745 TFLOP/s: stas00/ml-engineering), but
for attention, whose rates on GB300 cuDNN's benchmark has, and grouped GEMMs, which gain less than others do in long runs: those of
cudnn-frontend are 1.14 times as fast on GB300 as on GB200. What products hold of a short run in a long one depends on the power limit:
it was fitted on published iterations of GB300, and a B300 is taken to gain as much over a B200.
"""
from cudnn_attention import fp8_kernels, sixteen_bit
from profile_yaml import transferred_constants

GB300_SCALE = 0.93
# 1.504 and 0.820 ms on GB200, 1.323 and 0.718 on GB300 (data/fused_experts_blackwell.yaml).
GROUPED_GAIN = 1.14
MEMORY = "288 GB on the data sheet; what a program sees of them, 148 SMs: recalled"


def ultra(data, whose, device, scale, held):
    """Constants of a successor: those of `data`, whose they are said to be, but for `device` {name, memory}, the `scale` of products
    and attention, of whose rates on GB300 long runs have `held`."""
    data = transferred_constants(whose, data)
    data["device"] = {**device, "sms": 148, "memory_source": MEMORY}
    cudnn = data["attention"]["kernels"]["cudnn"]
    sixteen_bit(cudnn, "GB300", held, data)
    data["attention"]["fp8_kernels"] = fp8_kernels(cudnn, "GB300")
    grouped = data["experts"]["grouped_factor"]
    data["experts"]["grouped_factor"] = {
        "value": round(grouped["value"] * GROUPED_GAIN * data["gemm"]["scale"]["value"] / scale["value"], 2), "provenance": "analytic",
        "source": f"{grouped['value']} of its predecessor at its scale, times {GROUPED_GAIN}, what GB300 gains over GB200 with SwiGLU and its gradient "
                  "(NVIDIA/cudnn-frontend @07b43466, @0e2d6748, benchmark/cutedsl_fusion_kernels)"}
    data["gemm"]["scale"] = scale
    return data
