#include "cohort/parameter_server/coordinator/closure_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

Clock::time_point soon() { return Clock::now() + seconds(20); }

ClosurePtr closure(const std::string& function) {
  auto made = std::make_shared<Closure>();
  made->function = function;
  return made;
}

std::exception_ptr invalid(const std::string& text) {
  return std::make_exception_ptr(InvalidArgumentError(text));
}

TEST(ClosureQueue, HandsOutInOrderAndJoinsWhenAllHaveEnded) {
  ClosureQueue queue({});
  EXPECT_TRUE(queue.done());
  queue.join(soon());
  const ClosurePtr first = closure("a"), second = closure("b");
  queue.put(first, soon());
  queue.put(second, soon());
  EXPECT_FALSE(queue.done());
  EXPECT_EQ(queue.take(0), first);
  EXPECT_EQ(queue.take(1), second);
  EXPECT_EQ(queue.take(0), nullptr);
  queue.finished(0, *first, Structure());
  EXPECT_EQ(first->result->status(), RemoteStatus::kReady);
  EXPECT_THAT(thrown<DeadlineExceededError>([&] { queue.join(Clock::now() + milliseconds(5)); }),
              HasSubstr("worker 1 runs 'b'"));
  queue.finished(1, *second, Structure());
  queue.join(soon());
  EXPECT_TRUE(queue.done());
}

TEST(ClosureQueue, TheFirstErrorIsThrownOnceAndCancelsTheRest) {
  ClosureQueue queue({});
  const ClosurePtr bad = closure("bad"), running = closure("long"), queued = closure("later");
  queue.put(bad, soon());
  queue.put(running, soon());
  queue.put(queued, soon());
  queue.take(0);
  queue.take(1);
  queue.failed(0, *bad, invalid("no such row"));
  EXPECT_EQ(queue.take(0), nullptr);  // nothing more is handed out
  EXPECT_EQ(queue.errors().size(), 1u);
  auto joined = std::async(std::launch::async, [&] {
    return thrown<InvalidArgumentError>([&] { queue.join(soon()); });
  });
  EXPECT_THROW(running->result->get(soon(), "long"), CancelledError);  // while it is under way
  queue.failed(1, *running, std::make_exception_ptr(CancelledError("given up")));
  EXPECT_EQ(joined.get(), "no such row");
  EXPECT_EQ(queue.errors().size(), 1u);
  EXPECT_THAT(thrown<CancelledError>([&] { queued->result->get(soon(), "later"); }),
              AllOf(HasSubstr("Please reschedule"),
                    HasSubstr("'later' (closure 3): 'bad' (closure 1) failed: no such row")));
  EXPECT_EQ(thrown<InvalidArgumentError>([&] { bad->result->get(soon(), "bad"); }), "no such row");
  // It is not repeated, and the queue works again.
  EXPECT_TRUE(queue.done());
  const ClosurePtr good = closure("good");
  queue.put(good, soon());
  EXPECT_EQ(queue.take(1), good);
  queue.finished(1, *good, Structure());
  queue.join(soon());
}

// Who fetches its result may make no other call, and would wait for an hour.
TEST(ClosureQueue, WhatIsQueuedIsCancelledAsSoonAsAnotherFails) {
  ClosureQueue queue({});
  const ClosurePtr bad = closure("bad"), running = closure("long"), queued = closure("later");
  const ClosurePtr waiting = closure("awaits");
  waiting->awaits_arguments = true;
  for (const ClosurePtr& one : {bad, running, queued, waiting}) queue.put(one, soon());
  queue.take(0);
  queue.take(1);
  queue.failed(0, *bad, invalid("no such row"));
  for (const ClosurePtr& one : {queued, waiting}) {
    EXPECT_THAT(thrown<CancelledError>([&] { one->result->get(Clock::now(), "it"); }),
                HasSubstr("'bad' (closure 1) failed: no such row"));
  }
  queue.ready(waiting);  // too late
  EXPECT_EQ(queue.queued(), 0u);
  queue.finished(1, *running, Structure());  // what was under way may end
  EXPECT_EQ(running->result->status(), RemoteStatus::kReady);
  EXPECT_THROW(queue.join(soon()), InvalidArgumentError);
  queue.join(soon());
}

TEST(ClosureQueue, PutAndDoneThrowAnEarlierErrorToo) {
  ClosureQueue queue({});
  for (const bool through_put : {true, false}) {
    const ClosurePtr bad = closure("bad");
    queue.put(bad, soon());
    queue.take(3);
    queue.failed(3, *bad, invalid("x"));
    EXPECT_EQ(queue.errors()[0].worker, 3);
    EXPECT_EQ(thrown<InvalidArgumentError>([&] {
                if (through_put) return queue.put(closure("next"), soon());
                queue.done();
              }),
              "x");
    EXPECT_EQ(queue.errors().size(), 1u);  // what was thrown last can still be looked up
    EXPECT_EQ(queue.queued(), 0u);
  }
}

