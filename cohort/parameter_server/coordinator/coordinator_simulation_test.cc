// The coordinator's protocol in simulated time: thousands of histories of workers that are lost,
// come back, and go on although they were taken for lost, while connections to ps tasks break, too.
// No closure is lost; on each ps task each is applied once; and where one runs again, its first
// worker's session changes nothing any more.
//
//   COHORT_SIMULATIONS=100000 parameter_server_test --gtest_filter='CoordinatorSimulation.*'
//   COHORT_SIMULATION_SEED=203 parameter_server_test --gtest_filter='CoordinatorSimulation.*'
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/distribute/tasks/structure_message.h"
#include "cohort/parameter_server/closures/closure_message.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"
#include "cohort/parameter_server/leadership/leadership_message.h"
#include "cohort/parameter_server/store/applied_tokens.h"

namespace cohort::internal {
namespace {

using std::chrono::milliseconds;
using Time = rpc::Clock::Time;
using Done = std::function<void(rpc::CallResult)>;

class SimulatedClock final : public rpc::Clock {
 public:
  Time now() const override { return now_; }
  TimerId call_at(Time when, std::function<void()> fn) override {
    timers_.emplace(std::pair(std::max(when, now_), ++last_), std::move(fn));
    return last_;
  }
  void cancel(TimerId timer) override {
    std::erase_if(timers_, [&](const auto& entry) { return entry.first.second == timer; });
  }
  void after(milliseconds delay, std::function<void()> fn) { call_at(now_ + delay, std::move(fn)); }
  // Lets the next thing happen; returns whether there was one.
  bool step() {
    if (timers_.empty()) return false;
    auto next = timers_.extract(timers_.begin());
    now_ = next.key().first;
    next.mapped()();
    return true;
  }

 private:
  Time now_{};
  TimerId last_ = 0;
  std::map<std::pair<Time, TimerId>, std::function<void()>> timers_;
};

std::exception_ptr unreachable(const TaskId& task) {
  return rpc::no_answer(Code::kUnavailable, "cannot reach it", task);
}

class World {
 public:
  static constexpr int kWorkers = 4, kPs = 2, kClosures = 60;

  explicit World(uint64_t seed) : random_(seed) {
    for (int i = 0; i < kPs; ++i) {
      ps_.push_back(std::make_unique<Ps>(TaskId{"ps", i}));
      ps_.back()->fence.take(1, 1);
    }
    for (int i = 0; i < kWorkers; ++i) {
      workers_.emplace_back();
      start_process(i);
    }
    CoordinatorSurroundings around;
    around.num_workers = kWorkers;
    around.num_ps = kPs;
    around.clock = &clock_;
    around.channel = [this](const TaskId& task) { return std::make_shared<Link>(*this, task); };
    Options options;
    options.window = 1 + static_cast<int>(seed % 3);
    options.ps_grace = std::chrono::seconds(60);  // none is lost
    options.max_worker_losses = 1000;
    options.max_closure_attempts = 1000;
    core_ = std::make_shared<CoordinatorCore>(around, options);
  }
  ~World() { core_->stop(); }

  // Whether every closure has run, and counts once.
  void run() {
    core_->start();
    std::vector<std::shared_ptr<RemoteResult>> results;
    for (int i = 0; i < kClosures; ++i) {
      results.push_back(core_->schedule("count", {}, {}));
    }
    for (int fault = 0; fault < 12; ++fault) {
      clock_.after(milliseconds(pick(600)), [this] { strike(); });
    }
    for (int steps = 0; !core_->queue().done(); ++steps) {
      ASSERT_LT(steps, 1'000'000) << "it does not end";
      ASSERT_TRUE(clock_.step()) << "nothing happens any more";
    }
    for (int i = 0; i < 200'000 && clock_.now() < last_change_ + milliseconds(2000); ++i) {
      if (!clock_.step()) break;  // what is late comes in
    }
    for (const auto& result : results) ASSERT_EQ(result->status(), RemoteStatus::kReady);
    for (const auto& ps : ps_) {
      ASSERT_EQ(ps->applied.size(), size_t{kClosures});
      for (const auto& [closure, times] : ps->applied) {
        ASSERT_EQ(times, 1) << "closure " << closure;
      }
    }
  }

  int64_t refused() const {
    int64_t sum = 0;
    for (const auto& ps : ps_) sum += ps->fence.refused();
    return sum;
  }
  int64_t repeated() const {
    int64_t sum = 0;
    for (const auto& ps : ps_) sum += ps->repeated;
    return sum;
  }

 private:
  using Options = distribute::coordinator::ClusterCoordinatorOptions;

