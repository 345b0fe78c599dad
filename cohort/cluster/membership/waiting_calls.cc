#include "cohort/cluster/membership/waiting_calls.h"

#include <iterator>

#include "cohort/cluster/membership/message_body.h"
#include "cohort/core/error.h"

namespace cohort::internal::membership {
namespace {

constexpr size_t kMostWaitingOfTask = 1024;

}  // namespace

void Outbox::reply(std::unique_ptr<rpc::Call> call, std::string control) {
  answers_.push_back({std::move(call), std::move(control), nullptr});
}

void Outbox::fail(std::unique_ptr<rpc::Call> call, std::exception_ptr error) {
  answers_.push_back({std::move(call), "", std::move(error)});
}

void Outbox::send() noexcept {
  for (Answer& answer : answers_) {
    try {
      if (answer.error) {
        answer.call->fail(answer.error);
      } else {
        answer.call->reply(to_message(std::move(answer.control)));
      }
    } catch (...) {  // the caller is gone: it has no use for the answer
    }
  }
  answers_.clear();
}

uint64_t WaitingCalls::add(WaitingCall waiting, std::unique_ptr<rpc::Call>& call) {
  size_t& count = of_task_[waiting.session.task];
  if (count >= kMostWaitingOfTask) {
    throw ResourceExhaustedError(
        str(waiting.session.task, " has ", count, " calls that wait, as many as a task may have"));
  }
  ++count;
  const uint64_t id = ++last_id_;
  waiting.call = std::move(call);
  by_time_.emplace(waiting.until, id);
  calls_.emplace(id, std::move(waiting));
  return id;
}

WaitingCall WaitingCalls::take(uint64_t id) {
  const auto found = calls_.find(id);
  WaitingCall waiting = std::move(found->second);
  calls_.erase(found);
  const auto [begin, end] = by_time_.equal_range(waiting.until);
  for (auto entry = begin; entry != end; ++entry) {
    if (entry->second == id) {
      by_time_.erase(entry);
      break;
    }
  }
  const auto count = of_task_.find(waiting.session.task);
  if (--count->second == 0) of_task_.erase(count);
  return waiting;
}

WaitingCall* WaitingCalls::find(uint64_t id) {
  const auto found = calls_.find(id);
  return found == calls_.end() ? nullptr : &found->second;
}

std::vector<uint64_t> WaitingCalls::due(Time now) const {
  std::vector<uint64_t> ids;
  for (const auto& [time, id] : by_time_) {
    if (time > now) break;
    ids.push_back(id);
  }
  return ids;
}

std::optional<WaitingCalls::Time> WaitingCalls::next() const {
  if (by_time_.empty()) return std::nullopt;
  return by_time_.begin()->first;
}

}  // namespace cohort::internal::membership
