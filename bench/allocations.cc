// What guide 004's training step allocates once it is warm, and who asks for it.
//
//   bench_allocations [REPLICAS [STEPS [AT_MOST]]]     2 replicas and 1,000 steps by default
//   bench_allocations hosted:REPLICAS [STEPS]          those that the workers of TF_CONFIG host, of
//                                                      which each reports its own
//
// Cohort's own frames are those of libcohort and the program that are not libtorch's templates,
// compiled into them. Where they ask more than AT_MOST times a step, each of five times, the exit
// code is 1.
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <cohort/cohort.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "allocation_callers.h"
#include "common/trainer.h"

namespace tf = cohort;

namespace {

bool is_of_libtorch(const bench::Caller& caller) {
  if (caller.module.find("cohort") == std::string::npos &&
      caller.module.find("bench_") == std::string::npos) {
    return true;
  }
  std::string_view name = caller.mangled;
  for (const std::string_view prefix : {"_ZN", "K"}) {  // of members; const ones
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  const auto is_in = [&](std::string_view space) { return name.starts_with(space); };
  return is_in("5torch") || is_in("3c10") || is_in("2at") || is_in("3ska");
}

// How many times a step Cohort's own frames ask.
double report(const std::vector<bench::Caller>& callers, int64_t steps) {
  std::map<std::string, int64_t> modules;
  int64_t ours = 0;
  for (const bench::Caller& caller : callers) {
    modules[is_of_libtorch(caller) ? caller.module : "Cohort's frames"] += caller.allocations;
    if (!is_of_libtorch(caller)) ours += caller.allocations;
  }
  std::printf("allocations a step, of %lld warm steps\n", static_cast<long long>(steps));
  for (const auto& [module, count] : modules) {
    std::printf("%10.2f  %s\n", static_cast<double>(count) / static_cast<double>(steps),
                module.c_str());
  }
  if (ours > 0) std::printf("Cohort's frames:\n");
  for (const bench::Caller& caller : callers) {
    if (is_of_libtorch(caller)) continue;
    std::printf("%10.2f  %.110s\n",
                static_cast<double>(caller.allocations) / static_cast<double>(steps),
                caller.function.c_str());
  }
  return static_cast<double>(ours) / static_cast<double>(steps);
}

tf::distribute::Strategy make_strategy(bool hosted, int replicas) {
  if (hosted) {
    tf::distribute::MultiWorkerMirroredStrategyOptions options;
    options.elastic.replicas = replicas;
    return tf::distribute::MultiWorkerMirroredStrategy(options);
  }
  tf::config::set_logical_device_configuration("CPU", replicas);
  std::vector<std::string> devices;
  for (int i = 0; i < replicas; ++i) devices.push_back("CPU:" + std::to_string(i));
  return tf::distribute::MirroredStrategy(devices);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::string_view kHosted = "hosted:";
  std::string_view number = argc > 1 ? argv[1] : "2";
  const bool hosted = number.starts_with(kHosted);
  if (hosted) number.remove_prefix(kHosted.size());
  const int replicas = std::atoi(number.data());
  const int64_t steps = argc > 2 ? std::atoll(argv[2]) : 1000;
  const double at_most = argc > 3 ? std::atof(argv[3]) : std::numeric_limits<double>::infinity();
  if (replicas < 1 || steps < 1) {
    std::fprintf(stderr, "usage: %s [[hosted:]REPLICAS [STEPS [AT_MOST]]]\n", argv[0]);
    return 64;
  }
  tf::config::keep_freed_memory();
  tf::logging::set_level(tf::logging::Level::kWarning);
  const tf::distribute::Strategy strategy = make_strategy(hosted, replicas);
  tf::random::set_seed(1);
  const examples::Trainer trainer(strategy, replicas * 8);
  const auto batches = strategy.experimental_distribute_values_from_function(
      [&](const tf::distribute::ValueContext&) -> tf::Structure {
        return tf::tuple(at::rand({8, 28, 28, 1}), at::randint(10, {8}, at::kByte));
      });
  for (int i = 0; i < 20; ++i) trainer.distributed_train_step(batches);
  // How many passes are under way at once, each with memory of its own, is a matter of time: a
  // replica that is late for the first time makes one more. What every step asks for shows each
  // time.
  constexpr int kTries = 5;
  for (int i = 0; i < kTries; ++i) {
    bench::start_counting_allocations();
    for (int64_t step = 0; step < steps; ++step) trainer.distributed_train_step(batches);
    if (report(bench::stop_counting_allocations(), steps) <= at_most) return 0;
  }
  return 1;
}
