// Whether gradients travel while the backward pass runs: a step over a link on which their exchange
// takes as long as the backward pass, beside the longer of the two and beside a step that exchanges
// only after the backward pass.
//
//   bench_overlap [BYTES_PER_PACK]     two tasks of one replica, each on a core of its own
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <sched.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bench/simulated_link.h"
#include "bench/timing.h"
#include "cohort/collective/in_process_communicator.h"
#include "cohort/core/device.h"
#include "cohort/core/logging.h"
#include "cohort/distribute/local_strategy.h"
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/variable.h"
#include "cohort/keras/optimizers/optimizers.h"
#include "cohort/ops/gradient_tape.h"

namespace {

using cohort::GradientTape;
using cohort::Tensor;
using cohort::distribute::Strategy;
using cohort::distribute::Variable;

constexpr int kTasks = 2, kLayers = 12, kWidth = 512, kBatch = 256, kRounds = 9;

void stay_on_core(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  if (sched_setaffinity(0, sizeof cores, &cores) != 0) std::perror("sched_setaffinity");
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// What task 0 prints.
struct Times {
  double backward = 0;
  double compute = 0;     // a step over a link without limit
  double overlapped = 0;  // over the slow one
  double afterwards = 0;  // the same, exchanging after the backward pass
};

class Task {
 public:
  Task(const Strategy& strategy, std::barrier<>& all) : strategy_(strategy), all_(all) {
    const auto scope = strategy.scope();
    for (int i = 0; i < kLayers; ++i) layers_.emplace_back(at::randn({kWidth, kWidth}) * 0.06);
  }

  // Milliseconds of a step; the median of some rounds.
  double step(bool overlap) {
    return time([&] {
      GradientTape tape;
      const Tensor loss = forward();
      if (overlap) return optimizer_.minimize(loss, layers_, tape);
      const std::vector<Tensor> gradients = tape.gradient(loss, layers_);
      cohort::keras::optimizers::GradientsAndVariables pairs;
      for (size_t i = 0; i < layers_.size(); ++i) pairs.emplace_back(gradients[i], layers_[i]);
      optimizer_.apply_gradients(pairs);
    });
  }
  double backward() {
    std::vector<double> times;
    time([&] {
      GradientTape tape;
      const Tensor loss = forward();
      const auto start = std::chrono::steady_clock::now();
      tape.gradient(loss, layers_);
      times.push_back(bench::seconds_since(start) * 1e3);
    });
    return median(times);
  }

 private:
  Tensor forward() const {
    Tensor x = input_;
    for (const Variable& layer : layers_) x = at::relu(at::matmul(x, layer.value()));
    return x.sum();
  }
  double time(const std::function<void()>& step) {
    std::vector<double> times;
    for (int round = 0; round < kRounds + 2; ++round) {
      all_.arrive_and_wait();
      const auto start = std::chrono::steady_clock::now();
      strategy_.run([&](cohort::distribute::ReplicaContext&) { step(); });
      if (round >= 2) times.push_back(bench::seconds_since(start) * 1e3);
    }
    return median(times);
  }

  const Strategy& strategy_;
  std::barrier<>& all_;
  const Tensor input_ = at::randn({kBatch, kWidth});
  std::vector<Variable> layers_;
  cohort::keras::optimizers::SGD optimizer_{
      cohort::keras::optimizers::SGDOptions{.learning_rate = 1e-6}};
};

}  // namespace

int main(int argc, char** argv) {
  cohort::logging::set_level(cohort::logging::Level::kWarning);
  const int64_t bytes_per_pack = argc > 1 ? std::atoll(argv[1]) : 0;
  const double bytes = double{kLayers} * kWidth * kWidth * sizeof(float);
  double bytes_per_second = 0;
  Times times;
  std::barrier<> all(kTasks);
  const auto members = cohort::collective::make_in_process_communicators(kTasks);
  std::vector<std::thread> tasks;
  for (int rank = 0; rank < kTasks; ++rank) {
    tasks.emplace_back([&, rank] {
      stay_on_core(rank);
      const Strategy strategy(
          std::make_shared<cohort::internal::LocalStrategy>(cohort::internal::LocalStrategy::Config{
              .name = "bench",
              .devices = {cohort::canonicalize("CPU:0")},
              .communicator = std::make_shared<bench::SimulatedLink>(
                  members[static_cast<size_t>(rank)], bytes_per_second),
              .bytes_per_pack = bytes_per_pack}));
      Task task(strategy, all);
      Times mine;
      mine.compute = task.step(true);
      mine.backward = task.backward();
      all.arrive_and_wait();
      if (rank == 0) bytes_per_second = bytes / (mine.backward / 1e3);
      all.arrive_and_wait();
      mine.overlapped = task.step(true);
      mine.afterwards = task.step(false);
      if (rank == 0) times = mine;
    });
  }
  for (std::thread& task : tasks) task.join();
  const double longer = std::max(times.compute, times.backward);
  std::printf("%d layers, %.1f MB of gradients over a link of %.2f GB/s, milliseconds:\n", kLayers,
              bytes / 1e6, bytes_per_second / 1e9);
  std::printf("  backward pass, and exchange    %8.2f\n", times.backward);
  std::printf("  step without a limit           %8.2f\n", times.compute);
  std::printf("  step with overlap              %8.2f  %.2f of the longer\n", times.overlapped,
              times.overlapped / longer);
  std::printf("  step without overlap           %8.2f  %.2f\n", times.afterwards,
              times.afterwards / longer);
  return times.overlapped <= 1.2 * longer ? 0 : 1;
}
