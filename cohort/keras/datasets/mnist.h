// MNIST: 60,000 and 10,000 handwritten digits (LeCun, Cortes and Burges).
//
//   auto [train, test] = keras::datasets::mnist::load_data({.directory = dir});
//   train.images;   // uint8 [60000, 28, 28]
#pragma once

#include "cohort/core/export.h"
#include "cohort/keras/datasets/image_dataset.h"

namespace cohort::keras::datasets::mnist {

// Labels: 0 to 9: the digit.
// Blocks while it downloads: 10 minutes a file at most, 20 seconds where nothing comes.
// Errors: NotFound (a file is missing), DataLoss (a file or download is corrupt: file and byte
// offset), InvalidArgument (images and labels of different number: names both files), Unavailable
// (no network), PermissionDenied and ResourceExhausted (the cache cannot be written).
COHORT_API TrainTest load_data(const LoadOptions& options = {});

}  // namespace cohort::keras::datasets::mnist
