// How a task of an elastic cluster finds the coordination service, and what it makes of its views.
//
// Whoever has none asks all tasks what they are doing. It turns to the service of a group, else to
// the one that is being prepared; if there is none, the first of those that search prepares one
// (search.h). All that matters is safe whoever does: a group counts by its majority.
#include <algorithm>
#include <iterator>

#include "cohort/cluster/membership/agent_core.h"
#include "cohort/cluster/membership/search.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"

namespace cohort::internal::membership {
namespace {

std::exception_ptr loss_of(const Member& before, const View& view) {
  const std::string name = to_string(before.task);
  return rpc::make_error(Code::kUnavailable,
                         str("lost ", name, ": it is not in generation ", view.generation), name,
                         {.peer = name,
                          .incarnation = before.incarnation,
                          .generation = view.generation,
                          .phase = "running"});
}

}  // namespace

void AgentCore::search() {
  if (!searches_on_) {
    searches_on_ = true;
    began_ = clock_.now();
    next_report_ = began_ + kReportEvery;
    search_pauses_ = {kFirstSearch, kLongestSearch};
    if (state_ == State::kMember) {
      log(str("lost ", service_name(),
              last_failure_ ? ": " + record_error(last_failure_).message : "",
              "; looking for the one that takes over"));
    }
  }
  leave_service(State::kSearching);
  ask_around();
}

void AgentCore::ask_around() {
  const ElasticAgentOptions& cluster = *options_.elastic;
  const uint64_t round = ++search_round_;
  standings_.clear();
  standings_awaited_ = cluster.tasks.size();
  for (const TaskId& task : cluster.tasks) {
    // Channels and this task's own service have locks of their own.
    later([self = shared_from_this(), task, round] {
      const ElasticAgentOptions& known = *self->options_.elastic;
      const auto tell = [weak = std::weak_ptr(self), task, round](std::optional<Standing> said) {
        const auto agent = weak.lock();
        if (agent) agent->change([&] { agent->told_standing(round, task, said); });
      };
      if (task == self->options_.task) return tell(known.standing());
      std::shared_ptr<rpc::Channel> channel;
      try {
        channel = known.channel_to(task);
      } catch (const Error&) {  // its address is not known yet
        return tell(std::nullopt);
      }
      channel->retry_now();
      channel->start("membership/standing", {}, {.timeout = kSilentIsAway},
                     [tell](const rpc::CallResult& result) {
                       if (result.error) return tell(std::nullopt);
                       try {
                         tell(Standing::decode(result.reply.control));
                       } catch (const Error&) {
                         tell(std::nullopt);
                       }
                     });
    });
  }
}

void AgentCore::told_standing(uint64_t round, const TaskId& task,
                              const std::optional<Standing>& standing) {
  if (state_ != State::kSearching || round != search_round_) return;
  if (standing) standings_[task] = *standing;
  --standings_awaited_;
  decide_where(standings_awaited_ == 0);
}

void AgentCore::decide_where(bool is_complete) {
  const SearchResult found =
      decide({.self = options_.task,
              .term_seen = term_seen_,
              .service = record_ ? record_->service : 0,
              .waits_long = clock_.now() - began_ >= kLongWaits * heartbeat_.dead_after,
              .may_prepare = record_ || options_.elastic->may_begin,
              .standings = standings_,
              .is_complete = is_complete});
  if (!found.turn_to) {
    if (is_complete) search_failed("no task holds it");
    return;
  }
  ++search_round_;
  const View record = record_ ? *record_ : View();
  later([self = shared_from_this(), task = *found.turn_to, prepare = found.prepare, record] {
    std::shared_ptr<rpc::Channel> channel;
    try {
      channel = self->options_.elastic->channel_to(task);
      if (prepare) self->options_.elastic->coordinate(record);
    } catch (const Error& error) {
      return self->change([&] {
        if (self->state_ == State::kSearching) self->search_failed(error.what());
      });
    }
    self->change([&] {
      if (self->state_ != State::kSearching) return;
      self->channel_ = channel;
      self->state_ = State::kRegistering;
      self->send_register();
    });
  });
}

void AgentCore::search_failed(const std::string& why) {
  const Time now = clock_.now();
  const std::string text =
      str(options_.task, " looks for the coordination service",
          record_ ? str(" that takes over that of ", record_->coordinator) : "", ": ", why);
  if (now - began_ >= options_.start_timeout) {
    return end(rpc::make_error(Code::kUnavailable,
                               str(text, "; given up after ", seconds_in(now - began_), " s"), "",
                               {.generation = generation_seen_, .phase = "search"}));
  }
  if (now >= next_report_) {
    next_report_ = now + kReportEvery;
    log(str("waiting for ", seconds_in(now - began_), " s: ", text));
  }
  after(jittered(search_pauses_.next()), [this](Time) {
    if (state_ == State::kSearching) ask_around();
  });
}

bool AgentCore::holder_is_dead() const {
  if (state_ != State::kMember || !record_) return false;
  const Member* holder = record_->find(channel_->peer());
  return holder != nullptr && options_.elastic->is_dead(*holder);
}

// Users learn of a group when its members have acknowledged it: before that it may be none. What
// has happened since the last one that they know is told then.
void AgentCore::apply_elastic(View view) {
  if (view.generation == 0) {
    // Users are told who has come before the start only where there was no group before.
    if (!record_) view_ = std::make_shared<const View>(std::move(view));
    return;
  }
  untold_.insert(untold_.end(), std::make_move_iterator(view.events.begin()),
                 std::make_move_iterator(view.events.end()));
  view.events.clear();
  record_ = std::make_shared<const View>(std::move(view));
  if (!record_->agreed) return;
  View told = *record_;
  told.events = std::move(untold_);
  untold_.clear();
  const ViewPtr before = view_ && view_->generation > 0 ? view_ : nullptr;
  // A task that its users do not know is not lost to them.
  std::erase_if(told.events, [&](const Event& event) {
    if (event.kind != EventKind::kLost && event.kind != EventKind::kLeft) return false;
    const Member* known = before ? before->find(event.task) : nullptr;
    return known == nullptr || known->state != TaskState::kAlive ||
           known->incarnation != event.incarnation;
  });
  for (const Member& member : before ? before->members : std::vector<Member>()) {
    if (member.state != TaskState::kAlive || member.observer) continue;
    const Member* now = told.find(member.task);
    const bool goes_on =
        now != nullptr && now->state == TaskState::kAlive && now->incarnation == member.incarnation;
    const bool is_told = std::any_of(told.events.begin(), told.events.end(), [&](const Event& one) {
      return one.task == member.task && one.incarnation == member.incarnation &&
             one.kind != EventKind::kReported;
    });
    if (goes_on || is_told) continue;
    told.events.push_back({told.version, EventKind::kLost, member.task, member.incarnation,
                           rpc::encode_error(loss_of(member, told))});
  }
  searches_on_ = false;
  view_ = std::make_shared<const View>(std::move(told));
  act_in(view_->generation, view_);
  tell(view_);
}

Standing AgentCore::standing() const {
  const std::lock_guard lock(mutex_);
  Standing standing{.term_seen = term_seen_};
  if (state_ == State::kEnded || leaving_) {
    standing.stage = Stage::kEnded;
  } else if (state_ == State::kMember) {
    standing.stage = Stage::kObeys;
  }
  return standing;
}

}  // namespace cohort::internal::membership
