// What must hold in a simulation.
#include <algorithm>

#include "cohort/cluster/elastic/simulation/forming_world.h"
#include "cohort/cluster/membership/limits.h"

namespace cohort::internal::elastic {

using membership::Member;
using membership::TaskState;

void FormingWorld::see(Life& life, const membership::ViewPtr& view) {
  if (life.process.ended() || view->generation == 0) return;
  std::set<std::pair<TaskId, uint64_t>> alive;
  for (const Member& member : view->members) {
    if (member.state == TaskState::kAlive) alive.emplace(member.task, member.incarnation);
  }
  alive_.try_emplace({view->service, view->generation}, std::move(alive));
}

FormingLife* FormingWorld::process_of(const RecordMember& member) {
  const auto found = std::find_if(lives_.begin(), lives_.end(), [&](const auto& life) {
    return life->incarnation == member.incarnation && life->node == member.task.index;
  });
  return found == lives_.end() ? nullptr : found->get();
}

// A group of which nobody has been in one before begins a line of groups. It may do so beside
// another one only where all of that seemed to be gone.
int FormingWorld::line_of(const Record& record) {
  int line = 0;
  for (const auto& [key, known] : records_) {
    if (known == record) return std::get<0>(key);
  }
  for (const auto* tasks : {&record.members, &record.leavers}) {
    for (const RecordMember& member : *tasks) {
      if (const Life* life = process_of(member)) line = std::max(line, life->line);
    }
  }
  if (line != 0) return line;
  for (const auto& life : lives_) {
    const bool goes_on = life->line != 0 && !life->wants_to_leave && !life->process.ended();
    if (goes_on && !deceived_) {
      violate(str(describe(record), " begins anew beside ", name_of(*life)));
    }
  }
  return ++lines_;
}

void FormingWorld::check_record(Life& life, const Record& record) {
  life.line = line_of(record);
  const auto [known, is_new] = records_.try_emplace(place_of(life.line, record), record);
  if (!is_new && !(known->second == record)) {
    violate(str("number ", record.number, " has two records: ", describe(record), "; ",
                describe(known->second)));
  }
  // Services that cannot know of each other may begin the same term; the survivors of one were
  // stopped, or out of reach.
  const auto first = records_.lower_bound({life.line, record.number, 0});
  if (first->second.service != record.service && !deceived_) {
    violate(str("number ", record.number, " has two records, of two services"));
  }
  if (record.number <= life.last_number) {
    violate(str(name_of(life), " went from record ", life.last_number, " to ", record.number));
  }
  if (record.step() < life.step) {
    violate(str(name_of(life), " has step ", life.step, ", and gets ", describe(record)));
  }
  if (record.members.size() < static_cast<size_t>(min_tasks_)) {
    violate(str("too few members: ", describe(record)));
  }
  if (!is_new) return;
  ++result_.records;
  for (const RecordMember& member : record.members) check_member(record, member);
  for (const RecordMember& leaver : record.leavers) check_member(record, leaver);
  if (record.holders().empty() && record.leavers.empty()) {
    violate(str("nobody has the state of ", describe(record)));
  }
}

void FormingWorld::check_member(const Record& record, const RecordMember& member) {
  const Life* const process = process_of(member);
  if (process == nullptr) return violate(str("no process of ", describe(record)));
  const Life& life = *process;
  const auto& asked = life.standings;
  if (std::find(asked.begin(), asked.end(), member.standing) == asked.end()) {
    violate(str(name_of(life), " has not proposed itself for ", describe(record)));
  }
  // Its committed steps are all in the record; one that has gone on from a record after it counts
  // there.
  if (life.last_number < record.number && life.step > record.step()) {
    violate(str(name_of(life), " has committed step ", life.step, "; ", describe(record)));
  }
  // What a call that fails has proposed may count for a moment more.
  const bool has_asked = life.forms || life.has_failed || life.process.ended();
  if (life.last_number < record.number && !has_asked) {
    violate(str(name_of(life), " is in ", describe(record), " and has not asked for it"));
  }
  const auto alive = alive_.find({record.service, record.generation});
  if (alive == alive_.end() || alive->second.count({member.task, member.incarnation}) == 0) {
    violate(str(name_of(life), " was not alive in the generation of ", describe(record)));
  }
}

// All members of a record have done a step. There may be a later one only if the membership has
// taken all of them for lost, and they do not know it yet.
void FormingWorld::check_group_step(const Life& one) {
  const Record& record = *one.record;
  const Record& newest = std::prev(records_.lower_bound({one.line + 1, 0, 0}))->second;
  if (newest.number <= record.number) return;
  ++result_.apart;
  if (!deceived_) {
    violate(str("a step of ", describe(record), " after ", describe(newest)));
  }
  for (const auto& life : lives_) {
    const bool is_member = record.rank_of({"worker", life->node}, life->incarnation).has_value();
    if (is_member && life->last_number > record.number) {
      violate(str(name_of(*life), " takes part in a step of ", describe(record), " after record ",
                  life->last_number));
    }
  }
}

bool FormingWorld::works_as_one() {
  const std::vector<Life*> all = running();
  if (all.size() != static_cast<size_t>(tasks_)) return false;
  for (const Life* life : all) {
    const bool is_member = life->record && !life->forms && !life->wants_to_leave &&
                           life->record->number == all.front()->last_number &&
                           life->record->members.size() == all.size() &&
                           life->step > life->record->step();
    if (!is_member) return false;
  }
  return true;
}

}  // namespace cohort::internal::elastic
