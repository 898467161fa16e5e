"""PyTorch, for the scripts beside this that measure with it."""
import sys


def torch_with_gpu():
    """The module, or None where it or a GPU is missing, which is said on standard error."""
    try:
        import torch
    except ImportError as error:
        print(f"skipped: PyTorch is not here ({error})", file=sys.stderr)
        return None
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no GPU", file=sys.stderr)
        return None
    return torch
