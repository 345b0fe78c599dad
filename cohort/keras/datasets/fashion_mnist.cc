#include "cohort/keras/datasets/fashion_mnist.h"

#include "cohort/keras/datasets/image_files.h"

namespace cohort::keras::datasets::fashion_mnist {

TrainTest load_data(const LoadOptions& options) {
  return internal::load_published_images(
      {.name = "fashion_mnist",
       .base_url = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
       .train_images = {"train-images-idx3-ubyte", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"},
       .train_labels = {"train-labels-idx1-ubyte", "25c81989df183df01b3e8a0aad5dffbe"},
       .test_images = {"t10k-images-idx3-ubyte", "bef4ecab320f06d8554ea6380940ec79"},
       .test_labels = {"t10k-labels-idx1-ubyte", "bb300cfdad3c16e7a12a480ee83cd310"}},
      options);
}

}  // namespace cohort::keras::datasets::fashion_mnist
