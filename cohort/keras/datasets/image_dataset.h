// Labelled images for examples and tests, loaded as tf.keras.datasets does.
#pragma once

#include <string>

#include "cohort/core/structure/tensor.h"

namespace cohort::keras::datasets {

struct Split {
  Tensor images;  // uint8 [n, 28, 28]
  Tensor labels;  // uint8 [n]
};

// auto [train, test] = mnist::load_data();
struct TrainTest {
  Split train;
  Split test;
};

// The places to look, in this order. `directory`, if given, must hold the files; without it, the
// files of the cache are taken, and those that it lacks are downloaded into it.
struct LoadOptions {
  std::string directory = "";        // the four files, plain or .gz, under their usual names
  std::string cache_directory = "";  // empty: cohort/datasets below $XDG_CACHE_HOME or ~/.cache
  bool download = true;
};

}  // namespace cohort::keras::datasets
