// What the proposals of tasks amount to: whom the next group waits for, and of whom it consists.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/elastic/record.h"
#include "cohort/cluster/membership/view.h"

namespace cohort::internal::elastic {

// What the tasks of a membership may form groups.
struct GroupOptions {
  std::string name = {};                                // of the group, at most 256 bytes of UTF-8
  int min_tasks = 1;                                    // fewer do not form one
  std::vector<std::string> jobs = {"chief", "worker"};  // whose tasks may be members
};

// How many members a group has at least.
size_t least(const GroupOptions& options);
// Whether that process is alive in the view, and its job one of the group's.
bool is_alive(const membership::View& view, const GroupOptions& options, const TaskId& task,
              uint64_t incarnation);
// The processes of the group's jobs that are alive.
std::vector<membership::Member> alive_in(const membership::View& view, const GroupOptions& options);
// Whether all members are alive; nobody takes up the record of a group that has lost one already.
bool is_whole(const Record& record, const membership::View& view, const GroupOptions& options);
// Whether a member is.
bool is_inhabited(const Record& record, const membership::View& view, const GroupOptions& options);

// The tasks without whose proposal there is no group: the members of the last group that are still
// alive, those of the one in the service's store and of the latest that anybody knows; where nobody
// of these is, everybody who is. `all`: everybody in any case.
std::vector<TaskId> required(const std::optional<Record>& stored, const std::optional<Record>& last,
                             const membership::View& view, const GroupOptions& options,
                             bool all = false);

struct Verdict {
  std::vector<TaskId> missing = {};  // who must propose before there can be a group
  std::vector<TaskId> refused = {};  // who proposes with another program
  std::optional<Record> last = {};   // the latest record that somebody knows
  // What must be equal in all members.
  std::string program = {};
  size_t members = 0;               // how many propose with that program, and stay
  std::optional<Record> next = {};  // nothing is missing, and enough tasks are there
};

// `stored`: the record in the service's store. `proposals`: those for the record after it, in this
// view's generation. `all`: as in required().
Verdict judge(const membership::View& view, const GroupOptions& options,
              const std::optional<Record>& stored, std::vector<Proposal> proposals, bool all);

}  // namespace cohort::internal::elastic
