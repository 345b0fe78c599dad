// How a preprocessing layer learns from data.
#pragma once

#include <cstdint>
#include <optional>

namespace cohort::keras::layers {

struct AdaptOptions {
  // Elements of the dataset that are read; missing: all.
  std::optional<int64_t> steps = std::nullopt;
  // The rows of a tensor that are read at a time; elements of a dataset are read whole. Of a tensor
  // with one dimension this many numbers or strings are a document of tf_idf. Discretization merges
  // what it learns from each batch.
  int64_t batch_size = 32;
};

}  // namespace cohort::keras::layers
