// The tasks of the cluster: registered, alive, lost, back. The rules of membership, as a state
// machine that is told what happens and when.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cohort/cluster/membership/messages.h"
#include "cohort/cluster/membership/store.h"
#include "cohort/cluster/rpc/clock.h"

namespace cohort::internal::membership {

// The rules of a cluster that goes on whatever task is lost.
struct ElasticRoster {
  TaskId self = {};  // the task that holds this service
  // The group of a new cluster starts without those that are not there once so many are and
  // `start_wait` has passed since the first came.
  int min_tasks = 1;
  Duration start_wait = std::chrono::seconds(30);
  // The last view of the group that this service takes over; generation 0: there was none.
  View record = {};
  // Whether the process of a member has ended for certain. A connection that broke does not tell.
  std::function<bool(const Member&)> is_dead = [](const Member&) { return false; };
};

struct RosterOptions {
  // The tasks of the group and their addresses. If an address is empty, it is the one that the task
  // registers.
  std::map<TaskId, std::string> tasks;
  // Jobs whose tasks the start does not wait for.
  std::set<std::string> late_jobs;
  // Jobs that watch and are not of the group: they come and go without a new generation.
  std::set<std::string> observer_jobs = {"evaluator"};
  HeartbeatSettings heartbeat;
  std::optional<ElasticRoster> elastic = {};
};

// States of a task: awaited -> alive -> lost or left -> alive again, as another incarnation.
// The group starts once all awaited tasks are alive at once. From then on each task that is lost,
// leaves or joins raises the generation; each change of any kind raises the version.
// In an elastic cluster a group counts only when its members have acknowledged it, with a majority
// of the group before (agreed()); until then nothing may be done in its name.
// Thread safety: none.
class Roster {
 public:
  using Time = rpc::Clock::Time;

  // `service` is this service's own incarnation.
  Roster(RosterOptions options, uint64_t service, Time now);

  enum class Admission {
    kAccepted,
    kRepeated,  // this incarnation is in already
    kWaits,     // its predecessor looks alive
  };
  // Errors: Aborted (this incarnation has ended; fenced), FailedPrecondition (no task of this
  // cluster), the group's failure. Where a task of this group has been in one of a later term, this
  // service has been superseded: the group fails with Aborted.
  Admission admit(Time now, const Session& session, const RegisterRequest& request);

  // A call came that shows that the task lives and has seen view `seen`. After a lost connection
  // only one that has seen a later view shows it: others may have been under way before.
  // Errors: Aborted "fenced, generation g", NotFound (never registered here).
  void heard(Time now, const Session& session, int64_t seen);
  // Errors: Aborted "fenced, generation g"; 0 is any generation.
  void check_generation(const Session& session, int64_t generation);
  // The error of the first task whose end has ended this generation, or a later one. Null if there
  // is none, and for generation 0, which stands for any.
  std::exception_ptr ended_since(int64_t generation) const;
  void set_figures(const Session& session, Figures figures);

  // Makes a new version, to which the task answers if it lives.
  void connection_lost(Time now, const Session& session);
  // The process has ended for certain.
  void process_gone(Time now, const Session& session);
  void leave(Time now, const Session& session, const std::string& where);
  void report(const Session& session, const std::string& error);
  // Notes that a process which says it is this task may not register: for describe_missing().
  void note_refused(Time now, const TaskId& task, const std::string& why);
  // Ends the group for all.
  void fail(const std::exception_ptr& error);

  // Declares the silent dead.
  void expire(Time now);
  // This process was stopped: nobody is blamed for silence that it could not hear.
  void restart_silence(Time now);
  std::optional<Time> next_expiry() const;

  // Makes a new version with nothing new: a task that answers to it is alive.
  int64_t ping() { return ++version_; }
  // Whether the live incarnation of the task has seen that version.
  bool has_seen(const TaskId& task, int64_t version) const;
  std::optional<uint64_t> live_incarnation(const TaskId& task) const;

  int64_t version() const { return version_; }
  int64_t generation() const { return generation_; }
  bool started() const { return generation_ > 0; }
  bool failed() const { return !failure_.empty(); }
  // Whether the group counts (see above). Clusters that are not elastic always agree.
  bool agreed() const { return agreed_; }
  // Nobody answers at the task's address: a takeover does not wait for it.
  void absent(Time now, const TaskId& task);
  // Draws the conclusion from what members have acknowledged.
  void agree();
  // Whether the live members of an elastic cluster may decide for it.
  bool has_majority();
  int64_t stale_refused() const { return stale_refused_; }

  View view(int64_t since) const;
  // The same with ages and figures.
  View status(Time now) const;
  // The tasks that keep the start waiting: "/job:worker/task:1 (10.0.0.2:2222, not heard of yet)".
  std::string describe_missing(Time now) const;
  // The group's tasks, observers not.
  std::vector<TaskId> group() const;

  // Sessions that ended since the last call.
  struct Ended {
    Session session;
    std::exception_ptr error;  // for who waits for it
    bool is_as_planned;        // it left, and gave no reason but the end of its program
    bool may_return;           // the group had not started: it may register again
  };
  std::vector<Ended> take_ended();

 private:
  struct Entry {
    Member member;
    bool address_given = false;
    Time since;  // of its state
    Time heard;  // last
    std::optional<Time> suspect_until;
    int64_t suspect_version = 0;  // that it must have seen
    int64_t seen = 0;
    std::deque<uint64_t> ended;  // incarnations, the latest last
    std::string refused;         // why, the last time; empty: it was not, or registered since
    Time refused_at;
  };

  Entry& entry_for(const Session& session);
  Entry& live(const Session& session);
  bool has_ended(const Entry& entry, uint64_t incarnation) const;
  [[noreturn]] void refuse(const Session& session, std::string_view why);
  void accept(Time now, Entry& entry, const Session& session, const RegisterRequest& request);
  void end(Time now, Entry& entry, TaskState state, const std::string& why);
  void start_if_complete(Time now);
  bool is_complete() const;
  void start();
  // What only elastic clusters need (roster_elastic.cc):
  void take_record();
  void learn_record(const RegisterRequest& request);
  void check_predecessor(Time now, const Session& session);
  bool may_start(Time now);
  void mark_lost_of_record();
  Presence presence(const Session& session);
  void membership_changed();
  std::optional<Time> next_start() const;
  void add_event(EventKind kind, const Member& member, std::string error);
  void throw_failure() const;
  View base_view() const;
  Membership live() const;

  RosterOptions options_;
  uint64_t service_;
  Time began_;
  std::map<TaskId, Entry> entries_;
  int64_t term_ = 0;  // 0: not started
  int64_t generation_ = 0;
  int64_t highest_term_seen_ = 0;
  int64_t highest_generation_seen_ = 0;
  int64_t version_ = 1;
  int64_t stale_refused_ = 0;
  std::string failure_;
  std::deque<Event> events_;
  std::vector<Ended> ended_;

  bool agreed_ = true;
  View record_;  // the latest that anybody has told of
  std::vector<Membership> bases_;
  int64_t membership_version_ = 0;  // of the last change of the members
  std::set<uint64_t> gone_;         // incarnations that have ended for certain
  std::optional<Time> first_came_;
  std::set<TaskId> absent_;             // before the start
  std::optional<Time> majority_since_;  // before the start
};

}  // namespace cohort::internal::membership
