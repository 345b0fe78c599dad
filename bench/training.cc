#include "training.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <vector>

#include "common/trainer.h"
#include "example_training.h"
#include "keras_models.h"
#include "models.h"

namespace bench {
namespace {

namespace tf = cohort;
using tf::Tensor;
using Batch = tf::distribute::PerReplica<tf::Structure>;

bool is_example(const std::string& model) {
  return model == "bert" || model == "densenet" || model == "ncf" || model == "nmt" ||
         model == "transformer";
}

std::vector<Batch> distribute(const tf::distribute::Strategy& strategy, const Samples& samples,
                              int64_t batch) {
  const int64_t global_batch = batch * strategy.num_replicas_in_sync();
  std::vector<Batch> batches;
  for (int64_t i = 0; i < Samples::kBatches; ++i) {
    const auto [inputs, labels] = samples.batch(i, global_batch);
    batches.push_back(strategy.experimental_distribute_values_from_function(
        [&, inputs = inputs, labels = labels](const tf::distribute::ValueContext& context) {
          const int64_t begin = context.replica_id_in_sync_group * batch;
          return tf::Structure(
              tf::tuple(inputs.narrow(0, begin, batch), labels.narrow(0, begin, batch)));
        }));
  }
  return batches;
}

class GuideTraining : public Training {
 public:
  GuideTraining(const tf::distribute::Strategy& strategy, const Samples& samples, int64_t batch)
      : trainer_(strategy, batch * strategy.num_replicas_in_sync()),
        batches_(distribute(strategy, samples, batch)) {}

  double step(int64_t index) override {
    return trainer_.distributed_train_step(batches_[index % batches_.size()]);
  }

 private:
  examples::Trainer trainer_;
  std::vector<Batch> batches_;
};

tf::keras::optimizers::Optimizer make_optimizer(const std::string& model) {
  namespace optimizers = tf::keras::optimizers;
  if (model == "embedding") return optimizers::SGD({.learning_rate = 0.1});
  if (model == "resnet") return optimizers::SGD({.learning_rate = 0.01, .momentum = 0.9});
  return optimizers::Adam({.learning_rate = 0.001});
}

tf::keras::ModelHandle make_model(const std::string& model) {
  if (const auto made = make_keras_model(model)) return *made;
  return tf::keras::TorchModel([model] { return make_classifier(model); });
}

class ModelTraining : public Training {
 public:
  ModelTraining(const tf::distribute::Strategy& strategy, const Samples& samples,
                const std::string& model, int64_t batch)
      : ModelTraining(strategy, samples, model, batch, strategy.scope()) {}

  double step(int64_t index) override {
    const auto losses = strategy_.run(
        [this](const Tensor& inputs, const Tensor& labels) {
          tf::GradientTape tape;
          const Tensor logits = model_(inputs, {.training = true});
          const Tensor loss =
              at::cross_entropy_loss(logits, labels) / strategy_.num_replicas_in_sync();
          optimizer_.minimize(loss, variables_, tape);
          return loss;
        },
        batches_[index % batches_.size()]);
    return strategy_.reduce(tf::distribute::ReduceOp::SUM, losses).item<double>();
  }

 private:
  ModelTraining(const tf::distribute::Strategy& strategy, const Samples& samples,
                const std::string& model, int64_t batch, const tf::distribute::Scope&)
      : strategy_(strategy),
        batches_(distribute(strategy, samples, batch)),
        model_(make_model(model)),
        variables_(model_.trainable_variables()),
        optimizer_(make_optimizer(model)) {}

  const tf::distribute::Strategy& strategy_;
  std::vector<Batch> batches_;
  tf::keras::ModelHandle model_;
  std::vector<tf::Variable> variables_;
  tf::keras::optimizers::Optimizer optimizer_;
};

std::unique_ptr<torch::optim::Optimizer> make_libtorch_optimizer(const std::string& model,
                                                                 std::vector<Tensor> parameters) {
  using namespace torch::optim;
  if (model == "embedding") return std::make_unique<SGD>(parameters, SGDOptions(0.1));
  if (model == "resnet") return std::make_unique<SGD>(parameters, SGDOptions(0.01).momentum(0.9));
  return std::make_unique<Adam>(parameters, AdamOptions(0.001));
}

class LibtorchTraining : public Training {
 public:
  LibtorchTraining(const Samples& samples, const std::string& model, int64_t batch)
      : model_(make_classifier(model)),
        parameters_(model_->parameters()),
        optimizer_(make_libtorch_optimizer(model, parameters_)) {
    for (int64_t i = 0; i < Samples::kBatches; ++i) batches_.push_back(samples.batch(i, batch));
    model_->train();
  }

  double step(int64_t index) override {
    const auto& [inputs, labels] = batches_[index % batches_.size()];
    // As zero_grad with set_to_none, which libtorch 1.13 has in Python only.
    for (Tensor& parameter : parameters_) parameter.mutable_grad().reset();
    const Tensor loss = at::cross_entropy_loss(model_->forward(inputs), labels);
    loss.backward();
    optimizer_->step();
    return loss.item<double>();
  }

 private:
  std::shared_ptr<Classifier> model_;
  std::vector<Tensor> parameters_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::vector<std::pair<Tensor, Tensor>> batches_;
};

}  // namespace

std::unique_ptr<Training> train_with_strategy(const tf::distribute::Strategy& strategy,
                                              const Samples& samples, const std::string& model,
                                              int64_t batch) {
  if (model == "cnn") return std::make_unique<GuideTraining>(strategy, samples, batch);
  if (is_example(model)) return train_example(strategy, samples, model, batch);
  return std::make_unique<ModelTraining>(strategy, samples, model, batch);
}

std::unique_ptr<Training> train_with_libtorch(const Samples& samples, const std::string& model,
                                              int64_t batch) {
  return std::make_unique<LibtorchTraining>(samples, model, batch);
}

int64_t count_parameters(const std::string& model) {
  if (model == "cnn") {
    const auto guide = examples::create_model();
    guide(at::zeros({1, 28, 28, 1}));  // builds it
    return guide.count_params();
  }
  if (const auto made = make_keras_model(model)) return made->count_params();
  if (const auto made = make_example_model(model)) {
    int64_t learned = 0;
    for (const tf::Variable& variable : made->trainable_variables()) {
      learned += variable.value().numel();
    }
    return learned;
  }
  int64_t elements = 0;
  for (const Tensor& parameter : make_classifier(model)->parameters())
    elements += parameter.numel();
  return elements;
}

}  // namespace bench