  // The coordinator's to a task; another one after each break.
  struct Connection {
    int number = 0;
    std::multimap<int, std::shared_ptr<Done>> under_way = {};  // by number
    Time down_until = {};
  };
  struct Ps {
    explicit Ps(TaskId task) : fence(std::move(task)) {}
    Connection connection;
    CoordinatorFence fence;
    AppliedTokens tokens;
    std::map<uint64_t, int> applied;
    int64_t repeated = 0;
  };
  struct Process {
    explicit Process(const TaskId& task) : self(task), fence(task) {}
    const TaskId self;
    CoordinatorFence fence;
    std::deque<std::pair<RunClosure, Done>> closures;
    bool is_busy = false;
    bool is_alive = true;
  };
  struct Worker {
    std::shared_ptr<Process> process;
    Connection connection;
  };

  class Link final : public rpc::Channel {
   public:
    Link(World& world, TaskId peer) : world_(world), peer_(std::move(peer)) {}
    const TaskId& peer() const override { return peer_; }
    const std::string& address() const override { return address_; }
    void start(std::string_view method, rpc::Message request, const rpc::CallOptions&,
               Done done) override {
      world_.call(peer_, std::string(method), std::move(request), std::move(done));
    }
    void close() override {}

   private:
    World& world_;
    const TaskId peer_;
    const std::string address_ = "simulated:1";
  };

  int pick(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }
  milliseconds delay() { return milliseconds(pick(10) == 0 ? pick(300) : pick(5)); }

  void start_process(int worker) {
    workers_[worker].process = std::make_shared<Process>(TaskId{"worker", worker});
  }

  // ---- Calls of the coordinator.

  void call(const TaskId& task, const std::string& method, rpc::Message request, Done done) {
    const bool is_ps = task.job == "ps";
    if (method == "closures/run") note_run(task.index, decode_run_closure(request));
    Connection& connection = is_ps ? ps_[task.index]->connection : workers_[task.index].connection;
    // Fails at once if the connection breaks.
    const auto once = std::make_shared<Done>(std::move(done));
    connection.under_way.emplace(connection.number, once);
    const auto finish = [once](rpc::CallResult result) {
      if (const Done done_once = std::exchange(*once, nullptr)) done_once(std::move(result));
    };
    if (clock_.now() < connection.down_until) {
      return clock_.after(milliseconds(pick(3)), [finish, task] {
        finish({unreachable(task), {}});
      });
    }
    if (is_ps) {
      if (method == "leadership/attend") return;  // until the connection breaks
      clock_.after(delay(), [this, ps = ps_[task.index].get(), number = connection.number, method,
                             request, finish] {
        const bool is_broken = number != ps->connection.number;
        if (is_broken && pick(2) == 0) return;  // it did not arrive
        answer_after_delay(finish, [&] { lead(ps->fence, method, request); });
      });
      return;
    }
    const Worker& worker = workers_[task.index];
    const auto process = worker.process;
    clock_.after(delay(), [this, process, method, request, finish, task] {
      if (!process->is_alive) return finish({unreachable(task), {}});
      if (method == "leadership/attend") return;  // until the connection breaks
      if (method == "closures/run") {
        process->closures.emplace_back(decode_run_closure(request), finish);
        return work(process);
      }
      answer_after_delay(finish, [&] { lead(process->fence, method, request); });
    });
  }

  static void lead(CoordinatorFence& fence, const std::string& method,
                   const rpc::Message& request) {
    if (method == "leadership/take") {
      const LeaderClaim claim = decode_leader_claim(request);
      fence.take(claim.generation, 1, claim.session);
    } else if (method == "leadership/refuse_worker") {
      const RefuseWorker refusal = decode_refuse_worker(request);
      fence.refuse_below(refusal.worker, refusal.below);
    }
  }

  template <class Fn>
  void answer_after_delay(const Done& done, const Fn& fn) {
    std::exception_ptr error;
    try {
      fn();
    } catch (const Error&) {
      error = std::current_exception();
    }
    clock_.after(delay(), [done, error] { done({error, {.control = ""}}); });
  }

  // ---- A worker: one closure after another; each changes both ps tasks.

  void work(const std::shared_ptr<Process>& process) {
    if (process->is_busy || !process->is_alive || process->closures.empty()) return;
    process->is_busy = true;
    auto [closure, done] = std::move(process->closures.front());
    process->closures.pop_front();
    clock_.after(delay(), [this, process, closure = std::move(closure), done = std::move(done)] {
      if (!process->is_alive) return;
      try {
        process->fence.check_closure(closure.session);
      } catch (const Error&) {
        return reply(process, done, std::current_exception());
      }
      push(process, closure, done);
    });
  }

