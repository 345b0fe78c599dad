// Trains on command: one command a line on stdin, one number a line on stdout. bench/step.py gives
// the commands, beside its peers' turns.
//
//   step_worker SAMPLES_DIRECTORY [THREADS]   OpenMP's, of libtorch's own loop; OpenBLAS's are set
//   by
//                                             OPENBLAS_NUM_THREADS
//   train MODEL REPLICAS BATCH SECONDS   samples a second with BATCH a replica, for about SECONDS
//   profiled MODEL REPLICAS BATCH SECONDS  the same, while the profiler runs
//   libtorch MODEL 1 BATCH SECONDS       the same by a loop of libtorch's own
//   steps HOSTED MODEL BATCH COUNT       seconds that so many steps take, by a worker of those that
//                                        TF_CONFIG names: all get the command. HOSTED: how many
//                                        replicas the workers host, which divide their batches; "-":
//                                        each is a replica
//   loss COMMAND MODEL REPLICAS BATCH    the mean loss of the first steps of what such a command has
//                                        trained; COMMAND "steps" has no REPLICAS
//   empty run REPLICAS 0 SECONDS         seconds that strategy.run takes for an empty function
//   parameters MODEL                     how many numbers the model learns
//   blas_kernels                         what OPENBLAS_CORETYPE should be; "-" where nothing
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <cohort/cohort.h>
#include <cohort/core/cpu/blas_kernels.h>
#include <torch/version.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "timing.h"
#include "training.h"

namespace tf = cohort;

namespace {

// A training, and the mean loss of its first steps.
class Trained {
 public:
  explicit Trained(std::unique_ptr<bench::Training> training) : training_(std::move(training)) {}

  void step(int64_t index) {
    const double loss = training_->step(index);
    if (steps_ == bench::Samples::kFirstSteps) return;
    losses_ += loss;
    ++steps_;
  }
  double first_loss() const { return losses_ / static_cast<double>(steps_); }

 private:
  std::unique_ptr<bench::Training> training_;
  double losses_ = 0;
  int64_t steps_ = 0;
};

class Worker {
 public:
  explicit Worker(std::string samples) : directory_(std::move(samples)) {}

  double answer(const std::string& line) {
    std::istringstream words(line);
    std::string command, model;
    int64_t replicas = 1, batch = 0;
    double seconds = 0;
    words >> command >> model;
    if (command == "steps") return steps(hosted_of(model), words);
    if (command == "loss") return first_loss(model, words);
    if (command == "parameters") return static_cast<double>(bench::count_parameters(model));
    if (command == "forget") {
      trainings_.clear();
      return 0;
    }
    if (!(words >> replicas >> batch >> seconds)) throw std::invalid_argument("arguments missing");
    if (command == "empty") {
      const auto& on = strategy(replicas);
      return bench::time_steps(seconds, [&](int64_t) { on.run([] {}); });
    }
    const bool profiled = command == "profiled";
    if (profiled) command = "train";
    const Key key{command, model, replicas, batch};
    auto found = trainings_.find(key);
    if (found == trainings_.end()) {
      found = trainings_.try_emplace(key, make_training(command, model, replicas, batch)).first;
      found->second.step(0);  // builds what is built lazily
    }
    Trained& training = found->second;
    if (profiled) tf::profiler::start();
    const double step = bench::time_steps(seconds, [&](int64_t index) { training.step(index); });
    if (profiled) tf::profiler::stop();
    return static_cast<double>(replicas * batch) / step;
  }

 private:
  // The command, the model, how many replicas and the batch of each; of "steps", the batch of a
  // worker.
  using Key = std::tuple<std::string, std::string, int64_t, int64_t>;

  double first_loss(std::string command, std::istringstream& words) {
    std::string model;
    int64_t replicas = 1, batch = 0;
    words >> model;
    if (command == "steps") {
      replicas = hosted_of(model);
      words >> model;
    } else {
      words >> replicas;
    }
    if (!(words >> batch)) throw std::invalid_argument("arguments missing");
    if (command == "profiled") command = "train";
    const auto found = trainings_.find({command, model, replicas, batch});
    if (found == trainings_.end()) throw std::invalid_argument("there is no such training");
    return found->second.first_loss();
  }

