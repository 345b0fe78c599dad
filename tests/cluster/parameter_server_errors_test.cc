// Parameter servers whose steps end in NaN, in an exception or without memory: rows 41 to 43.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <sys/resource.h>

#include <cmath>

#include "parameter_server_faults.h"

namespace cohort::parameter_server_faults {
namespace {

using internal::str;
using keras::optimizers::NotFinite;
using keras::optimizers::SGD;
using ::testing::MatchesRegex;

constexpr int64_t kSteps = 20;
constexpr int64_t kBadStep = 7;
constexpr rlim_t kMemoryLimit = rlim_t{16} << 30;
constexpr int64_t kTooManyNumbers = int64_t{1} << 32;  // of 8 bytes

void limit_memory() {
  rlimit limit;
  ::getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = kMemoryLimit;
  ::setrlimit(RLIMIT_AS, &limit);
}

// A loop of the program's own, in the chief; what others throw is what it reports, line by line.
using Loop = std::function<std::string(const ClusterCoordinator&)>;
std::string run_loop(const ParameterServerStrategy& strategy,
                     const TFConfigClusterResolver& resolver, const Loop& loop) {
  if (resolver.task_type() != "chief") {
    return std::to_string(Server(resolver, quick()).join());
  }
  return loop(ClusterCoordinator(strategy, {.window = 1}));
}

template <class Fn>
std::string error_of(const Fn& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return str(code_name(error.code()), ": ", error.what());
  }
  return "nothing was thrown";
}

// ---- Row 41.

// One variable for each policy. Step kBadStep has a gradient that is no number.
struct Policies {
  struct One {
    const char* name;
    NotFinite policy;
    Variable weight, count;
    SGD optimizer;
  };

  explicit Policies(const ParameterServerStrategy& strategy) {
    const auto scope = strategy.scope();
    for (const auto& [name, policy] : {std::pair{"skip", NotFinite::SKIP},
                                       {"raise", NotFinite::RAISE},
                                       {"allow", NotFinite::ALLOW}}) {
      One one{
          name, policy, Variable(at::zeros({3}), {.name = str("weight of ", name)}),
          Variable(0, {.name = str("count of ", name), .aggregation = VariableAggregation::SUM}),
          SGD({.learning_rate = 1.0, .not_finite = policy})};
      one.optimizer.build({one.weight});
      all.push_back(one);
    }
  }

