// Steps on a simulated GPU that are recorded as one graph, and what is not recorded.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/structure/device.h"
#include "cohort/distribute/step/function.h"
#include "cohort/distribute/strategies/mirrored_strategy.h"
#include "cohort/distribute/strategies/one_device_strategy.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/variables/variable.h"
#include "cohort/ops/make_tensor.h"
#include "cohort/ops/random.h"
#include "cohort/testing/device/simulated_gpus.h"

namespace cohort::distribute {
namespace {

using testing::device_counts;
using testing::DeviceCounts;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::SimulatedGpus;
using ::testing::ThrowsMessage;

constexpr int kStepsBeforeGraph = 3;  // one as it is, and two rehearsals

Tensor on_gpu(const Tensor& host) { return host.to(internal::torch_device("GPU:0")); }

class GpuCaptureTest : public ::testing::Test {
 protected:
  const SimulatedGpus gpus_{2};
};

TEST_F(GpuCaptureTest, VariablesAndRandomNumbersAreThoseOfEachStep) {
  const auto run = [](bool capture) {
    random::set_seed(5);
    const OneDeviceStrategy strategy("GPU:0");
    const auto scope = strategy.scope();
    const Variable total(at::ones({3}));
    const random::RandomGenerator own = random::RandomGenerator::from_seed(3);
    const StepGraphs graphs;
    const auto step = [&](const Tensor& x) {
      total.assign_add(random::normal({3}) * x + own.uniform({3}));
      total.assign_add(1.0);
      return total.value() * constant({1.f, 2.f, 3.f});
    };
    std::vector<Tensor> results;
    for (int i = 0; i < 8; ++i) {
      if (i == 6) total.assign(at::full({3}, 5.f));
      const Tensor x = on_gpu(at::full({3}, static_cast<float>(i)));
      const DeviceCounts before = device_counts();
      results.push_back(
          (capture ? strategy.run({.capture = graphs}, step, x) : strategy.run(step, x))
              .value(0)
              .cpu());
      EXPECT_EQ((device_counts() - before).replays, capture && i >= kStepsBeforeGraph ? 1 : 0);
    }
    results.push_back(total.value().cpu());
    EXPECT_EQ(graphs.size(), capture ? 1 : 0) << graphs.why_not();
    return results;
  };
  const std::vector<Tensor> recorded = run(true), plain = run(false);
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_TRUE(at::equal(recorded[i], plain[i])) << i << ": " << recorded[i] << plain[i];
  }
}

TEST_F(GpuCaptureTest, EachNumberAmongTheArgumentsHasItsGraph) {
  const OneDeviceStrategy strategy("GPU:0");
  const StepGraphs graphs;
  const auto step = [](const Tensor& x, int64_t factor) { return x * factor; };
  const Tensor x = on_gpu(at::ones({2}));
  for (int i = 0; i < 24; ++i) {
    const int64_t factor = i % 3;
    const Tensor result = strategy.run({.capture = graphs}, step, x, factor).value(0);
    EXPECT_EQ(result[0].item<float>(), static_cast<float>(factor));
  }
  EXPECT_EQ(graphs.size(), 3);
  for (int64_t factor = 0; factor < 200; ++factor) {
    const Tensor result = strategy.run({.capture = graphs}, step, x, factor).value(0);
    EXPECT_EQ(result[0].item<float>(), static_cast<float>(factor));
  }
}

TEST_F(GpuCaptureTest, NoMoreThanEightGraphsAreKept) {
  const OneDeviceStrategy strategy("GPU:0");
  const StepGraphs graphs;
  const auto step = [](const Tensor& x) { return x + 1; };
  for (int64_t rows = 1; rows <= 12; ++rows) {
    for (int i = 0; i < 5; ++i) {
      const Tensor x = on_gpu(at::ones({rows}));
      EXPECT_EQ(strategy.run({.capture = graphs}, step, x).value(0).sum().item<float>(),
                static_cast<float>(2 * rows));
    }
  }
  EXPECT_EQ(graphs.size(), 8) << graphs.why_not();
}

TEST_F(GpuCaptureTest, AVariableHoldsWhatChangesNowAndThen) {
  const OneDeviceStrategy strategy("GPU:0");
  const auto scope = strategy.scope();
  const Variable factor(at::ones({}));
  const StepGraphs graphs;
  const auto step = [&](const Tensor& x) { return x * factor.value(); };
  for (int i = 0; i < 8; ++i) {
    if (i == 6) factor.assign(at::full({}, 3.f));
    const Tensor result = strategy.run({.capture = graphs}, step, on_gpu(at::ones({2}))).value(0);
    EXPECT_EQ(result[0].item<float>(), i < 6 ? 1.f : 3.f);
  }
  EXPECT_EQ(graphs.size(), 1) << graphs.why_not();
}

Tensor plus_one(const Tensor& x) { return x + 1; }

TEST_F(GpuCaptureTest, AFunctionOfTheProgramIsAStep) {
  const OneDeviceStrategy strategy("GPU:0");
  const StepGraphs graphs;
  const std::function<Tensor(const Tensor&)> minus_one = [](const Tensor& x) { return x - 1; };
  for (int i = 0; i < 10; ++i) {
    const Tensor x = on_gpu(at::full({2}, static_cast<float>(i)));
    const auto result = [&] {
      return i % 2 == 0 ? strategy.run({.capture = graphs}, plus_one, x)
                        : strategy.run({.capture = graphs}, minus_one, x);
    }();
    EXPECT_EQ(result.value(0)[0].item<float>(), static_cast<float>(i % 2 == 0 ? i + 1 : i - 1));
  }
  EXPECT_EQ(graphs.size(), 2) << graphs.why_not();
}

TEST_F(GpuCaptureTest, MoveOnlyResultsAreNotRecorded) {
  const OneDeviceStrategy strategy("GPU:0");
  const StepGraphs graphs;
  const auto step = [](const Tensor& x) { return std::make_unique<Tensor>(x + 1); };
  const auto results = strategy.run({.capture = graphs}, step, on_gpu(at::ones({2})));
  EXPECT_EQ((*results.value(0))[0].item<float>(), 2);
  EXPECT_THAT(graphs.why_not(), HasSubstr("the result is neither"));
}

TEST_F(GpuCaptureTest, ResultsOfEarlierStepsStay) {
  const OneDeviceStrategy strategy("GPU:0");
  const StepGraphs graphs;
  const auto twice = [](const Tensor& x) { return x * 2; };
  std::vector<Tensor> results;
  for (int i = 0; i < 6; ++i) {
    results.push_back(
        strategy.run({.capture = graphs}, twice, on_gpu(at::full({2}, static_cast<float>(i))))
            .value(0));
  }
  EXPECT_EQ(graphs.size(), 1);
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(at::equal(results[i].cpu(), at::full({2}, static_cast<float>(2 * i)))) << i;
  }
}

