// Tasks agree on a stop while the coordinating task stands still: calls of the store get no answer
// in time.
#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/cluster/coordination.h"
#include "cohort/cluster/membership/simulation/direct_call.h"
#include "cohort/cluster/server_context.h"
#include "cohort/cluster/server_membership.h"
#include "cohort/core/error.h"
#include "cohort/distribute/preemption/stop_agreement.h"
#include "cohort/train/objects/save_group.h"

namespace cohort::internal {
namespace {

using namespace std::chrono_literals;
using FindService = std::function<rpc::Service*()>;

// To the service of the same process. Calls that stall end as they do after their 10 s, but at
// once.
class StallingChannel final : public rpc::Channel {
 public:
  StallingChannel(FindService service, rpc::Caller caller)
      : service_(std::move(service)), caller_(std::move(caller)) {}

  // The next `count` calls of `method`, such as "set". They may reach the service all the same,
  // late.
  void stall(const std::string& method, int count, bool arrive) {
    const std::lock_guard lock(mutex_);
    stalls_["membership/" + method] = {count, arrive};
  }

  const TaskId& peer() const override { return peer_; }
  const std::string& address() const override { return address_; }
  void close() override {}
  void start(std::string_view method, rpc::Message request, const rpc::CallOptions& options,
             std::function<void(rpc::CallResult)> done) override {
    membership::DirectChannel direct(service_(), caller_);
    const std::optional<bool> arrives = stall_of(std::string(method));
    if (!arrives) return direct.start(method, std::move(request), options, std::move(done));
    if (*arrives) direct.start(method, std::move(request), options, [](rpc::CallResult) {});
    done({.error = make_error(Code::kDeadlineExceeded, "no answer in time"), .reply = {}});
  }

 private:
  struct Stall {
    int count = 0;
    bool arrive = false;
  };

  // Nothing: it does not stall.
  std::optional<bool> stall_of(const std::string& method) {
    const std::lock_guard lock(mutex_);
    Stall& stall = stalls_[method];
    if (stall.count == 0) return std::nullopt;
    --stall.count;
    return stall.arrive;
  }

  const FindService service_;
  const rpc::Caller caller_;
  const TaskId peer_{"worker", 0};
  const std::string address_ = "127.0.0.1:1000";
  std::mutex mutex_;
  std::map<std::string, Stall> stalls_;  // guarded by mutex_
};

// A server without a port.
class TaskContext final : public ServerContext {
 public:
  TaskContext(int index, FindService service)
      : address_("127.0.0.1:" + std::to_string(1000 + index)),
        identity_(std::make_shared<rpc::Identity>(TaskId{"worker", index},
                                                  100 + static_cast<uint64_t>(index))),
        channel_(std::make_shared<StallingChannel>(
            std::move(service),
            rpc::Caller{.task = identity_->task(), .incarnation = identity_->incarnation()})) {}

  StallingChannel& stalling() { return *channel_; }

  const TaskId& task() const override { return identity_->task(); }
  const std::string& address() const override { return address_; }
  const std::string& advertised_address() const override { return address_; }
  const std::shared_ptr<rpc::Identity>& identity() const override { return identity_; }
  train::ClusterSpec cluster_spec() const override {
    return train::ClusterSpec({{"worker", {"127.0.0.1:1000", "127.0.0.1:1001"}}});
  }
  void set_cluster_spec(const train::ClusterSpec&) override {}
  const std::optional<distribute::cluster_resolver::Rendezvous>& rendezvous() const override {
    return rendezvous_;
  }
  std::shared_ptr<rpc::Channel> channel(const TaskId&) override { return channel_; }
  void set_fence(std::shared_ptr<const rpc::Fence>) override {}
  bool is_left_to_this_thread(uint64_t) const override { return false; }
  void request_stop(const std::string&) override {}
  void request_stop(std::exception_ptr) override {}

 private:
  const std::string address_;
  const std::shared_ptr<rpc::Identity> identity_;
  const std::shared_ptr<StallingChannel> channel_;
  const std::optional<distribute::cluster_resolver::Rendezvous> rendezvous_;
};

// Two tasks; the first coordinates.
class StalledCoordinator : public ::testing::TestWithParam<bool> {
 protected:
  StalledCoordinator() {
    for (int i = 0; i < 2; ++i) {
      contexts_.push_back(std::make_unique<TaskContext>(
          i, [this] { return memberships_.front()->service().get(); }));
      memberships_.push_back(std::make_shared<ServerMembership>(
          *contexts_.back(), distribute::ServerOptions{.start_timeout = 20s}));
      clusters_.push_back(std::make_unique<distribute::Coordination>(memberships_.back()));
    }
    for (const auto& membership : memberships_) membership->start();
    for (size_t i = 0; i < 2; ++i) {
      clusters_[i]->wait_for_start();
      agreements_.push_back(
          std::make_unique<StopAgreement>(StopGroup{.cluster = clusters_[i].get(),
                                                    .name = "test",
                                                    .tasks = {{"worker", 0}, {"worker", 1}},
                                                    .self = i,
                                                    .patience = 20s,
                                                    .patience_for_call = 20s},
                                          0, 0));
    }
  }
  ~StalledCoordinator() override {
    for (const size_t task : {1, 0}) memberships_[task]->stop("");
  }

  void stall(size_t task, const std::string& method, int count) {
    contexts_[task]->stalling().stall(method, count, /*arrive=*/GetParam());
  }
  StopAgreement& agreement(size_t task) { return *agreements_[task]; }
  // All agree to stop after call 1.
  void agree() {
    auto answered = std::async(std::launch::async, [&] { return agreement(1).answer(20s); });
    EXPECT_TRUE(agreement(0).ask("why"));
    EXPECT_TRUE(answered.get());
    for (const size_t task : {0, 1}) {
      EXPECT_EQ(agreement(task).note(), "why");
      agreement(task).begin_call();
      EXPECT_TRUE(agreement(task).finish_call());
    }
  }
  // In both tasks at the same time.
  void in_both(const std::function<void(StopAgreement&)>& fn) {
    auto other = std::async(std::launch::async, [&] { fn(agreement(1)); });
    EXPECT_NO_THROW(fn(agreement(0)));
    EXPECT_NO_THROW(other.get());
  }

 private:
  std::vector<std::unique_ptr<TaskContext>> contexts_;
  std::vector<std::shared_ptr<ServerMembership>> memberships_;
  std::vector<std::unique_ptr<distribute::Coordination>> clusters_;
  std::vector<std::unique_ptr<StopAgreement>> agreements_;
};

TEST_P(StalledCoordinator, WhoAnswersTellsItsCallAndLearnsTheDecision) {
  stall(1, "set", 2);
  agree();
}

TEST_P(StalledCoordinator, WhoAsksLooksForAnswersAndDecides) {
  stall(0, "list", 2);
  stall(0, "compare_and_set", 2);
  agree();
}

TEST_P(StalledCoordinator, AllMeetAndSaveTogether) {
  agree();
  stall(0, "set", 1);
  stall(1, "list", 3);
  in_both([](StopAgreement& task) { task.meet(1); });
  stall(0, "list", 1);
  stall(1, "set", 1);
  stall(1, "get", 1);
  in_both([](StopAgreement& task) { task.do_together("the work", *train::alone(), [] {}); });
}

INSTANTIATE_TEST_SUITE_P(Calls, StalledCoordinator, ::testing::Bool(), [](const auto& test) {
  return std::string(test.param ? "ArriveLate" : "DoNotArrive");
});

}  // namespace
}  // namespace cohort::internal
