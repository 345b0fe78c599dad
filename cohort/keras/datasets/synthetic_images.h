// Images that Cohort draws itself, for where there is neither a data set nor a network: ten shapes
// of varying place, size and brightness with noise. Not MNIST, and no measure of a model: a small
// network learns them almost at once.
//
//   auto [train, test] = keras::datasets::synthetic_images({.num_train = 2000, .seed = 1});
#pragma once

#include <cstdint>

#include "cohort/core/export.h"
#include "cohort/keras/datasets/image_dataset.h"

namespace cohort::keras::datasets {

struct SyntheticImagesOptions {
  int64_t num_train = 2000;
  int64_t num_test = 500;
  uint64_t seed = 0;  // one seed always gives the same images
};

// Labels: 0 square, 1 frame, 2 disc, 3 ring, 4 triangle, 5 plus, 6 cross, 7 rows, 8 columns,
// 9 checkerboard; each equally often, in turn.
// Errors: InvalidArgument (a negative number of images).
COHORT_API TrainTest synthetic_images(const SyntheticImagesOptions& options = {});

}  // namespace cohort::keras::datasets