TEST_F(GpuCaptureTest, ResultsOfAnyKindComeBack) {
  struct Both {
    Tensor sum;
    int64_t rows;
  };
  const OneDeviceStrategy strategy("GPU:0");
  const StepGraphs graphs;
  const auto step = [](const Structure& batch, double factor) {
    const Tensor x = batch["x"].tensor() * factor;
    return std::pair(Both{x.sum(), x.size(0)}, Structure(tuple(x, x + 1)));
  };
  for (int i = 0; i < 6; ++i) {
    const Structure batch =
        Structure::make_dict({{"x", on_gpu(at::full({3}, static_cast<float>(i)))}});
    const auto [both, pair] = strategy.run({.capture = graphs}, step, batch, 0.5).value(0);
    EXPECT_EQ(both.sum.item<float>(), 1.5f * static_cast<float>(i));
    EXPECT_EQ(both.rows, 3);
    EXPECT_EQ(pair[1].tensor()[0].item<float>(), 0.5f * static_cast<float>(i) + 1);
  }
  EXPECT_EQ(graphs.size(), 1) << graphs.why_not();
}

TEST_F(GpuCaptureTest, AFunctionRecordsTheStepsThatItRuns) {
  const OneDeviceStrategy strategy("GPU:0");
  const auto add_one = [](const Tensor& x) { return x + 1; };
  const auto twice = [](const Tensor& x) { return x * 2; };
  const auto both = function(
      [&](const Tensor& x) {
        return strategy.run(twice, strategy.run(add_one, x).value(0)).value(0);
      },
      {.capture = true});
  DeviceCounts step;
  for (int i = 0; i < 6; ++i) {
    const Tensor x = on_gpu(at::full({2}, static_cast<float>(i)));
    const DeviceCounts before = device_counts();
    const Tensor result = both(x);
    step = device_counts() - before;
    EXPECT_TRUE(at::equal(result.cpu(), at::full({2}, 2 * (static_cast<float>(i) + 1))));
  }
  EXPECT_EQ(step.replays, 2);
}

