// Models and optimizers that are saved for TensorFlow, or restored from what it saved.
#include <ATen/ops/arange.h>
#include <cohort/cohort.h>

#include <map>
#include <memory>

#include "cohort/parameter_server/testing_cluster.h"
#include "optimizer_json.h"
#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {
namespace {

namespace layers = keras::layers;
using keras::optimizers::Optimizer;
using layers::LayerHandle;

// A model in a model, with a list of layers.
class Block : public keras::Model {
 public:
  Block() {
    track("a", a_);
    track("blocks", blocks_);
  }
  Tensor call(const Tensor& x, const keras::CallOptions&) override {
    return blocks_[1](blocks_[0](a_(x)));
  }

 private:
  LayerHandle a_ = layers::Dense(5, {.activation = "relu"});
  std::vector<LayerHandle> blocks_ = {layers::Dense(6, {.activation = "tanh"}), layers::Dense(4)};
};

class Nested : public keras::Model {
 public:
  Nested() {
    track("inner", inner_);
    track("out", out_);
  }
  Tensor call(const Tensor& x, const keras::CallOptions&) override { return out_(inner_(x)); }

 private:
  keras::ModelHandle inner_ = std::make_shared<Block>();
  LayerHandle out_ = layers::Dense(3);
};

keras::ModelHandle branches() {
  const auto input = keras::Input({6}, {.name = "x"});
  const auto left = layers::Dense(4, {.activation = "relu"})(input);
  const auto right = layers::Dense(4)(layers::Dense(7, {.activation = "tanh"})(input));
  const auto merged = layers::Concatenate()({left, right});
  return keras::Functional(input, layers::Dense(3)(merged));
}

keras::ModelHandle guide_004() {
  const keras::regularizers::L2 l2(1e-5);
  return keras::Sequential({layers::Conv2D(32, 3, {.activation = "relu", .kernel_regularizer = l2}),
                            layers::MaxPooling2D(),
                            layers::Conv2D(64, 3, {.activation = "relu", .kernel_regularizer = l2}),
                            layers::MaxPooling2D(), layers::Flatten(),
                            layers::Dense(64, {.activation = "relu", .kernel_regularizer = l2}),
                            layers::Dense(10, {.kernel_regularizer = l2})});
}

keras::ModelHandle make_model(const std::string& name) {
  if (name == "guide_004") return guide_004();
  if (name == "nested") return std::make_shared<Nested>();
  if (name == "functional") return branches();
  if (name == "embedding") {
    return keras::Sequential({layers::Embedding(10, 4), layers::Flatten(), layers::Dense(3)});
  }
  if (name == "lookup") {
    return keras::Sequential({layers::IntegerLookup({.vocabulary = std::vector<int64_t>{7, 2, 5},
                                                     .output_mode = "multi_hot"}),
                              layers::Dense(3)});
  }
  if (name == "lookup_idf") {
    return keras::Sequential(
        {layers::IntegerLookup({.vocabulary = std::vector<int64_t>{7, 2, 5},
                                .idf_weights = std::vector<double>{1.5, 0.5, 2},
                                .output_mode = "tf_idf"}),
         layers::Dense(3)});
  }
  if (name == "lookup_learned") {
    layers::IntegerLookup lookup({.output_mode = "multi_hot"});
    lookup.adapt(at::arange(5, at::dtype(at::kLong)));
    return keras::Sequential({lookup, layers::Dense(3)});
  }
  return keras::Sequential({layers::Dense(5, {.activation = "tanh"}), layers::Dense(3)});
}

// A program that trains: what is saved and restored, and how it goes on.
struct Program {
  Program(const distribute::Strategy& its_strategy, const Json& request)
      : strategy(its_strategy),
        batch(tensor_of(request.at("inputs")), tensor_of(request.at("labels"))) {
    auto scope = strategy.scope();
    model.emplace(make_model(request.at("model")));
    const Json& optimizer_json = request.at("optimizer");
    optimizer.emplace(make_optimizer(optimizer_json.at("class"), optimizer_json.at("options")));
    checkpoint.emplace(
        std::vector<train::NamedObject>{{"model", *model}, {"optimizer", *optimizer}});
  }

  void build() {
    (*model)(batch.first);
    auto scope = strategy.scope();
    optimizer->build(model->trainable_variables());
  }

