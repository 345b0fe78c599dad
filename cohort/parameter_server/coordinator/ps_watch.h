// A coordinator's eye on the ps tasks: a lost one is noticed at once, also while nothing is sent.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cohort/cluster/rpc/channel.h"
#include "cohort/cluster/rpc/clock.h"
#include "cohort/parameter_server/leadership/coordinator_fence.h"
#include "cohort/parameter_server/leadership/leadership_message.h"

namespace cohort::internal {

// A call to each ps task stays open. When it breaks, the task is asked whether it is still there;
// where it does not answer within a grace, or has been started again, it is lost.
// Thread safety: any thread; callbacks come on any thread, without a lock of this.
class PsWatch : public std::enable_shared_from_this<PsWatch> {
 public:
  struct Options {
    int num_ps = 0;
    int64_t generation = 0;  // the coordinator's
    std::function<std::shared_ptr<rpc::Channel>(int ps)> channel;
    // How long a ps task whose connection broke may take to answer over a new one.
    std::chrono::milliseconds grace{300};
    // So often within a minute a ps task may fail for a moment.
    int tolerated_failures = 3;
    // The path of the program's last checkpoint; empty: none.
    std::function<std::string()> last_checkpoint = nullptr;
    // What a ps task has said of its own failure; empty: nothing.
    std::function<std::string(const TaskId& task)> failure_told_by = nullptr;
  };
  PsWatch(rpc::Clock& clock, Options options);

  // `on_lost` gets an Unavailable that names the task, its address and the last checkpoint; an
  // Aborted where a later coordinator has taken the ps tasks.
  void start(std::function<void(const std::exception_ptr&)> on_lost);
  void stop();

  // The ps task that the error of a worker's closure is about; -1: none.
  int about(const std::exception_ptr& error) const;
  // Such an error came. The task is lost if it is one too many; else `again` is called after a
  // while, in which it has time to be found lost.
  void failed(int ps, const std::exception_ptr& error, std::function<void()> again);

  // Lets all ps tasks refuse the worker's sessions below, however often their connections break
  // meanwhile; `done` is called when they do, or are lost. Not after stop().
  void refuse_worker(int worker, SessionId below, std::function<void()> done);

 private:
  struct Ps {
    bool is_lost = false;
    bool is_suspect = false;
    rpc::Clock::Time suspect_since = {};
    int failures = 0;
    rpc::Clock::Time last_failure = {};
  };

  void attend(int ps);
  void suspect(int ps, const std::exception_ptr& error);
  void ask(int ps);
  void answered(int ps, const rpc::CallResult& result);
  // Whether it is one too many. Under the lock.
  bool count_failure(Ps& ps);
  void lose(int ps, const std::exception_ptr& why);
  void refuse(int ps, const RefuseWorker& refusal, std::function<void()> done);
  void wake_after(std::chrono::milliseconds delay, std::function<void()> work);

  const Options options_;
  std::function<void(const std::exception_ptr&)> on_lost_;  // set by start()
  std::mutex mutex_;                                        // guards what follows
  rpc::Clock* clock_;                                       // null: stopped
  std::vector<Ps> ps_;
};

}  // namespace cohort::internal
