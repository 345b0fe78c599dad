// How a call of form() comes to a record.
#include <algorithm>
#include <utility>

#include "cohort/cluster/elastic/elastic_core.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal::elastic {

using membership::StoreReply;
using membership::StoreRequest;
using membership::ViewPtr;

namespace {

// How often a call looks at the membership, and begins a round where the last one has failed.
constexpr Duration kTick = std::chrono::milliseconds(10);
constexpr Duration kCallTimeout = std::chrono::seconds(1);
// How long a call waits for a key that may never come: it then looks at everything again.
constexpr Duration kLookAgain = std::chrono::milliseconds(500);
// The same for proposals of tasks that nobody knows, where there are too few.
constexpr Duration kLookForMore = std::chrono::milliseconds(50);
// The first of those that propose commits the record. If it does not, anybody does who has looked
// as often.
constexpr int kPatientLooks = 2;

}  // namespace

void ElasticCore::tick_later() {
  if (ticking_ || !call_) return;
  ticking_ = true;
  wake_after(kTick, [this] {
    ticking_ = false;
    tick();
    tick_later();
  });
}

void ElasticCore::tick() {
  if (!call_) return;
  if (const std::exception_ptr end = agent_.error()) return fail(end);
  const ViewPtr view = agent_.view();
  if (!view || view->generation == 0 || agent_.generation() != view->generation) {
    call_->heard = clock_.now();  // the agent's own limits hold
    return end_round();
  }
  const bool goes_on = ground_ && ground_->view->service == view->service &&
                       ground_->view->generation == view->generation;
  if (!goes_on) begin_round(view);
  if (call_) check_limits();
}

void ElasticCore::end_round() {
  ++round_;
  ground_.reset();
}

void ElasticCore::begin_round(const ViewPtr& view) {
  end_round();
  ground_ = Ground{.view = view};
  call_->too_few = false;
  if (call_->service != view->service || call_->generation != view->generation) {
    call_->service = view->service;
    call_->generation = view->generation;
    call_->since = clock_.now();
  }
  read();
}

void ElasticCore::read() {
  ask("get", {.key = key("latest")}, kCallTimeout,
      [this](const StoreReply& reply) { have_read(reply); });
}

void ElasticCore::have_read(const StoreReply& reply) {
  Ground& ground = *ground_;
  if (ground.stored != reply.value) {
    if (!reply.has_value)
      return end_round();  // another service answers, of which no view tells yet
    ground.stored = reply.value;
    ground.record = Record::decode(reply.value);
    ground.has_proposed = false;
    ground.looks = 0;
    learn(*ground.record);
  }
  if (ground.record) {
    if (take(*ground.record)) return;
    if (is_inhabited(*ground.record, *ground.view, options_.group) &&
        ground.record->program() != call_->mine.standing.program) {
      return refuse(ground.record->program());
    }
  }
  ground.has_proposed ? list("") : propose();
}

bool ElasticCore::take(const Record& record) {
  const auto is_mine = [&](const RecordMember& one) { return one == call_->mine; };
  if (std::none_of(record.members.begin(), record.members.end(), is_mine) &&
      std::none_of(record.leavers.begin(), record.leavers.end(), is_mine)) {
    return false;
  }
  if (record.generation > ground_->view->generation) {
    end_round();
    return true;
  }
  // One that has lost a member since is of no use, but the next stands on it.
  if (!is_whole(record, *ground_->view, options_.group)) return false;
  finish(nullptr, record);
  return true;
}

std::string ElasticCore::proposals_key() const {
  return key(str("at/", base(), '/', ground_->view->generation, '/'));
}

void ElasticCore::propose() {
  Proposal proposal{.proposer = call_->mine};
  if (known_ && known_->number > base()) proposal.known = known_;
  std::string mine = str(proposals_key(), self_);
  if (!proposed_.empty() && proposed_ != mine) tell("remove", {.key = proposed_});
  proposed_ = mine;
  ask("set",
      {.key = std::move(mine),
       .value = proposal.encode(),
       .session = true,
       .generation = ground_->view->generation},
      kCallTimeout, [this](const StoreReply&) {
        ground_->has_proposed = true;
        list("");
      });
}

