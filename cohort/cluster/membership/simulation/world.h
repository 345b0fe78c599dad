// The state of a simulation: processes, what happens to them, and what must hold of them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cluster/membership/agent.h"
#include "cohort/cluster/membership/coordination_service.h"
#include "cohort/cluster/membership/elastic_service.h"
#include "cohort/cluster/membership/simulation/cluster_simulation.h"
#include "cohort/cluster/membership/simulation/history.h"
#include "cohort/cluster/membership/simulation/network.h"
#include "cohort/cluster/membership/simulation/process.h"
#include "cohort/cluster/membership/simulation/random.h"
#include "cohort/core/error.h"

namespace cohort::internal::membership {

class World;

// A process of a task, from its start to its end.
struct Life {
  Life(World& world, int node, SimulatedTime& time, double rate, std::chrono::nanoseconds offset);

  const int node;
  uint64_t incarnation = 0;
  SimulatedProcess process;
  Endpoint endpoint;
  std::unique_ptr<CoordinationService> service;  // of the first task
  std::unique_ptr<ElasticService> elastic;       // of every task of an elastic cluster
  std::map<TaskId, std::shared_ptr<SimulatedChannel>> channels;
  int services_held = 0;
  std::unique_ptr<rpc::Service> resource;  // what the first task writes to
  std::shared_ptr<SimulatedChannel> channel;
  std::vector<std::shared_ptr<SimulatedChannel>> peers;  // of the first task
  std::unique_ptr<MembershipAgent> agent;
  bool duplicate = false;                       // started although another one lives
  bool touched = false;                         // by a fault that may end it
  std::chrono::nanoseconds disturbed_until{0};  // by one that must not
  int64_t last_generation = 0;
  int64_t last_accepted = 0;
};

// Thread safety: none.
class World {
 public:
  explicit World(const SimulationOptions& options);
  ~World();
  SimulationResult run();

 private:
  friend struct Life;
  friend class Resource;
  using Time = std::chrono::nanoseconds;

  // Processes.
  void start_life(int node, bool duplicate);
  void start_service(Life& life);
  void start_agent(Life& life);
  AgentOptions agent_options(Life& life);
  void end_life(Life& life, const std::string& why);
  void start_again_later(int node);
  Life* current(int node);
  std::vector<Life*> running();
  TaskId task_of(int node) const;
  rpc::Caller identity(const Life& life) const;

  // What tasks do.
  void work(Life& life);
  void use_store(Life& life);
  void wait_at_barrier(Life& life);
  void write_to_others(Life& life);
  uint64_t service_of(const Life& life) const;
  // Checks that `done` is called by then.
  MembershipAgent::Done in_time(Life& life, Duration timeout, MembershipAgent::Done done);

  // Faults.
  void plan_faults();
  void fault();
  void crash(Life& life);
  void stop_for_a_while(Life& life);
  void cut();
  void reset();
  void replace_stopped(Life& life);
  void heal();
  // A fault that the life must survive, until then.
  void disturb(Life& life, Time until);
  void touch(Life& life);

  // Elastic clusters (world_elastic.cc).
  void start_elastic_service(Life& life);
  ElasticAgentOptions elastic_agent(Life& life);
  std::shared_ptr<rpc::Channel> channel_to(Life& life, const TaskId& task);
  bool is_dead(const Member& member) const;
  Life* holder();
  void elastic_fault();
  void crash_soon(Time latest);
  void see_elastic(const ViewPtr& view);
  bool lives_on(const Membership& group) const;
  void expect_all_learn_elastic(const Life& dead, bool is_stop);
  void check_learned(const Life& dead, Time died, Time until, int faults, bool was_holder);
  bool formed_elastic();

  // Invariants.
  void see(Life& life, const ViewPtr& view);
  void ended_by(Life& life, const std::exception_ptr& error);
  void accepted(Life& life, const rpc::Caller& writer);
  void expect_all_learn(const Life& dead, Duration bound, bool is_stop = false);
  bool formed();
  void violate(const std::string& what);

  template <class... Parts>
  void trace(const Parts&... parts) {
    if (options_.trace != nullptr) say(str(parts...));
  }
  void say(const std::string& line);

  const SimulationOptions options_;
  Random random_;
  SimulatedTime time_;
  SimulatedNetwork network_{time_, random_};
  int tasks_ = 0;
  HeartbeatSettings heartbeat_;
  OnServiceLost policy_ = OnServiceLost::kFail;
  std::vector<std::unique_ptr<Life>> lives_;
  std::set<int> restarting_;
  Time last_cut_{0};  // when it ended
  int faults_ = 0;
  bool healed_ = false;
  // The members of each generation of each service.
  std::map<std::pair<uint64_t, int64_t>, std::string> members_of_;
  // An elastic cluster's services by their terms, with the last group of each; who was in each
  // generation; the latest term of each process, and the group that it comes from.
  std::map<std::pair<int, int64_t>, std::pair<uint64_t, Membership>> former_of_;
  std::map<std::pair<int, int64_t>, Membership> group_of_;
  std::map<uint64_t, int64_t> term_of_;
  std::map<uint64_t, int> era_of_;
  int eras_ = 0;
  bool one_host_ = false;  // no cuts, and who has ended is known
  StoreHistory history_;
  SimulationResult result_;
};

}  // namespace cohort::internal::membership
