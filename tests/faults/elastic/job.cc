// A training whose workers are killed, for elastic.py: guide 004's kind of model with dropout and
// normalization, Adam with a falling rate, a shuffled dataset whose rows are counted by their ids.
// Prints a line for each epoch and a digest of all that training has changed.
#include <cohort/cohort.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

namespace tf = cohort;
using tf::Tensor;
using tf::distribute::MultiWorkerMirroredStrategy;
using tf::distribute::Variable;

namespace {

constexpr int64_t kRows = 90;   // which the batch does not divide
constexpr int64_t kBatch = 16;  // nor do replicas divide the last batch

struct Options {
  int replicas = 8;
  int min_workers = 1;
  int64_t epochs = 3;
  int64_t pause_ms = 0;  // in each step
  std::string checkpoints;
  std::string times;
  bool fit = false;
};

Options parse_options(int argc, char** argv) {
  Options options;
  CLI::App app{"Trains on hosted replicas, to be killed."};
  app.add_option("--replicas", options.replicas);
  app.add_option("--min-workers", options.min_workers);
  app.add_option("--epochs", options.epochs);
  app.add_option("--pause-ms", options.pause_ms);
  app.add_option("--checkpoints", options.checkpoints, "Saves there after each epoch");
  app.add_option("--times", options.times,
                 "A folder where each process leaves the times at which its steps ended");
  app.add_flag("--fit", options.fit, "Trains by Model::fit");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? EXIT_SUCCESS : 64);
  }
  return options;
}

// A line is one write, so that those of several workers do not mix.
template <class... Parts>
void say(const Parts&... parts) {
  std::ostringstream line;
  (line << ... << parts);
  line << '\n';
  std::cout << line.str() << std::flush;
}

