// How many workers an elastic job has, as its launcher says it to the tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cohort/core/text.h"

namespace cohort::internal {

// The environment variable of tasks: "2:4".
inline constexpr const char* kElasticWorkersVariable = "COHORT_ELASTIC_WORKERS";

struct ElasticWorkers {
  int least = 0;
  int most = 0;
};

// Nothing where the text is no such pair, or one that no job has. Inline: programs that start tasks
// need it, and the shared library does not export it.
inline std::optional<ElasticWorkers> parse_elastic_workers(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto least = parse_number<int32_t>(text.substr(0, colon));
  const auto most = parse_number<int32_t>(text.substr(colon + 1));
  if (!least || !most || *least < 1 || *most < *least) return std::nullopt;
  return ElasticWorkers{*least, *most};
}

}  // namespace cohort::internal