  std::vector<One> all;
};

std::string train_with_nan(const Arguments&) {
  const TFConfigClusterResolver resolver;
  const ParameterServerStrategy strategy(resolver, {.timeout = 20s, .server_options = quick()});
  const Policies policies(strategy);
  std::vector<distribute::WorkerFunction> steps;
  for (const Policies::One& one : policies.all) {
    steps.push_back(strategy.function(one.name, [&strategy, &one](int64_t step) {
      strategy.run([&] {
        const double value = step == kBadStep ? std::nan("") : -1;
        one.count.assign_add(1);
        one.optimizer.apply_gradients({{at::full({3}, value, float32), one.weight}});
      });
    }));
  }
  return run_loop(strategy, resolver, [&](const ClusterCoordinator& coordinator) {
    std::string report;
    for (size_t i = 0; i < steps.size(); ++i) {
      const Policies::One& one = policies.all[i];
      std::string thrown;
      for (int64_t step = 0; step < kSteps; ++step) {
        coordinator.schedule(steps[i], step);
        if (one.policy == NotFinite::RAISE && step == kBadStep) {
          thrown = error_of([&] { coordinator.join(); });
        }
      }
      coordinator.join();
      report += str(one.name, ": weight ", one.weight.value()[0].item<float>(), ", iterations ",
                    one.optimizer.iterations().value().item<int64_t>(), ", count ",
                    one.count.value().item<int64_t>(), ", skipped ",
                    one.optimizer.skipped_updates(), thrown.empty() ? "" : ", ", thrown, "\n");
    }
    return report;
  });
}

// In fit: each task throws or returns the same. Arguments: skip, raise or stop.
std::string fit_with_nan(const Arguments& arguments) {
  const TFConfigClusterResolver resolver;
  const ParameterServerStrategy strategy(resolver, {.timeout = 20s, .server_options = quick()});
  auto scope = strategy.scope();
  const keras::Sequential model(
      {keras::Input({2}),
       keras::layers::Dense(1, {.use_bias = false, .kernel_initializer = "zeros"})});
  NotFinite policy = NotFinite::ALLOW;
  if (arguments[0] == "skip") policy = NotFinite::SKIP;
  if (arguments[0] == "raise") policy = NotFinite::RAISE;
  model.compile({.optimizer = SGD({.learning_rate = 0.125, .not_finite = policy}), .loss = "mse"});
  scope.close();
  const Tensor x = at::ones({kSteps, 2});
  x[kBadStep].fill_(std::nan(""));
  keras::FitOptions options{.epochs = 1, .verbose = 0};
  if (arguments[0] == "stop") options.callbacks = {keras::callbacks::TerminateOnNaN()};
  const auto batches = data::Dataset::from_tensor_slices(tuple(x, at::ones({kSteps, 1}))).batch(1);
  const std::string thrown = error_of([&] { model.fit(batches, options); });
  if (resolver.task_type() != "chief") return thrown;
  return str(thrown, "; iterations ", model.optimizer().iterations().value().item<int64_t>(),
             ", skipped ", model.optimizer().skipped_updates(),
             model.trainable_variables()[0].value().isfinite().all().item<bool>() ? ", finite"
                                                                                  : ", not finite");
}

// ---- Row 42.

std::string throw_in_a_step(const Arguments&) {
  const TFConfigClusterResolver resolver;
  const ParameterServerStrategy strategy(resolver, {.timeout = 20s, .server_options = quick()});
  const Program program(strategy, "", resolver.task_type() == "chief");
  const auto step = strategy.function("step", [&](int64_t number) {
    strategy.run([&] {
      program.a.assign_add(1);
      if (number == kBadStep) throw DataLossError("record 7 is damaged");
      program.b.assign_add(1);
    });
  });
  return run_loop(strategy, resolver, [&](const ClusterCoordinator& coordinator) {
    const double began = now_ms();
    const std::string thrown = error_of([&] {
      for (int64_t number = 0; number <= kBadStep; ++number) coordinator.schedule(step, number);
      coordinator.join();
    });
    const double took = now_ms() - began;
    // The step changed nothing; those after it do.
    for (int64_t number = kBadStep + 1; number < kSteps; ++number) {
      coordinator.schedule(step, number);
    }
    coordinator.join();
    return str(thrown, "\n", program.a.value().item<int64_t>(), ' ',
               program.b.value().item<int64_t>(), took < 1000 ? " in time" : " late");
  });
}

std::string throw_in_fit(const Arguments&) {
  const TFConfigClusterResolver resolver;
  const ParameterServerStrategy strategy(resolver, {.timeout = 20s, .server_options = quick()});
  auto scope = strategy.scope();
  const keras::Sequential model({keras::Input({1}), keras::layers::Dense(1)});
  model.compile({.optimizer = SGD(), .loss = "mse"});
  scope.close();
  const auto batches = data::Dataset::range(kSteps)
                           .map([](int64_t i) {
                             if (i == kBadStep) throw DataLossError("record 7 is damaged");
                             return tuple(at::ones({1}), at::ones({1}));
                           })
                           .batch(1);
  return error_of([&] { model.fit(batches, {.epochs = 1, .verbose = 0}); });
}

// ---- Row 43.

distribute::VariableInitializer zeros_made_there() {
  return {[](const distribute::ShardInfo& part) { return at::zeros(part.shape, float64); }, nullptr,
          [] { return distribute::KnownValues(); }};
}

// A step that asks for more than its worker may have, and a variable that is too large for its ps
// task.
std::string run_out_of_memory(const Arguments&) {
  const TFConfigClusterResolver resolver;
  const ParameterServerStrategy strategy(resolver, {.timeout = 20s, .server_options = quick()});
  const Program program(strategy, "", resolver.task_type() == "chief");
  const auto step = strategy.function("step", [&](int64_t number) {
    strategy.run([&] {
      program.a.assign_add(1);
      if (number == kBadStep) at::full({kTooManyNumbers}, 1.0, float64);
      program.b.assign_add(1);
    });
  });
  if (resolver.task_type() != "chief") limit_memory();
  return run_loop(strategy, resolver, [&](const ClusterCoordinator& coordinator) {
    std::string report;
    report += error_of([&] {
      for (int64_t number = 0; number <= kBadStep; ++number) coordinator.schedule(step, number);
      coordinator.join();
    });
    report += '\n' + error_of([&] {
                const auto scope = strategy.scope();
                distribute::VariableSpec spec{.shape = {kTooManyNumbers}, .dtype = float64};
                spec.options.name = "large";
                const Variable large(spec, zeros_made_there());
              });
    for (int64_t number = kBadStep + 1; number < kSteps; ++number) {
      coordinator.schedule(step, number);
    }
    coordinator.join();
    return str(report, "\n", program.a.value().item<int64_t>(), ' ',
               program.b.value().item<int64_t>());
  });
}

// ---- Dataset functions that make a variable. Reports what the closures get that use their input.

std::string make_variables_in_dataset_functions(const Arguments&) {
  const TFConfigClusterResolver resolver;
  const ParameterServerStrategy strategy(resolver, {.timeout = 20s, .server_options = quick()});
  const auto plain = strategy.function("plain", [] {
    const Variable v(0, {.name = "v"});
    return data::Dataset::range(4);
  });
  const auto with_context = strategy.function("context", [](const distribute::InputContext&) {
    const Variable v(0, {.name = "v"});
    return data::Dataset::range(4);
  });
  const auto distributed = strategy.function("distributed", [&strategy] {
    const auto scope = strategy.scope();
    const Variable v(0, {.name = "v"});
    return strategy.experimental_distribute_dataset(data::Dataset::range(4).batch(1));
  });
  const auto use =
      strategy.function("use", [](distribute::DistributedIterator& it) { it.get_next(); });
  return run_loop(strategy, resolver, [&](const ClusterCoordinator& coordinator) {
    std::string report;
    for (const auto& function : {plain, with_context, distributed}) {
      const auto iterator = coordinator.create_per_worker_dataset(function).iterator();
      coordinator.schedule(use, iterator);
      report += error_of([&] { coordinator.join(); }) + "\n";
    }
    return report;
  });
}

// ---- The tests.

MultiProcessOptions tasks(const char* function, const Arguments& arguments = {}) {
  return {.jobs = {{"chief", 1}, {"worker", 2}, {"ps", 2}},
          .function = function,
          .arguments = arguments,
          .deadline = 60s};
}

TEST(ParameterServerErrors, Row41AStepThatIsNotFiniteIsSkippedRaisedOrAllowed) {
  MultiProcessRunner runner(tasks("train_with_nan"));
  runner.start();
  EXPECT_THAT(runner.join().at(kTheChief),
              MatchesRegex("skip: weight 19, iterations 19, count 20, skipped 1\n"
                           "raise: weight 19, iterations 19, count 19, skipped 0, "
                           "INVALID_ARGUMENT: 'raise' on worker [01]: .*not finite.*\n"
                           "allow: weight -?nan, iterations 20, count 20, skipped 0\n"));
}

TEST(ParameterServerErrors, Row41UnderFitThePolicyIsTheSame) {
  const auto outcome = [](const std::string& policy) {
    MultiProcessRunner runner(tasks("fit_with_nan", {policy}));
    runner.start();
    return runner.join();
  };
  EXPECT_EQ(outcome("skip").at(kTheChief), "nothing was thrown; iterations 19, skipped 1, finite");
  EXPECT_THAT(outcome("stop").at(kTheChief),
              MatchesRegex("nothing was thrown; iterations [0-9]+, skipped 0, not finite"));
  for (const auto& [task, value] : outcome("raise")) {
    EXPECT_THAT(value, AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("are not finite"))) << task;
    if (task == kTheChief) {
      EXPECT_THAT(value, HasSubstr(", finite"));
    }
  }
}

