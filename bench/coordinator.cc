// A task of a parameter server cluster, for bench/coordinator.py: TF_CONFIG says which. The chief
// reads a command a line on stdin, "WORK SECONDS", and answers with a number:
//
//   noop      closures a second: a function that does nothing, many scheduled at a time
//   latency   schedule, then fetch its result: times a second
//   step      guide 001's training step: a second
//   pull      reads of a variable of 64 MB on a ps task, by the coordinator: a second
//   push      assignments to it: a second
//   sparse    rows that steps look up and update, of a table of ROWS rows: a second
//
// WINDOW: how many closures a worker has at a time. ROWS: of 64 floats; missing: there is no table.
#include <cohort/cohort.h>

#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>

#include "parameter_server/training.h"
#include "timing.h"

namespace tf = cohort;

namespace {

constexpr int kNoopsAtATime = 2000;
constexpr int kStepsAtATime = 20;
constexpr int64_t kBulkNumbers = (int64_t{64} << 20) / 4;

// Steps on rows of a table.
struct Sparse {
  static constexpr int64_t kWidth = 64;
  static constexpr int64_t kBatch = 8192;

  Sparse(const tf::distribute::ParameterServerStrategy& strategy, int64_t rows)
      : scope(strategy.scope()),
        table({.shape = {rows, kWidth}, .options = {.name = "table"}},
              tf::keras::initializers::RandomUniform({.seed = 1})
                  .for_variable({rows, kWidth}, tf::float32)),
        optimizer({.learning_rate = 0.01}),
        step(strategy.function("sparse", [this, rows, strategy] {
          const tf::Tensor ids = tf::random::uniform(
              {kBatch}, {.maxval = static_cast<double>(rows), .dtype = tf::int64});
          strategy.run([&] {
            tf::GradientTape tape;
            const tf::Tensor loss = tf::reduce_sum(tf::nn::embedding_lookup(table, ids));
            optimizer.minimize(loss, {table}, tape);
          });
        })) {
    optimizer.build({table});
    scope.close();
  }

  tf::distribute::Scope scope;
  tf::Variable table;
  const tf::keras::optimizers::SGD optimizer;
  tf::distribute::WorkerFunction step;
};

// What every task declares.
struct Program {
  Program(const tf::distribute::ParameterServerStrategy& strategy, int64_t rows)
      : guide(strategy, {}),
        noop(strategy.function("noop", [] {})),
        scope(strategy.scope()),
        bulk({.shape = {kBulkNumbers}, .options = {.name = "bulk", .trainable = false}},
             [](const tf::distribute::ShardInfo& part) { return tf::zeros(part.shape); }) {
    scope.close();
    if (rows > 0) sparse.emplace(strategy, rows);
  }

  parameter_server::Program guide;
  tf::distribute::WorkerFunction noop;
  tf::distribute::Scope scope;
  tf::Variable bulk;
  std::optional<Sparse> sparse;
};

class Chief {
 public:
  Chief(const tf::distribute::ParameterServerStrategy& strategy, const Program& program, int window)
      : program_(program),
        coordinator_(strategy, {.window = window}),
        input_(coordinator_.create_per_worker_dataset(program.guide.dataset_function()).iterator()),
        numbers_(tf::zeros({kBulkNumbers})) {}

  double answer(const std::string& work, double seconds) {
    if (work == "noop") {
      return many(seconds, kNoopsAtATime, [this] { coordinator_.schedule(program_.noop); });
    }
    if (work == "step") {
      return many(seconds, kStepsAtATime,
                  [this] { coordinator_.schedule(program_.guide.step_function(), input_); });
    }
    if (work == "latency") {
      return 1 / bench::time_steps(
                     seconds, [this](int64_t) { coordinator_.schedule(program_.noop).fetch(); });
    }
    if (work == "sparse" && program_.sparse) {
      return Sparse::kBatch *
             many(seconds, kStepsAtATime, [this] { coordinator_.schedule(program_.sparse->step); });
    }
    if (work == "pull") {
      return 1 / bench::time_steps(seconds, [this](int64_t) { program_.bulk.value(); });
    }
    if (work == "push") {
      return 1 / bench::time_steps(
                     seconds, [this](int64_t) { tf::Variable(program_.bulk).assign(numbers_); });
    }
    throw std::invalid_argument("unknown work '" + work + "'");
  }

 private:
  template <class Schedule>
  double many(double seconds, int count, const Schedule& schedule) {
    return count / bench::time_steps(seconds, [&](int64_t) {
             for (int i = 0; i < count; ++i) schedule();
             coordinator_.join();
           });
  }

  const Program& program_;
  const tf::distribute::coordinator::ClusterCoordinator coordinator_;
  const tf::distribute::coordinator::PerWorkerIterator input_;
  const tf::Tensor numbers_;
};

int coordinate(const tf::distribute::ParameterServerStrategy& strategy, const Program& program,
               int window) {
  Chief chief(strategy, program, window);
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "version") {
      std::cout << "Cohort " << tf::kVersion << std::endl;
      continue;
    }
    std::istringstream words(line);
    std::string work;
    double seconds = 0;
    words >> work >> seconds;
    std::cout << chief.answer(work, seconds) << std::endl;
  }
  return 0;
}

int run(int window, int64_t rows) {
  tf::config::keep_freed_memory();
  tf::logging::set_level(tf::logging::Level::kWarning);
  tf::random::set_seed(1);
  const tf::distribute::cluster_resolver::TFConfigClusterResolver resolver;
  const tf::distribute::ParameterServerStrategy strategy(resolver);
  const Program program(strategy, rows);
  if (resolver.task_type() == "chief") return coordinate(strategy, program, window);
  const tf::distribute::ServerOptions options;
  return tf::distribute::Server(resolver, options).join();
}

}  // namespace

int main(int argc, char** argv) {
  return tf::run_program([&] {
    if (argc != 2 && argc != 3) {
      throw tf::InvalidArgumentError("usage: bench_coordinator WINDOW [ROWS], in a cluster");
    }
    return run(std::stoi(argv[1]), argc == 3 ? std::stoll(argv[2]) : 0);
  });
}
