// The state of a simulation: processes, what they do and what happens to them, and what must hold.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cluster/elastic/elastic_group.h"
#include "cohort/cluster/elastic/simulation/forming_simulation.h"
#include "cohort/cluster/membership/coordination_service.h"
#include "cohort/cluster/membership/simulation/network.h"
#include "cohort/cluster/membership/simulation/process.h"
#include "cohort/cluster/membership/simulation/random.h"
#include "cohort/core/error.h"

namespace cohort::internal::elastic {

// A process, from its start to its end: a task's, or that of a launcher which holds the service.
struct FormingLife {
  FormingLife(int node_number, membership::SimulatedTime& time, double rate,
              std::chrono::nanoseconds offset)
      : node(node_number), process(time, rate, offset) {}

  const int node;  // of the launcher: the number of tasks
  uint64_t incarnation = 0;
  membership::SimulatedProcess process;
  membership::Endpoint endpoint;
  std::unique_ptr<membership::CoordinationService> service;
  std::shared_ptr<membership::SimulatedChannel> channel;
  std::unique_ptr<membership::MembershipAgent> agent;
  std::unique_ptr<ElasticGroup> group;

  std::string program = "p";
  int64_t step = kNoStep;
  int64_t reached = kNoStep;
  bool forms = false;
  bool wants_to_leave = false;
  std::vector<Standing> standings;  // with which it has asked for a group
  std::optional<Record> record;
  int64_t last_number = 0;
  uint64_t work = 0;  // a number of what it does: what was planned before is dropped
};

// What the members of one record tell each other.
struct Board {
  std::map<size_t, int64_t> reached;  // by rank
  bool given_up = false;              // by a member that forms a group anew
  int64_t form_at = -1;               // the step after which all form, since somebody waits
};

// Thread safety: none.
class FormingWorld {
 public:
  explicit FormingWorld(const FormingOptions& options);
  ~FormingWorld();
  FormingResult run();

 private:
  using Time = std::chrono::nanoseconds;
  using Life = FormingLife;

  // Processes.
  Life& start_life(int node);
  void start_service(Life& life);
  void start_agent(Life& life);
  void end_life(Life& life, const std::string& why);
  void start_again_later(int node);
  Life* current(int node);
  std::vector<Life*> running();
  std::string name_of(const Life& life) const;
  bool is_launcher(int node) const { return node == tasks_; }
  bool holds_service(int node) const { return node == (has_launcher_ ? tasks_ : 0); }

  // What tasks do.
  void form(Life& life);
  void formed(Life& life, const std::exception_ptr& error, const Record& record);
  void take(Life& life, const Record& record);
  void work(Life& life);
  void reach(Life& life);
  void finish_step(Life& life);
  void go(Life& life);
  void later(Life& life, Time least, Time most, std::function<void()> what);

  // Faults.
  void plan_faults();
  void fault();
  void kill(int node);
  void stop_for_a_while(Life& life);
  void cut();
  void leave(Life& life);
  void heal();

  // Invariants.
  void see(Life& life, const membership::ViewPtr& view);
  void check_record(const Life& life, const Record& record);
  void check_member(const Record& record, const RecordMember& member);
  void check_group_step(const Record& record);
  bool works_as_one();
  void violate(const std::string& what);

  template <class... Parts>
  void trace(const Parts&... parts) {
    if (options_.trace != nullptr) say(str(parts...));
  }
  void say(const std::string& line);

  const FormingOptions options_;
  membership::Random random_;
  membership::SimulatedTime time_;
  membership::SimulatedNetwork network_{time_, random_};
  int tasks_ = 0;
  int min_tasks_ = 1;
  bool has_launcher_ = false;
  std::vector<std::unique_ptr<Life>> lives_;
  std::set<int> restarting_;
  bool healed_ = false;
  bool deceived_ = false;  // a live task may have been taken for lost
  std::map<int64_t, Record> records_;
  std::map<int64_t, Board> boards_;
  // The tasks that are alive in each generation of each service.
  std::map<std::pair<uint64_t, int64_t>, std::set<std::pair<TaskId, uint64_t>>> alive_;
  FormingResult result_;
};

}  // namespace cohort::internal::elastic
