// Input of two processes that read for the same steps: they end, fail and go on together. Here each
// process is a thread with a strategy of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "cohort/data/testing_device.h"
#include "cohort/distribute/strategies/local_strategy.h"
#include "cohort/distribute/testing_batches.h"
#include "cohort/distribute/testing_devices.h"

namespace cohort::distribute {
namespace {

using data::Dataset;
using data::IteratorState;
using internal::InputStatus;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Where two processes answer each other's questions.
class Meeting {
 public:
  internal::InputAnswer ask(size_t process, const InputStatus& here) {
    const std::lock_guard lock(mutex_);
    asked_[process].push_back(here);
    asked_something_.notify_all();
    return [this, question = asked_[process].size() - 1] {
      std::unique_lock lock(mutex_);
      const auto both_asked = [&] {
        return asked_[0].size() > question && asked_[1].size() > question;
      };
      if (!asked_something_.wait_for(lock, std::chrono::seconds(10), both_asked)) {
        throw DeadlineExceededError("the other process does not ask");
      }
      return combine(asked_[0][question], asked_[1][question]);
    };
  }
  std::vector<InputStatus> asked(size_t process) {
    const std::lock_guard lock(mutex_);
    return asked_[process];
  }

 private:
  std::mutex mutex_;
  std::condition_variable asked_something_;
  std::array<std::vector<InputStatus>, 2> asked_;
};

// A task of two that are alike: whatever this one says, the other has said the same.
class Alike final : public collective::Communicator {
 public:
  explicit Alike(int rank) : rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return 2; }
  int64_t generation() const override { return 0; }
  collective::Buffer buffer(int64_t) override { return {}; }
  std::unique_ptr<collective::Work> all_gather(std::span<const collective::Buffer> buffers,
                                               std::span<const int64_t> counts,
                                               const collective::CallOptions&) override {
    const collective::Buffer& all = buffers[0];
    const char* mine = all.at(rank_ * counts[0]);
    std::copy_n(mine, all.at(counts[0]) - all.at(0), all.at((1 - rank_) * counts[0]));
    return collective::done_work();
  }
  std::unique_ptr<collective::Work> all_reduce(std::span<const collective::Buffer>,
                                               const collective::CallOptions&) override {
    throw InternalError("reading input adds nothing up");
  }
  std::unique_ptr<collective::Work> reduce_scatter(std::span<const collective::Buffer>,
                                                   std::span<const int64_t>,
                                                   const collective::CallOptions&) override {
    throw InternalError("reading input adds nothing up");
  }
  std::unique_ptr<collective::Work> broadcast(std::span<const collective::Buffer>, int,
                                              const collective::CallOptions&) override {
    throw InternalError("reading input hands nothing out");
  }
  void barrier(const collective::CallOptions&) override {}
  void abort(const std::exception_ptr&) noexcept override {}

 private:
  int rank_;
};

// One replica, on the process's only device.
class OneOfTwo final : public internal::LocalStrategy {
 public:
  OneOfTwo(std::shared_ptr<Meeting> meeting, int process)
      : LocalStrategy({.name = "two processes",
                       .devices = {canonicalize("CPU:0")},
                       .communicator = std::make_shared<Alike>(process)}),
        meeting_(std::move(meeting)),
        process_(process) {}

  internal::InputAnswer agree_on_input(const InputStatus& here,
                                       const internal::InputPlace&) override {
    return meeting_->ask(static_cast<size_t>(process_), here);
  }

 private:
  std::shared_ptr<Meeting> meeting_;
  int process_;
};

// An iterator of each process over its own dataset, and what all their questions were.
struct Readers {
  explicit Readers(const std::array<Dataset, 2>& datasets) {
    for (int i = 0; i < 2; ++i) {
      const Strategy strategy(std::make_shared<OneOfTwo>(meeting, i));
      iterators.push_back(strategy
                              .distribute_datasets_from_function([&](const InputContext&) {
                                return datasets[static_cast<size_t>(i)];
                              })
                              .iterator());
    }
  }

  using Outcomes = std::array<std::vector<std::string>, 2>;
  // What `steps` calls of next() come to on both, or all calls up to the end: a batch, "end", or an
  // error's code and text.
  Outcomes read(size_t steps = 20) {
    Outcomes outcomes;
    const auto read_one = [&](size_t process) {
      std::vector<std::string>& own = outcomes[process];
      while (own.size() < steps && (own.empty() || own.back() != "end")) {
        try {
          const auto batch = iterators[process].next();
          own.push_back(batch ? text(*batch) : "end");
        } catch (const Error& error) {
          own.push_back(internal::str(code_name(error.code()), ": ", error.what()));
        }
      }
    };
    std::thread other([&] { read_one(1); });
    read_one(0);
    other.join();
    EXPECT_EQ(meeting->asked(0).size(), meeting->asked(1).size());
    return outcomes;
  }

