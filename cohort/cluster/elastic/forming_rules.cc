#include "cohort/cluster/elastic/forming_rules.h"

#include <algorithm>
#include <utility>

namespace cohort::internal::elastic {
namespace {

using membership::Member;
using membership::TaskState;
using membership::View;

// Numbers of a term begin behind those that earlier terms can have used. A new service, whose store
// is empty, may hear of the latest record only after it has got one of its own.
constexpr int64_t kNumbersOfTerm = 1'000'000;
constexpr int64_t kMostTerms = 1'000'000'000;

bool is_of_group(const Member& member, const GroupOptions& options) {
  return !member.observer &&
         std::find(options.jobs.begin(), options.jobs.end(), member.task.job) != options.jobs.end();
}

std::optional<Record> latest(const std::optional<Record>& stored,
                             const std::vector<Proposal>& proposals) {
  std::optional<Record> last = stored;
  for (const Proposal& proposal : proposals) {
    if (proposal.known && (!last || proposal.known->number > last->number)) last = proposal.known;
  }
  return last;
}

bool has_closed(const std::vector<Proposal>& proposals) {
  return std::any_of(proposals.begin(), proposals.end(), [](const Proposal& proposal) {
    const Standing& standing = proposal.proposer.standing;
    return standing.closed && standing.step != kNoStep;
  });
}

}  // namespace

size_t least(const GroupOptions& options) {
  return static_cast<size_t>(std::max(options.min_tasks, 1));
}

bool is_alive(const View& view, const GroupOptions& options, const TaskId& task,
              uint64_t incarnation) {
  const Member* member = view.find(task);
  return member != nullptr && is_of_group(*member, options) && member->state == TaskState::kAlive &&
         member->incarnation == incarnation;
}

std::vector<Member> alive_in(const View& view, const GroupOptions& options) {
  std::vector<Member> alive;
  for (const Member& member : view.members) {
    if (is_alive(view, options, member.task, member.incarnation)) alive.push_back(member);
  }
  return alive;
}

bool is_whole(const Record& record, const View& view, const GroupOptions& options) {
  return std::all_of(record.members.begin(), record.members.end(), [&](const RecordMember& one) {
    return is_alive(view, options, one.task, one.incarnation);
  });
}

bool is_inhabited(const Record& record, const View& view, const GroupOptions& options) {
  return std::any_of(record.members.begin(), record.members.end(), [&](const RecordMember& one) {
    return is_alive(view, options, one.task, one.incarnation);
  });
}

std::vector<TaskId> required(const std::optional<Record>& stored, const std::optional<Record>& last,
                             const View& view, const GroupOptions& options, bool all) {
  std::vector<TaskId> everybody;
  std::vector<TaskId> members;
  for (const Member& member : alive_in(view, options)) {
    everybody.push_back(member.task);
    const bool is_member = (stored && stored->rank_of(member.task, member.incarnation)) ||
                           (last && last->rank_of(member.task, member.incarnation));
    if (is_member) members.push_back(member.task);
  }
  return all || members.empty() ? everybody : members;
}

Verdict judge(const View& view, const GroupOptions& options, const std::optional<Record>& stored,
              std::vector<Proposal> proposals, bool all) {
  std::erase_if(proposals, [&](const Proposal& proposal) {
    return !is_alive(view, options, proposal.proposer.task, proposal.proposer.incarnation);
  });
  std::sort(proposals.begin(), proposals.end(), [](const Proposal& left, const Proposal& right) {
    return left.proposer.task < right.proposer.task;
  });
  Verdict verdict;
  verdict.last = latest(stored, proposals);
  for (TaskId& task : required(stored, verdict.last, view, options, all)) {
    const bool there =
        std::any_of(proposals.begin(), proposals.end(),
                    [&](const Proposal& proposal) { return proposal.proposer.task == task; });
    if (!there) verdict.missing.push_back(std::move(task));
  }
  if (has_closed(proposals)) {
    std::erase_if(proposals, [](const Proposal& proposal) {
      return proposal.proposer.standing.step == kNoStep;
    });
  }
  if (proposals.empty()) return verdict;
  const bool goes_on = verdict.last && is_inhabited(*verdict.last, view, options);
  verdict.program = goes_on ? verdict.last->program() : proposals.front().proposer.standing.program;
  Record next{.number = std::max(verdict.last ? verdict.last->number : 0,
                                 (std::min(view.term, kMostTerms) - 1) * kNumbersOfTerm),
              .previous = stored ? stored->number : 0,
              .service = view.service,
              .generation = view.generation};
  ++next.number;
  for (Proposal& proposal : proposals) {
    const Standing& standing = proposal.proposer.standing;
    if (standing.program != verdict.program) {
      verdict.refused.push_back(proposal.proposer.task);
    } else {
      (standing.leaves ? next.leavers : next.members).push_back(std::move(proposal.proposer));
    }
  }
  verdict.members = next.members.size();
  const bool enough = verdict.members >= least(options);
  if (verdict.missing.empty() && enough) verdict.next = std::move(next);
  return verdict;
}

}  // namespace cohort::internal::elastic
