// How long a call of form() waits, for whom, and what it says then.
#include <algorithm>

#include "cohort/cluster/elastic/elastic_core.h"
#include "cohort/cluster/membership/barriers.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/cluster/rpc/text.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal::elastic {
namespace {

int64_t seconds_in(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

}  // namespace

void ElasticCore::set_missing(const std::vector<TaskId>& tasks) {
  std::map<TaskId, Time> missing;
  for (const TaskId& task : tasks) {
    const auto known = call_->missing.find(task);
    missing[task] = known == call_->missing.end() ? clock_.now() : known->second;
  }
  call_->missing = std::move(missing);
}

bool ElasticCore::joins() const {
  return known_ && is_inhabited(*known_, *ground_->view, options_.group) &&
         !known_->rank_of(self_, incarnation_);
}

Duration ElasticCore::left_to_settle() const {
  if (ground_->record) return Duration::zero();
  return std::max(Duration::zero(), call_->since + options_.settle - clock_.now());
}

void ElasticCore::check_limits() {
  const Time now = clock_.now();
  check_count(now);
  if (call_) check_missing(now);
  if (call_) report(now);
}

void ElasticCore::check_missing(Time now) {
  const Duration deadline = joins() ? options_.join_deadline : options_.deadline;
  std::vector<TaskId> late;
  for (const auto& [task, since] : call_->missing) {
    if (now - since >= deadline) late.push_back(task);
  }
  const std::string_view name = options_.group.name;
  if (!late.empty()) {
    return fail(rpc::make_error(
        Code::kDeadlineExceeded,
        str("group ", quoted(name), " has not formed within ", seconds_in(deadline),
            " s: alive, and do not ask for it: ", membership::list_tasks(late)),
        to_string(late.front()),
        {.peer = to_string(late.front()), .generation = call_->generation, .phase = "forming"}));
  }
  if (now - call_->heard < options_.deadline) return;
  fail(make_error(Code::kDeadlineExceeded,
                  str("group ", quoted(name), " has not formed: the coordination service's store ",
                      "has not answered for ", seconds_in(options_.deadline), " s")));
}

void ElasticCore::check_count(Time now) {
  const size_t alive = alive_in(*ground_->view, options_.group).size();
  if (alive >= least(options_.group) && !call_->too_few) {
    call_->too_few_since.reset();
    return;
  }
  if (!call_->too_few_since) call_->too_few_since = now;
  if (now - *call_->too_few_since < options_.patience) return;
  fail(rpc::make_error(Code::kUnavailable,
                       str("group ", quoted(options_.group.name), " needs ", least(options_.group),
                           " tasks, and ", alive, " have been alive for ",
                           seconds_in(options_.patience), " s; gone: ", who_is_gone()),
                       "", {.generation = call_->generation, .phase = "forming"}));
}

void ElasticCore::report(Time now) {
  if (now < call_->next_report) return;
  call_->next_report = now + kReportEvery;
  std::vector<TaskId> tasks;
  for (const auto& [task, since] : call_->missing) tasks.push_back(task);
  std::string line = str("group ", quoted(options_.group.name), ": waiting for ",
                         seconds_in(now - call_->began), " s for ");
  if (call_->too_few_since) {
    line += str("at least ", least(options_.group), " tasks; gone: ", who_is_gone());
  } else if (joins()) {
    line += "the end of the step of " + membership::list_tasks(tasks);
  } else {
    line += tasks.empty() ? "the coordination service" : membership::list_tasks(tasks);
  }
  calls_.add([this, line = std::move(line)] { options_.log(line); });
}

std::string ElasticCore::who_is_gone() const {
  std::string text;
  for (const membership::Member& member : ground_->view->members) {
    const auto& jobs = options_.group.jobs;
    const bool is_of_group = std::find(jobs.begin(), jobs.end(), member.task.job) != jobs.end();
    if (!is_of_group || member.state == membership::TaskState::kAlive) continue;
    text +=
        str(text.empty() ? "" : ", ", member.task, " (", membership::state_name(member.state), ")");
  }
  return text.empty() ? "nobody, but others leave or have another program" : text;
}

void ElasticCore::let_go(size_t stay) {
  fail(make_error(
      Code::kUnavailable,
      str("group ", quoted(options_.group.name), " needs ", least(options_.group), " tasks, and ",
          stay, " stay if ", self_, " leaves: nobody takes over from it, so it may go as it is")));
}

void ElasticCore::refuse(const std::string& program) {
  const auto shown = [](const std::string& text) {
    return quoted(rpc::printable(rpc::head_of(text, 80)));
  };
  fail(rpc::make_error(
      Code::kFailedPrecondition,
      str("group ", quoted(options_.group.name), " does not take ", self_, ": its program is ",
          shown(call_->mine.standing.program), ", that of the group is ", shown(program)),
      to_string(self_), {.peer = to_string(self_), .phase = "forming"}));
}

}  // namespace cohort::internal::elastic
