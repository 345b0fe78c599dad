#include "cohort/core/threads/thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <barrier>
#include <future>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/host/cgroups.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string thread_name() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

TEST(ThreadPoolTest, RunsEveryTaskBeforeItIsGone) {
  std::atomic<int> count = 0;
  {
    ThreadPool pool("test", 3);
    EXPECT_EQ(pool.num_threads(), 3);
    for (int i = 0; i < 100; ++i) pool.schedule([&] { ++count; });
  }
  EXPECT_EQ(count, 100);
}

TEST(ThreadPoolTest, OneThreadKeepsTheOrder) {
  std::vector<int> order;
  {
    ThreadPool pool("test", 1);
    for (int i = 0; i < 5; ++i) pool.schedule([&order, i] { order.push_back(i); });
  }
  EXPECT_THAT(order, ::testing::ElementsAre(0, 1, 2, 3, 4));
}

TEST(ThreadPoolTest, ThreadsRunAtTheSameTime) {
  constexpr int kThreads = 3;
  std::barrier meeting(kThreads);  // nobody passes before all three are here
  std::array<std::thread::id, kThreads> ids;
  {
    ThreadPool pool("test", kThreads);
    for (int i = 0; i < kThreads; ++i) {
      pool.schedule([&, i] {
        ids[i] = std::this_thread::get_id();
        meeting.arrive_and_wait();
      });
    }
  }
  EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), 3u);
}

TEST(ThreadPoolTest, ATaskMayScheduleAnotherEvenWhileThePoolEnds) {
  std::promise<void> pool_is_ending;
  int depth = 0;
  auto pool = std::make_unique<ThreadPool>("test", 1);
  ThreadPool* raw = pool.get();
  raw->schedule([&, raw] {
    pool_is_ending.get_future().wait();
    raw->schedule([&, raw] {
      ++depth;
      raw->schedule([&] { ++depth; });
    });
  });
  pool_is_ending.set_value();
  pool.reset();
  EXPECT_EQ(depth, 2);
}

TEST(ThreadPoolTest, ATaskThatThrowsIsLoggedAndThePoolGoesOn) {
  ::testing::internal::CaptureStderr();
  bool ran = false;
  {
    ThreadPool pool("loader", 1);
    pool.schedule([] { throw std::runtime_error("disk on fire"); });
    pool.schedule([] { throw 1; });
    pool.schedule([&] { ran = true; });
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(ran);
  EXPECT_THAT(text, ::testing::HasSubstr("'loader' failed: disk on fire"));
  EXPECT_THAT(text, ::testing::HasSubstr("no std::exception"));
}

TEST(ThreadPoolTest, AThreadThatATaskEndsIsReplaced) {
  std::atomic<int> count = 0;
  ::testing::internal::CaptureStderr();
  {
    ThreadPool pool("loader", 2);
    for (int i = 0; i < 5; ++i) {
      pool.schedule([&] { ++count; });
      pool.schedule([] { pthread_exit(nullptr); });
    }
    std::barrier all(3);
    for (int i = 0; i < 2; ++i) pool.schedule([&] { all.arrive_and_wait(); });
    all.arrive_and_wait();  // there are two threads, as before
  }
  EXPECT_EQ(count, 5);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("'loader' ended its thread"));
}

TEST(ThreadPoolTest, ATaskIsFreedOnceItRan) {
  auto held = std::make_shared<int>(1);
  std::weak_ptr<int> watch = held;
  ThreadPool pool("test", 1);
  pool.schedule([held = std::move(held)] {});
  std::promise<bool> expired;  // the only thread has let go of the task before this one starts
  pool.schedule([&] { expired.set_value(watch.expired()); });
  EXPECT_TRUE(expired.get_future().get());
}

// As a server's answer to a call does that outlives the server.
TEST(ThreadPoolTest, ATaskMayReleaseTheLastReferenceToItsPool) {
  for (int i = 0; i < 20; ++i) {
    std::promise<void> released;
    std::promise<void> queued_ran;
    auto pool = std::make_shared<ThreadPool>("owned", 2);
    ThreadPool* const raw = pool.get();
    auto last = std::make_shared<std::shared_ptr<ThreadPool>>();
    std::promise<void> is_last;
    raw->schedule([last, go = is_last.get_future().share(), &released, &queued_ran] {
      go.wait();
      (*last)->schedule([&] { queued_ran.set_value(); });
      last->reset();
      released.set_value();
    });
    *last = std::move(pool);
    is_last.set_value();
    EXPECT_EQ(released.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
    EXPECT_EQ(queued_ran.get_future().wait_for(std::chrono::seconds(20)),
              std::future_status::ready);
  }
}

// What owns the pool is there for its tasks to the last, whichever thread ends it.
TEST(ThreadPoolTest, WhereATaskEndsItsPoolTheOthersHaveRunBefore) {
  struct Owner {
    std::atomic<int>& ran;
    std::vector<int> numbers{1, 2, 3};
    ThreadPool pool{"owned", 2};
  };
  for (int i = 0; i < 20; ++i) {
    std::atomic<int> ran{0};
    auto owner = std::make_shared<Owner>(ran);
    std::promise<void> released, go;
    owner->pool.schedule([last = std::weak_ptr(owner),
                          held = std::make_shared<std::shared_ptr<Owner>>(owner),
                          gate = go.get_future().share(), &ran, &released]() mutable {
      gate.wait();
      held->reset();
      EXPECT_TRUE(last.expired());
      EXPECT_EQ(ran, 40);
      released.set_value();
    });
    for (int task = 0; task < 40; ++task) {
      owner->pool.schedule([own = owner.get()] { own->ran += own->numbers.size() == 3 ? 1 : 0; });
    }
    owner.reset();
    go.set_value();
    EXPECT_EQ(released.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  }
}

TEST(ThreadPoolTest, ThreadsAreNamedAfterThePool) {
  std::promise<std::string> name;
  ThreadPool pool("loader", 1);
  pool.schedule([&] { name.set_value(thread_name()); });
  EXPECT_EQ(name.get_future().get(), "loader/0");
}

TEST(ThreadPoolTest, NeedsAThread) {
  EXPECT_THAT([&] { (void)(ThreadPool("loader", 0)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("'loader'")));
  EXPECT_THAT([&] { (void)(ThreadPool("loader", -2)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("-2")));
}

TEST(ThreadNameTest, IsCutToWhatTheKernelTakes) {
  std::thread([] {
    internal::set_thread_name("a-name-longer-than-fifteen");
    EXPECT_EQ(thread_name(), "a-name-longer-t");
  }).join();
}

TEST(NumUsableCoresTest, CountsTheAffinityMaskUpToTheQuota) {
  EXPECT_GE(internal::num_usable_cores(), 1);
  std::thread([] {
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    EXPECT_EQ(internal::num_usable_cores(),
              internal::cores_under(internal::Cgroups().cpu_quota(), CPU_COUNT(&allowed)));
    int first = 0;
    while (!CPU_ISSET(first, &allowed)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(internal::num_usable_cores(), 1);
  }).join();
}

}  // namespace
}  // namespace cohort