TEST(ClosureQueue, ALostWorkersClosureGoesToAnotherFirst) {
  ClosureQueue queue({});
  const ClosurePtr first = closure("a"), second = closure("b");
  queue.put(first, soon());
  queue.put(second, soon());
  EXPECT_EQ(queue.take(0), first);
  queue.put_back(0, first);
  EXPECT_EQ(queue.take(1), first);
  EXPECT_EQ(first->attempts, 2);
  EXPECT_EQ(first->id, 1u);  // its own
  EXPECT_EQ(queue.take(1), second);
  EXPECT_EQ(queue.take(1), nullptr);
  // What a zombie reports is refused.
  EXPECT_THAT(thrown<InternalError>([&] { queue.finished(0, *first, Structure()); }),
              HasSubstr("worker 0 does not have closure 1"));
}

TEST(ClosureQueue, AClosureThatIsLostAgainAndAgainFails) {
  ClosureQueue queue({.max_attempts = 3});
  const ClosurePtr bad = closure("bad");
  queue.put(bad, soon());
  for (int worker = 0; worker < 3; ++worker) {
    EXPECT_EQ(queue.take(worker), bad);
    queue.put_back(worker, bad);
  }
  EXPECT_EQ(queue.take(3), nullptr);
  EXPECT_THAT(thrown<UnavailableError>([&] { queue.join(soon()); }),
              HasSubstr("'bad' (closure 1) was lost with its worker 3 times, last with worker 2"));
}

TEST(ClosureQueue, OneThatAwaitsArgumentsIsHandedOutWhenTheyAreThere) {
  ClosureQueue queue({});
  const ClosurePtr early = closure("early"), late = closure("late"), never = closure("never");
  late->awaits_arguments = never->awaits_arguments = true;
  queue.put(late, soon());
  queue.put(never, soon());
  queue.put(early, soon());
  EXPECT_EQ(queue.take(0), early);
  EXPECT_EQ(queue.take(0), nullptr);
  queue.finished(0, *early, Structure());
  EXPECT_FALSE(queue.done());
  queue.ready(late);
  EXPECT_EQ(queue.take(0), late);
  queue.finished(0, *late, Structure());
  queue.give_up(never, invalid("its argument failed"));
  queue.join(soon());  // of which the run knows already
  EXPECT_EQ(thrown<InvalidArgumentError>([&] { never->result->get(soon(), "never"); }),
            "its argument failed");
}

TEST(ClosureQueue, InAPauseNothingHasBegunAndNotEnded) {
  ClosureQueue queue({});
  const ClosurePtr begun = closure("begun"), lost = closure("lost"), fresh = closure("fresh");
  for (const ClosurePtr& one : {begun, lost, fresh}) queue.put(one, soon());
  queue.take(0);
  queue.take(1);
  EXPECT_THAT(thrown<DeadlineExceededError>(
                  [&] { auto paused = queue.pause(Clock::now() + milliseconds(5)); }),
              HasSubstr("worker 0 runs 'begun'"));
  std::atomic<bool> is_paused{false};
  std::shared_ptr<void> paused;
  std::thread saver([&] {
    paused = queue.pause(soon());
    is_paused = true;
  });
  queue.put_back(1, lost);
  EXPECT_EQ(queue.take(0), lost);  // it had begun: it ends, on another worker
  queue.finished(0, *begun, Structure());
  EXPECT_FALSE(is_paused);
  queue.finished(0, *lost, Structure());
  saver.join();
  EXPECT_EQ(queue.take(0), nullptr);
  paused.reset();
  EXPECT_EQ(queue.take(0), fresh);
}

TEST(ClosureQueue, APauseThatWaitsEndsWithWhatBreaksTheQueue) {
  ClosureQueue* waits_in = nullptr;
  ClosureQueue queue({.report_after = milliseconds(1), .on_report = [&](const std::string&) {
                        waits_in->break_with(
                            std::make_exception_ptr(UnavailableError("a ps task is lost")));
                      }});
  waits_in = &queue;
  queue.put(closure("begun"), soon());
  queue.take(0);
  EXPECT_THAT(thrown<UnavailableError>([&] { auto paused = queue.pause(soon()); }),
              HasSubstr("a ps task is lost"));
  EXPECT_NO_THROW(auto paused = queue.pause(soon()));  // what is left can be saved
}

