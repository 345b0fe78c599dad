// The coordination service of a simulation: in the first task or a launcher, where each process
// begins with a new one, or in any task, where it moves when its task is lost.
#include <algorithm>

#include "cohort/cluster/elastic/simulation/forming_world.h"
#include "cohort/cluster/membership/limits.h"

namespace cohort::internal::elastic {
namespace {

using membership::SimulatedChannel;
using std::chrono::seconds;

constexpr const char* kService = "service";

}  // namespace

std::shared_ptr<rpc::Channel> FormingWorld::channel_to(Life& life, const TaskId& task) {
  std::shared_ptr<SimulatedChannel>& channel = life.channels[task];
  if (!channel) {
    channel = std::make_shared<SimulatedChannel>(
        network_, &life.endpoint, task,
        place_ == ServicePlace::kAnyTask ? to_string(task) : kService);
  }
  return channel;
}

membership::CoordinationOptions FormingWorld::service_options() {
  ++result_.services;
  membership::CoordinationOptions options;
  for (int node = 0; node < tasks_; ++node) options.roster.tasks[{"worker", node}] = "";
  options.roster.heartbeat = membership::kTestHeartbeat;
  options.cluster_spec = "the cluster";
  options.log = [this](const std::string& line) { trace("service: ", line); };
  options.detail = options.log;
  return options;
}

void FormingWorld::start_service(Life& life) {
  membership::CoordinationOptions options = service_options();
  options.incarnation = life.incarnation ^ 0x5e;
  options.self = {"worker", 0};
  life.service =
      std::make_unique<membership::CoordinationService>(life.process, std::move(options));
  life.endpoint.services["membership"] = life.service.get();
  network_.bind(kService, &life.endpoint);
}

void FormingWorld::start_moving_service(Life& life) {
  const TaskId self{"worker", life.node};
  network_.bind(to_string(self), &life.endpoint);
  membership::ElasticServiceOptions options;
  options.self = self;
  for (int node = 0; node < tasks_; ++node) options.tasks.push_back({"worker", node});
  options.channel_to = [this, &life](const TaskId& task) { return channel_to(life, task); };
  options.options = [this, &life, self] {
    membership::CoordinationOptions made = service_options();
    made.incarnation = life.incarnation + 2 * static_cast<uint64_t>(++life.services_held);
    made.self = self;
    membership::ElasticRoster& roster = made.roster.elastic.emplace();
    roster.self = self;
    // Two halves of tasks that have never been in a group could not know of each other.
    roster.min_tasks = std::max(min_tasks_, tasks_ / 2 + 1);
    roster.start_wait = seconds(1);
    roster.is_dead = [this](const membership::Member& member) { return is_dead(member); };
    return made;
  };
  life.moving = std::make_unique<membership::ElasticService>(life.process, std::move(options));
  life.endpoint.services["membership"] = life.moving.get();
}

membership::ElasticAgentOptions FormingWorld::elastic_agent(Life& life) {
  membership::ElasticAgentOptions options;
  for (int node = 0; node < tasks_; ++node) options.tasks.push_back({"worker", node});
  options.channel_to = [this, &life](const TaskId& task) { return channel_to(life, task); };
  options.standing = [&life] { return life.moving->standing(); };
  options.coordinate = [&life](const membership::View& record) { life.moving->coordinate(record); };
  options.place = membership::hex(life.incarnation);
  options.is_dead = [this](const membership::Member& member) { return is_dead(member); };
  return options;
}

bool FormingWorld::is_dead(const membership::Member& member) const {
  return one_host_ && std::any_of(lives_.begin(), lives_.end(), [&](const auto& life) {
           return life->incarnation == member.incarnation && life->process.ended();
         });
}

int FormingWorld::service_node() {
  if (place_ == ServicePlace::kLauncher) return tasks_;
  if (place_ == ServicePlace::kFirstTask) return 0;
  for (const auto& life : lives_) {
    const auto view = life->process.ended() ? std::nullopt : life->moving->status();
    if (view && view->generation > 0 && view->agreed) return life->node;
  }
  return 0;
}

}  // namespace cohort::internal::elastic
