#include "cohort/cluster/rpc/repeating_channel.h"

#include <map>
#include <mutex>
#include <utility>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/threads/backoff.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::internal::rpc {
namespace {

using std::chrono::milliseconds;
using Time = Clock::Time;

constexpr milliseconds kFirstPause{10};
constexpr milliseconds kLongestPause{200};

struct EarlyCall {
  std::string method;
  Message request;
  CallOptions options;
  std::function<void(CallResult)> done;
  Time deadline;
  Backoff pauses{kFirstPause, kLongestPause};
};
using EarlyCallPtr = std::shared_ptr<EarlyCall>;

bool is_early(const std::exception_ptr& error) {
  return error && record_error(error).code == Code::kUnavailable &&
         detail_of(error).cause == Cause::kBehind;
}

class RepeatingChannel final : public Channel {
 public:
  RepeatingChannel(std::shared_ptr<Channel> channel, std::function<Clock&()> clock)
      : state_(std::make_shared<State>(std::move(channel), std::move(clock))) {}
  ~RepeatingChannel() override { close(); }

  const TaskId& peer() const override { return state_->channel->peer(); }
  const std::string& address() const override { return state_->channel->address(); }
  void retry_now() override { state_->channel->retry_now(); }

  void start(std::string_view method, Message request, const CallOptions& options,
             std::function<void(CallResult)> done) override {
    attempt(state_,
            std::make_shared<EarlyCall>(EarlyCall{
                .method = std::string(method),
                .request = std::move(request),
                .options = options,
                .done = std::move(done),
                .deadline = std::chrono::steady_clock::now() + bounded_wait(options.timeout)}),
            options.timeout);
  }

  CallResult wait_for(std::string_view method, Message request,
                      const CallOptions& options) override {
    const Time deadline = std::chrono::steady_clock::now() + bounded_wait(options.timeout);
    CallResult result = state_->channel->wait_for(method, request, options);
    const auto left = deadline - std::chrono::steady_clock::now();
    if (!is_early(result.error) || left <= milliseconds(0)) return result;
    CallOptions again = options;
    again.timeout = left;
    return Channel::wait_for(method, std::move(request), again);
  }

  void close() override {
    std::map<Clock::TimerId, EarlyCallPtr> waiting;
    {
      const std::lock_guard lock(state_->mutex);
      state_->closed = true;
      waiting.swap(state_->waiting);
    }
    state_->channel->close();
    for (const auto& [timer, call] : waiting) {
      state_->clock().cancel(timer);
      call->done(
          {.error = make_error(
               Code::kCancelled, str(call->method, ": the channel to ", peer(), " was closed"), "",
               {.peer = to_string(peer()), .rpc = call->method, .cause = Cause::kClosed}),
           .reply = {}});
    }
  }

 private:
  struct State {
    State(std::shared_ptr<Channel> to, std::function<Clock&()> time)
        : channel(std::move(to)), clock(std::move(time)) {}
    const std::shared_ptr<Channel> channel;
    const std::function<Clock&()> clock;
    std::mutex mutex;
    bool closed = false;                             // guarded by mutex
    std::map<Clock::TimerId, EarlyCallPtr> waiting;  // for their next attempt; guarded by mutex
  };

  static void attempt(const std::shared_ptr<State>& state, const EarlyCallPtr& call,
                      std::chrono::nanoseconds timeout) {
    CallOptions options = call->options;
    options.timeout = timeout;
    state->channel->start(call->method, call->request, options, [state, call](CallResult result) {
      if (!is_early(result.error) || !wait(state, call)) call->done(std::move(result));
    });
  }

  // Whether the call will start again.
  static bool wait(const std::shared_ptr<State>& state, const EarlyCallPtr& call) {
    const std::lock_guard lock(state->mutex);
    if (state->closed) return false;
    Clock& clock = state->clock();
    const Time next = clock.now() + call->pauses.next();
    if (next >= call->deadline) return false;
    const auto timer = std::make_shared<Clock::TimerId>();
    // The function finds its number: it waits for the lock.
    *timer = clock.call_at(next, [weak = std::weak_ptr(state), timer, next] {
      const auto self = weak.lock();
      if (!self) return;
      EarlyCallPtr due;
      {
        const std::lock_guard again(self->mutex);
        const auto found = self->waiting.find(*timer);
        if (found == self->waiting.end()) return;  // close() has it
        due = std::move(found->second);
        self->waiting.erase(found);
      }
      attempt(self, due, due->deadline - next);
    });
    state->waiting.emplace(*timer, call);
    return true;
  }

  const std::shared_ptr<State> state_;
};

}  // namespace

std::shared_ptr<Channel> repeat_early_calls(std::shared_ptr<Channel> channel,
                                            std::function<Clock&()> clock) {
  return std::make_shared<RepeatingChannel>(std::move(channel), std::move(clock));
}

}  // namespace cohort::internal::rpc
