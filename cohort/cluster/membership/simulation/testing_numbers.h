// Numbers that tests take from the environment.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "cohort/core/text.h"

namespace cohort::internal::membership {

inline uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  return static_cast<uint64_t>(parse_number<int64_t>(text).value_or(0));
}

}  // namespace cohort::internal::membership
