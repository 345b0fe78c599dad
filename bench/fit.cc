// Trains by fit on command, for bench/fit.py: a command a line on stdin, an answer a line on
// stdout.
//
//   bench_fit SAMPLES_DIRECTORY
//   fit MODEL REPLICAS BATCH SECONDS     samples a second in epochs of about SECONDS, with BATCH over
//                                        all replicas; MODEL: see fit_training.h
//   pairs CALLBACK MODEL REPLICAS BATCH SECONDS COUNT
//                                        the seconds for which a callback has held training up at most,
//                                        then of each pair of epochs the samples a second with it and
//                                        without; CALLBACK "none": of fit and of guide 004's loop
//   blas_kernels                         what OPENBLAS_CORETYPE should be; "-" where nothing
//
// In a cluster of TF_CONFIG it is a task of guide 001's fit: see fit_cluster.h.
#include <cohort/cohort.h>
#include <cohort/core/cpu/blas_kernels.h>
#include <torch/version.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>

#include "fit_cluster.h"
#include "fit_training.h"
#include "timing.h"

namespace tf = cohort;

namespace {

class Worker {
 public:
  explicit Worker(std::string samples) : directory_(std::move(samples)) {}

  void answer(const std::string& line, std::ostream& out) {
    std::istringstream words(line);
    bench::TrainingPlan plan;
    std::string command, callback;
    words >> command;
    if (command != "fit" && command != "pairs") {
      throw std::invalid_argument("there is no command '" + command + "'");
    }
    if (command == "pairs") words >> callback;
    int64_t replicas = 1;
    double seconds = 0;
    words >> plan.model >> replicas >> plan.batch >> seconds;
    int64_t count = 0;
    if (command == "pairs") words >> count;
    if (!words) throw std::invalid_argument("arguments missing");
    if (command == "pairs") return answer_pairs(callback, plan, replicas, seconds, count, out);
    bench::EpochTraining& training = training_of(plan, replicas);
    // Two epochs count, which together take the turn.
    const double step =
        bench::time_runs(seconds / 2, 1, [&](int64_t steps) { return training.epoch(steps); });
    out << static_cast<double>(plan.batch) / step;
  }

 private:
  void answer_pairs(const std::string& callback, bench::TrainingPlan plan, int64_t replicas,
                    double seconds, int64_t count, std::ostream& out) {
    plan.directory = directory_ + "/" + callback + "-" + plan.model;
    const auto& own = samples_of(plan.model);
    const bench::TimedPairs timed =
        callback == "none"
            ? bench::time_fit_and_loop(strategy(replicas), own, plan, seconds, count)
            : bench::time_callback(callback, strategy(replicas), own, plan, seconds, count);
    out << timed.stall;
    for (const auto& pair : timed.pairs) out << ' ' << pair.with << ' ' << pair.without;
  }

  const bench::Samples& samples_of(const std::string& model) {
    const std::string name = bench::samples_of(model);
    return samples_.try_emplace(name, directory_, name).first->second;
  }
  bench::EpochTraining& training_of(const bench::TrainingPlan& plan, int64_t replicas) {
    auto& training = trainings_[{plan.model, replicas, plan.batch}];
    if (!training) {
      training = bench::make_fit(strategy(replicas), samples_of(plan.model), plan);
    }
    return *training;
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
  std::map<std::tuple<std::string, int64_t, int64_t>, std::unique_ptr<bench::EpochTraining>>
      trainings_;
};

int run(const std::string& samples) {
  tf::config::keep_freed_memory();
  tf::logging::set_level(tf::logging::Level::kWarning);
  tf::config::set_logical_device_configuration("CPU", 2);
  Worker worker(samples);
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "version") {
      std::cout << "Cohort " << tf::kVersion << " on libtorch " << TORCH_VERSION << std::endl;
    } else if (line == "blas_kernels") {
      const std::string_view better = tf::internal::better_blas_kernels();
      std::cout << (better.empty() ? "-" : better) << std::endl;
    } else {
      worker.answer(line, std::cout);
      std::cout << std::endl;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tf::run_program([&] {
    if (std::getenv("TF_CONFIG") != nullptr) return bench::run_fit_task();
    if (argc != 2) throw tf::InvalidArgumentError("usage: bench_fit SAMPLES_DIRECTORY < commands");
    return run(argv[1]);
  });
}
