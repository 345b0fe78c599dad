// What simulated clusters do whose group outlives its service, and what must hold of them.
#include <algorithm>

#include "cohort/cluster/membership/simulation/world.h"

namespace cohort::internal::membership {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

}  // namespace

std::shared_ptr<rpc::Channel> World::channel_to(Life& life, const TaskId& task) {
  std::shared_ptr<SimulatedChannel>& channel = life.channels[task];
  if (!channel) {
    channel = std::make_shared<SimulatedChannel>(network_, &life.endpoint, task, to_string(task));
  }
  return channel;
}

bool World::is_dead(const Member& member) const {
  if (!one_host_) return false;
  return std::any_of(lives_.begin(), lives_.end(), [&](const auto& life) {
    return life->incarnation == member.incarnation && life->process.ended();
  });
}

void World::start_elastic_service(Life& life) {
  ElasticServiceOptions options;
  options.self = task_of(life.node);
  for (int node = 0; node < tasks_; ++node) options.tasks.push_back(task_of(node));
  options.channel_to = [this, &life](const TaskId& task) { return channel_to(life, task); };
  options.options = [this, &life] {
    CoordinationOptions made;
    made.incarnation = life.incarnation + 2 * static_cast<uint64_t>(++life.services_held);
    made.self = task_of(life.node);
    for (int node = 0; node < tasks_; ++node) {
      made.roster.tasks[task_of(node)] = to_string(task_of(node));
    }
    made.roster.heartbeat = heartbeat_;
    made.roster.elastic = {.self = task_of(life.node),
                           .min_tasks = 1,
                           .start_wait = seconds(4),
                           .record = {},
                           .is_dead = [this](const Member& member) { return is_dead(member); }};
    made.cluster_spec = "the cluster";
    made.log = [this, &life](const std::string& line) {
      trace("service of ", task_of(life.node), ": ", line);
    };
    made.detail = made.log;
    return made;
  };
  options.log = [this, &life](const std::string& line) {
    if (!life.process.ended()) trace(task_of(life.node), ": ", line);
  };
  life.elastic = std::make_unique<ElasticService>(life.process, std::move(options));
  life.endpoint.services["membership"] = life.elastic.get();
  for (int node = 0; node < tasks_; ++node) {
    if (node == life.node) continue;
    life.peers.push_back(std::make_shared<SimulatedChannel>(network_, &life.endpoint, task_of(node),
                                                            to_string(task_of(node))));
  }
}

ElasticAgentOptions World::elastic_agent(Life& life) {
  ElasticAgentOptions options;
  for (int node = 0; node < tasks_; ++node) options.tasks.push_back(task_of(node));
  options.channel_to = [this, &life](const TaskId& task) { return channel_to(life, task); };
  options.standing = [&life] { return life.elastic->standing(); };
  options.coordinate = [&life](const View& record) { life.elastic->coordinate(record); };
  options.place = hex(life.incarnation);
  options.is_dead = [this](const Member& member) { return is_dead(member); };
  return options;
}

// The process that holds the service of the latest group that counts.
Life* World::holder() {
  Life* found = nullptr;
  int64_t latest = 0;
  for (const auto& life : lives_) {
    if (life->process.ended()) continue;
    const std::optional<View> view = life->elastic->status();
    if (!view || !view->agreed || view->term <= latest) continue;
    found = life.get();
    latest = view->term;
  }
  return found;
}

void World::elastic_fault() {
  if (Life* const life = holder(); life != nullptr && life->process.runs()) crash(*life);
  switch (random_.below(3)) {
    case 0:  // alone
      break;
    case 1:  // while another one takes over
      crash_soon(milliseconds(120));
      break;
    case 2:
      crash_soon(Time(0));
      break;
  }
}

void World::crash_soon(Time latest) {
  time_.after(random_.between(Time(0), latest), [this] {
    const std::vector<Life*> candidates = running();
    if (healed_ || candidates.size() < 2) return;
    ++faults_;
    crash(*candidates[random_.below(candidates.size())]);
  });
}