  void push(const std::shared_ptr<Process>& process, const RunClosure& closure, const Done& done) {
    struct Progress {
      int left = kPs;
      std::exception_ptr error;
    };
    const auto progress = std::make_shared<Progress>();
    for (int ps = 0; ps < kPs; ++ps) {
      // It arrives although the worker may be dead by then.
      clock_.after(delay(), [this, process, closure, done, progress, ps] {
        try {
          apply(*ps_[ps], process->self, closure);
        } catch (const Error&) {
          progress->error = std::current_exception();
        }
        if (--progress->left == 0) reply(process, done, progress->error);
      });
    }
  }

  void apply(Ps& ps, const TaskId& worker, const RunClosure& closure) {
    const auto pass = ps.fence.admit_change(worker, closure.session);
    EXPECT_FALSE(over_.contains({worker.index, closure.session})) << "a change comes late";
    last_change_ = clock_.now();
    ps.tokens.forget_below(closure.forget_below);
    if (ps.tokens.contains(closure.id)) {
      ++ps.repeated;
      return;
    }
    ps.tokens.add(closure.id);
    ++ps.applied[closure.id];
  }

  void reply(const std::shared_ptr<Process>& process, const Done& done,
             const std::exception_ptr& error) {
    process->is_busy = false;
    if (process->is_alive) {
      clock_.after(delay(), [done, error] {
        done({error, error ? rpc::Message{.control = ""} : to_message(Structure::make_tuple({}))});
      });
    }
    work(process);
  }

  // ---- What goes wrong.

  void strike() {
    const int worker = pick(kWorkers);
    if (pick(2) == 0) {  // it is killed, and started again some time
      workers_[worker].process->is_alive = false;
      start_process(worker);
      workers_[worker].process->is_alive = false;
      clock_.after(milliseconds(pick(400)),
                   [process = workers_[worker].process] { process->is_alive = true; });
    }
    // Its connection to the coordinator breaks; if it lives, it goes on.
    break_connection({"worker", worker}, workers_[worker].connection);
    if (pick(3) > 0) return;
    for (int i = 0; i < kPs; ++i) {  // those of the coordinator's network
      break_connection({"ps", i}, ps_[i]->connection);
      ps_[i]->connection.down_until = clock_.now() + milliseconds(pick(150));
    }
  }

  void break_connection(const TaskId& task, Connection& connection) {
    const auto [first, last] = connection.under_way.equal_range(connection.number++);
    std::vector<std::shared_ptr<Done>> broken;
    for (auto it = first; it != last; ++it) broken.push_back(it->second);
    connection.under_way.erase(first, last);
    for (const auto& call : broken) {
      clock_.after(milliseconds(pick(3)), [call, task] {
        if (const Done done = std::exchange(*call, nullptr)) done({unreachable(task), {}});
      });
    }
  }

  // One that runs again has been taken from the worker that had it.
  void note_run(int worker, const RunClosure& closure) {
    const std::pair here(worker, closure.session);
    const auto [there, is_first] = holders_.emplace(closure.id, here);
    if (is_first) return;
    over_.insert(std::exchange(there->second, here));
  }

  std::mt19937_64 random_;
  SimulatedClock clock_;
  std::vector<std::unique_ptr<Ps>> ps_;
  std::vector<Worker> workers_;
  std::shared_ptr<CoordinatorCore> core_;
  using Session = std::pair<int, uint64_t>;  // of a worker
  std::map<uint64_t, Session> holders_;      // of closures
  std::set<Session> over_;                   // some closure of theirs runs again
  Time last_change_{};
};

TEST(CoordinatorSimulation, NoClosureIsLostAndNoneCountsTwice) {
  const logging::Level level = logging::level();
  logging::set_level(logging::Level::kOff);
  uint64_t first = 1, count = 300;
  if (const char* more = std::getenv("COHORT_SIMULATIONS"))
    count = std::strtoull(more, nullptr, 10);
  if (const char* seed = std::getenv("COHORT_SIMULATION_SEED")) {
    first = std::strtoull(seed, nullptr, 10);
    count = 1;
    logging::set_level(level);
  }
  int64_t refused = 0, repeated = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed);
    world.run();
    refused += world.refused();
    repeated += world.repeated();
    if (HasFailure()) break;
  }
  logging::set_level(level);
  std::printf("%lu histories: %ld late changes refused, %ld repetitions kept out\n",
              static_cast<unsigned long>(count), static_cast<long>(refused),
              static_cast<long>(repeated));
  if (count > 1) {  // the histories are of some use
    EXPECT_GT(refused, 0);
    EXPECT_GT(repeated, 0);
  }
}

}  // namespace
}  // namespace cohort::internal
