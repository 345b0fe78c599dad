// For tests: a small image problem, trained by guide 004's loop on any number of replicas.
#pragma once

#include <ATen/ops/remainder.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "cohort/distribute/step/nn.h"
#include "cohort/distribute/testing_storage.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/random.h"

namespace cohort::keras {

struct LabelledImages {
  Tensor images;  // [n, 8, 8, 1]
  Tensor labels;  // [n]
};

inline LabelledImages make_images(int64_t count, DType dtype) {
  const auto generator = random::RandomGenerator::from_seed(11);
  const Tensor images = generator.uniform({count, 8, 8, 1}, {.dtype = float64});
  const Tensor labels = at::remainder((images.sum({1, 2, 3}) * 3).floor(), 3).to(int64);
  return {images.to(dtype), labels};
}

// The guides' rule: pieces of ceil(n / replicas) rows, the last ones smaller or empty.
inline distribute::PerReplica<Tensor> split_rows(const Tensor& batch, int64_t replicas) {
  const int64_t rows = batch.size(0);
  const int64_t piece = (rows + replicas - 1) / replicas;
  distribute::PerReplica<Tensor>::Values parts;
  for (int64_t r = 0; r < replicas; ++r) {
    const int64_t begin = std::min(r * piece, rows);
    parts.push_back(batch.slice(0, begin, std::min(begin + piece, rows)));
  }
  return distribute::PerReplica<Tensor>(std::move(parts));
}

struct TrainingRun {
  int replicas = 1;
  distribute::Storage storage = distribute::Storage::kShared;
  DType dtype = float64;
  int epochs = 3;
  std::shared_ptr<const distribute::CrossDeviceOps> cross_device_ops = nullptr;
};

struct TrainingResult {
  std::vector<double> losses;         // one a step
  std::vector<double> final_weights;  // of replica 0
  bool components_equal = true;       // bit for bit, over all trainable variables
};

// 13 images in batches of 6, 6 and 1: with several replicas the last batch leaves some without any.
inline TrainingResult train(const TrainingRun& run,
                            const std::function<ModelHandle()>& make_model) {
  constexpr int64_t kBatch = 6;
  const LabelledImages data = make_images(13, run.dtype);
  const distribute::Strategy strategy =
      run.cross_device_ops == nullptr
          ? distribute::with_storage(run.storage, run.replicas)
          : distribute::mirrored(run.replicas, {.cross_device_ops = run.cross_device_ops});
  random::set_seed(3);
  backend::set_floatx(internal::dtype_name(run.dtype));
  const auto scope = strategy.scope();
  const ModelHandle model = make_model();
  const optimizers::Adam optimizer({.learning_rate = 0.01});
  const losses::SparseCategoricalCrossentropy loss_object(
      {.from_logits = true, .reduction = losses::Reduction::NONE});
  const auto step = [&](const Tensor& images, const Tensor& labels) {
    GradientTape tape;
    const Tensor predictions = model(images, {.training = true});
    Tensor loss =
        nn::compute_average_loss(loss_object(labels, predictions), {.global_batch_size = kBatch});
    if (auto penalties = model.losses(); !penalties.empty()) {
      loss = loss + nn::scale_regularization_loss(add_n(penalties));
    }
    const auto gradients = tape.gradient(loss, model.trainable_variables());
    optimizer.apply_gradients(zip(gradients, model.trainable_variables()));
    return loss;
  };
  TrainingResult result;
  for (int epoch = 0; epoch < run.epochs; ++epoch) {
    for (int64_t begin = 0; begin < data.labels.size(0); begin += kBatch) {
      const auto losses =
          strategy.run(step, split_rows(data.images.slice(0, begin, begin + kBatch), run.replicas),
                       split_rows(data.labels.slice(0, begin, begin + kBatch), run.replicas));
      result.losses.push_back(strategy.reduce(distribute::ReduceOp::SUM, losses).item<double>());
    }
  }
  backend::set_floatx("float32");
  for (const Variable& variable : model.trainable_variables()) {
    const auto components = variable.components();
    for (const Tensor& one : components.values()) {
      result.components_equal &= one.equal(components.value(0));
    }
    for (const double value : elements(components.value(0))) result.final_weights.push_back(value);
  }
  return result;
}

// The largest relative difference between two loss curves.
inline double curve_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]) / std::abs(a[i]));
  }
  return largest;
}

}  // namespace cohort::keras
