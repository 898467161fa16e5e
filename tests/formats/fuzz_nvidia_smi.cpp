#include "formats/nvidia_smi.hpp"
#include "tests/formats/fuzz_machine.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return stagecraft::fuzz_machine_import(data, size, stagecraft::import_nvidia_smi);
}