TEST(ParameterServerErrors, Row42AnExceptionKeepsItsClassAndTheProgramGoesOn) {
  MultiProcessRunner runner(tasks("throw_in_a_step"));
  runner.start();
  EXPECT_THAT(runner.join().at(kTheChief),
              MatchesRegex("DATA_LOSS: 'step' on worker [01]: .*record 7 is damaged\n"
                           "19 19 in time"));
}

TEST(ParameterServerErrors, Row42UnderFitAllTasksThrowIt) {
  MultiProcessRunner runner(tasks("throw_in_fit"));
  runner.start();
  for (const auto& [task, value] : runner.join()) {
    EXPECT_THAT(value, AllOf(HasSubstr("DATA_LOSS"), HasSubstr("record 7 is damaged"))) << task;
  }
}

TEST(ParameterServerErrors, Row43MemoryThatCannotBeHadIsAnErrorAndAllLiveOn) {
  MultiProcessRunner runner(tasks("run_out_of_memory"));
  runner.start();
  EXPECT_THAT(runner.join().at(kTheChief),
              MatchesRegex("RESOURCE_EXHAUSTED: 'step' on worker [01]: .*\n"
                           "RESOURCE_EXHAUSTED: /job:ps/task:[01]: .*\n"
                           "19 19"));
}

TEST(ParameterServerErrors, NoDatasetFunctionMakesVariables) {
  MultiProcessRunner runner(tasks("make_variables_in_dataset_functions"));
  runner.start();
  const std::string line =
      "INVALID_ARGUMENT: 'use' on worker [01]: .*a dataset function makes variable 'v'.*\n";
  EXPECT_THAT(runner.join().at(kTheChief), MatchesRegex(line + line + line));
}

}  // namespace
}  // namespace cohort::parameter_server_faults

int main(int argc, char** argv) {
  using namespace cohort::parameter_server_faults;
  return run_main(argc, argv,
                  {{"train_with_nan", train_with_nan},
                   {"fit_with_nan", fit_with_nan},
                   {"throw_in_a_step", throw_in_a_step},
                   {"throw_in_fit", throw_in_fit},
                   {"run_out_of_memory", run_out_of_memory},
                   {"make_variables_in_dataset_functions", make_variables_in_dataset_functions}});
}
