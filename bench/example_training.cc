#include "example_training.h"

#include <utility>
#include <vector>

#include "models/bert.h"
#include "models/densenet.h"
#include "models/ncf.h"
#include "models/nmt.h"
#include "models/transformer.h"

namespace bench {
namespace {

namespace tf = cohort;
using tf::Structure;
using tf::Tensor;
using Batch = tf::distribute::PerReplica<Structure>;

struct Column {
  const char* name;
  int64_t count;
};

// The inputs of a model, which are columns of its samples: as COLUMNS of samples.py.
std::vector<Column> columns_of(const std::string& model) {
  if (model == "bert") return {{"tokens", 128}, {"segments", 128}, {"places", 20}};
  if (model == "ncf") return {{"users", 1}, {"items", 1}};
  if (model == "nmt" || model == "transformer") return {{"source", 20}, {"target", 21}};
  return {};
}

Structure inputs_of(const std::string& model, const Tensor& samples) {
  const std::vector<Column> columns = columns_of(model);
  if (columns.empty()) return samples;
  Structure::Dict inputs;
  int64_t first = 0;
  for (const Column& column : columns) {
    const Tensor part = samples.narrow(1, first, column.count).contiguous();
    inputs.emplace_back(column.name, model == "ncf" ? part.squeeze(1) : part);
    first += column.count;
  }
  return tf::dict(std::move(inputs));
}

// Inputs, labels and the weights of labels: what is padded counts nothing.
Structure batch_of(const std::string& model, const Tensor& inputs, const Tensor& labels) {
  const bool is_padded = model == "bert" || model == "nmt" || model == "transformer";
  return tf::tuple(inputs_of(model, inputs), model == "ncf" ? labels.to(tf::float32) : labels,
                   is_padded ? labels.ne(0).to(tf::float32) : tf::ones({1}));
}

tf::keras::losses::Loss loss_of(const std::string& model) {
  namespace losses = tf::keras::losses;
  if (model == "ncf") {
    return losses::BinaryCrossentropy({.from_logits = true, .reduction = losses::Reduction::NONE});
  }
  return losses::SparseCategoricalCrossentropy(
      {.from_logits = true, .reduction = losses::Reduction::NONE});
}

class ExampleTraining : public Training {
 public:
  ExampleTraining(const tf::distribute::Strategy& strategy, const Samples& samples,
                  const std::string& model, int64_t batch)
      : ExampleTraining(strategy, samples, model, batch, strategy.scope()) {}

  double step(int64_t index) override {
    const auto losses = strategy_.run(
        [this](const Structure& inputs, const Tensor& labels, const Tensor& weights) {
          tf::GradientTape tape;
          const Tensor logits = model_(inputs, {.training = true}).tensor();
          const Tensor loss =
              (loss_(labels, logits) * weights).mean() / strategy_.num_replicas_in_sync();
          optimizer_.minimize(loss, variables_, tape);
          return loss;
        },
        batches_[static_cast<size_t>(index) % batches_.size()]);
    return strategy_.reduce(tf::distribute::ReduceOp::SUM, losses).item<double>();
  }

 private:
  ExampleTraining(const tf::distribute::Strategy& strategy, const Samples& samples,
                  const std::string& model, int64_t batch, const tf::distribute::Scope&)
      : strategy_(strategy),
        model_(*make_example_model(model)),
        variables_(model_.trainable_variables()),
        loss_(loss_of(model)) {
    const int64_t global_batch = batch * strategy.num_replicas_in_sync();
    for (int64_t i = 0; i < Samples::kBatches; ++i) {
      const auto [inputs, labels] = samples.batch(i, global_batch);
      batches_.push_back(strategy.experimental_distribute_values_from_function(
          [&, inputs = inputs, labels = labels](const tf::distribute::ValueContext& context) {
            const int64_t begin = context.replica_id_in_sync_group * batch;
            return batch_of(model, inputs.narrow(0, begin, batch), labels.narrow(0, begin, batch));
          }));
    }
  }

  const tf::distribute::Strategy& strategy_;
  std::vector<Batch> batches_;
  tf::keras::ModelHandle model_;
  std::vector<tf::Variable> variables_;
  tf::keras::losses::Loss loss_;
  tf::keras::optimizers::Adam optimizer_{{.learning_rate = 0.001}};
};

}  // namespace

std::optional<tf::keras::ModelHandle> make_example_model(const std::string& name) {
  if (name == "densenet") {
    return models::make_densenet(
        {.image_size = 32, .blocks = {6, 6, 6}, .classes = 10, .synchronized = false});
  }
  if (name == "bert") {
    return models::make_bert(
        {.words = 8188, .length = 128, .features = 128, .heads = 2, .inner = 512, .masked = 20});
  }
  if (name == "ncf") {
    return models::make_ncf({.users = 6040, .items = 3706, .factors = 16, .tower = {64, 32, 16}});
  }
  if (name == "nmt") {
    return models::make_nmt({.words = 4000, .longest = 20, .features = 128, .units = 128});
  }
  if (name == "transformer") {
    return models::make_transformer(
        {.words = 4000, .longest = 20, .features = 128, .layers = 2, .inner = 512});
  }
  return std::nullopt;
}

std::unique_ptr<Training> train_example(const tf::distribute::Strategy& strategy,
                                        const Samples& samples, const std::string& model,
                                        int64_t batch) {
  return std::make_unique<ExampleTraining>(strategy, samples, model, batch);
}

}  // namespace bench
