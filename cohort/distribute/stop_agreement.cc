#include "cohort/distribute/stop_agreement.h"

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"

namespace cohort::internal {

using distribute::TaskStatus;

namespace {

constexpr std::chrono::milliseconds kLook = std::chrono::seconds(1);
// Instead of a number.
constexpr const char* kUnanswered = "none";  // a decision: a task has not answered
constexpr const char* kOver = "over";        // an answer, and then a decision: a task has ended

// "12 some note": a call's number, and what follows it.
std::pair<int64_t, std::string> parse(const std::string& text) {
  const size_t end = text.find(' ');
  return {std::stoll(text.substr(0, end)), end == text.npos ? "" : text.substr(end + 1)};
}

}  // namespace

StopAgreement::StopAgreement(StopGroup group, int round, int64_t finished)
    : group_(std::move(group)), round_(round), begun_(finished), finished_(finished) {}

std::string StopAgreement::key(const std::string& what) const {
  return str(group_.name, "/", round_, "/", what);
}

void StopAgreement::wait_for_decision(std::unique_lock<std::mutex>& lock) {
  // The asker waits as long for its answers, and then says that there is no decision.
  const auto limit = 2 * group_.patience;
  if (changed_.wait_for(lock, limit, [&] { return holds_ == 0 || last_call_; })) return;
  throw DeadlineExceededError(str("a task of ", group_.name, " has asked all to stop, and has not ",
                                  "said after which call for ", limit.count(), " ms"));
}

void StopAgreement::begin_call() {
  std::unique_lock lock(mutex_);
  wait_for_decision(lock);
  begun_ = finished_ + 1;
}

bool StopAgreement::finish_call() {
  std::unique_lock lock(mutex_);
  finished_ = begun_;
  wait_for_decision(lock);
  return last_call_ && *last_call_ <= finished_;
}

bool StopAgreement::is_decided() const {
  const std::lock_guard lock(mutex_);
  return last_call_.has_value();
}

std::string StopAgreement::note() const {
  const std::lock_guard lock(mutex_);
  return note_;
}

int64_t StopAgreement::hold() {
  const std::lock_guard lock(mutex_);
  ++holds_;
  return finished_ + 1;
}

void StopAgreement::let_go() {
  const std::lock_guard lock(mutex_);
  --holds_;
  changed_.notify_all();
}

void StopAgreement::decide(int64_t last_call, const std::string& note) {
  const std::lock_guard lock(mutex_);
  last_call_ = last_call;
  note_ = note;
  changed_.notify_all();
}

bool StopAgreement::ask(const std::string& note) {
  int64_t last_call = 0;
  {
    const std::lock_guard lock(mutex_);
    if (holds_ > 0 || last_call_) return false;  // another task has asked
    ++holds_;
    last_call = finished_ + 1;
  }
  if (group_.cluster == nullptr) {
    decide(last_call, note);
    let_go();
    return true;
  }
  try {
    const std::string self = std::to_string(group_.self);
    if (!group_.cluster->compare_and_set(key("asked"), std::nullopt, self)) {
      let_go();  // answer() takes part
      return false;
    }
    const std::optional<int64_t> others = answers_of_others();
    if (!others) {
      go_on(kOver);
      return false;
    }
    last_call = std::max(last_call, *others);
    group_.cluster->set(key("decision"), str(last_call, " ", note));
  } catch (...) {
    go_on(kUnanswered);
    throw;
  }
  decide(last_call, note);
  let_go();
  return true;
}

std::optional<int64_t> StopAgreement::answers_of_others() {
  int64_t highest = 0;
  for (size_t task = 0; task < group_.tasks.size(); ++task) {
    if (task == group_.self) continue;
    const std::optional<int64_t> next = answer_of(task);
    if (!next) return std::nullopt;
    highest = std::max(highest, *next);
  }
  return highest;
}

std::optional<int64_t> StopAgreement::answer_of(size_t task) {
  const auto end = std::chrono::steady_clock::now() + group_.patience;
  while (true) {
    try {
      const std::string next = group_.cluster->get(key(str("next/", task)), kLook);
      if (next == kOver) return std::nullopt;
      return parse(next).first;
    } catch (const DeadlineExceededError&) {
      for (const distribute::ClusterTask& one : group_.cluster->view().tasks) {
        const bool gone = one.status == TaskStatus::kLost || one.status == TaskStatus::kLeft;
        if (!gone || one.task != group_.tasks[task]) continue;
        throw UnavailableError(str(to_string(one.task), " is ", task_status_name(one.status),
                                   ", so the tasks cannot agree on a call after which they stop"));
      }
      if (std::chrono::steady_clock::now() < end) continue;
      throw DeadlineExceededError(str("asked all tasks to stop, but ",
                                      to_string(group_.tasks[task]), " has not answered for ",
                                      group_.patience.count(), " ms"));
    }
  }
}

void StopAgreement::go_on(const char* why) {
  let_go();
  try {
    group_.cluster->set(key("decision"), why);
  } catch (const std::exception& error) {
    log_warning("the tasks of ", group_.name,
                " are not told that they do not stop together: ", error.what());
  }
}

void StopAgreement::end() {
  if (group_.cluster == nullptr || is_decided()) return;
  group_.cluster->set(key(str("next/", group_.self)), kOver);
}

bool StopAgreement::answer(std::chrono::milliseconds timeout) {
  size_t asker = 0;
  try {
    asker = static_cast<size_t>(std::stoull(group_.cluster->get(key("asked"), timeout)));
  } catch (const DeadlineExceededError&) {
    return is_decided();
  }
  if (asker == group_.self) {  // in another thread
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, timeout, [&] { return last_call_.has_value(); });
  }
  const int64_t next = hold();
  try {
    group_.cluster->set(key(str("next/", group_.self)), std::to_string(next));
    const std::string decision = group_.cluster->get(key("decision"), 2 * group_.patience);
    if (decision == kOver) {
      let_go();
      return true;
    }
    if (decision == kUnanswered) {
      throw UnavailableError(str(asker < group_.tasks.size() ? to_string(group_.tasks[asker]) : "?",
                                 " asked all to stop, but could not reach all of them"));
    }
    const auto [last_call, note] = parse(decision);
    decide(last_call, note);
  } catch (...) {
    let_go();
    throw;
  }
  let_go();
  return true;
}

}  // namespace cohort::internal