  void train() {
    const auto step = [&](const Tensor& inputs, const Tensor& labels) {
      GradientTape tape;
      const Tensor losses = loss_object(labels, (*model)(inputs, {.training = true}));
      const Tensor loss =
          nn::compute_average_loss(losses, {.global_batch_size = batch.second.size(0)});
      const auto variables = model->trainable_variables();
      optimizer->apply_gradients(zip(tape.gradient(loss, variables), variables));
    };
    const auto dataset = data::Dataset::from_tensors(tuple(batch.first, batch.second));
    for (const auto& pieces : strategy.experimental_distribute_dataset(dataset)) {
      strategy.run(step, pieces);
    }
  }

  Json predictions() { return json_of((*model)(batch.first)); }

  const distribute::Strategy& strategy;
  std::pair<Tensor, Tensor> batch;
  std::optional<keras::ModelHandle> model;
  std::optional<Optimizer> optimizer;
  std::optional<train::Checkpoint> checkpoint;
  keras::losses::SparseCategoricalCrossentropy loss_object{
      {.from_logits = true, .reduction = keras::losses::Reduction::NONE}};
};

// A tensor of rows in several parts, as a parameter server holds a partitioned variable.
class Partitioned : public train::Trackable {
 public:
  Partitioned(const Tensor& whole, const std::vector<int64_t>& rows) : whole_(whole.clone()) {
    int64_t begin = 0;
    for (const int64_t count : rows) {
      std::vector<int64_t> start(static_cast<size_t>(whole.dim()), 0);
      std::vector<int64_t> length = whole.sizes().vec();
      start[0] = begin;
      length[0] = count;
      slices_.push_back({start, length});
      begin += count;
    }
  }

  bool has_checkpoint_values() const override { return true; }
  std::vector<train::CheckpointValue> checkpoint_values() override {
    train::CheckpointValue value{.attribute = train::kVariableValue,
                                 .full_name = "table",
                                 .full_shape = whole_.sizes().vec(),
                                 .parts = {}};
    for (const train::TensorSlice& slice : slices_) {
      value.parts.push_back({Leaf(rows_of(slice)), slice});
    }
    return {value};
  }
  void prepare_restore(train::RestoreSource& source) override {
    for (const train::TensorSlice& slice : slices_) {
      source.read_slice(train::kVariableValue, whole_.sizes(), slice, whole_.scalar_type(),
                        [this, slice](const Tensor& rows) { rows_of(slice).copy_(rows); });
    }
  }

  const Tensor& whole() const { return whole_; }

 private:
  Tensor rows_of(const train::TensorSlice& slice) const {
    return whole_.narrow(0, slice.start[0], slice.length[0]);
  }

  Tensor whole_;
  std::vector<train::TensorSlice> slices_;
};

Json partitioned(const Json& request) {
  const auto table = std::make_shared<Partitioned>(tensor_of(request.at("values")),
                                                   request.at("rows").get<std::vector<int64_t>>());
  const train::Checkpoint checkpoint({{"table", table}});
  if (request.at("action") == "save") {
    return {{"path", checkpoint.save(request.at("prefix").get<std::string>())}};
  }
  checkpoint.restore(request.at("path").get<std::string>()).assert_consumed();
  return {{"values", json_of(table->whole())}};
}

}  // namespace

namespace {

Json save_or_restore(const distribute::Strategy& strategy, const Json& request) {
  Program program(strategy, request);
  Json answer;
  if (request.at("action") == "save") {
    for (int i = 0; i < request.at("steps").get<int>(); ++i) program.train();
    // The second save replaces the first: its data file has another number.
    const std::string path = program.checkpoint->write(request.at("prefix").get<std::string>());
    program.checkpoint->write(path);
    answer["path"] = path;
  } else {
    if (request.at("built")) program.build();
    const auto status = program.checkpoint->read(request.at("path").get<std::string>());
    status.assert_existing_objects_matched();
    if (!request.at("built")) program.build();
    if (request.value("partly", false)) {
      status.expect_partial();
    } else {
      status.assert_consumed();
    }
    answer["iterations"] = program.optimizer->iterations().value().item<int64_t>();
  }
  answer["predictions"] = program.predictions();
  program.train();
  answer["after_a_step"] = program.predictions();
  return answer;
}

}  // namespace

Json use_checkpoint(const Json& request) {
  if (request.at("model") == "partitioned") return partitioned(request);
  if (request.contains("shards")) {
    const distribute::TestingCluster cluster(1, 2);
    const distribute::ParameterServerStrategy strategy(
        cluster.resolver(),
        {.variable_partitioner = distribute::partitioners::FixedShardsPartitioner(
             request.at("shards").get<int64_t>())});
    return save_or_restore(strategy, request);
  }
  config::set_logical_device_configuration("CPU", request.at("replicas"));
  return save_or_restore(distribute::MirroredStrategy(), request);
}

}  // namespace cohort::interop
