// Options that are given to one call.
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/collective/call_timeout.h"
#include "cohort/collective/forming/limited_communicator.h"
#include "cohort/collective/forwarding_communicator.h"
#include "cohort/collective/testing_members.h"
#include "cohort/distribute/core/communication_scope.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/make_tensor.h"

namespace cohort::distribute {
namespace {

using collective::message_of;
using experimental::CommunicationOptions;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const CommunicationOptions kShort{.timeout = milliseconds(20)};

using Call = std::function<void(const Strategy&)>;
using ReplicaCall = std::function<void(ReplicaContext&)>;

// As cross_device_ops_test's testTimeout*: of two tasks one makes the call.
void expect_late(const Call& call) {
  const auto errors = run_tasks(2, 1, [&](const Strategy& strategy, int task) {
    if (task == 0) call(strategy);
  });
  EXPECT_THAT(message_of<DeadlineExceededError>(errors[0]), HasSubstr("for task 1"));
  EXPECT_EQ(errors[1], nullptr);
}
void expect_late_in_step(const ReplicaCall& call) {
  expect_late([&](const Strategy& strategy) {
    strategy.run([&](ReplicaContext& context) { call(context); });
  });
}

TEST(CallOptions, ATimeoutMayBeAsLongAsItGoes) {
  const MirroredStrategy strategy = mirrored(1);
  const internal::CommunicationScope scope(*strategy.core(), {.timeout = milliseconds::max()});
  EXPECT_GT(collective::ScopedCallTimeout::current(), hours(24 * 364));
}

TEST(CallOptions, TheTimeoutOfAnAllReduceIsADeadline) {
  expect_late_in_step(
      [](ReplicaContext& context) { context.all_reduce(ReduceOp::SUM, number(1), kShort); });
  expect_late_in_step([](ReplicaContext& context) {
    context.all_reduce("MEAN", tuple(number(1), number(2)), kShort);
  });
  expect_late_in_step([](ReplicaContext& context) {
    context.all_reduce(ReduceOp::SUM, at::ones({3, 2}).to_sparse(1), kShort);
  });
}

TEST(CallOptions, TheTimeoutOfAnAllGatherIsADeadline) {
  expect_late_in_step(
      [](ReplicaContext& context) { context.all_gather(at::ones({2}), 0, kShort); });
  expect_late_in_step([](ReplicaContext& context) {
    context.all_gather(tuple(at::ones({2}), at::ones({1})), 0, kShort);
  });
}

TEST(CallOptions, TheTimeoutOfAReduceToIsADeadline) {
  const PerReplica<Tensor> one({number(1)});
  expect_late([&](const Strategy& strategy) {
    strategy.extended().reduce_to(ReduceOp::SUM, one, one, kShort);
  });
  expect_late([&](const Strategy& strategy) {
    strategy.extended().reduce_to(ReduceOp::MEAN, number(1), one, kShort);
  });
  expect_late([&](const Strategy& strategy) {
    strategy.extended().batch_reduce_to("sum", {{one, one}, {one, one}}, kShort);
  });
  expect_late([&](const Strategy& strategy) {
    const IndexedSlices row{.values = at::ones({1, 2}), .indices = constant({0})};
    const PerReplica<IndexedSlices> rows({row});
    strategy.extended().reduce_to(ReduceOp::SUM, rows, "CPU:0", kShort);
  });
}

TEST(CallOptions, TheTimeoutIsAlsoThatOfReplicasOfOneProcess) {
  const MirroredStrategy strategy = mirrored(2);
  std::atomic<bool> is_over = false;
  const auto step = [&](ReplicaContext& context) {
    if (context.replica_id_in_sync_group() == 1) {
      while (!is_over) std::this_thread::yield();
      return;
    }
    try {
      context.all_reduce(ReduceOp::SUM, number(1), kShort);
    } catch (...) {
      is_over = true;
      throw;
    }
  };
  EXPECT_THAT(thrown<DeadlineExceededError>([&] { strategy.run(step); }),
              AllOf(HasSubstr("0.02 s"), HasSubstr("replica 1")));
  strategy.run([](ReplicaContext& context) {  // it goes on
    EXPECT_EQ(context.all_reduce(ReduceOp::SUM, number(1), kShort).item<double>(), 2);
  });
}

class Recorded final : public collective::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  std::vector<nanoseconds> take() { return std::exchange(timeouts_, {}); }

