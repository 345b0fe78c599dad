// A coordinator of 1,000 workers: the sockets are replaced, nothing else.
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "cohort/cluster/membership/limits.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/distribute/tasks/structure_message.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"

namespace cohort::internal {
namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// All workers and ps tasks. Answers are given by whoever calls work(). Thread safety: any thread.
class StubTasks {
 public:
  using Done = std::function<void(rpc::CallResult)>;

  void call(const TaskId& task, std::string_view method, Done done) {
    std::unique_lock lock(mutex_);
    if (dead_.contains(task)) {
      answers_.push_back({task, std::move(done), true});
    } else if (method == "leadership/attend") {
      attended_.emplace(task, std::move(done));
    } else {
      answers_.push_back({task, std::move(done), false});
    }
  }

  // Answers what has come; returns how many calls that were.
  size_t work() {
    std::deque<Answer> due;
    {
      const std::lock_guard lock(mutex_);
      due.swap(answers_);
    }
    for (Answer& answer : due) {
      if (answer.is_lost) {
        answer.done(
            {.error = rpc::no_answer(Code::kUnavailable, "it is dead", answer.task), .reply = {}});
      } else {
        answer.done({.error = nullptr, .reply = reply_});
      }
    }
    return due.size();
  }

  void kill(const TaskId& task) {
    std::vector<Done> ended;
    {
      const std::lock_guard lock(mutex_);
      dead_.insert(task);
      for (Answer& answer : answers_) answer.is_lost = answer.is_lost || answer.task == task;
      const auto [first, last] = attended_.equal_range(task);
      for (auto it = first; it != last; ++it) ended.push_back(std::move(it->second));
      attended_.erase(first, last);
    }
    for (Done& done : ended) {
      done({.error = std::make_exception_ptr(UnavailableError("its connection broke")),
            .reply = {}});
    }
  }

 private:
  struct Answer {
    TaskId task;
    Done done;
    bool is_lost;
  };

  const rpc::Message reply_ = to_message(Structure::make_tuple({}));
  std::mutex mutex_;
  std::deque<Answer> answers_;
  std::multimap<TaskId, Done> attended_;
  std::set<TaskId> dead_;
};

class StubChannel final : public rpc::Channel {
 public:
  StubChannel(TaskId peer, StubTasks& tasks) : peer_(std::move(peer)), tasks_(tasks) {}
  const TaskId& peer() const override { return peer_; }
  const std::string& address() const override { return address_; }
  void start(std::string_view method, rpc::Message, const rpc::CallOptions&,
             std::function<void(rpc::CallResult)> done) override {
    tasks_.call(peer_, method, std::move(done));
  }
  void close() override {}

 private:
  const TaskId peer_;
  const std::string address_ = "stub:1";
  StubTasks& tasks_;
};

int threads() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/self/task")) {
    ++count;
  }
  return count;
}

struct Coordinator {
  using SetFigure = std::function<void(const std::string& name, double value)>;
  explicit Coordinator(int workers, SetFigure set_figure = nullptr) {
    for (int i = 0; i < workers; ++i) add({"worker", i});
    add({"ps", 0});
    CoordinatorSurroundings around;
    around.num_workers = workers;
    around.num_ps = 1;
    around.channel = [this](const TaskId& task) { return channels.at(task); };
    around.set_figure = std::move(set_figure);
    distribute::coordinator::ClusterCoordinatorOptions options;
    options.window = 8;
    core = std::make_shared<CoordinatorCore>(around, options);
    core->start();
    while (tasks.work() > 0) {
    }
  }
  ~Coordinator() { core->stop(); }
  void add(const TaskId& task) { channels[task] = std::make_shared<StubChannel>(task, tasks); }

  StubTasks tasks;
  std::map<TaskId, std::shared_ptr<rpc::Channel>> channels;
  std::shared_ptr<CoordinatorCore> core;
};

TEST(CoordinatorScale, AThousandWorkersOnOneThread) {
  const int threads_before = threads();
  const size_t heap_before = ::mallinfo2().uordblks;
  constexpr int kWorkers = 1000, kClosures = 40'000;
  Coordinator coordinator(kWorkers);
  const double per_worker = static_cast<double>(::mallinfo2().uordblks - heap_before) / kWorkers;
  EXPECT_LT(per_worker, 64 << 10);
  EXPECT_LE(threads() - threads_before, 2);  // whatever the number of workers

  const auto began = steady_clock::now();
  for (int i = 0; i < kClosures; ++i) coordinator.core->schedule("nothing", {}, {});
  while (coordinator.tasks.work() > 0) {
  }
  const double took = duration<double>(steady_clock::now() - began).count();
  coordinator.core->queue().join();
  int64_t done = 0, least = kClosures;
  for (const auto& worker : coordinator.core->workers()) {
    done += worker.done;
    least = std::min(least, worker.done);
  }
  EXPECT_EQ(done, kClosures);
  EXPECT_GT(least, 0);
  std::printf("1000 stub workers: %.0f closures/s on one core, %.0f bytes a worker\n",
              kClosures / took, per_worker);
}

TEST(CoordinatorScale, HasNoMoreFiguresThanATaskMay) {
  constexpr size_t kOfTheProgram = 16;
  std::mutex mutex;
  std::set<std::string> names;
  {
    const Coordinator coordinator(1000, [&](const std::string& name, double) {
      const std::lock_guard lock(mutex);
      names.insert(name);
    });
  }
  EXPECT_LE(names.size() + kOfTheProgram, membership::kMostFigures);
  EXPECT_EQ(names.count("worker 31 retried"), 1u);
}

TEST(CoordinatorScale, AHundredThatDieAtOnceAreReplacedWithinASecond) {
  constexpr int kWorkers = 1000, kDead = 100, kClosures = 9000;
  Coordinator coordinator(kWorkers);
  for (int i = 0; i < kClosures; ++i) coordinator.core->schedule("nothing", {}, {});
  const auto began = steady_clock::now();
  for (int i = 0; i < kDead; ++i) coordinator.tasks.kill({"worker", i});
  const auto limit = began + std::chrono::seconds(20);
  while (!coordinator.core->queue().done() && steady_clock::now() < limit) coordinator.tasks.work();
  const auto took = steady_clock::now() - began;
  EXPECT_TRUE(coordinator.core->queue().done());
  EXPECT_LT(took, std::chrono::seconds(5));  // on a loaded machine, without optimisation
  int alive = 0;
  for (const auto& worker : coordinator.core->workers()) alive += worker.is_alive ? 1 : 0;
  EXPECT_EQ(alive, kWorkers - kDead);
  std::printf("100 of 1000 die at once: all closures have ended after %.0f ms\n",
              duration<double, std::milli>(took).count());
}

}  // namespace
}  // namespace cohort::internal
