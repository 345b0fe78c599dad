#include "cohort/cluster/membership/simulation/world.h"

#include <algorithm>
#include <ostream>

#include "cohort/core/error.h"

namespace cohort::internal::membership {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kFaultsBegin(1500);
constexpr milliseconds kFaultsEnd(6000);
constexpr seconds kHealed(25);  // until when the group must have formed again

}  // namespace

// What the first task of a group does to the others: it counts only if it comes from their group.
class Resource final : public rpc::Service {
 public:
  Resource(World& world, Life& life) : world_(world), life_(life) {}
  std::string_view name() const override { return "resource"; }
  std::span<const rpc::MethodSpec> methods() const override { return kMethods; }
  void handle(size_t, std::unique_ptr<rpc::Call> call) override {
    try {
      life_.agent->check(call->caller());
      world_.accepted(life_, call->caller());
      call->reply({});
    } catch (...) {
      call->fail(std::current_exception());
    }
  }

 private:
  static constexpr rpc::MethodSpec kMethods[] = {{"write", rpc::kEveryTask}};
  World& world_;
  Life& life_;
};

Life::Life(World& world, int node_number, SimulatedTime& time, double rate,
           std::chrono::nanoseconds offset)
    : node(node_number), process(time, rate, offset) {
  endpoint.host = node;
  endpoint.process = &process;
  endpoint.identity = [this, &world] { return world.identity(*this); };
  resource = std::make_unique<Resource>(world, *this);
  endpoint.services["resource"] = resource.get();
}

World::World(const SimulationOptions& options) : options_(options), random_(options.seed) {
  tasks_ = 2 + static_cast<int>(random_.below(3));
  heartbeat_ = kTestHeartbeat;
  if (random_.one_in(3)) {  // a network that is slow at times
    network_.delays.longest = milliseconds(40);
    heartbeat_.reconnect_grace = milliseconds(300);
  }
  if (options_.elastic) {
    tasks_ = 2 + static_cast<int>(random_.below(4));
    one_host_ = random_.one_in(2);
  }
  policy_ = random_.one_in(2) ? OnServiceLost::kWait : OnServiceLost::kFail;
  trace(tasks_, " tasks, longest delay ", network_.delays.longest.count() / 1'000'000, " ms, ",
        policy_ == OnServiceLost::kWait ? "wait" : "fail", " without the service");
}

World::~World() {
  for (const auto& life : lives_) life->process.end();
  // They still answer calls as they end, over the network between all of them.
  for (const auto& life : lives_) {
    life->agent = nullptr;
    life->service = nullptr;
    life->elastic = nullptr;
  }
}

TaskId World::task_of(int node) const {
  return node == 0 ? TaskId{"chief", 0} : TaskId{"worker", node - 1};
}

rpc::Caller World::identity(const Life& life) const {
  return {.task = task_of(life.node),
          .role = life.node == 0 ? rpc::Role::kCoordinator : rpc::Role::kWorker,
          .incarnation = life.incarnation,
          .generation = life.agent ? life.agent->generation() : 0};
}

void World::say(const std::string& line) {
  *options_.trace << time_.now().count() / 1'000'000 << " ms: " << line << '\n';
}

void World::violate(const std::string& what) {
  trace("VIOLATION: ", what);
  if (!result_.violation.empty()) return;
  result_.violation =
      str("seed ", options_.seed, ", at ", time_.now().count() / 1'000'000, " ms: ", what);
}

void World::start_life(int node, bool duplicate) {
  Life* const first = current(node);
  const bool beside = first != nullptr;
  // If two start at once, either may be the first to register.
  if (beside && !first->agent->view()) first->touched = true;
  const double rate = 0.97 + 0.01 * static_cast<double>(random_.below(7));
  const auto offset = random_.between(seconds(0), seconds(1'000'000));
  lives_.push_back(std::make_unique<Life>(*this, node, time_, rate, offset));
  Life& life = *lives_.back();
  life.incarnation = random_.next() | 1;
  life.duplicate = duplicate;
  life.touched = !network_.all_up() || beside ||
                 (!options_.elastic && node != 0 && (!current(0) || !current(0)->process.runs()));
  network_.add(&life.endpoint);
  trace("start of ", task_of(node), ", incarnation ", hex(life.incarnation),
        duplicate ? ", although one lives" : "");
  if (!duplicate) network_.bind(to_string(task_of(node)), &life.endpoint);
  if (options_.elastic) {
    start_elastic_service(life);
  } else if (node == 0) {
    start_service(life);
  }
  start_agent(life);
  ++result_.lives;
}