  static int64_t hosted_of(const std::string& word) { return word == "-" ? 0 : std::stoll(word); }

  const tf::distribute::MultiWorkerMirroredStrategy& workers(int64_t hosted) {
    const auto found = workers_.find(hosted);
    if (found != workers_.end()) return found->second;
    tf::distribute::MultiWorkerMirroredStrategyOptions options;
    options.elastic.replicas = static_cast<int>(hosted);
    return workers_.try_emplace(hosted, options).first->second;
  }

  double steps(int64_t hosted, std::istringstream& words) {
    std::string model;
    int64_t batch = 0, count = 0;
    if (!(words >> model >> batch >> count)) throw std::invalid_argument("arguments missing");
    const tf::distribute::MultiWorkerMirroredStrategy& strategy = workers(hosted);
    const Key key{"steps", model, hosted, batch};
    auto found = trainings_.find(key);
    if (found == trainings_.end()) {
      const auto [samples, added] = samples_.try_emplace(model, directory_, model);
      const int64_t of_replica = hosted > 0 ? batch * strategy.num_workers() / hosted : batch;
      auto training = bench::train_with_strategy(strategy, samples->second, model, of_replica);
      found = trainings_.try_emplace(key, std::move(training)).first;
    }
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < count; ++i) found->second.step(next_step_++);
    return bench::seconds_since(start);
  }

  std::unique_ptr<bench::Training> make_training(const std::string& command,
                                                 const std::string& model, int64_t replicas,
                                                 int64_t batch) {
    const auto [samples, added] = samples_.try_emplace(model, directory_, model);
    if (command == "train") {
      return bench::train_with_strategy(strategy(replicas), samples->second, model, batch);
    }
    if (command == "libtorch") return bench::train_with_libtorch(samples->second, model, batch);
    throw std::invalid_argument("unknown command");
  }

  const tf::distribute::Strategy& strategy(int64_t replicas) {
    const auto found = strategies_.find(replicas);
    if (found != strategies_.end()) return found->second;
    std::vector<std::string> devices;
    for (int64_t i = 0; i < replicas; ++i) devices.push_back("CPU:" + std::to_string(i));
    return strategies_.try_emplace(replicas, devices).first->second;
  }

  std::string directory_;
  std::map<std::string, bench::Samples> samples_;
  std::map<int64_t, tf::distribute::MirroredStrategy> strategies_;
  // The strategies by how many replicas the workers host.
  std::map<int64_t, tf::distribute::MultiWorkerMirroredStrategy> workers_;
  int64_t next_step_ = 0;
  std::map<Key, Trained> trainings_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::cerr << "usage: step_worker SAMPLES_DIRECTORY [THREADS] < commands\n";
    return 64;
  }
  tf::config::keep_freed_memory();
  tf::logging::set_level(tf::logging::Level::kWarning);
  // A worker has one replica, all others of this program are in one process.
  tf::config::set_logical_device_configuration("CPU", std::getenv("TF_CONFIG") ? 1 : 8);
  if (argc == 3) {
    at::set_num_threads(std::stoi(argv[2]));
    at::globalContext().setFlushDenormal(true);  // as steps of Cohort's do by themselves
  }
  Worker worker(argv[1]);
  for (std::string line; std::getline(std::cin, line);) {
    try {
      if (line == "version") {
        std::cout << "Cohort " << tf::kVersion << " on libtorch " << TORCH_VERSION << std::endl;
      } else if (line == "blas_kernels") {
        const std::string_view better = tf::internal::better_blas_kernels();
        std::cout << (better.empty() ? "-" : better) << std::endl;
      } else {
        std::cout << worker.answer(line) << std::endl;
      }
    } catch (const std::exception& error) {
      std::cerr << "step_worker: " << line << ": " << error.what() << '\n';
      return 1;
    }
  }
  return 0;
}
