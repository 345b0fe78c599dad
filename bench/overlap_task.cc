#include "overlap_task.h"

#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/ops/gradient_tape.h"
#include "timing.h"

namespace bench {

using cohort::GradientTape;
using cohort::Tensor;
using cohort::distribute::Strategy;
using cohort::distribute::Variable;

namespace {

constexpr int kBatch = 256, kRounds = 9, kWarmRounds = 2;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

void stay_on_core(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  if (::sched_setaffinity(0, sizeof cores, &cores) != 0) std::perror("sched_setaffinity");
}

int report(const OverlapTimes& times, double bytes_per_second, const std::string& over) {
  const double longer = std::max(times.compute, times.exchange);
  std::printf("%s: %d layers, %.1f MB of gradients over a link of %.2f GB/s, milliseconds:\n",
              over.c_str(), kOverlapLayers, kOverlapBytes / 1e6, bytes_per_second / 1e9);
  std::printf("  backward pass                  %8.2f\n", times.backward);
  std::printf("  step without a limit           %8.2f\n", times.compute);
  std::printf("  exchange alone                 %8.2f\n", times.exchange);
  std::printf("  step with overlap              %8.2f  %.2f of the longer\n", times.overlapped,
              times.overlapped / longer);
  std::printf("  step without overlap           %8.2f  %.2f\n", times.afterwards,
              times.afterwards / longer);
  return times.overlapped <= 1.2 * longer ? 0 : 1;
}

OverlapTask::OverlapTask(const Strategy& strategy, std::function<void()> meet)
    : strategy_(strategy),
      meet_(std::move(meet)),
      input_(at::randn({kBatch, kOverlapWidth})),
      optimizer_(cohort::keras::optimizers::SGDOptions{.learning_rate = 1e-6}) {
  const auto scope = strategy.scope();
  for (int i = 0; i < kOverlapLayers; ++i) {
    layers_.emplace_back(at::randn({kOverlapWidth, kOverlapWidth}) * 0.06);
  }
}

double OverlapTask::step(bool overlap) {
  return time([&] {
    GradientTape tape;
    const Tensor loss = forward();
    if (overlap) return optimizer_.minimize(loss, layers_, tape);
    optimizer_.apply_gradients(cohort::zip(tape.gradient(loss, layers_), layers_));
  });
}

double OverlapTask::exchange() {
  const Tensor gradient = at::full({kOverlapWidth, kOverlapWidth}, 1e-3);
  const std::vector<Tensor> gradients(layers_.size(), gradient);
  return time([&] { optimizer_.apply_gradients(cohort::zip(gradients, layers_)); });
}

double OverlapTask::backward() {
  std::vector<double> times;
  time([&] {
    GradientTape tape;
    const Tensor loss = forward();
    const auto start = std::chrono::steady_clock::now();
    tape.gradient(loss, layers_);
    times.push_back(seconds_since(start) * 1e3);
  });
  return median(times);
}

Tensor OverlapTask::forward() const {
  Tensor x = input_;
  for (const Variable& layer : layers_) x = at::relu(at::matmul(x, layer.value()));
  return x.sum();
}

double OverlapTask::time(const std::function<void()>& step) {
  std::vector<double> times;
  for (int round = 0; round < kRounds + kWarmRounds; ++round) {
    meet_();
    const auto start = std::chrono::steady_clock::now();
    strategy_.run([&](cohort::distribute::ReplicaContext&) { step(); });
    if (round >= kWarmRounds) times.push_back(seconds_since(start) * 1e3);
  }
  return median(times);
}

}  // namespace bench
