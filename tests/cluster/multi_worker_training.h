// What the tests of MultiWorkerMirroredStrategy in real processes have in common: settings, a
// training whose end is a digest, and jobs of workers.
#pragma once

#include <ATen/ops/full.h>
#include <ATen/ops/remainder.h>
#include <cohort/cohort.h>
#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cluster/testing_detection.h"

namespace cohort::multi_worker {

using detection::now_ms;
using detection::print_end;
using distribute::MultiWorkerMirroredStrategy;
using distribute::ReduceOp;
using distribute::ReplicaContext;
using testing::MultiProcessOptions;
using testing::MultiProcessRunner;
using namespace std::chrono_literals;
using Arguments = std::vector<std::string>;

constexpr auto kPatience = 40s;

inline distribute::ServerOptions quick() { return detection::test_settings(kPatience); }

inline MultiWorkerMirroredStrategy make_strategy() {
  return MultiWorkerMirroredStrategy({.server_options = quick()});
}

// Steps without end; says when and why they ended.
inline std::string step_for_ever(const Arguments&) {
  const MultiWorkerMirroredStrategy strategy = make_strategy();
  std::printf("started\n");
  try {
    while (true) {
      strategy.run([](ReplicaContext& context) {
        return context.all_reduce(ReduceOp::SUM, at::full({1000}, 1.0));
      });
    }
  } catch (const Error& error) {
    print_end(error);
    throw;
  }
}

constexpr int64_t kBatch = 8;
constexpr int kSteps = 25;

inline data::Dataset samples() {
  const auto generator = random::RandomGenerator::from_seed(4);
  const Tensor inputs = generator.normal({50, 6});
  const Tensor labels = at::remainder(inputs.sum({1}).mul(3).floor(), 3).to(int64);
  data::Options options;
  options.experimental_distribute.auto_shard_policy = data::AutoShardPolicy::DATA;
  return data::Dataset::from_tensor_slices(tuple(inputs, labels))
      .shuffle(50, {.seed = 2})
      .batch(kBatch, {.drop_remainder = true})
      .repeat()
      .with_options(options);
}

// A hash of the bytes of all values.
inline std::string digest(const std::vector<distribute::Variable>& variables) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const distribute::Variable& variable : variables) {
    const Tensor value = variable.value().detach().contiguous();
    const auto* bytes = static_cast<const unsigned char*>(value.data_ptr());
    for (size_t i = 0; i < value.nbytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

class Training {
 public:
  struct Options {
    std::string directory = "";  // of checkpoints; empty: none
    double dropout = 0.2;
  };
  explicit Training(const distribute::Strategy& strategy) : Training(strategy, Options{}) {}
  Training(const distribute::Strategy& strategy, const Options& options)
      : Training(strategy, options, strategy.scope()) {}

  // From wherever the latest checkpoint is. Before each step, `before` is told its number.
  void run_to(
      int steps, const std::function<void(int)>& before = [](int) {}) {
    for (auto i = optimizer_.iterations().value().item<int64_t>(); i < steps; ++i) {
      before(static_cast<int>(i));
      const distribute::PerReplica<Tensor> mine = strategy_.run(
          [this](const Tensor& inputs, const Tensor& labels) { return step(inputs, labels); },
          input_.get_next());
      losses_.push_back(strategy_.reduce(distribute::ReduceOp::SUM, mine).item<double>());
      if (checkpoints_ && i % 5 == 4) checkpoints_->save();
    }
  }

  // "digest loss loss ...".
  std::string result() const {
    std::ostringstream text;
    text.precision(9);
    std::vector<distribute::Variable> all = model_.variables();
    for (const auto& variable : optimizer_.variables()) all.push_back(variable);
    text << digest(all);
    for (const double loss : losses_) text << ' ' << loss;
    return text.str();
  }

 private:
  Training(const distribute::Strategy& strategy, const Options& options, const distribute::Scope&)
      : strategy_(strategy),
        model_({keras::layers::Dense(16, {.activation = "relu"}),
                keras::layers::Dropout(options.dropout), keras::layers::Dense(3)}),
        optimizer_({.learning_rate = 0.01}),
        input_(strategy.experimental_distribute_dataset(samples()).iterator()) {
    if (options.directory.empty()) return;
    checkpoints_.emplace(train::Checkpoint({{"model", model_},
                                            {"optimizer", optimizer_},
                                            {"input", input_},
                                            {"random", strategy_}}),
                         options.directory, train::CheckpointManagerOptions{.max_to_keep = 2});
    checkpoints_->restore_or_initialize();
  }

  Tensor step(const Tensor& inputs, const Tensor& labels) const {
    GradientTape tape;
    const Tensor logits = model_(inputs, {.training = true});
    const Tensor loss =
        nn::compute_average_loss(loss_(labels, logits), {.global_batch_size = kBatch});
    const auto variables = model_.trainable_variables();
    optimizer_.apply_gradients(zip(tape.gradient(loss, variables), variables));
    return loss;
  }

  const distribute::Strategy strategy_;
  const keras::Sequential model_;
  const keras::optimizers::Adam optimizer_;
  const keras::losses::SparseCategoricalCrossentropy loss_{
      {.from_logits = true, .reduction = keras::losses::Reduction::NONE}};
  distribute::DistributedIterator input_;
  std::optional<train::CheckpointManager> checkpoints_;
  std::vector<double> losses_;
};

inline MultiProcessOptions workers(int count, const std::string& function,
                                   Arguments arguments = {}) {
  return {.jobs = {{"worker", count}}, .function = function, .arguments = std::move(arguments)};
}

inline std::vector<std::string> values_of(const MultiProcessOptions& options) {
  MultiProcessRunner runner(options);
  runner.start();
  std::vector<std::string> values;
  for (auto& [task, value] : runner.join()) values.push_back(value);
  return values;
}

struct MultiWorker : ::testing::Test {
  MultiWorker() {
    directory = ::testing::TempDir() + "multi_worker_test.XXXXXX";  // mkdtemp fills it in
    if (::mkdtemp(directory.data()) == nullptr) throw UnknownError("no temporary directory");
  }
  ~MultiWorker() override { std::filesystem::remove_all(directory); }

  std::string directory;
};

// The main of such a test: tasks are started with one of `functions`.
inline int run_main(int argc, char** argv, const testing::TaskFunctions& functions) {
  return testing::multi_process_main(argc, argv, functions, [](int count, char** arguments) {
    ::testing::InitGoogleTest(&count, arguments);
    return RUN_ALL_TESTS();
  });
}

}  // namespace cohort::multi_worker
