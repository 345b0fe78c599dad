// A child of fork has none of the threads: what needs them says so at once, and nothing hangs.
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <optional>

#include "cohort/core/testing_fork.h"
#include "cohort/core/threads/thread_sanitizer.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_errors.h"

#ifdef __SANITIZE_ADDRESS__
// Of a child, whose other threads are gone, and with them what they alone held.
static bool no_leak_check = false;
extern "C" int __lsan_is_turned_off() { return no_leak_check; }
#endif

namespace cohort::distribute {
namespace {

using internal::in_forked_child;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// With threads that work right now.
data::Dataset busy_dataset() {
  return data::Dataset::range(1000)
      .map([](int64_t x) { return x; }, {.num_parallel_calls = 2})
      .batch(2)
      .prefetch(4);
}

TEST(Forked, AStrategyRefusesToRunAndCanBeReleased) {
  std::optional<MirroredStrategy> strategy = mirrored(2);
  strategy->run([] {});
  EXPECT_THAT(in_forked_child(
                  [&] { return thrown<FailedPreconditionError>([&] { strategy->run([] {}); }); }),
              HasSubstr("a strategy was made before this process was forked"));
  EXPECT_EQ(in_forked_child([&] {
              strategy.reset();
              return std::string("released");
            }),
            "released");
  strategy->run([] {});
}

TEST(Forked, ADatasetsIteratorRefusesToReadAndCanBeReleased) {
  std::optional<data::DatasetIterator> iterator = busy_dataset().iterator();
  iterator->next();
  EXPECT_THAT(
      in_forked_child([&] { return thrown<FailedPreconditionError>([&] { iterator->next(); }); }),
      HasSubstr("a dataset's iterator was made before this process was forked"));
  EXPECT_THAT(
      in_forked_child([&] { return thrown<FailedPreconditionError>([&] { iterator->state(); }); }),
      HasSubstr("was forked"));
  EXPECT_EQ(in_forked_child([&] {
              iterator.reset();
              return std::string("released");
            }),
            "released");
  EXPECT_EQ(iterator->next()->tensor()[0].item<int64_t>(), 2);
}

TEST(Forked, ADistributedIteratorToo) {
  const MirroredStrategy strategy = mirrored(2);
  const auto dataset = strategy.experimental_distribute_dataset(busy_dataset());
  std::optional<DistributedIterator> iterator = dataset.iterator();
  iterator->next();
  EXPECT_THAT(in_forked_child([&] {
                const std::string text = thrown<FailedPreconditionError>([&] { iterator->next(); });
                iterator.reset();
                return text;
              }),
              HasSubstr("a distributed iterator was made before this process was forked"));
  EXPECT_THAT(in_forked_child(
                  [&] { return thrown<FailedPreconditionError>([&] { iterator->has_next(); }); }),
              HasSubstr("a distributed iterator was made before this process was forked"));
  EXPECT_TRUE(iterator->next().has_value());
}

// The exit status of a child that `forker` forks inside a step, and that goes on with the step.
int status_of_child_of_a_step(int forker, bool meets) {
  constexpr int kForkedError = 42;
  const MirroredStrategy strategy = mirrored(2);
  const pid_t parent = ::getpid();
  pid_t child = -1;
  std::string text;
  try {
    strategy.run([&](ReplicaContext& context) {
      if (context.replica_id_in_sync_group() == forker) {
        child = ::fork();
        if (child == 0) ::alarm(20);
      }
      if (meets) context.all_reduce(ReduceOp::SUM, at::ones({}));
    });
  } catch (const FailedPreconditionError& error) {
    text = error.what();
  }
  if (::getpid() != parent) {
    ::_exit(text.find("before this process was forked") != std::string::npos ? kForkedError : 1);
  }
  EXPECT_EQ(text, "");
  strategy.run([] {});
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

#ifndef COHORT_THREAD_SANITIZER  // which stops children that start threads
TEST(Forked, InsideAStepTheChildOfTheCallersThreadGetsAnErrorAtOnce) {
  EXPECT_EQ(status_of_child_of_a_step(0, /*meets=*/false), 42);
  EXPECT_EQ(status_of_child_of_a_step(0, /*meets=*/true), 42);
}
#endif

TEST(Forked, InsideAStepTheChildOfAReplicasThreadEnds) {
  EXPECT_EQ(status_of_child_of_a_step(1, /*meets=*/false), 70);
  EXPECT_EQ(status_of_child_of_a_step(1, /*meets=*/true), 70);
}

TEST(Forked, ChildrenThatExecOrExitAreFine) {
  const MirroredStrategy strategy = mirrored(2);
  auto iterator = busy_dataset().iterator();
  iterator.next();
  for (const bool execs : {true, false}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
#ifdef __SANITIZE_ADDRESS__
      no_leak_check = true;
#endif
      char name[] = "true";
      char* const arguments[] = {name, nullptr};
      if (execs) ::execv("/bin/true", arguments);
      ::exit(0);  // with static objects' destructors
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << execs;
  }
}

#ifndef COHORT_THREAD_SANITIZER  // which stops children that start threads
TEST(Forked, AChildMayMakeItsOwn) {
  const MirroredStrategy strategy = mirrored(2);
  strategy.run([] {});
  for (const Structure& element : busy_dataset().take(2)) EXPECT_TRUE(element.is_leaf());
  EXPECT_EQ(in_forked_child([] {
              int64_t sum = 0;
              for (const Structure& element : busy_dataset().take(2)) {
                sum += element.tensor()[1].item<int64_t>();
              }
              const MirroredStrategy own = mirrored(2);
              const auto ids = own.run(
                  [](ReplicaContext& context) { return context.replica_id_in_sync_group(); });
              return internal::str(sum, " ", ids.value(0), ids.value(1));
            }),
            "4 01");
}
#endif

}  // namespace
}  // namespace cohort::distribute
