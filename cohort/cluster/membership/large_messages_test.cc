// What is larger than a header of a call may be: through a dispatcher, which holds the limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/cluster/membership/agent.h"
#include "cohort/cluster/membership/coordination_service.h"
#include "cohort/cluster/membership/simulation/process.h"
#include "cohort/cluster/rpc/dispatcher.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal::membership {
namespace {

using std::chrono::seconds;

// Calls go through all that a call over gRPC goes through, but gRPC.
class DispatcherChannel final : public rpc::Channel {
 public:
  DispatcherChannel(rpc::Dispatcher& dispatcher, TaskId task, uint64_t incarnation)
      : dispatcher_(dispatcher), claim_{std::move(task), incarnation, 0} {}

  const TaskId& peer() const override { return peer_; }
  const std::string& address() const override { return address_; }
  void close() override {}
  void start(std::string_view method, rpc::Message request, const rpc::CallOptions& options,
             std::function<void(rpc::CallResult)> done) override {
    const auto answer = [done, limit = options.max_reply_bytes](rpc::MessageWriter writer) {
      rpc::MessageReader reader("answer", [limit](const rpc::Header&) {
        return rpc::MessageReader::Limits{.bulk_bytes = limit};
      });
      rpc::CallResult result;
      try {
        for (; !writer.piece().empty(); writer.advance()) {
          for (const rpc::Bytes& slice : writer.piece()) reader.append({slice.data, slice.size});
        }
        reader.expect_complete();
        if (!reader.header().error.empty()) result.error = rpc::decode_error(reader.header().error);
        if (!result.error) result.reply = reader.take();
      } catch (...) {
        result.error = std::current_exception();
      }
      done(std::move(result));
    };
    const auto session = dispatcher_.begin(method, {.address = "10.0.0.9:1"},
                                           std::chrono::steady_clock::now() + seconds(60), answer);
    for (rpc::MessageWriter writer({.claim = claim_}, std::move(request));
         !writer.piece().empty() && session->wants_more(); writer.advance()) {
      for (const rpc::Bytes& slice : writer.piece()) session->append({slice.data, slice.size});
    }
    session->end_of_request();
  }

 private:
  rpc::Dispatcher& dispatcher_;
  const rpc::Claim claim_;
  const TaskId peer_{"worker", 0};
  const std::string address_ = "h0:1";
};

class LargeMessages : public testing::Test {
 protected:
  void begin(const std::string& cluster_spec) {
    cluster_spec_ = cluster_spec;
    CoordinationOptions options;
    options.incarnation = 99;
    options.self = {"worker", 0};
    options.roster.tasks = {{{"worker", 0}, "h0:1"}};
    options.roster.late_jobs = {"late"};
    options.roster.tasks[{"late", 0}] = "h1:1";
    options.roster.heartbeat = kTestHeartbeat;
    options.cluster_spec = cluster_spec;
    dispatcher_.add(std::make_shared<CoordinationService>(clock_, std::move(options)));
  }
  std::unique_ptr<MembershipAgent> agent(const TaskId& task) {
    auto agent = std::make_unique<MembershipAgent>(
        clock_, std::make_shared<DispatcherChannel>(dispatcher_, task, 7),
        AgentOptions{.task = task,
                     .incarnation = 7,
                     .cluster_spec = cluster_spec_,
                     .start_timeout = seconds(30),
                     .heartbeat = kTestHeartbeat,
                     .on_error = [this](std::exception_ptr) { ++errors_; }});
    agent->start();
    return agent;
  }

  SimulatedTime time_;
  SimulatedProcess clock_{time_, 1.0, seconds(1000)};
  int errors_ = 0;
  std::string cluster_spec_;
  rpc::Dispatcher dispatcher_{
      {.self = {"worker", 0}, .role_of = [](const TaskId&) { return rpc::Role::kWorker; }}};
};

TEST_F(LargeMessages, ValuesHaveUpTo1MiB) {
  begin("spec");
  const auto alone = agent({"worker", 0});
  const std::string large(kMostValueBytes, 'x');
  const std::string other(kMostValueBytes, 'y');
  alone->set("k", large);
  EXPECT_TRUE(alone->get("k", seconds(1)) == large);
  EXPECT_TRUE(alone->compare_and_set("k", large, other));
  EXPECT_TRUE(alone->find("k") == other);
  expect_error<ResourceExhaustedError>([&] { alone->set("k", large + "x"); }, "");
  EXPECT_TRUE(alone->find("k") == other);
}

TEST_F(LargeMessages, ClusterSpecsHaveUpTo1MiB) {
  begin(std::string(kMostSpecBytes, 's'));
  EXPECT_EQ(agent({"worker", 0})->wait_for_start()->generation, 1);
}

TEST_F(LargeMessages, AViewOfManyErrorsArrives) {
  begin("spec");
  const auto first = agent({"worker", 0});
  for (size_t i = 0; i < kMostEvents; ++i) {
    first->report(make_error(Code::kInternal, std::string(rpc::kMostErrorTextBytes, 'e')));
  }
  errors_ = 0;
  const auto second = agent({"late", 0});
  ASSERT_NE(second->view(), nullptr);
  EXPECT_GT(second->view()->encode().size(), rpc::kMaxHeaderBytes);
  EXPECT_GT(errors_, 200);
}

// Answers all but watches.
class Mute final : public rpc::Service {
 public:
  explicit Mute(rpc::Service& service) : service_(service) {}
  std::string_view name() const override { return service_.name(); }
  std::span<const rpc::MethodSpec> methods() const override { return service_.methods(); }
  void handle(size_t method, std::unique_ptr<rpc::Call> call) override {
    if (method == CoordinationService::kWatch)
      throw ResourceExhaustedError("the view is too large");
    service_.handle(method, std::move(call));
  }

 private:
  rpc::Service& service_;
};

TEST_F(LargeMessages, AServiceThatNeverTellsWhoIsThereIsSaidSo) {
  CoordinationOptions options;
  options.incarnation = 99;
  options.self = {"worker", 0};
  options.roster.tasks = {{{"worker", 0}, "h0:1"}};
  options.roster.heartbeat = kTestHeartbeat;
  CoordinationService service(clock_, std::move(options));
  dispatcher_.add(std::make_shared<Mute>(service));
  const auto alone = agent({"worker", 0});
  time_.run_until(time_.now() + seconds(10));
  ASSERT_NE(alone->error(), nullptr);
  expect_error<ResourceExhaustedError>([&] { alone->wait_for_start(); },
                                       "has not told who is in the cluster for 2 s: the view");
  EXPECT_EQ(errors_, 1);
}

}  // namespace
}  // namespace cohort::internal::membership
