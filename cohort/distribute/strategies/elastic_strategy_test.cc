// A task that is lost at any call changes no bit of what the others compute.
#include "cohort/distribute/strategies/elastic_strategy.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "cohort/collective/testing_socket_communicator.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/variables/variable.h"
#include "cohort/ops/random.h"

namespace cohort::distribute {
namespace {

using collective::Buffer;
using collective::CallOptions;
using collective::Communicator;
using internal::ElasticStrategy;
using internal::GroupFormer;
using internal::str;

constexpr int kReplicas = 6;

// What ends a task here.
struct Killed {};

// When a task is killed, and which of the others do not get the result of the call in which it is.
struct Fault {
  int victim = -1;
  int call = 0;               // of the victim's communicators, from 1
  bool after = false;         // it has taken part in the call
  std::set<int> behind = {};  // who else does not get what that call gives
};

// Tasks that are threads; a killed one ends the calls of the others, as a lost process does.
class FakeCluster {
 public:
  FakeCluster(int tasks, std::vector<Fault> faults) : faults_(std::move(faults)) {
    for (int task = 0; task < tasks; ++task) alive_.insert(task);
    connect();
  }

  std::shared_ptr<Communicator> communicator(int task) {
    const std::lock_guard lock(mutex_);
    return current_.at(task);
  }
  std::vector<int> members() {
    const std::lock_guard lock(mutex_);
    return members_;
  }
  int calls() {
    const std::lock_guard lock(mutex_);
    int most = 0;
    for (const auto& [task, count] : calls_) most = std::max(most, count);
    return most;
  }

  GroupFormer::Formed form(int task, const GroupFormer::Standing& mine) {
    std::unique_lock lock(mutex_);
    const int64_t before = generation_;
    standings_[task] = mine;
    const auto all_are_there = [&] {
      return std::all_of(alive_.begin(), alive_.end(),
                         [&](int one) { return standings_.contains(one); });
    };
    changed_.notify_all();
    const bool in_time = changed_.wait_for(
        lock, std::chrono::seconds(20), [&] { return generation_ != before || all_are_there(); });
    if (!in_time) throw DeadlineExceededError("the others have not come to form the group");
    if (generation_ == before) {
      ++generation_;
      calls_of_.clear();
      for (const int one : alive_) calls_of_.push_back(standings_.at(one).calls);
      standings_.clear();
      connect();
      changed_.notify_all();
    }
    seen_[task] = std::set<int>(members_.begin(), members_.end());
    return {.calls = calls_of_,
            .communicator = members_.size() > 1 ? current_.at(task) : nullptr,
            .cores = 1};
  }

  bool has_lost_a_task(int task) {
    const std::lock_guard lock(mutex_);
    const std::set<int>& seen = seen_.contains(task) ? seen_.at(task) : all_;
    return std::any_of(seen.begin(), seen.end(), [&](int one) { return !alive_.contains(one); });
  }

  // Before and after each call of a task. Throws where it is killed in it, or does not get what the
  // call gives.
  void begin_call(int task) {
    const std::lock_guard lock(mutex_);
    ++calls_[task];
    for (const Fault& fault : faults_) {
      if (fault.victim == task && fault.call == calls_[task] && !fault.after) kill(task);
    }
    if (!alive_.contains(task)) throw Killed();
  }
  void end_call(int task) {
    const std::lock_guard lock(mutex_);
    for (const Fault& fault : faults_) {
      if (!fault.after) continue;
      if (fault.victim == task && fault.call == calls_[task]) kill(task);
      // All have made the same calls until then.
      if (fault.behind.contains(task) && fault.call == calls_[task]) {
        kill(fault.victim);
        throw UnavailableError(str("lost task ", fault.victim));
      }
    }
    if (!alive_.contains(task)) throw Killed();
  }
  // The task has ended its program.
  void leave(int task) {
    const std::lock_guard lock(mutex_);
    if (alive_.erase(task) > 0) left_.insert(task);
    changed_.notify_all();
  }
  bool has_left(int task) {
    const std::lock_guard lock(mutex_);
    return left_.contains(task);
  }

 private:
  class Killable;

  // The caller holds mutex_.
  void connect();
  void kill(int task) {
    if (alive_.erase(task) == 0) return;
    standings_.erase(task);
    for (const auto& [other, communicator] : current_) {
      communicator->abort(std::make_exception_ptr(UnavailableError(str("lost task ", task))));
    }
    changed_.notify_all();
  }

  const std::vector<Fault> faults_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<int> alive_;
  std::set<int> all_;
  std::set<int> left_;
  std::vector<int> members_;
  std::map<int, std::shared_ptr<Communicator>> current_;
  std::map<int, GroupFormer::Standing> standings_;
  std::map<int, std::set<int>> seen_;
  std::vector<int64_t> calls_of_;
  std::map<int, int> calls_;
  int64_t generation_ = 0;
};

class FakeCluster::Killable final : public Communicator {
 public:
  Killable(FakeCluster& cluster, int task, std::shared_ptr<Communicator> inner)
      : cluster_(cluster), task_(task), inner_(std::move(inner)) {}