std::string digest(const std::vector<Variable>& variables) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const Variable& variable : variables) {
    const Tensor value = variable.value().detach().cpu().contiguous();
    const auto* bytes = static_cast<const unsigned char*>(value.data_ptr());
    for (size_t i = 0; i < value.nbytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

tf::keras::Sequential make_model() {
  namespace layers = tf::keras::layers;
  return tf::keras::Sequential({layers::Conv2D(8, 3, {.activation = "relu"}),
                                layers::BatchNormalization({.synchronized = true}),
                                layers::MaxPooling2D(), layers::Flatten(), layers::Dropout(0.25),
                                layers::Dense(10)});
}

class Job {
 public:
  Job(const MultiWorkerMirroredStrategy& strategy, const Options& options)
      : Job(strategy, options, strategy.scope()) {}

  void fit() {
    namespace keras = tf::keras;
    const auto [images, ids] = rows();
    const auto data = tf::data::Dataset::from_tensor_slices(tf::tuple(images, ids.remainder(10)))
                          .shuffle(kRows, {.seed = 9})
                          .batch(kBatch);
    {
      const auto scope = strategy_.scope();
      model_.compile(
          {.optimizer = optimizer_,
           .loss = tf::keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
           .metrics = {"accuracy"}});
    }
    std::vector<keras::callbacks::CallbackArgument> callbacks;
    if (!options_.checkpoints.empty()) {
      callbacks.emplace_back(
          keras::callbacks::BackupAndRestore(options_.checkpoints, {.delete_checkpoint = false}));
    }
    const auto history =
        model_.fit(data, {.epochs = options_.epochs, .verbose = 2, .callbacks = callbacks});
    tell_digest();
  }

  void train() {
    const auto [images, ids] = rows();
    auto input = strategy_
                     .experimental_distribute_dataset(tf::data::Dataset::from_tensor_slices(
                                                          tf::tuple(images, ids.remainder(10), ids))
                                                          .shuffle(kRows, {.seed = 9})
                                                          .batch(kBatch)
                                                          .repeat())
                     .iterator();
    std::optional<tf::train::CheckpointManager> checkpoints;
    if (!options_.checkpoints.empty()) {
      checkpoints.emplace(tf::train::Checkpoint({{"model", model_},
                                                 {"optimizer", optimizer_},
                                                 {"seen", seen_},
                                                 {"input", input},
                                                 {"random", strategy_}}),
                          options_.checkpoints);
    }
    if (checkpoints) checkpoints->restore_or_initialize();
    constexpr int64_t kSteps = (kRows + kBatch - 1) / kBatch;
    const int64_t first = optimizer_.iterations().value().item<int64_t>() / kSteps;
    for (int64_t epoch = first; epoch < options_.epochs; ++epoch) {
      double loss = 0;
      for (int64_t step = 0; step < kSteps; ++step) {
        const auto losses = strategy_.run([this](const Tensor& x, const Tensor& y,
                                                 const Tensor& row) { return step_(x, y, row); },
                                          input.get_next());
        loss += strategy_.reduce(tf::distribute::ReduceOp::SUM, losses).item<double>();
        note_time();
      }
      const Tensor counts = seen_.value();
      const bool each_once = (counts == static_cast<double>(epoch + 1)).all().item<bool>();
      if (strategy_.is_chief()) {
        say("epoch ", epoch + 1, " loss ", loss, " accuracy ", accuracy_.result().item<double>(),
            each_once ? " rows once" : " ROWS NOT ONCE");
      }
      accuracy_.reset_state();
      if (checkpoints) checkpoints->save();
    }
    tell_digest();
  }

 private:
  Job(const MultiWorkerMirroredStrategy& strategy, const Options& options,
      const tf::distribute::Scope&)
      : strategy_(strategy),
        options_(options),
        model_(make_model()),
        optimizer_({.learning_rate = tf::optim::ExponentialDecay(
                        {.initial_learning_rate = 0.01, .decay_steps = 5, .decay_rate = 0.9})}),
        loss_({.from_logits = true, .reduction = tf::keras::losses::Reduction::NONE}),
        accuracy_({.name = "accuracy"}),
        seen_(tf::zeros({kRows}),
              {.name = "seen",
               .trainable = false,
               .synchronization = tf::distribute::VariableSynchronization::ON_READ,
               .aggregation = tf::distribute::VariableAggregation::SUM}),
        pattern_(tf::random::RandomGenerator::from_seed(4).uniform({1, 8, 8, 1})) {
    if (!options.times.empty()) times_.open(options.times + "/" + std::to_string(::getpid()));
  }

  // Images that tell their rows' numbers, and those.
  std::pair<Tensor, Tensor> rows() const {
    const Tensor ids = tf::data::Dataset::range(kRows).batch(kRows).get_single_element().tensor();
    return {ids.to(tf::float32).reshape({kRows, 1, 1, 1}) / kRows + pattern_, ids};
  }

  void note_time() {
    if (options_.times.empty()) return;
    const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
    times_ << std::fixed << now.count() << std::endl;
  }

  void tell_digest() const {
    if (model_.variables().empty()) return say("nothing was left to train");
    std::vector<Variable> all = model_.variables();
    for (const Variable& variable : optimizer_.variables()) all.push_back(variable);
    all.push_back(seen_);
    // The slots of a restored optimizer are made in another order.
    std::stable_sort(all.begin(), all.end(), [](const Variable& one, const Variable& other) {
      return one.name() < other.name();
    });
    say("digest ", digest(all), " steps ", optimizer_.iterations().value().item<int64_t>());
  }

  Tensor step_(const Tensor& images, const Tensor& labels, const Tensor& rows) {
    if (options_.pause_ms > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(options_.pause_ms));
    }
    tf::GradientTape tape;
    const Tensor predictions = model_(images, {.training = true});
    const Tensor loss =
        tf::nn::compute_average_loss(loss_(labels, predictions), {.global_batch_size = kBatch});
    const auto variables = model_.trainable_variables();
    optimizer_.apply_gradients(tf::zip(tape.gradient(loss, variables), variables));
    accuracy_.update_state(labels, predictions);
    seen_.assign_add(tf::zeros({kRows}).index_add(0, rows, tf::ones({rows.size(0)})));
    return loss;
  }

  const MultiWorkerMirroredStrategy& strategy_;
  const Options options_;
  tf::keras::Sequential model_;
  tf::keras::optimizers::Adam optimizer_;
  tf::keras::losses::SparseCategoricalCrossentropy loss_;
  tf::keras::metrics::SparseCategoricalAccuracy accuracy_;
  Variable seen_;
  Tensor pattern_;
  std::ofstream times_;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  return tf::run_program([&] {
    tf::random::set_seed(5);
    tf::config::set_logical_device_configuration("CPU", 1);
    tf::distribute::MultiWorkerMirroredStrategyOptions strategy_options;
    strategy_options.elastic.replicas = options.replicas;
    strategy_options.elastic.min_workers = options.min_workers;
    const MultiWorkerMirroredStrategy strategy(strategy_options);
    Job job(strategy, options);
    options.fit ? job.fit() : job.train();
  });
}
