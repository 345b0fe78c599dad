#include "cohort/parameter_server/variables/task_step.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <thread>

#include "cohort/parameter_server/variables/closure_context.h"

namespace cohort::internal {
namespace {

// A ps task without sockets, which counts what has been sent to it and has no answer yet.
class CountingPs final : public rpc::Channel {
 public:
  const TaskId& peer() const override { return peer_; }
  const std::string& address() const override { return address_; }
  void close() override {}
  void start(std::string_view, rpc::Message request, const rpc::CallOptions&,
             std::function<void(rpc::CallResult)> done) override {
    const std::lock_guard lock(mutex_);
    bytes_ += request.bulk_bytes();
    most_bytes_ = std::max(most_bytes_, bytes_);
    waiting_.push_back({request.bulk_bytes(), std::move(done)});
    changed_.notify_all();
  }

  // Waits for a call, gives its sender time for more of them, and answers it. Returns false if none
  // comes.
  bool answer_one() {
    Waiting call;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait_for(lock, std::chrono::seconds(30), [&] { return !waiting_.empty(); })) {
        return false;
      }
      for (int i = 0; i < 100; ++i) {
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
      }
      call = std::move(waiting_.front());
      waiting_.pop_front();
      bytes_ -= call.bytes;
    }
    call.done({.error = nullptr, .reply = {}});
    return true;
  }
  size_t most_bytes() const {
    const std::lock_guard lock(mutex_);
    return most_bytes_;
  }

 private:
  struct Waiting {
    size_t bytes = 0;
    std::function<void(rpc::CallResult)> done = nullptr;
  };
  const TaskId peer_{"ps", 0};
  const std::string address_ = "nowhere";
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;  // guarded by mutex_, as are the bytes
  size_t bytes_ = 0;
  size_t most_bytes_ = 0;
};

// However slow a ps task is, a worker's next step waits for its push: what is on the way to a ps
// task is one push of each worker.
TEST(TaskStep, OnePushAtATimeIsOnTheWay) {
  constexpr int kSteps = 20;
  constexpr int64_t kNumbers = 1 << 16;
  const std::vector<std::shared_ptr<CountingPs>> ps = {std::make_shared<CountingPs>(),
                                                       std::make_shared<CountingPs>()};
  const StoreClient client(
      2, [&](int i) { return ps[static_cast<size_t>(i)]; }, [] { return SessionId{1}; },
      [](const std::exception_ptr& error) { return error; }, std::chrono::minutes(1));
  std::vector<std::thread> slow;
  for (const auto& one : ps) {
    slow.emplace_back([one] {
      for (int i = 0; i < kSteps; ++i) EXPECT_TRUE(one->answer_one());
    });
  }
  TaskStep step;
  for (uint64_t closure = 1; closure <= kSteps; ++closure) {
    ClosureContext context{.id = closure};
    const ScopedClosure scoped(context);
    step.begin(client, 1);
    for (int i = 0; i < 2; ++i) {
      step.add(i, AssignShard{{1, i}, AssignOp::kAssign, at::zeros({kNumbers})});
    }
    step.end(client, 1);
  }
  for (std::thread& thread : slow) thread.join();
  step.settle();
  for (const auto& one : ps) EXPECT_EQ(one->most_bytes(), kNumbers * sizeof(float));
}

}  // namespace
}  // namespace cohort::internal
