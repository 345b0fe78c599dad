// Trains by fit on command, for bench/fit.py: a command a line on stdin, a number a line on stdout.
//
//   bench_fit SAMPLES_DIRECTORY
//   KIND MODEL REPLICAS BATCH SECONDS    samples a second in epochs of about SECONDS, with BATCH over
//                                        all replicas; KIND and MODEL: see fit_training.h
//   stall MODEL REPLICAS BATCH SECONDS   times a second that the longest stall of ModelCheckpoint fits
//                                        into one, of a fit as of "checkpoint"
//   blas_kernels                         what OPENBLAS_CORETYPE should be; "-" where nothing
//
// In a cluster of TF_CONFIG it is a task of guide 001's fit: see fit_cluster.h.
#include <cohort/cohort.h>
#include <cohort/core/blas_kernels.h>
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

  double answer(const std::string& line) {
    std::istringstream words(line);
    bench::TrainingPlan plan;
    int64_t replicas = 1;
    double seconds = 0;
    if (!(words >> plan.kind >> plan.model >> replicas >> plan.batch >> seconds)) {
      throw std::invalid_argument("arguments missing");
    }
    const bool stall = plan.kind == "stall";
    if (stall) plan.kind = "checkpoint";
    plan.directory = directory_ + "/" + plan.kind + "-" + plan.model;
    bench::EpochTraining& training = training_of(plan, replicas);
    const double step =
        bench::time_runs(seconds, 1, [&](int64_t steps) { return training.epoch(steps); });
    return stall ? 1 / training.stall() : static_cast<double>(plan.batch) / step;
  }

 private:
  bench::EpochTraining& training_of(const bench::TrainingPlan& plan, int64_t replicas) {
    auto& training = trainings_[{plan.kind, plan.model, replicas, plan.batch}];
    if (!training) {
      const std::string name = bench::samples_of(plan.model);
      const auto [samples, added] = samples_.try_emplace(name, directory_, name);
      training = bench::make_training(strategy(replicas), samples->second, plan);
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
  std::map<std::tuple<std::string, std::string, int64_t, int64_t>,
           std::unique_ptr<bench::EpochTraining>>
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
      std::cout << worker.answer(line) << std::endl;
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
