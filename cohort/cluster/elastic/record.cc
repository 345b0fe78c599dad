#include "cohort/cluster/elastic/record.h"

#include <algorithm>

#include "cohort/cluster/membership/limits.h"
#include "cohort/cluster/rpc/text.h"
#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal::elastic {
namespace {

using membership::AtMost;
using membership::AtMostText;
using membership::kMostTasks;

// So that the next one is a number, too.
constexpr int64_t kMostNumbers = int64_t{1} << 53;
constexpr AtMost kMembers{"members", kMostTasks};

template <class Holds>
std::vector<size_t> ranks_where(const Record& record, Holds&& holds) {
  std::vector<size_t> ranks;
  for (size_t rank = 0; rank < record.members.size(); ++rank) {
    if (holds(record.members[rank].standing.step)) ranks.push_back(rank);
  }
  return ranks;
}

void require(bool holds, std::string_view what) {
  if (!holds) throw DataLossError(str("the record of a group ", what));
}

void check_tasks(const std::vector<RecordMember>& tasks) {
  for (size_t i = 0; i < tasks.size(); ++i) {
    require(!tasks[i].task.job.empty() && tasks[i].incarnation != 0, "has a task without a name");
    require(i == 0 || tasks[i - 1].task < tasks[i].task, "has tasks in a wrong order");
    const Standing& standing = tasks[i].standing;
    require(standing.step >= kNoStep && standing.reached >= standing.step,
            "has a step that is none");
  }
}

}  // namespace

void fields(auto& f, Standing& standing) {
  f(1, standing.step);
  f(2, standing.reached);
  f(3, standing.program, AtMostText{"a program", kMostProgramBytes});
  f(4, standing.leaves);
  f(5, standing.closed);
}

void fields(auto& f, RecordMember& member) {
  f(1, member.task);
  f(2, member.incarnation);
  f(3, member.attempt);
  f(4, member.standing);
}

void fields(auto& f, Record& record) {
  f(1, record.number);
  f(2, record.previous);
  f(3, record.service);
  f(4, record.generation);
  f(5, record.members, kMembers);
  f(6, record.leavers, kMembers);
}

void fields(auto& f, Proposal& proposal) {
  f(1, proposal.proposer);
  f(2, proposal.known);
}

static void check(const Record& record) {
  require(record.number <= kMostNumbers, "has a number that is too large");
  require(record.number > 0 && record.generation > 0 && record.service != 0, "has no number");
  require(record.previous >= 0 && record.previous < record.number, "comes before its predecessor");
  require(!record.members.empty(), "has no members");
  check_tasks(record.members);
  check_tasks(record.leavers);
  for (const RecordMember& member : record.members) {
    require(member.standing.program == record.program(), "has members of two programs");
  }
}

int64_t Record::step() const {
  int64_t step = kNoStep;
  for (const RecordMember& member : members) step = std::max(step, member.standing.step);
  for (const RecordMember& leaver : leavers) step = std::max(step, leaver.standing.step);
  return step;
}

std::optional<size_t> Record::rank_of(const TaskId& task, uint64_t incarnation) const {
  const auto found = std::lower_bound(
      members.begin(), members.end(), task,
      [](const RecordMember& member, const TaskId& wanted) { return member.task < wanted; });
  if (found == members.end() || found->task != task || found->incarnation != incarnation) {
    return std::nullopt;
  }
  return static_cast<size_t>(found - members.begin());
}

std::vector<size_t> Record::holders() const {
  return ranks_where(*this, [last = step()](int64_t step) { return step == last; });
}

std::vector<size_t> Record::behind() const {
  return ranks_where(*this,
                     [last = step()](int64_t step) { return step < last && step != kNoStep; });
}

std::vector<size_t> Record::comers() const {
  return ranks_where(*this,
                     [last = step()](int64_t step) { return step < last && step == kNoStep; });
}

std::string Record::encode() const { return encode_fields(*this); }
Record Record::decode(std::string_view bytes) {
  auto record = decode_fields<Record>(bytes, "the record of a group");
  check(record);
  return record;
}

std::string describe(const Record& record) {
  std::string text = str("record ", record.number, " of generation ", record.generation, ", step ",
                         record.step(), ": ");
  for (const RecordMember& member : record.members) {
    text += str(&member == &record.members.front() ? "" : ", ", member.task);
  }
  for (const RecordMember& leaver : record.leavers) text += str("; ", leaver.task, " leaves");
  return rpc::printable(text);
}

std::string Proposal::encode() const { return encode_fields(*this); }
Proposal Proposal::decode(std::string_view bytes) {
  auto proposal = decode_fields<Proposal>(bytes, "a proposal for a group");
  if (proposal.known) check(*proposal.known);
  check_tasks({proposal.proposer});
  return proposal;
}

}  // namespace cohort::internal::elastic