// Runs a step on 1, 2, 3, ... six times, and returns why it was not recorded.
template <class Step>
std::string why_not(const Step& step, const std::vector<float>& expected = {},
                    const OneDeviceStrategy& strategy = OneDeviceStrategy("GPU:0")) {
  const StepGraphs graphs;
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 7; ++i) {
    const Tensor x = on_gpu(at::full({2}, static_cast<float>(i)));
    const Tensor result = strategy.run({.capture = graphs}, step, x).value(0);
    if (!expected.empty()) {
      EXPECT_EQ(result.cpu()[0].template item<float>(), expected[static_cast<size_t>(i)]) << i;
    }
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::string line = "runs as it is, and not as a recorded graph: " + graphs.why_not();
  const size_t place = log.find(line);
  EXPECT_NE(place, std::string::npos) << log;
  EXPECT_EQ(log.find(line, place + 1), std::string::npos) << log;  // once
  return graphs.why_not();
}

TEST_F(GpuCaptureTest, AStepThatReadsANumberRunsAsItIs) {
  EXPECT_THAT(why_not([](const Tensor& x) { return x.sum().item<float>() > 4 ? x * 2 : x; },
                      {0, 1, 2, 6, 8, 10, 12}),
              HasSubstr("it reads a number of the device"));
}

TEST_F(GpuCaptureTest, ANumberThatChangesOnTheHostIsFound) {
  float number = 0;
  EXPECT_THAT(why_not([&](const Tensor& x) { return x * 0 + ++number; }, {1, 2, 3, 4, 5, 6, 7}),
              HasSubstr("aten::add has a number"));
}

TEST_F(GpuCaptureTest, AConstantThatChangesIsFound) {
  float number = 0;
  EXPECT_THAT(why_not(
                  [&](const Tensor& x) {
                    return x * 0 + constant({++number, 0.f});
                  },
                  {1, 2, 3, 4, 5, 6, 7}),
              HasSubstr("constant has a number"));
}

TEST_F(GpuCaptureTest, ACopyFromTheHostIsFound) {
  float number = 0;
  EXPECT_THAT(why_not(
                  [&](const Tensor& x) {
                    return x * 0 + at::full({2}, ++number).to(x.device(), /*non_blocking=*/true);
                  },
                  {1, 2, 3, 4, 5, 6, 7}),
              HasSubstr("it copies a tensor of shape [2] from the host"));
}

TEST_F(GpuCaptureTest, OtherOperationsInEachStepAreFound) {
  int calls = 0;
  EXPECT_THAT(why_not([&](const Tensor& x) { return ++calls % 2 == 0 ? x + 1 : x * 2; },
                      {0, 2, 4, 4, 8, 6, 12}),
              HasSubstr("in each step"));
}

TEST_F(GpuCaptureTest, TheSameOperationsInAnotherOrderAreFound) {
  int calls = 0;
  EXPECT_THAT(why_not([&](const Tensor& x) { return ++calls % 2 == 0 ? (x + 1) * 2 : x * 2 + 1; },
                      {1, 4, 5, 8, 9, 12, 13}),
              HasSubstr("in each step"));
}

TEST_F(GpuCaptureTest, ATensorThatTheStepKeepsIsFound) {
  Tensor kept = on_gpu(at::full({2}, 0.f));
  EXPECT_THAT(why_not([&](const Tensor& x) { return kept = kept + x; }, {0, 1, 3, 6, 10, 15, 21}),
              HasSubstr("memory that is no argument's"));
}

TEST_F(GpuCaptureTest, AVariableInTurnWithAnotherIsFound) {
  const OneDeviceStrategy strategy("GPU:0");
  const auto variables = [&] {
    const auto scope = strategy.scope();
    return std::vector<Variable>{Variable(zeros({2})), Variable(zeros({2}))};
  }();
  int calls = 0;
  EXPECT_THAT(why_not(
                  [&](const Tensor& x) {
                    const Variable& one = variables[static_cast<size_t>(calls++ % 2)];
                    one.assign_add(x);
                    return one.value();
                  },
                  {0, 1, 2, 4, 6, 9, 12}, strategy),
              HasSubstr("memory that is no argument's"));
}

TEST_F(GpuCaptureTest, ReplicasOnHostsOrTogetherRunTheirStepsAsTheyAre) {
  const auto reason = [](const Strategy& strategy) {
    const StepGraphs graphs;
    strategy.run({.capture = graphs}, [](ReplicaContext&) { return ones({2}); });
    return graphs.why_not();
  };
  EXPECT_THAT(reason(OneDeviceStrategy("CPU:0")), HasSubstr("on the host"));
  EXPECT_THAT(reason(MirroredStrategy({"GPU:0", "GPU:1"})), HasSubstr("2 replicas"));
}

