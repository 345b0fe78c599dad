// Fashion-MNIST: 60,000 and 10,000 pictures of clothes (Xiao, Rasul and Vollgraf, 2017).
//
//   auto [train, test] = keras::datasets::fashion_mnist::load_data({.directory = dir});
//   train.images;   // uint8 [60000, 28, 28]
#pragma once

#include "cohort/core/export.h"
#include "cohort/keras/datasets/image_dataset.h"

namespace cohort::keras::datasets::fashion_mnist {

// Labels: 0 T-shirt, 1 trouser, 2 pullover, 3 dress, 4 coat, 5 sandal, 6 shirt, 7 sneaker, 8 bag, 9
// boot. Blocks while it downloads: 10 minutes a file at most, 20 seconds where nothing comes.
// Errors: NotFound (a file is missing), DataLoss (a file or download is corrupt: file and byte
// offset), InvalidArgument (images and labels of different number: names both files), Unavailable
// (no network), PermissionDenied and ResourceExhausted (the cache cannot be written).
COHORT_API TrainTest load_data(const LoadOptions& options = {});

}  // namespace cohort::keras::datasets::fashion_mnist