 private:
  void before(collective::CallOptions& options, int64_t) override {
    timeouts_.push_back(options.timeout);
  }
  std::vector<nanoseconds> timeouts_;  // of one task, whose calls come one after another
};

// Two tasks, whose strategies have a timeout of 7 s; what their calls were given.
class RecordedTasks {
 public:
  void run(const std::function<void(const Strategy&, Recorded& calls)>& program) {
    const auto record = [&](std::shared_ptr<collective::Communicator> inner) {
      of_task_.push_back(std::make_shared<Recorded>(std::move(inner)));
      return collective::limited(of_task_.back(), seconds(7));
    };
    run_all_tasks(2, 1,
                  [&](const Strategy& strategy, int task) {
                    Recorded& calls = *of_task_[static_cast<size_t>(task)];
                    calls.take();
                    program(strategy, calls);
                  },
                  {.communication_options = {.timeout = seconds(7)}, .wrap = record});
  }

 private:
  std::vector<std::shared_ptr<Recorded>> of_task_;
};

void expect_all(const std::vector<nanoseconds>& timeouts, nanoseconds timeout) {
  EXPECT_THAT(timeouts, AllOf(Not(IsEmpty()), Each(timeout)));
}

TEST(CallOptions, ACallsTimeoutCountsBeforeTheStrategys) {
  RecordedTasks().run([&](const Strategy& strategy, Recorded& calls) {
    const auto expect = [&](nanoseconds timeout, const CommunicationOptions& options) {
      strategy.run([&](ReplicaContext& context) {
        EXPECT_EQ(context.all_reduce(ReduceOp::SUM, number(1), options).item<double>(), 2);
      });
      expect_all(calls.take(), timeout);
      const auto sum = strategy.extended().reduce_to(ReduceOp::SUM, number(1), "CPU:0", options);
      EXPECT_EQ(sum.item().item<double>(), 2);
      expect_all(calls.take(), timeout);
    };
    expect(seconds(7), {});
    expect(seconds(2), {.timeout = seconds(2)});
    expect(seconds(9), {.timeout = seconds(9)});
    expect(minutes(10), {.timeout = hours(1)});  // the step's
    expect(seconds(7), {.bytes_per_pack = 4});
  });
}

TEST(CallOptions, AGradientWaitsAsLongAsItsCall) {
  RecordedTasks().run([&](const Strategy& strategy, Recorded& calls) {
    strategy.run([&](ReplicaContext& context) {
      GradientTape tape({.persistent = true});
      const Tensor x = at::ones({2});
      tape.watch(x);
      const CommunicationOptions options{.timeout = seconds(9)};
      const Tensor sum = context.all_reduce(ReduceOp::SUM, x, options);
      const Tensor rows = context.all_gather(x, 0, options);
      calls.take();
      EXPECT_EQ(tape.gradient(sum.sum(), x)[0].item<double>(), 2);
      expect_all(calls.take(), seconds(9));
      EXPECT_EQ(tape.gradient(rows.sum(), x)[0].item<double>(), 2);
      expect_all(calls.take(), seconds(9));
    });
  });
}

// As cross_device_ops_test's testReductionDistributed.
TEST(CallOptions, PacksChangeNoValue) {
  for (const int64_t bytes_per_pack : {0, 1, 4}) {
    run_all_tasks(2, 2, [&](const Strategy& strategy, int) {
      strategy.run([&](ReplicaContext& context) {
        const double id = context.replica_id_in_sync_group();
        const CommunicationOptions options{.bytes_per_pack = bytes_per_pack};
        const Structure sums =
            context.all_reduce(ReduceOp::SUM, tuple(number(id), at::ones({3})), options);
        EXPECT_EQ(sums[0].tensor().item<double>(), 6);
        EXPECT_EQ(sums[1].tensor()[2].item<double>(), 4);
      });
    });
  }
}

TEST(CallOptions, WhatCannotBeIsRefused) {
  const MirroredStrategy strategy = mirrored(2);
  const CommunicationOptions negative{.bytes_per_pack = -1};
  EXPECT_THAT(refused([&] {
                strategy.run([&](ReplicaContext& context) {
                  context.all_reduce(ReduceOp::SUM, number(1), negative);
                });
              }),
              HasSubstr("bytes_per_pack is -1"));
  EXPECT_THAT(
      refused([&] { strategy.extended().reduce_to(ReduceOp::MEAN, number(1), "CPU:0", negative); }),
      HasSubstr("bytes_per_pack is -1"));
}

}  // namespace
}  // namespace cohort::distribute
