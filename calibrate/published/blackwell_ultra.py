"""What a B300 or GB300 has in place of the constants of a B200 or GB200.

The chip is Blackwell with more memory, a higher power limit and twice the rate of exponentials. Kernels keep the shares of the peak
that they have on its predecessor, and products in short runs are as fast (MAMF, 1,769 for 1,745 TFLOP/s: stas00/ml-engineering), but
for the forward pass of attention, which exponentials no longer hold up (cuDNN with heads of 128 on B300 1,428 TFLOP/s,
FlashAttention-4 on B200 1,205, at 1,024 tokens: Dao-AILab/flash-attention #2605). What products hold of a short run in a long one
depends on the power limit: it was fitted on published iterations of GB300, and a B300 is taken to gain as much over a B200.
"""
from profile_yaml import transferred_constants

GB300_SCALE = 0.98
FORWARD = 1428 / 1205
MEMORY = "288 GB on the data sheet; what a program sees of them, 148 SMs: recalled"


def attention_of_ultra(kernels):
    """cuDNN's forward without exponentials in its way; FlashAttention-2 is not held up by them."""
    for curve in ("causal", "dense"):
        forward = kernels["cudnn"]["forward"][curve]
        forward["rate"] = round(forward["rate"] * FORWARD)
        forward["provenance"] = "assumed"
        forward["source"] = (f"times {FORWARD:.3f} for exponentials at twice the rate: cuDNN on B300 over FlashAttention-4 on B200, heads of 128 "
                             "(Dao-AILab/flash-attention #2605); " + forward["source"])


def ultra(data, whose, name, memory, scale):
    """Constants of a successor: those of `data`, whose they are said to be, but for device, products and attention."""
    attention_of_ultra(data["attention"]["kernels"])
    data = transferred_constants(whose, data)
    data["gemm"]["scale"] = scale
    data["device"] = {"name": name, "sms": 148, "memory": memory, "memory_source": MEMORY}
    return data