void World::see_elastic(const ViewPtr& view) {
  if (!view->agreed) violate("a task was told of a group that is not agreed on");
  // A group of which nobody was in one before begins to count anew.
  const Membership group = view->live();
  int era = 0;
  for (const Session& member : group.members) {
    const auto known = era_of_.find(member.incarnation);
    if (known != era_of_.end()) era = std::max(era, known->second);
  }
  if (era == 0) era = ++eras_;
  for (const Session& member : group.members) {
    era_of_[member.incarnation] = era;
    int64_t& term = term_of_[member.incarnation];
    term = std::max(term, view->term);
  }
  const auto [known, is_new] = group_of_.try_emplace({era, view->generation}, group);
  const auto [formed, is_first] = former_of_.try_emplace({era, view->term}, view->service, group);
  if (is_first && view->term > 1) ++result_.takeovers;
  // What a group did that has ended to the last process, nobody knows.
  if (known->second != group && lives_on(known->second)) {
    violate(str("generation ", view->generation, " has two sets of members"));
  }
  if (formed->second.first != view->service && lives_on(formed->second.second)) {
    violate(str("term ", view->term, " has two services"));
  }
  known->second = group;
  formed->second = {view->service, group};
}

bool World::lives_on(const Membership& group) const {
  return std::any_of(lives_.begin(), lives_.end(), [&](const auto& life) {
    const Session session{task_of(life->node), life->incarnation};
    return !life->process.ended() &&
           std::find(group.members.begin(), group.members.end(), session) != group.members.end();
  });
}

// After a death among tasks that are in one group, undisturbed, its others must soon have a group
// without it, if they are a majority.
void World::expect_all_learn_elastic(const Life& dead, bool is_stop) {
  if (!formed_elastic() || !network_.all_up()) return;
  if (last_cut_ != Time(0) && time_.now() - last_cut_ < seconds(8)) return;
  // Connections may lead to a process that was replaced; nobody finds one that runs again then.
  for (const auto& life : lives_) {
    if (!life->process.ended() && current(life->node) != life.get()) return;
  }
  for (int node = 0; node < tasks_; ++node) {
    if (network_.find(to_string(task_of(node))) != &current(node)->endpoint) return;
  }
  const bool is_first = dead.node == 0;
  const bool others_decide = (one_host_ && !is_stop) || tasks_ > 2 || !is_first;
  if (!others_decide) return;
  const bool was_holder = holder() == &dead;
  Time bound = heartbeat_.reconnect_grace * 11 / 10 + 16 * network_.delays.longest +
               (was_holder ? milliseconds(200) : milliseconds(20));  // two may prepare at once
  // All find out within an interval that a service is silent, and then ask the silent one, too.
  if (is_stop) {
    bound += heartbeat_.dead_after * 21 / 20 + heartbeat_.interval;
    if (was_holder) bound += heartbeat_.interval + seconds(1);
  }
  // Steps of a millisecond tell how long it took.
  check_learned(dead, time_.now(), time_.now() + bound, faults_ + 1, was_holder);
}

void World::check_learned(const Life& dead, Time died, Time until, int faults, bool was_holder) {
  time_.after(milliseconds(1), [=, this, &dead] {
    if (faults_ != faults || healed_) return;
    const Life* late = nullptr;
    for (const Life* life : running()) {
      if (life->node == dead.node || life->duplicate || life->incarnation == 0) continue;
      if (!life->agent->view() || life->agent->view()->generation == 0) continue;
      const Member* member = life->agent->view()->find(task_of(dead.node));
      const bool has_learned =
          member->incarnation != dead.incarnation || member->state != TaskState::kAlive;
      if (!has_learned || life->agent->generation() == 0) late = life;
    }
    if (late == nullptr) {
      ++result_.deaths_checked;
      if (!was_holder || !dead.process.ended()) return;
      const double took = static_cast<double>((time_.now() - died).count()) / 1e6;
      result_.longest_takeover_ms = std::max(result_.longest_takeover_ms, took);
      return;
    }
    if (time_.now() < until) return check_learned(dead, died, until, faults, was_holder);
    violate(str(task_of(late->node), " has no group in time after ", task_of(dead.node),
                was_holder ? ", which held the service," : "", " was lost"));
  });
}

bool World::formed_elastic() {
  if (running().size() != static_cast<size_t>(tasks_)) return false;
  const Life* first = current(0);
  if (first == nullptr) return false;
  const int64_t generation = first->agent->generation();
  for (int node = 0; node < tasks_; ++node) {
    const Life* life = current(node);
    if (life == nullptr || !life->process.runs()) return false;
    const ViewPtr view = life->agent->view();
    if (generation == 0 || life->agent->generation() != generation || !view->complete() ||
        view->service != first->agent->view()->service) {
      return false;
    }
  }
  return true;
}

}  // namespace cohort::internal::membership
