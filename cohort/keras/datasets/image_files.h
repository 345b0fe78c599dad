// How MNIST and data sets of its form are published, found, and read.
#pragma once

#include <string>

#include "cohort/keras/datasets/image_dataset.h"

namespace cohort::internal {

// A file of the four, as published: gzip, its MD5.
struct PublishedFile {
  std::string name;  // "train-images-idx3-ubyte": what unpacking gives
  std::string md5;   // of name.gz
};

struct PublishedImages {
  std::string name;      // of the folder in the cache
  std::string base_url;  // the files are at base_url + name + ".gz"
  PublishedFile train_images;
  PublishedFile train_labels;
  PublishedFile test_images;
  PublishedFile test_labels;
};

// Errors: NotFound (a file is missing: names the path, and what may stand there), DataLoss
// (corrupt: file and byte offset; images not 28 x 28; a partial or wrong download), InvalidArgument
// (images and labels differ in number: names both files), Unavailable (no network; says what to
// do), PermissionDenied and ResourceExhausted (the cache cannot be written).
keras::datasets::TrainTest load_published_images(const PublishedImages& images,
                                                 const keras::datasets::LoadOptions& options);

}  // namespace cohort::internal
