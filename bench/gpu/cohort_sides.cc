#include <cohort/cohort.h>

#include <optional>
#include <utility>
#include <vector>

#include "sides.h"

namespace bench {
namespace {

namespace tf = cohort;
namespace layers = cohort::keras::layers;
using tf::Tensor;
using Batch = tf::distribute::PerReplica<tf::Structure>;

std::vector<std::string> devices() { return {gpu_or_cpu().is_cpu() ? "CPU:0" : "GPU:0"}; }

// Layers of Keras compute in bfloat16 where the work says so; a module of libtorch's does not.
tf::keras::ModelHandle make_model(const GpuWork& work) {
  tf::keras::mixed_precision::set_global_policy(work.has("bf16") ? "mixed_bfloat16" : "float32");
  if (work.model == "cnn") {
    return tf::keras::Sequential({layers::Conv2D(32, 3, {.activation = "relu"}),
                                  layers::MaxPooling2D(), layers::Flatten(), layers::Dense(10)});
  }
  if (work.model == "embedding") {
    return tf::keras::Sequential({layers::Embedding(embedding_rows(work), 64),
                                  layers::GlobalAveragePooling1D(), layers::Dense(10)});
  }
  return tf::keras::TorchModel([work] { return make_gpu_classifier(work); });
}

tf::keras::optimizers::Optimizer make_optimizer(const GpuWork& work) {
  namespace optimizers = tf::keras::optimizers;
  if (uses_adam(work)) return optimizers::Adam({.learning_rate = 1e-3});
  return optimizers::SGD({.learning_rate = 0.01, .momentum = 0.9});
}

class RunTraining final : public GpuTraining {
 public:
  explicit RunTraining(const GpuWork& work)
      : strategy_(devices()), work_(work), made_(make(work, strategy_.scope())) {
    if (work.has("host")) {
      const auto [inputs, labels] = make_gpu_data(work, kHostBatches);
      dataset_ = strategy_.experimental_distribute_dataset(
          tf::data::Dataset::from_tensor_slices(tf::tuple(inputs, labels))
              .batch(work.batch)
              .repeat());
      iterator_ = dataset_->iterator();
      return;
    }
    for (int64_t i = 0; i < kDeviceBatches; ++i) {
      batches_.push_back(strategy_.experimental_distribute_values_from_function(
          [&](const tf::distribute::ValueContext&) {
            const auto [inputs, labels] = make_gpu_data(work, 1);
            return tf::Structure(tf::tuple(inputs.to(gpu_or_cpu()), labels.to(gpu_or_cpu())));
          }));
    }
  }

  void run(int64_t count) override {
    for (int64_t i = 0; i < count; ++i) step();
    wait_for_gpu();
  }
  double loss() const override { return loss_; }

 private:
  struct Made {
    tf::keras::ModelHandle model;
    tf::keras::optimizers::Optimizer optimizer;
  };

  static Made make(const GpuWork& work, const tf::distribute::Scope&) {
    return {make_model(work), make_optimizer(work)};
  }

  Tensor train_step(const Tensor& inputs, const Tensor& labels) const {
    tf::GradientTape tape;
    const Tensor scores = made_.model(inputs, {.training = true});
    const Tensor loss =
        tf::nn::compute_average_loss(loss_of_(labels, scores), {.global_batch_size = work_.batch});
    const auto variables = made_.model.trainable_variables();
    made_.optimizer.apply_gradients(tf::zip(tape.gradient(loss, variables), variables));
    return loss;
  }

  void step() {
    const auto one = [&](const Batch& batch) {
      const auto losses = strategy_.run(
          [this](const Tensor& inputs, const Tensor& labels) { return train_step(inputs, labels); },
          batch);
      loss_ = strategy_.reduce(tf::distribute::ReduceOp::SUM, losses).item<double>();
    };
    if (iterator_) return one(*iterator_->next());
    one(batches_[next_++ % batches_.size()]);
  }

  const tf::distribute::MirroredStrategy strategy_;
  const GpuWork work_;
  const Made made_;
  const tf::keras::losses::SparseCategoricalCrossentropy loss_of_{
      {.from_logits = true, .reduction = tf::keras::losses::Reduction::NONE}};
  std::vector<Batch> batches_;
  std::optional<tf::distribute::DistributedDataset> dataset_;
  std::optional<tf::distribute::DistributedIterator> iterator_;
  size_t next_ = 0;
  double loss_ = 0;
};

class FitTraining final : public GpuTraining {
 public:
  explicit FitTraining(const GpuWork& work)
      : strategy_(devices()),
        work_(work),
        model_(make(work, strategy_.scope())),
        data_(make_gpu_data(work, kHostBatches)) {
    if (!work.has("host")) {
      data_ = {data_.first.to(gpu_or_cpu()), data_.second.to(gpu_or_cpu())};
    }
  }

  void run(int64_t count) override {
    const int64_t epochs = (count + kHostBatches - 1) / kHostBatches;
    const auto history =
        model_.fit(data_.first, data_.second,
                   {.batch_size = work_.batch,
                    .epochs = epochs,
                    .verbose = 0,
                    .shuffle = false,
                    .steps_per_epoch = count < kHostBatches ? count : kHostBatches});
    loss_ = history["loss"].back();
    wait_for_gpu();
  }
  double loss() const override { return loss_; }

 private:
  static tf::keras::ModelHandle make(const GpuWork& work, const tf::distribute::Scope&) {
    const tf::keras::ModelHandle model = make_model(work);
    model.compile(
        {.optimizer = make_optimizer(work),
         .loss = tf::keras::losses::SparseCategoricalCrossentropy({.from_logits = true})});
    return model;
  }

  const tf::distribute::MirroredStrategy strategy_;
  const GpuWork work_;
  const tf::keras::ModelHandle model_;
  std::pair<Tensor, Tensor> data_;
  double loss_ = 0;
};

}  // namespace

std::unique_ptr<GpuTraining> train_with_cohort(const GpuWork& work) {
  if (work.side == "run") return std::make_unique<RunTraining>(work);
  if (work.side == "fit") return std::make_unique<FitTraining>(work);
  return nullptr;
}

}  // namespace bench
