#include "cohort/data/functions/parallel_calls.h"

#include "cohort/data/dataset.h"

namespace cohort::internal {

void check_parallel_calls(const char* transformation, const std::optional<int64_t>& calls) {
  if (!calls || *calls >= 1 || *calls == data::AUTOTUNE) return;
  throw InvalidArgumentError(str(transformation, ": num_parallel_calls is ", *calls,
                                 "; it must be at least 1, or data::AUTOTUNE"));
}

std::string autotune_text(int64_t number) {
  return number == data::AUTOTUNE ? "AUTOTUNE" : str(number);
}

}  // namespace cohort::internal
