#include "cohort/cluster/elastic/simulation/forming_world.h"

#include <algorithm>
#include <ostream>

#include "cohort/cluster/membership/limits.h"

namespace cohort::internal::elastic {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kFaultsBegin(1000);
constexpr milliseconds kFaultsEnd(6000);
// Within this all work as one group again: the lease of a service that was lost when faults ended,
// the start of its successor, and a few rounds.
constexpr seconds kHealed(15);

}  // namespace

FormingWorld::FormingWorld(const FormingOptions& options)
    : options_(options), random_(options.seed) {
  tasks_ = 2 + static_cast<int>(random_.below(3));
  min_tasks_ = 1 + static_cast<int>(random_.below(static_cast<uint64_t>(tasks_)));
  place_ = options_.moves
               ? ServicePlace::kAnyTask
               : (random_.one_in(2) ? ServicePlace::kLauncher : ServicePlace::kFirstTask);
  one_host_ = random_.one_in(2);
  if (random_.one_in(4)) network_.delays.longest = milliseconds(30);
  trace(tasks_, " tasks, at least ", min_tasks_, ", the service ",
        options_.moves                      ? "in any task"
        : place_ == ServicePlace::kLauncher ? "in the launcher"
                                            : "in the first task");
}

FormingWorld::~FormingWorld() {
  for (const auto& life : lives_) life->process.end();
  for (const auto& life : lives_) {
    life->group = nullptr;
    life->agent = nullptr;
    life->service = nullptr;
    life->moving = nullptr;
  }
}

std::string FormingWorld::name_of(const Life& life) const {
  return str(is_launcher(life.node) ? "launcher" : str("task ", life.node), " ",
             membership::hex(life.incarnation));
}

void FormingWorld::say(const std::string& line) {
  *options_.trace << time_.now().count() / 1'000'000 << " ms: " << line << '\n';
}

void FormingWorld::violate(const std::string& what) {
  trace("VIOLATION: ", what);
  if (!result_.violation.empty()) return;
  result_.violation =
      str("seed ", options_.seed, ", at ", time_.now().count() / 1'000'000, " ms: ", what);
}

FormingLife& FormingWorld::start_life(int node) {
  const double rate = 0.97 + 0.01 * static_cast<double>(random_.below(7));
  const auto offset = random_.between(seconds(0), seconds(1'000'000));
  lives_.push_back(std::make_unique<Life>(node, time_, rate, offset));
  Life& life = *lives_.back();
  life.incarnation = random_.next() | 1;
  life.endpoint.host = node;
  life.endpoint.process = &life.process;
  life.endpoint.identity = [this, &life] {
    return rpc::Caller{.task = {"worker", life.node},
                       .role = rpc::Role::kWorker,
                       .incarnation = life.incarnation,
                       .generation = life.agent ? life.agent->generation() : 0};
  };
  network_.add(&life.endpoint);
  if (!healed_ && random_.one_in(20)) life.program = "q";
  trace("start of ", name_of(life), life.program == "q" ? ", with another program" : "");
  if (place_ == ServicePlace::kAnyTask) {
    start_moving_service(life);
  } else if (node == (place_ == ServicePlace::kLauncher ? tasks_ : 0)) {
    start_service(life);
  }
  if (!is_launcher(node)) start_agent(life);
  return life;
}

void FormingWorld::start_agent(Life& life) {
  membership::AgentOptions options{.task = {"worker", life.node}, .incarnation = life.incarnation};
  options.address = str("h", life.node, ":1");
  options.cluster_spec = "the cluster";
  options.heartbeat = membership::kTestHeartbeat;
  if (place_ == ServicePlace::kAnyTask) {
    options.elastic = elastic_agent(life);
  } else {
    options.on_service_lost = membership::OnServiceLost::kWait;
    options.lease = seconds(5);
  }
  options.on_change = [this, &life](const membership::ViewPtr& view) { see(life, view); };
  options.on_error = [this, &life](const std::exception_ptr& error) {
    if (life.process.ended() || !life.agent->error()) return;
    time_.after(Time(0),
                [this, &life, text = record_error(error).message] { end_life(life, text); });
  };
  life.agent = std::make_unique<membership::MembershipAgent>(
      life.process, channel_to(life, {"worker", 0}), std::move(options));
  if (life.moving) life.moving->follow(life.agent->standing_source());
  life.group = std::make_unique<ElasticGroup>(
      *life.agent, ElasticOptions{.group = {.name = "g", .min_tasks = min_tasks_},
                                  .log = [this, &life](const std::string& line) {
                                    if (!life.process.ended()) trace(name_of(life), ": ", line);
                                  }});
  ++result_.lives;
  life.process.call_at(life.process.now(), [&life] { life.agent->start(); });
  later(life, Time(0), milliseconds(400), [this, &life] { form(life); });
}

void FormingWorld::later(Life& life, Time least, Time most, std::function<void()> what) {
  life.process.call_at(life.process.now() + random_.between(least, most),
                       [&life, work = ++life.work, what = std::move(what)] {
                         if (work == life.work) what();
                       });
}

void FormingWorld::end_life(Life& life, const std::string& why) {
  if (life.process.ended()) return;
  trace("end of ", name_of(life), ": ", why);
  life.process.end();
  network_.ended(&life.endpoint);
  start_again_later(life.node);
}

void FormingWorld::start_again_later(int node) {
  if (current(node) != nullptr || !restarting_.insert(node).second) return;
  time_.after(random_.between(milliseconds(0), milliseconds(1500)), [this, node] {
    restarting_.erase(node);
    if (current(node) == nullptr) start_life(node);
  });
}

FormingLife* FormingWorld::current(int node) {
  for (const auto& life : lives_) {
    if (life->node == node && !life->process.ended()) return life.get();
  }
  return nullptr;
}

std::vector<FormingLife*> FormingWorld::running() {
  std::vector<Life*> found;
  for (const auto& life : lives_) {
    if (life->process.runs() && !is_launcher(life->node)) found.push_back(life.get());
  }
  return found;
}

FormingResult FormingWorld::run() {
  if (place_ == ServicePlace::kLauncher) start_life(tasks_);
  for (int node = 0; node < tasks_; ++node) {
    time_.after(random_.between(milliseconds(0), milliseconds(300)), [this, node] {
      if (current(node) == nullptr) start_life(node);
    });
  }
  time_.run_until(kFaultsBegin);
  plan_faults();
  time_.run_until(kFaultsEnd);
  heal();
  const Time begin = time_.now();
  while (result_.violation.empty() && time_.now() < begin + kHealed && !works_as_one()) {
    time_.run_until(time_.now() + milliseconds(50));
  }
  if (result_.violation.empty() && !works_as_one()) violate("the tasks do not work as one group");
  result_.longest_end_ms = static_cast<double>((time_.now() - begin).count()) / 1e6;
  result_.tasks = tasks_;
  return result_;
}

FormingResult simulate_forming(const FormingOptions& options) {
  return FormingWorld(options).run();
}

}  // namespace cohort::internal::elastic
