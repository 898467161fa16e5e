"""What a B300 or GB300 has in place of the constants of a B200 or GB200.

The chip is Blackwell with more memory, a higher power limit and twice the rate of exponentials. Kernels keep the shares of the peak
that they have on its predecessor, and products in short runs are as fast (MAMF, 1,769 for 1,745 TFLOP/s: stas00/ml-engineering), but
for attention, whose rates on GB300 cuDNN's benchmark has. What products hold of a short run in a long one depends on the power limit:
it was fitted on published iterations of GB300, and a B300 is taken to gain as much over a B200.
"""
from cudnn_attention import fp8_kernels, sixteen_bit
from profile_yaml import transferred_constants

GB300_SCALE = 0.93
MEMORY = "288 GB on the data sheet; what a program sees of them, 148 SMs: recalled"


def ultra(data, whose, device, scale, held):
    """Constants of a successor: those of `data`, whose they are said to be, but for `device` {name, memory}, the `scale` of products
    and attention, of whose rates on GB300 long runs have `held`."""
    data = transferred_constants(whose, data)
    data["device"] = {**device, "sms": 148, "memory_source": MEMORY}
    cudnn = data["attention"]["kernels"]["cudnn"]
    sixteen_bit(cudnn, "GB300", held, data)
    data["attention"]["fp8_kernels"] = fp8_kernels(cudnn, "GB300")
    data["gemm"]["scale"] = scale
    return data
