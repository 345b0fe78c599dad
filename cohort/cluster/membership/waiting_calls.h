// Calls that a service keeps until it has an answer, and the answers that it gives once its lock is
// free.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cluster/membership/messages.h"
#include "cohort/cluster/membership/store.h"
#include "cohort/cluster/rpc/clock.h"
#include "cohort/cluster/rpc/service.h"

namespace cohort::internal::membership {

// A transport may run the caller's next step inside of reply(), which may call the service again:
// so nothing is answered under the service's lock. Thread safety: none.
class Outbox {
 public:
  void reply(std::unique_ptr<rpc::Call> call, std::string control);
  void fail(std::unique_ptr<rpc::Call> call, std::exception_ptr error);
  void log(std::string line) { lines_.push_back(std::move(line)); }
  // Adds a line that only helps to look for a fault.
  void detail(std::string line) { details_.push_back(std::move(line)); }

  const std::vector<std::string>& lines() const { return lines_; }
  const std::vector<std::string>& details() const { return details_; }
  // Sends the answers in order. Exceptions do not get out.
  void send() noexcept;

 private:
  struct Answer {
    std::unique_ptr<rpc::Call> call;
    std::string control;
    std::exception_ptr error;
  };
  std::vector<Answer> answers_;
  std::vector<std::string> lines_;
  std::vector<std::string> details_;
};

struct WaitingCall {
  enum class Kind { kRegister, kWatch, kAttend, kGet, kBarrier };

  Kind kind = Kind::kWatch;
  Session session = {};
  std::unique_ptr<rpc::Call> call = nullptr;
  rpc::Clock::Time until = {};  // when it is answered in any case
  uint64_t request = 0;         // the caller's number of it
  std::string name = {};        // key or barrier
  int64_t version = 0;  // watch: the one it has; register: the one its predecessor must show
  RegisterRequest registration = {};
  // get, barrier: set when nobody waits for the answer any more.
  std::shared_ptr<const std::atomic<bool>> gone = nullptr;
};

// Calls that wait, by number, with an index of the times at which they end. Thread safety: none.
class WaitingCalls {
 public:
  using Time = rpc::Clock::Time;
  using Calls = std::map<uint64_t, WaitingCall>;

  // Takes `call` over. Errors: ResourceExhausted (the task has too many; `call` stays).
  uint64_t add(WaitingCall waiting, std::unique_ptr<rpc::Call>& call);
  // The call, which waits no longer.
  WaitingCall take(uint64_t id);
  WaitingCall* find(uint64_t id);
  // In order of their arrival.
  const Calls& all() const { return calls_; }
  // The calls for which `matches(call)`, in order.
  template <class Matches>
  std::vector<uint64_t> find_all(Matches&& matches) const {
    std::vector<uint64_t> found;
    for (const auto& [id, waiting] : calls_) {
      if (matches(waiting)) found.push_back(id);
    }
    return found;
  }

  std::vector<uint64_t> due(Time now) const;
  std::optional<Time> next() const;

 private:
  Calls calls_;
  std::multimap<Time, uint64_t> by_time_;
  std::map<TaskId, size_t> of_task_;
  uint64_t last_id_ = 0;
};

}  // namespace cohort::internal::membership
