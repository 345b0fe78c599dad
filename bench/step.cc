// What a step costs: an empty one, and guide 004's.
//
// BM_EmptyRun/R: strategy.run of a function that does nothing, on R replicas.
// BM_Meet/R:     one merge_call in such a step.
// BM_Reduce/R:   strategy.reduce of a number a replica; BM_LocalResults/R:
// experimental_local_results. BM_GuideStep/R/B: guide 004's training step with B images a replica;
// items are images.
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <benchmark/benchmark.h>
#include <cohort/cohort.h>

#include "common/trainer.h"

namespace tf = cohort;

namespace {

tf::distribute::MirroredStrategy strategy_of(int64_t replicas) {
  std::vector<std::string> devices;
  for (int64_t i = 0; i < replicas; ++i) devices.push_back("CPU:" + std::to_string(i));
  return tf::distribute::MirroredStrategy(devices);
}

void BM_EmptyRun(benchmark::State& state) {
  const auto strategy = strategy_of(state.range(0));
  for (auto _ : state) strategy.run([] {});
}

void BM_Meet(benchmark::State& state) {
  const auto strategy = strategy_of(state.range(0));
  for (auto _ : state) {
    strategy.run([](tf::distribute::ReplicaContext& context) {
      context.merge_call([](tf::distribute::Strategy&) {});
    });
  }
}

tf::distribute::PerReplica<tf::Tensor> numbers(const tf::distribute::Strategy& strategy) {
  return strategy.run([] { return at::ones({}); });
}

void BM_Reduce(benchmark::State& state) {
  const auto strategy = strategy_of(state.range(0));
  const auto values = numbers(strategy);
  for (auto _ : state) {
    benchmark::DoNotOptimize(strategy.reduce(tf::distribute::ReduceOp::SUM, values));
  }
}

void BM_LocalResults(benchmark::State& state) {
  const auto strategy = strategy_of(state.range(0));
  const auto values = numbers(strategy);
  for (auto _ : state) benchmark::DoNotOptimize(strategy.experimental_local_results(values));
}

void BM_GuideStep(benchmark::State& state) {
  const int64_t replicas = state.range(0), batch = state.range(1);
  const auto strategy = strategy_of(replicas);
  tf::random::set_seed(1);
  const examples::Trainer trainer(strategy, replicas * batch);
  const auto batches = strategy.experimental_distribute_values_from_function(
      [&](const tf::distribute::ValueContext&) -> tf::Structure {
        return tf::tuple(at::rand({batch, 28, 28, 1}), at::randint(10, {batch}, at::kByte));
      });
  for (int i = 0; i < 3; ++i) trainer.distributed_train_step(batches);  // builds and warms up
  for (auto _ : state) trainer.distributed_train_step(batches);
  state.SetItemsProcessed(state.iterations() * replicas * batch);
}

BENCHMARK(BM_EmptyRun)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(BM_Meet)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(BM_Reduce)->Arg(1)->Arg(2);
BENCHMARK(BM_LocalResults)->Arg(1)->Arg(2);
BENCHMARK(BM_GuideStep)
    ->Args({1, 8})
    ->Args({2, 8})
    ->Args({1, 64})
    ->Args({2, 64})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  tf::config::keep_freed_memory();
  tf::logging::set_level(tf::logging::Level::kWarning);
  tf::config::set_logical_device_configuration("CPU", 2);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 64;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