void World::start_service(Life& life) {
  CoordinationOptions options;
  options.incarnation = life.incarnation ^ 0x5e;
  options.self = task_of(0);
  for (int node = 0; node < tasks_; ++node) {
    options.roster.tasks[task_of(node)] = to_string(task_of(node));
  }
  options.roster.heartbeat = heartbeat_;
  options.cluster_spec = "the cluster";
  options.log = [this](const std::string& line) { trace("service: ", line); };
  options.detail = options.log;
  life.service = std::make_unique<CoordinationService>(life.process, std::move(options));
  life.endpoint.services["membership"] = life.service.get();
  for (int node = 1; node < tasks_; ++node) {
    life.peers.push_back(std::make_shared<SimulatedChannel>(network_, &life.endpoint, task_of(node),
                                                            to_string(task_of(node))));
  }
}

AgentOptions World::agent_options(Life& life) {
  life.channel = std::make_shared<SimulatedChannel>(network_, &life.endpoint, task_of(0),
                                                    to_string(task_of(0)));
  AgentOptions options{.task = task_of(life.node), .incarnation = life.incarnation};
  options.address = to_string(task_of(life.node));
  options.cluster_spec = "the cluster";
  options.heartbeat = heartbeat_;
  options.on_service_lost = policy_;
  options.lease = seconds(5);
  options.on_change = [this, &life](const ViewPtr& view) { see(life, view); };
  options.on_error = [this, &life](std::exception_ptr error) {
    if (life.process.ended()) return;
    trace(task_of(life.node), " hears: ", record_error(error).message);
    if (life.agent->error()) ended_by(life, error);
  };
  options.log = [this, &life](const std::string& line) {
    if (!life.process.ended()) trace(task_of(life.node), ": ", line);
  };
  if (options_.elastic) options.elastic = elastic_agent(life);
  return options;
}

void World::start_agent(Life& life) {
  AgentOptions options = agent_options(life);
  life.agent = std::make_unique<MembershipAgent>(life.process, life.channel, std::move(options));
  if (life.elastic) life.elastic->follow(life.agent->standing_source());
  life.process.call_at(life.process.now(), [this, &life] {
    life.agent->start();
    work(life);
  });
}

void World::end_life(Life& life, const std::string& why) {
  if (life.process.ended()) return;
  trace("end of ", task_of(life.node), ", incarnation ", hex(life.incarnation), ": ", why);
  if (life.node == 0 && !options_.elastic) touch(life);
  life.process.end();
  network_.ended(&life.endpoint);
  start_again_later(life.node);
}

void World::start_again_later(int node) {
  if (current(node) != nullptr || !restarting_.insert(node).second) return;
  time_.after(random_.between(milliseconds(50), milliseconds(1500)), [this, node] {
    restarting_.erase(node);
    if (current(node) == nullptr) start_life(node, false);
  });
}

// The process that stands for the task: the latest; one that was started beside another only if
// there is no other.
Life* World::current(int node) {
  Life* found = nullptr;
  for (const auto& life : lives_) {
    if (life->node != node || life->process.ended()) continue;
    if (found == nullptr || found->duplicate || !life->duplicate) found = life.get();
  }
  return found;
}

std::vector<Life*> World::running() {
  std::vector<Life*> found;
  for (const auto& life : lives_) {
    if (life->process.runs()) found.push_back(life.get());
  }
  return found;
}

void World::see(Life& life, const ViewPtr& view) {
  if (life.process.ended()) return;
  if (view->generation == 0) return;
  trace(task_of(life.node), " sees generation ", view->generation, " of term ", view->term,
        ", version ", view->version);
  if (view->generation < life.last_generation) {
    violate(str(task_of(life.node), " went from generation ", life.last_generation, " back to ",
                view->generation));
  }
  life.last_generation = view->generation;
  std::string members;
  std::set<TaskId> tasks;
  for (const Member& member : view->members) {
    if (!tasks.insert(member.task).second) violate(str(member.task, " is twice in a view"));
    if (member.state == TaskState::kAlive) members += str(member.task, hex(member.incarnation));
  }
  if (options_.elastic) return see_elastic(view);
  const auto [known, is_new] = members_of_.try_emplace({view->service, view->generation}, members);
  if (!is_new && known->second != members) {
    violate(str("generation ", view->generation, " has two sets of members"));
  }
}

void World::ended_by(Life& life, const std::exception_ptr& error) {
  const ErrorRecord record = record_error(error);
  if (!life.touched && !life.duplicate && !healed_) {
    violate(
        str(task_of(life.node), ", to which nothing had happened, ended with: ", record.message));
  }
  if (life.duplicate && record.code != Code::kAborted && !life.touched) {
    violate(str("a second ", task_of(life.node), " ended with: ", record.message));
  }
  time_.after(Time(0), [this, &life, record] { end_life(life, record.message); });
}