  template <class Call>
  auto in_call(const Call& call) {
    cluster_.begin_call(task_);
    if constexpr (std::is_void_v<std::invoke_result_t<const Call&>>) {
      call();
      cluster_.end_call(task_);
    } else {
      auto result = call();
      cluster_.end_call(task_);
      return result;
    }
  }

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  int64_t generation() const override { return inner_->generation(); }
  Buffer buffer(int64_t bytes) override { return inner_->buffer(bytes); }
  std::unique_ptr<collective::Work> all_reduce(std::span<const Buffer> buffers,
                                               const CallOptions& options) override {
    return in_call([&] { return inner_->all_reduce(buffers, options); });
  }
  std::unique_ptr<collective::Work> reduce_scatter(std::span<const Buffer> buffers,
                                                   std::span<const int64_t> counts,
                                                   const CallOptions& options) override {
    return in_call([&] { return inner_->reduce_scatter(buffers, counts, options); });
  }
  std::unique_ptr<collective::Work> all_gather(std::span<const Buffer> buffers,
                                               std::span<const int64_t> counts,
                                               const CallOptions& options) override {
    return in_call([&] { return inner_->all_gather(buffers, counts, options); });
  }
  std::unique_ptr<collective::Work> broadcast(std::span<const Buffer> buffers, int root,
                                              const CallOptions& options) override {
    return in_call([&] { return inner_->broadcast(buffers, root, options); });
  }
  void barrier(const CallOptions& options) override {
    in_call([&] { inner_->barrier(options); });
  }
  void gather_bytes(std::span<const char> mine, collective::GatheredBytes& all,
                    const CallOptions& options) override {
    in_call([&] { inner_->gather_bytes(mine, all, options); });
  }
  void abort(const std::exception_ptr& reason) noexcept override { inner_->abort(reason); }

 private:
  FakeCluster& cluster_;
  const int task_;
  const std::shared_ptr<Communicator> inner_;
};

void FakeCluster::connect() {
  members_.assign(alive_.begin(), alive_.end());
  if (all_.empty()) all_ = alive_;
  const auto inner =
      collective::make_socket_communicators(static_cast<int>(members_.size()), generation_);
  current_.clear();
  for (size_t rank = 0; rank < members_.size(); ++rank) {
    current_[members_[rank]] = std::make_shared<Killable>(*this, members_[rank], inner[rank]);
  }
}

class FakeFormer final : public GroupFormer {
 public:
  FakeFormer(FakeCluster& cluster, int task) : cluster_(cluster), task_(task) {}
  Formed form(const Standing& mine) override { return cluster_.form(task_, mine); }
  bool has_lost_a_task() override { return cluster_.has_lost_a_task(task_); }

