// Any model of operations, on any shape: its plan gives what libtorch gives, operation by
// operation, in values and gradients; or says why there is none.
#include <ATen/Context.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "cohort/ops/plan/testing_plan.h"
#include "input_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace plan = cohort::internal::plan;
  cohort::fuzz::InputReader in({reinterpret_cast<const char*>(data), size});
  at::manual_seed(in.number(255));
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(in.number(static_cast<uint64_t>(high - low)));
  };
  const plan::Case c = plan::random_case(draw, 6);
  const std::string found = plan::difference_from_libtorch(c, /*no_plan=*/true);
  if (found.empty()) return 0;
  std::cerr << "fuzz_plan: " << plan::text_of(c) << '\n' << found;
  std::abort();
}