void World::accepted(Life& life, const rpc::Caller& writer) {
  if (writer.generation < life.last_accepted) {
    violate(str(task_of(life.node), " accepted a write of generation ", writer.generation,
                " after one of ", life.last_accepted));
  }
  life.last_accepted = writer.generation;
  if (options_.elastic) {
    if (term_of_[life.incarnation] > life.agent->view()->term) {
      violate(str(task_of(life.node), " accepted a write in a group that it has left"));
    }
    return;
  }
  // The newest group that has this process.
  const Life* newest = nullptr;
  int64_t term = 0;
  for (const auto& other : lives_) {
    if (!other->service || other->process.ended()) continue;
    const View view = other->service->status();
    const Member* member = view.find(task_of(life.node));
    if (view.term > term && member != nullptr && member->state == TaskState::kAlive &&
        member->incarnation == life.incarnation) {
      term = view.term;
      newest = other.get();
    }
  }
  // An earlier service that runs again is not newer than the group in which the task accepts; nor
  // is one of the same term, of which a service that no survivor told of it knows nothing.
  if (newest != nullptr && newest->incarnation != writer.incarnation &&
      term > life.agent->view()->term) {
    violate(str(task_of(life.node), " accepted a write of a coordinator that is fenced"));
  }
}

void World::expect_all_learn(const Life& dead, Duration bound, bool is_stop) {
  if (options_.elastic) return expect_all_learn_elastic(dead, is_stop);
  for (const auto& life : lives_) {
    if (!network_.all_up() || life->process.stopped()) return;
  }
  if (!dead.agent->view()) return;  // it has no call open yet whose end could tell
  const Life* chief = current(0);
  if (chief == nullptr || !chief->process.runs() || chief == &dead) return;
  // One that was replaced and runs again: at its address nobody answers.
  if (network_.find(to_string(task_of(0))) != &chief->endpoint) return;
  const View view = chief->service->status();
  const Member* member = view.find(task_of(dead.node));
  if (!view.complete() || member == nullptr || member->incarnation != dead.incarnation) return;
  // A cut may have swallowed the calls whose end would tell, or their answers: then silence does,
  // and a heartbeat brings the news.
  if (last_cut_ != Time(0) && time_.now() - last_cut_ < seconds(8)) {
    bound = heartbeat_.dead_after * 21 / 20 + 2 * heartbeat_.interval + 8 * network_.delays.longest;
  }
  const int faults = faults_ + 1;  // with this one
  time_.after(bound, [this, &dead, chief, faults] {
    if (faults_ != faults || healed_) return;
    ++result_.deaths_checked;
    for (Life* life : running()) {
      if (life == &dead || life->duplicate || !life->agent->view()) continue;
      if (life->agent->view()->service != (chief->incarnation ^ 0x5e)) continue;
      const Member* member = life->agent->view()->find(task_of(dead.node));
      if (member->incarnation == dead.incarnation && member->state == TaskState::kAlive) {
        violate(str(task_of(life->node), " has not learned in time that ", task_of(dead.node),
                    " is lost"));
      }
    }
  });
}

bool World::formed() {
  if (options_.elastic) return formed_elastic();
  const Life* chief = current(0);
  if (chief == nullptr || running().size() != static_cast<size_t>(tasks_)) return false;
  const int64_t generation = chief->agent->generation();
  for (int node = 0; node < tasks_; ++node) {
    const Life* life = current(node);
    if (life == nullptr || !life->process.runs()) return false;
    const ViewPtr view = life->agent->view();
    if (generation == 0 || life->agent->generation() != generation || !view->complete() ||
        view->service != (chief->incarnation ^ 0x5e)) {
      return false;
    }
  }
  return true;
}

SimulationResult World::run() {
  for (int node = 0; node < tasks_; ++node) {
    time_.after(random_.between(milliseconds(0), milliseconds(300)),
                [this, node] { start_life(node, false); });
  }
  time_.run_until(kFaultsBegin - milliseconds(100));
  if (!formed()) violate("the group has not started");
  plan_faults();
  time_.run_until(kFaultsEnd);
  heal();
  const Time end = time_.now() + kHealed;
  while (result_.violation.empty() && time_.now() < end && !formed()) {
    time_.run_until(time_.now() + milliseconds(200));
  }
  if (result_.violation.empty() && !formed()) violate("the group has not formed again");
  time_.run_until(time_.now() + milliseconds(100));
  result_.tasks = tasks_;
  result_.faults = faults_;
  result_.calls = network_.calls();
  for (const auto& life : lives_) {
    result_.stale_refused += life->agent ? life->agent->stale_refused() : 0;
    result_.stale_refused += life->service ? life->service->stale_refused() : 0;
    result_.stale_refused += life->elastic ? life->elastic->stale_refused() : 0;
  }
  return result_;
}

SimulationResult simulate(const SimulationOptions& options) { return World(options).run(); }

}  // namespace cohort::internal::membership