void ElasticCore::list(std::string after) {
  if (after.empty()) ground_->proposers.clear();
  ask("list", {.key = proposals_key(), .after = std::move(after)}, kCallTimeout,
      [this](const StoreReply& reply) {
        const std::string prefix = proposals_key();
        for (const auto& member : alive_in(*ground_->view, options_.group)) {
          const std::string wanted = str(prefix, member.task);
          if (std::binary_search(reply.keys.begin(), reply.keys.end(), wanted)) {
            ground_->proposers.push_back(member.task);
          }
        }
        if (reply.more && !reply.keys.empty()) return list(reply.keys.back());
        std::sort(ground_->proposers.begin(), ground_->proposers.end());
        have_listed();
      });
}

void ElasticCore::have_listed() {
  Ground& ground = *ground_;
  const std::vector<TaskId>& there = ground.proposers;
  // A removal that was late has taken this task's.
  if (!std::binary_search(there.begin(), there.end(), self_)) return end_round();
  std::vector<TaskId> missing = required(ground.record, known_, *ground.view, options_.group);
  std::erase_if(missing, [&](const TaskId& task) {
    return std::binary_search(there.begin(), there.end(), task);
  });
  set_missing(missing);
  ++ground.looks;
  const bool is_member = ground.record && ground.record->rank_of(self_, incarnation_);
  if (!is_member) knock(false);
  // Any task may learn something from what the others bring along where no member of the store's
  // record is there: that it is refused.
  const bool is_settled =
      ground.record && is_inhabited(*ground.record, *ground.view, options_.group);
  if (there.front() == self_ || !is_settled || ground.looks > kPatientLooks) return gather();
  wait_for(key(str("after/", base())), kLookAgain);
}

void ElasticCore::gather() {
  ground_->gathered.clear();
  ground_->to_gather = ground_->proposers.size();
  for (const TaskId& task : ground_->proposers) {
    ask("get", {.key = str(proposals_key(), task)}, kCallTimeout,
        [this, task](const StoreReply& reply) {
          if (reply.has_value) {
            ground_->gathered.push_back(Proposal::decode(reply.value));
            if (ground_->gathered.back().proposer.task != task) {
              throw DataLossError(str("a proposal of ", task, " names another task"));
            }
          }
          if (--ground_->to_gather == 0) judge_gathered();
        });
  }
}

void ElasticCore::judge_gathered() {
  Ground& ground = *ground_;
  const Duration to_settle = left_to_settle();
  const Verdict verdict = judge(*ground.view, options_.group, ground.record,
                                std::move(ground.gathered), to_settle > Duration::zero());
  if (verdict.last) learn(*verdict.last);
  set_missing(verdict.missing);
  call_->too_few = verdict.missing.empty() && !verdict.next;
  const auto& refused = verdict.refused;
  if (verdict.missing.empty() &&
      std::find(refused.begin(), refused.end(), self_) != refused.end()) {
    return refuse(verdict.program);
  }
  if (call_->too_few && call_->mine.standing.leaves) return let_go(verdict.members);
  const bool leads = ground.proposers.front() == self_ || ground.looks > kPatientLooks;
  if (verdict.next && leads) return commit(*verdict.next);
  Duration at_most = call_->too_few ? kLookForMore : kLookAgain;
  if (to_settle > Duration::zero()) at_most = std::min(at_most, to_settle);
  if (leads && !verdict.missing.empty()) {
    return wait_for(str(proposals_key(), verdict.missing.front()), at_most);
  }
  wait_for(key(str("after/", base())), at_most);
}

void ElasticCore::wait_for(std::string key, Duration at_most) {
  ask("get", {.key = std::move(key), .at_most = at_most}, at_most,
      [this](const StoreReply&) { read(); });
}

void ElasticCore::commit(const Record& next) {
  StoreRequest request{
      .key = key("latest"), .value = next.encode(), .generation = ground_->view->generation};
  if (ground_->record) request.expected = ground_->stored;
  ask("compare_and_set", std::move(request), kCallTimeout, [this, next](const StoreReply& reply) {
    if (!reply.done) return read();
    // The others wait for this key.
    tell("set", {.key = key(str("after/", base())), .value = "1"});
    if (base() != 0) tell("remove", {.key = key(str("after/", ground_->record->previous))});
    learn(next);
    if (!take(next)) read();
  });
}

}  // namespace cohort::internal::elastic