TEST(ClosureQueue, ABrokenOneThrowsItsErrorEachTimeAndAllEndWithIt) {
  ClosureQueue queue({});
  const ClosurePtr running = closure("running"), lost = closure("lost"), queued = closure("queued");
  for (const ClosurePtr& one : {running, lost, queued}) queue.put(one, soon());
  queue.take(0);
  queue.take(1);
  std::thread program(
      [&] { EXPECT_EQ(thrown<UnavailableError>([&] { queue.join(soon()); }), "lost the ps"); });
  queue.break_with(std::make_exception_ptr(UnavailableError("lost the ps")));
  program.join();
  queue.put_back(1, lost);
  for (const ClosurePtr& one : {running, lost, queued}) {
    EXPECT_EQ(thrown<UnavailableError>([&] { one->result->get(soon(), "it"); }), "lost the ps");
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(thrown<UnavailableError>([&] { queue.done(); }), "lost the ps");
    EXPECT_EQ(thrown<UnavailableError>([&] { queue.put(closure("x"), soon()); }), "lost the ps");
    EXPECT_EQ(thrown<UnavailableError>([&] { queue.join(soon()); }), "lost the ps");
  }
  queue.failed(0, *running, invalid("late"));
  EXPECT_EQ(queue.errors().size(), 1u);
  EXPECT_EQ(queue.take(0), nullptr);
}

TEST(ClosureQueue, AWaitSaysWhatHangsAndGivesUpWhenNothingMoves) {
  std::vector<std::string> reports;
  ClosureQueue queue({.patience = milliseconds(500),
                      .report_after = milliseconds(20),
                      .on_report = [&](const std::string& text) { reports.push_back(text); }});
  const ClosurePtr hanging = closure("hanging"), queued = closure("queued");
  queue.put(hanging, soon());
  queue.put(queued, soon());
  queue.take(7);
  EXPECT_THAT(thrown<DeadlineExceededError>([&] { queue.join(); }),
              HasSubstr("worker 7 runs 'hanging'"));
  ASSERT_GE(reports.size(), 1u);
  EXPECT_THAT(reports[0], HasSubstr("join has waited for 0"));
  EXPECT_THAT(reports[0], HasSubstr("1 closures are queued, 1 under way"));
  EXPECT_THAT(reports[0], HasSubstr("worker 7 runs 'hanging' (closure 1) for 0"));
}

TEST(ClosureQueue, PutBlocksWhileTheQueueIsFull) {
  ClosureQueue queue({.max_queued = 2});
  queue.put(closure("a"), soon());
  queue.put(closure("b"), soon());
  EXPECT_THAT(thrown<DeadlineExceededError>(
                  [&] { queue.put(closure("c"), Clock::now() + milliseconds(5)); }),
              HasSubstr("2 closures are queued"));
  std::thread program([&] { queue.put(closure("c"), soon()); });
  const ClosurePtr first = queue.take(0);
  program.join();
  EXPECT_EQ(queue.queued(), 2u);
  queue.finished(0, *first, Structure());
}

TEST(ClosureQueue, JoinDoesNotWaitForWhatIsPutAfterIt) {
  ClosureQueue queue({});
  const ClosurePtr early = closure("early");
  queue.put(early, soon());
  queue.take(0);
  std::atomic<bool> joined{false};
  std::thread program([&] {
    queue.join(soon());
    joined = true;
  });
  while (queue.take(0) == nullptr) {  // until join() has begun, what is put counts for it
    const ClosurePtr probe = closure("probe");
    queue.put(probe, soon());
    if (probe->epoch == 1) break;
    queue.take(0);
    queue.finished(0, *probe, Structure());
    std::this_thread::yield();
  }
  queue.finished(0, *early, Structure());
  program.join();
  EXPECT_TRUE(joined);
  EXPECT_FALSE(queue.done());
}

TEST(ClosureQueue, StopCancelsAllAndEndsWaits) {
  ClosureQueue queue({});
  const ClosurePtr running = closure("running"), queued = closure("queued");
  queue.put(running, soon());
  queue.put(queued, soon());
  queue.take(0);
  std::thread program([&] {
    EXPECT_THAT(thrown<CancelledError>([&] { queue.join(soon()); }), HasSubstr("stopped"));
  });
  queue.stop();
  program.join();
  EXPECT_EQ(running->result->status(), RemoteStatus::kAborted);
  EXPECT_EQ(queued->result->status(), RemoteStatus::kAborted);
  EXPECT_THAT(thrown<CancelledError>([&] { queue.put(closure("x"), soon()); }),
              HasSubstr("stopped"));
  EXPECT_EQ(queue.take(0), nullptr);
}

TEST(ClosureQueue, ManyThreadsLoseAndRepeatNothing) {
  constexpr int kWorkers = 4, kClosures = 5000;
  ClosureQueue queue({.max_queued = 64});
  std::atomic<int> ran{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&, worker] {
      while (!over) {
        const ClosurePtr mine = queue.take(worker);
        if (mine == nullptr) {
          std::this_thread::yield();
        } else if (mine->attempts == 1 && mine->id % 7 == 0) {
          queue.put_back(worker, mine);
        } else {
          ++ran;
          queue.finished(worker, *mine, Structure());
        }
      }
    });
  }
  for (int i = 0; i < kClosures; ++i) queue.put(closure("f"), soon());
  queue.join(soon());
  EXPECT_EQ(ran, kClosures);
  over = true;
  for (std::thread& worker : workers) worker.join();
}

}  // namespace
}  // namespace cohort::internal
