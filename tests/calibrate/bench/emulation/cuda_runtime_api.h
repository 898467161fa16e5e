// See cuda_runtime.h.
#pragma once

#include "tests/calibrate/bench/emulation/cuda_runtime.h"
