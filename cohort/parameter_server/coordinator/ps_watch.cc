#include "cohort/parameter_server/coordinator/ps_watch.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/parameter_server/cluster/lost_ps.h"

namespace cohort::internal {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShortestAnswer{50};  // to a question that takes no time
constexpr milliseconds kBetweenQuestions{30};
constexpr milliseconds kBeforeAnotherTry{200};
constexpr milliseconds kOneFailure{1000};  // what fails within it fails for one reason
constexpr milliseconds kFailuresCountFor{60'000};

// Whether the ps task has answered, and does not obey this coordinator any more.
bool is_refusal(const std::exception_ptr& error) {
  const Cause cause = rpc::detail_of(error).cause;
  return cause != Cause::kOther && cause != Cause::kNoAnswer && cause != Cause::kClosed;
}

}  // namespace

PsWatch::PsWatch(rpc::Clock& clock, Options options)
    : options_(std::move(options)), clock_(&clock), ps_(static_cast<size_t>(options_.num_ps)) {}

void PsWatch::start(std::function<void(const std::exception_ptr&)> on_lost) {
  on_lost_ = std::move(on_lost);
  for (int ps = 0; ps < options_.num_ps; ++ps) attend(ps);
}

void PsWatch::stop() {
  const std::lock_guard lock(mutex_);
  clock_ = nullptr;
}

void PsWatch::wake_after(milliseconds delay, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (clock_ != nullptr) clock_->call_at(clock_->now() + delay, std::move(work));
}

void PsWatch::attend(int ps) {
  {
    const std::lock_guard lock(mutex_);
    if (clock_ == nullptr) return;
  }
  options_.channel(ps)->start(
      "leadership/attend", encode(LeaderClaim{.generation = options_.generation}),
      {.timeout = kAttendance}, [weak = weak_from_this(), ps](const rpc::CallResult& result) {
        const auto self = weak.lock();
        if (!self) return;
        const bool is_over =
            result.error == nullptr || record_error(result.error).code == Code::kDeadlineExceeded;
        is_over ? self->attend(ps) : self->suspect(ps, result.error);
      });
}

void PsWatch::suspect(int ps, const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex_);
    if (clock_ == nullptr) return;
    Ps& state = ps_[static_cast<size_t>(ps)];
    state.is_suspect = true;
    state.suspect_since = clock_->now();
  }
  const Code code = record_error(error).code;
  if (code != Code::kUnavailable && code != Code::kCancelled) return lose(ps, error);
  ask(ps);
}

void PsWatch::ask(int ps) {
  milliseconds left{0};
  {
    const std::lock_guard lock(mutex_);
    if (clock_ == nullptr) return;
    left = std::chrono::duration_cast<milliseconds>(ps_[static_cast<size_t>(ps)].suspect_since +
                                                    options_.grace - clock_->now());
  }
  const auto channel = options_.channel(ps);
  channel->retry_now();
  channel->start("leadership/hello", encode(LeaderClaim{.generation = options_.generation}),
                 {.timeout = std::max(left, kShortestAnswer)},
                 [weak = weak_from_this(), ps](const rpc::CallResult& result) {
                   if (const auto self = weak.lock()) self->answered(ps, result);
                 });
}

void PsWatch::answered(int ps, const rpc::CallResult& result) {
  bool is_lost = false;
  {
    const std::lock_guard lock(mutex_);
    if (clock_ == nullptr) return;
    Ps& state = ps_[static_cast<size_t>(ps)];
    if (result.error == nullptr) {
      state.is_suspect = false;
    } else {
      const bool is_refused = is_refusal(result.error);
      is_lost = is_refused || clock_->now() - state.suspect_since >= options_.grace;
    }
  }
  if (result.error == nullptr) {
    log_info("the connection to ", TaskId{kPs, ps}, " broke, and is there again");
    return attend(ps);
  }
  if (is_lost) return lose(ps, result.error);
  wake_after(kBetweenQuestions, [weak = weak_from_this(), ps] {
    if (const auto self = weak.lock()) self->ask(ps);
  });
}

void PsWatch::lose(int ps, const std::exception_ptr& why) {
  {
    const std::lock_guard lock(mutex_);
    ps_[static_cast<size_t>(ps)].is_lost = true;
  }
  const ErrorDetail detail = rpc::detail_of(why);
  const ErrorRecord record = record_error(why);
  const TaskId task{kPs, ps};
  if (detail.cause == Cause::kFenced) {
    return on_lost_(rpc::make_error(
        Code::kAborted,
        str("a later coordinator has taken the cluster over from this one, of generation ",
            options_.generation, ": ", record.message),
        to_string(task), detail));
  }
  on_lost_(lost_ps_error({.task = task,
                          .address = options_.channel(ps)->address(),
                          .generation = options_.generation,
                          .checkpoint = options_.last_checkpoint ? options_.last_checkpoint() : "",
                          .told = options_.failure_told_by ? options_.failure_told_by(task) : ""},
                         record.message));
}

int PsWatch::about(const std::exception_ptr& error) const {
  return unanswering_ps(error, options_.num_ps);
}

bool PsWatch::count_failure(Ps& ps) {
  const auto now = clock_->now();
  if (now - ps.last_failure >= kFailuresCountFor) ps.failures = 0;
  if (ps.failures == 0 || now - ps.last_failure >= kOneFailure) ++ps.failures;
  ps.last_failure = now;
  return ps.failures > options_.tolerated_failures;
}

void PsWatch::failed(int ps, const std::exception_ptr& error, std::function<void()> again) {
  bool is_too_many = false;
  {
    const std::lock_guard lock(mutex_);
    if (clock_ == nullptr) return;
    Ps& state = ps_[static_cast<size_t>(ps)];
    is_too_many = !state.is_suspect && count_failure(state);
  }
  if (is_too_many || rpc::detail_of(error).cause == Cause::kStartedAgain) return lose(ps, error);
  wake_after(kBeforeAnotherTry, std::move(again));
}

void PsWatch::refuse_worker(int worker, SessionId below, std::function<void()> done) {
  const auto left = std::make_shared<std::atomic<int>>(options_.num_ps);
  const auto one_is_done = [left, done = std::move(done)] {
    if (left->fetch_sub(1) == 1) done();
  };
  for (int ps = 0; ps < options_.num_ps; ++ps) {
    refuse(ps, {options_.generation, worker, below}, one_is_done);
  }
}

void PsWatch::refuse(int ps, const RefuseWorker& refusal, std::function<void()> done) {
  const auto channel = options_.channel(ps);
  channel->retry_now();
  channel->start("leadership/refuse_worker", encode(refusal), {.timeout = kAttendance},
                 [weak = weak_from_this(), ps, refusal,
                  done = std::move(done)](const rpc::CallResult& result) {
                   if (result.error == nullptr) return done();
                   const auto self = weak.lock();
                   if (self == nullptr) return;
                   if (is_refusal(result.error)) self->lose(ps, result.error);
                   bool is_lost = false;
                   {
                     const std::lock_guard lock(self->mutex_);
                     is_lost = self->ps_[static_cast<size_t>(ps)].is_lost;
                   }
                   if (is_lost) return done();
                   self->wake_after(kBetweenQuestions, [weak, ps, refusal, done] {
                     if (const auto again = weak.lock()) again->refuse(ps, refusal, done);
                   });
                 });
}

}  // namespace cohort::internal