  std::shared_ptr<Meeting> meeting = std::make_shared<Meeting>();
  std::vector<DistributedIterator> iterators;
};

Dataset fails_at(int64_t bad, int64_t size) {
  const auto refuse = [bad](int64_t x) {
    if (x == bad) throw NotFoundError("no such element");
    return x;
  };
  return Dataset::range(size).map(refuse).batch(1);
}

TEST(SharedInput, EndsForAllWhenNobodyHasData) {
  Readers readers({Dataset::range(1).batch(1), Dataset::range(3).batch(1)});
  const auto outcomes = readers.read();
  EXPECT_THAT(outcomes[0], ElementsAre("[0]", "[]", "[]", "end"));
  EXPECT_THAT(outcomes[1], ElementsAre("[0]", "[1]", "[2]", "end"));
  EXPECT_THAT(readers.meeting->asked(0), SizeIs(4));
}

TEST(SharedInput, TheGroupIsToldOfAStepBeforeTheStepBeforeItIsRun) {
  Readers readers({Dataset::range(1).batch(1), Dataset::range(2).batch(1)});
  readers.read(1);
  EXPECT_THAT(readers.meeting->asked(0),
              ElementsAre(InputStatus{.has_data = true}, InputStatus{.has_data = false}));
  EXPECT_THAT(readers.meeting->asked(1),
              ElementsAre(InputStatus{.has_data = true}, InputStatus{.has_data = true}));
}

TEST(SharedInput, AFailedElementTakesTheStepOfAllAndNoOther) {
  Readers readers({Dataset::range(4).batch(1), fails_at(1, 3)});
  const auto outcomes = readers.read();
  EXPECT_THAT(outcomes[0], ElementsAre("[0]", HasSubstr("ABORTED: the input of worker 1 failed"),
                                       "[2]", "[3]", "end"));
  EXPECT_THAT(outcomes[1], ElementsAre("[0]", HasSubstr("no such element"), "[2]", "[]", "end"));
}

TEST(SharedInput, BothMayFailAtOnceOrWhereTheOtherHasEnded) {
  Readers readers({fails_at(0, 1), fails_at(0, 1)});
  for (const auto& own : readers.read()) {
    EXPECT_THAT(own, ElementsAre(HasSubstr("NOT_FOUND"), "end"));
  }
  Readers ended({Dataset::range(0).batch(1), fails_at(0, 2)});
  const auto outcomes = ended.read();
  EXPECT_THAT(outcomes[0], ElementsAre(HasSubstr("worker 1 failed"), "[]", "end"));
  EXPECT_THAT(outcomes[1], ElementsAre(HasSubstr("NOT_FOUND"), "[1]", "end"));
}

TEST(SharedInput, AMissedDeadlineLosesNothingAnywhere) {
  for (int64_t slow = 0; slow < 3; ++slow) {
    std::atomic<int> timeouts = 1;
    Readers readers({data::slow_device(3, slow, &timeouts).batch(1), Dataset::range(3).batch(1)});
    auto outcomes = readers.read();
    for (size_t process = 0; process < 2; ++process) {
      std::vector<std::string>& own = outcomes[process];
      ASSERT_THAT(own, SizeIs(5)) << slow;
      EXPECT_THAT(own[static_cast<size_t>(slow)],
                  HasSubstr(process == 0 ? "DEADLINE_EXCEEDED" : "ABORTED: the input of worker 0"));
      own.erase(own.begin() + slow);
      EXPECT_THAT(own, ElementsAre("[0]", "[1]", "[2]", "end"));
    }
  }
}

// Of which nobody knows what a batch of no rows looks like.
Dataset nothing() {
  return Dataset::from_generator([] { return std::optional<Tensor>(); });
}

TEST(SharedInput, AWorkerThatCannotFillUpItsStepsFailsThemForAll) {
  Readers readers({Dataset::range(2).batch(1), nothing()});
  const auto outcomes = readers.read();
  EXPECT_THAT(outcomes[0],
              ElementsAre(HasSubstr("worker 1 failed"), HasSubstr("worker 1 failed"), "end"));
  EXPECT_THAT(outcomes[1], ElementsAre(HasSubstr("cannot be found out"),
                                       HasSubstr("cannot be found out"), "end"));
  Readers both({nothing(), nothing()});
  for (const auto& own : both.read()) EXPECT_THAT(own, ElementsAre("end"));
}

TEST(SharedInput, StatesAreThoseBeforeTheStepThatWasReadAhead) {
  const std::array<Dataset, 2> datasets = {Dataset::range(2).batch(1), fails_at(2, 4)};
  for (size_t taken = 0; taken <= 5; ++taken) {
    Readers readers(datasets);
    readers.read(taken);
    Readers resumed(datasets);
    for (size_t i = 0; i < 2; ++i) {
      resumed.iterators[i].restore(IteratorState::parse(readers.iterators[i].state().serialize()));
    }
    const auto rest = readers.read();
    EXPECT_EQ(resumed.read(), rest);
    EXPECT_THAT(rest[1], SizeIs(taken < 5 ? 5 - taken : 1)) << taken;
  }
}

}  // namespace
}  // namespace cohort::distribute
