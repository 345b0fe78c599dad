#pragma once

#include <compare>
#include <cstdint>

namespace cohort::internal {

// Variables are numbered by the order in which the program creates them, the same in every task.
struct ShardKey {
  int64_t variable = 0;
  int64_t shard = 0;
  auto operator<=>(const ShardKey&) const = default;
};

}  // namespace cohort::internal
