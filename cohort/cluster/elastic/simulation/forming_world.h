// The state of a simulation: processes, what they do and what happens to them, and what must hold.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cohort/cluster/elastic/elastic_group.h"
#include "cohort/cluster/elastic/simulation/forming_simulation.h"
#include "cohort/cluster/membership/coordination_service.h"
#include "cohort/cluster/membership/elastic_service.h"
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
  std::unique_ptr<membership::ElasticService> moving;  // each task's, where it moves between them
  int services_held = 0;
  std::map<TaskId, std::shared_ptr<membership::SimulatedChannel>> channels;  // to tasks
  std::unique_ptr<membership::MembershipAgent> agent;
  std::unique_ptr<ElasticGroup> group;

  std::string program = "p";
  int64_t step = kNoStep;
  int64_t reached = kNoStep;
  bool forms = false;
  bool has_failed = false;  // its last call of form()
  bool wants_to_leave = false;
  std::vector<Standing> standings;  // with which it has asked for a group
  std::optional<Record> record;
  int64_t last_number = 0;
  int line = 0;       // of groups that each go on from the one before; 0: it was in none
  uint64_t work = 0;  // a number of what it does: what was planned before is dropped
};

// The task that holds the coordination service.
enum class ServicePlace { kFirstTask, kLauncher, kAnyTask };

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
  void start_moving_service(Life& life);
  membership::CoordinationOptions service_options();
  membership::ElasticAgentOptions elastic_agent(Life& life);
  std::shared_ptr<rpc::Channel> channel_to(Life& life, const TaskId& task);
  void start_agent(Life& life);
  void end_life(Life& life, const std::string& why);
  void start_again_later(int node);
  Life* current(int node);
  std::vector<Life*> running();
  std::string name_of(const Life& life) const;
  bool is_launcher(int node) const { return node == tasks_; }
  int service_node();
  bool is_dead(const membership::Member& member) const;

  // What tasks do.
  void form(Life& life);
  void formed(Life& life, const std::exception_ptr& error, const Record& record);
  void take(Life& life, const Record& record);
  void work(Life& life);
  void reach(Life& life);
  void finish_step(Life& life);
  void go(Life& life);
  // A group: its line, its number and its service.
  using Place = std::tuple<int, int64_t, uint64_t>;
  static Place place_of(int line, const Record& record) {
    return {line, record.number, record.service};
  }
  Board& board_of(const Life& life) { return boards_[place_of(life.line, *life.record)]; }
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
  Life* process_of(const RecordMember& member);
  int line_of(const Record& record);
  void check_record(Life& life, const Record& record);
  void check_member(const Record& record, const RecordMember& member);
  void check_group_step(const Life& one);
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
  ServicePlace place_ = ServicePlace::kFirstTask;
  bool one_host_ = false;  // tasks see whether a process has ended
  std::vector<std::unique_ptr<Life>> lives_;
  std::set<int> restarting_;
  bool healed_ = false;
  bool deceived_ = false;  // a live task may have been taken for lost
  int lines_ = 0;
  std::map<Place, Record> records_;
  std::map<Place, Board> boards_;
  // The tasks that are alive in each generation of each service.
  std::map<std::pair<uint64_t, int64_t>, std::set<std::pair<TaskId, uint64_t>>> alive_;
  FormingResult result_;
};

}  // namespace cohort::internal::elastic
