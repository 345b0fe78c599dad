#include "cohort/keras/datasets/mnist.h"

#include "cohort/keras/datasets/image_files.h"

namespace cohort::keras::datasets::mnist {

TrainTest load_data(const LoadOptions& options) {
  return internal::load_published_images(
      {.name = "mnist",
       .base_url = "https://storage.googleapis.com/cvdf-datasets/mnist/",
       .train_images = {"train-images-idx3-ubyte", "f68b3c2dcbeaaa9fbdd348bbdeb94873"},
       .train_labels = {"train-labels-idx1-ubyte", "d53e105ee54ea40749a09fcbcd1e9432"},
       .test_images = {"t10k-images-idx3-ubyte", "9fb629c4189551a2d022fa330f9573f3"},
       .test_labels = {"t10k-labels-idx1-ubyte", "ec29112dd5afa0611ce80d1b7f02629c"}},
      options);
}

}  // namespace cohort::keras::datasets::mnist
