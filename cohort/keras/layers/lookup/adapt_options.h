// How a preprocessing layer learns from data.
#pragma once

#include <cstdint>
#include <optional>

namespace cohort::keras::layers {

struct AdaptOptions {
  // Elements of the dataset that are read; missing: all.
  std::optional<int64_t> steps = std::nullopt;
  // Tokens of a one-dimensional tensor that make a document (for tf_idf); those of a dataset are
  // its elements.
  int64_t batch_size = 32;
};

}  // namespace cohort::keras::layers