 private:
  FakeCluster& cluster_;
  const int task_;
};

struct Outcome {
  std::vector<Tensor> values;
  void add(const Tensor& value) { values.push_back(value.detach().clone()); }
};
using Program = std::function<void(const Strategy&, Outcome&)>;

Strategy elastic_strategy(FakeCluster& cluster, int task, int tasks) {
  const auto range = collective::SumTree(kReplicas).divide(tasks)[static_cast<size_t>(task)];
  return Strategy(std::make_shared<ElasticStrategy>(
      internal::LocalStrategy::Config{.name = "elastic",
                                      .devices = std::vector<std::string>(
                                          static_cast<size_t>(range.size()), canonicalize("CPU:0")),
                                      .communicator = cluster.communicator(task),
                                      .cores = 1,
                                      .threads_per_replica = 1,
                                      .order = collective::SyncGroup::Order::kOfTree},
      std::make_shared<FakeFormer>(cluster, task)));
}

// What the tasks that are left have computed; `calls`: how many calls a task made at most.
std::map<int, Outcome> outcomes_of(int tasks, const std::vector<Fault>& faults,
                                   const Program& program, int* calls = nullptr) {
  FakeCluster cluster(tasks, faults);
  std::vector<Outcome> outcomes(static_cast<size_t>(tasks));
  std::vector<std::exception_ptr> errors(static_cast<size_t>(tasks));
  std::vector<std::thread> threads;
  for (int task = 0; task < tasks; ++task) {
    threads.emplace_back([&, task] {
      const auto own = static_cast<size_t>(task);
      const internal::SeedScope seeds(5);
      try {
        program(elastic_strategy(cluster, task, tasks), outcomes[own]);
      } catch (...) {
        errors[own] = std::current_exception();
      }
      cluster.leave(task);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::map<int, Outcome> left;
  for (int task = 0; task < tasks; ++task) {
    const auto own = static_cast<size_t>(task);
    if (!cluster.has_left(task)) continue;
    if (errors[own]) std::rethrow_exception(errors[own]);
    left[task] = std::move(outcomes[own]);
  }
  if (calls != nullptr) *calls = cluster.calls();
  return left;
}

void expect_same_bits(const Outcome& outcome, const Outcome& expected, const std::string& where) {
  ASSERT_EQ(outcome.values.size(), expected.values.size()) << where;
  for (size_t i = 0; i < outcome.values.size(); ++i) {
    ASSERT_TRUE(at::equal(outcome.values[i], expected.values[i]))
        << where << ", value " << i << ": " << outcome.values[i] << " and " << expected.values[i];
  }
}

void expect_same_after(const std::vector<Fault>& faults, int tasks, const Program& program,
                       const Outcome& expected, const std::string& where) {
  for (const auto& [task, outcome] : outcomes_of(tasks, faults, program)) {
    expect_same_bits(outcome, expected, str(where, ", at task ", task));
  }
}

// A step that writes all kinds of state, some of it several times.
void train(const Strategy& strategy, Outcome& outcome) {
  const Scope scope = strategy.scope();
  const auto noise = random::RandomGenerator::from_seed(3);
  const Variable weights(at::ones({5}),
                         {.name = "weights", .aggregation = VariableAggregation::MEAN});
  const Variable total(at::zeros({}), {.name = "total",
                                       .trainable = false,
                                       .synchronization = VariableSynchronization::ON_READ,
                                       .aggregation = VariableAggregation::SUM});
  const auto step = [&](const Tensor& x) {
    ReplicaContext& context = *get_replica_context();
    weights.assign_add(x * 0.125);
    const Tensor sum = context.all_reduce(ReduceOp::SUM, x * weights.value() + noise.normal({5}));
    total.assign_add(x[0] + random::uniform({}));
    weights.assign_add(sum * 0.01);
    return (x * weights.value()).sum();
  };
  for (int i = 0; i < 3; ++i) {
    const auto values =
        strategy.experimental_distribute_values_from_function([i](const ValueContext& context) {
          return at::full({5}, 0.1 + i + 0.3 * context.replica_id_in_sync_group);
        });
    const PerReplica<Tensor> losses = strategy.run(step, values);
    outcome.add(strategy.reduce(ReduceOp::SUM, losses, std::nullopt));
    outcome.add(total.value());
    outcome.add(noise.normal({2}));
    if (i == 1) total.assign(at::zeros({}));
  }
  outcome.add(weights.value());
}

// How many calls make the strategy.
int first_calls(int tasks) {
  int calls = 0;
  outcomes_of(
      tasks, {}, [](const Strategy&, Outcome&) {}, &calls);
  return calls;
}

Outcome undisturbed(int tasks, const Program& program, int* calls) {
  const auto outcomes = outcomes_of(tasks, {}, program, calls);
  for (const auto& [task, outcome] : outcomes) {
    expect_same_bits(outcome, outcomes.at(0), str("undisturbed, at task ", task));
  }
  return outcomes.at(0);
}

class ElasticStrategyTest : public testing::Test {
  const LogicalCpus cpus_{1};
};

TEST_F(ElasticStrategyTest, AnyDivisionGivesTheSameBits) {
  int calls = 0;
  const Outcome of_three = undisturbed(3, train, &calls);
  EXPECT_GT(calls, 10);
  expect_same_bits(undisturbed(2, train, &calls), of_three, "two tasks");
}

TEST_F(ElasticStrategyTest, ALossAtAnyCallChangesNoBit) {
  int calls = 0;
  const Outcome expected = undisturbed(3, train, &calls);
  for (int call = first_calls(3) + 1; call <= calls; ++call) {
    for (const int victim : {0, 2}) {
      for (const bool after : {false, true}) {
        expect_same_after(
            {{.victim = victim, .call = call, .after = after}}, 3, train, expected,
            str("task ", victim, " lost ", after ? "after" : "before", " call ", call));
      }
    }
  }
}

TEST_F(ElasticStrategyTest, WhoeverIsBehindGetsWhatOthersHaveGot) {
  int calls = 0;
  const Outcome expected = undisturbed(3, train, &calls);
  for (int call = first_calls(3) + 1; call <= calls; ++call) {
    expect_same_after({{.victim = 0, .call = call, .after = true, .behind = {2}}}, 3, train,
                      expected, str("task 2 behind at call ", call));
  }
}

TEST_F(ElasticStrategyTest, LossesWhileTheGroupFormsAgainAreLossesToo) {
  int calls = 0;
  const Outcome expected = undisturbed(4, train, &calls);
  for (int call = first_calls(4) + 1; call <= calls; call += 3) {
    for (int later = 0; later < 4; ++later) {
      expect_same_after({{.victim = 3, .call = call}, {.victim = 1, .call = call + later}}, 4,
                        train, expected, str("at calls ", call, " and ", call + later));
    }
  }
}

TEST_F(ElasticStrategyTest, ArgumentsThatCannotBeHadElsewhereAreRefused) {
  outcomes_of(2, {}, [](const Strategy& strategy, Outcome&) {
    PerReplica<Tensor>::Values own(strategy.extended().worker_devices().size(), at::ones({}));
    EXPECT_THROW(strategy.run([](const Tensor& x) { return x; }, PerReplica<Tensor>(own)),
                 FailedPreconditionError);
  });
}

}  // namespace
}  // namespace cohort::distribute
