#include "common/images.h"

namespace examples {

namespace tf = cohort;
namespace datasets = tf::keras::datasets;

namespace {

datasets::TrainTest load(const ImageOptions& options) {
  const datasets::LoadOptions where{.directory = options.data};
  try {
    return options.dataset == "mnist" ? datasets::mnist::load_data(where)
                                      : datasets::fashion_mnist::load_data(where);
  } catch (const tf::UnavailableError& error) {
    if (!options.data.empty()) throw;
    tf::internal::log_warning(
        "no data set (", error.what(),
        ") — using synthetic images that the program draws itself: simple shapes, not ",
        options.dataset, "; pass --data DIR for real ones");
    return datasets::synthetic_images({.seed = options.seed});
  }
}

// Adds a dimension, because the first layer is a convolution, and scales to [0, 1].
Images prepared(const datasets::Split& split) {
  return {split.images.unsqueeze(-1).to(tf::float32) / 255.0, split.labels};
}

}  // namespace

TrainTestImages load_images(const ImageOptions& options) {
  const auto [train, test] = load(options);
  return {prepared(train), prepared(test)};
}

}  // namespace examples
