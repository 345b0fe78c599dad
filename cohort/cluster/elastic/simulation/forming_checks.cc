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

void FormingWorld::check_record(const Life& life, const Record& record) {
  const auto has_worked = [](const auto& one) {
    return one->last_number > 0 && !one->process.ended();
  };
  const auto before = records_.find(record.number);
  const bool is_known = before != records_.end() && before->second == record;
  if (!is_known && std::none_of(lives_.begin(), lives_.end(), has_worked)) {
    trace("nothing is left of the groups before");
    records_.clear();
    boards_.clear();
  }
  const auto [known, is_new] = records_.try_emplace(record.number, record);
  if (!is_new && !(known->second == record)) {
    violate(str("number ", record.number, " has two records: ", describe(record), "; ",
                describe(known->second)));
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
  const auto found = std::find_if(lives_.begin(), lives_.end(), [&](const auto& life) {
    return life->incarnation == member.incarnation && life->node == member.task.index;
  });
  if (found == lives_.end()) return violate(str("no process of ", describe(record)));
  const Life& life = **found;
  const auto& asked = life.standings;
  if (std::find(asked.begin(), asked.end(), member.standing) == asked.end()) {
    violate(str(name_of(life), " has not proposed itself for ", describe(record)));
  }
  // Its committed steps are all in the record; one that has gone on from a record after it counts
  // there.
  if (life.last_number < record.number && life.step > record.step()) {
    violate(str(name_of(life), " has committed step ", life.step, "; ", describe(record)));
  }
  if (life.last_number < record.number && !life.forms && !life.process.ended()) {
    violate(str(name_of(life), " is in ", describe(record), " and has not asked for it"));
  }
  const auto alive = alive_.find({record.service, record.generation});
  if (alive == alive_.end() || alive->second.count({member.task, member.incarnation}) == 0) {
    violate(str(name_of(life), " was not alive in the generation of ", describe(record)));
  }
}

// All members of a record have done a step. There may be a later one only if the membership has
// taken all of them for lost, and they do not know it yet.
void FormingWorld::check_group_step(const Record& record) {
  const int64_t newest = records_.rbegin()->first;
  if (newest <= record.number) return;
  ++result_.apart;
  if (!deceived_) {
    violate(str("a step of ", describe(record), " after ", describe(records_.rbegin()->second)));
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