TEST_F(GpuCaptureTest, AnErrorOfTheStepIsItsOwnAndChangesNothing) {
  const OneDeviceStrategy strategy("GPU:0");
  const StepGraphs graphs;
  int calls = 0;
  const auto step = [&](const Tensor& x) {
    if (++calls == kStepsBeforeGraph + 1 || calls == kStepsBeforeGraph + 2) {
      throw InvalidArgumentError("the step's own");
    }
    return x + 1;
  };
  const Tensor x = on_gpu(at::ones({2}));
  for (int i = 0; i < kStepsBeforeGraph; ++i) strategy.run({.capture = graphs}, step, x);
  EXPECT_THAT([&] { strategy.run({.capture = graphs}, step, x); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("the step's own")));
  EXPECT_TRUE(
      at::equal(strategy.run({.capture = graphs}, step, x).value(0).cpu(), at::full({2}, 2.f)));
  EXPECT_EQ(graphs.size(), 1);
}

// The step after a first one that throws makes what is still missing, and is no rehearsal.
TEST_F(GpuCaptureTest, AnErrorOfTheFirstStepIsForgotten) {
  const OneDeviceStrategy strategy("GPU:0");
  const StepGraphs graphs;
  int calls = 0;
  Variable made;
  const auto step = [&](const Tensor& x) {
    if (++calls == 1) throw InvalidArgumentError("the first");
    if (!made) made = Variable(at::full({2}, 3.f));
    return x + made.value();
  };
  const Tensor x = on_gpu(at::ones({2}));
  const auto run = [&] { return strategy.run({.capture = graphs}, step, x).value(0).cpu(); };
  EXPECT_THAT(run, ThrowsMessage<InvalidArgumentError>(HasSubstr("the first")));
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(at::equal(run(), at::full({2}, 4.f)));
  EXPECT_EQ(graphs.size(), 1) << graphs.why_not();
}

// What a program throws once is thrown once, also where the step is recorded.
TEST_F(GpuCaptureTest, AnExceptionOfTheProgramIsNotTakenForARefusal) {
  const OneDeviceStrategy strategy("GPU:0");
  const StepGraphs graphs;
  int calls = 0;
  const auto step = [&](const Tensor& x) {
    if (++calls == kStepsBeforeGraph + 1) throw std::runtime_error("once");
    return x + 1;
  };
  const Tensor x = on_gpu(at::ones({2}));
  const auto run = [&] { return strategy.run({.capture = graphs}, step, x).value(0).cpu(); };
  for (int i = 0; i < kStepsBeforeGraph; ++i) run();
  EXPECT_THAT(run, ThrowsMessage<std::runtime_error>(HasSubstr("once")));
  EXPECT_EQ(calls, kStepsBeforeGraph + 1);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(at::equal(run(), at::full({2}, 2.f)));
  EXPECT_EQ(graphs.size(), 1) << graphs.why_not();
}

TEST_F(GpuCaptureTest, TwoThreadsRecordTheirStepsAtOnce) {
  std::vector<std::string> errors(2);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      const OneDeviceStrategy strategy("GPU:0");
      for (int round = 0; round < 10; ++round) {
        const StepGraphs graphs;
        const auto factor = static_cast<float>(t + 1);
        const auto step = [&](const Tensor& x) { return x * factor + 1; };
        for (int i = 0; i < 12; ++i) {
          const Tensor x = on_gpu(at::full({3}, static_cast<float>(i)));
          const Tensor result = strategy.run({.capture = graphs}, step, x).value(0).cpu();
          if (!at::equal(result, at::full({3}, factor * static_cast<float>(i) + 1))) {
            errors[t] = "a wrong result";
          }
        }
        if (!graphs.why_not().empty()) errors[t] = graphs.why_not();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_THAT(error, IsEmpty());
}

TEST_F(GpuCaptureTest, ArgumentsThatOverlapThemselvesAreNotRecorded) {
  const OneDeviceStrategy strategy("GPU:0");
  const StepGraphs graphs;
  const Tensor x = on_gpu(at::ones({1})).expand({4});
  for (int i = 0; i < 6; ++i) {
    const auto result = strategy.run(
        {.capture = graphs}, [](const Tensor& one) { return one + 1; }, x);
    EXPECT_TRUE(at::equal(result.value(0).cpu(), at::full({4}, 2.f)));
  }
  EXPECT_THAT(graphs.why_not(), HasSubstr("share memory"));
}

}  // namespace
}  // namespace cohort::distribute
