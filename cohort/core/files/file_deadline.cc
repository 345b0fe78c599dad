#include "cohort/core/files/file_deadline.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/program/start_thread.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/bounded_wait.h"
#include "cohort/core/threads/synchronized.h"

namespace cohort::internal {
namespace {

using std::chrono::milliseconds;

// Makes calls that may never come back, one at a time, on a thread of its own.
// Thread safety: any thread.
class Caller {
 public:
  // Owns all that it touches.
  using Call = std::function<void()>;

  // Errors: ResourceExhausted (names `action`).
  explicit Caller(const std::string& action) {
    start_thread("for " + action, [state = state_] { work(*state); }).detach();
  }
  // The thread ends with the call it is in.
  ~Caller() { state_->change()->ended = true; }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // Errors: what `call` throws; DeadlineExceeded (it, or one before that was given up, is not back
  // within `timeout`: names `action`).
  void run(milliseconds timeout, const std::string& action, Call call) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    const auto own = std::make_shared<Request>(Request{.call = std::move(call)});
    const auto wait = [&](auto& state, const auto& condition) {
      if (state.wait_until(deadline, condition)) return;
      throw DeadlineExceededError(str(action, " has not come back within ", timeout.count(),
                                      " ms: the device or the server of the file does not answer"));
    };
    {
      auto state = state_->change();
      wait(state, [&] { return !state->current; });
      state->current = own;
    }
    auto state = state_->lock();
    wait(state, [&] { return own->done; });
    if (own->error) std::rethrow_exception(own->error);
  }

  // Whether no call is under way.
  bool is_free() const { return !state_->lock()->current; }

 private:
  struct Request {
    Call call = {};
    bool done = false;
    std::exception_ptr error = {};
  };
  struct State {
    std::shared_ptr<Request> current;  // null: the thread is free
    bool ended = false;
  };

  static void work(Synchronized<State>& shared) {
    while (true) {
      Call call;
      {
        auto state = shared.lock();
        state.wait([&] { return state->ended || state->current; });
        if (!state->current) return;
        call = std::move(state->current->call);
      }
      std::exception_ptr error;
      try {
        call();
      } catch (...) {
        error = std::current_exception();
      }
      call = nullptr;  // may close a file, which may take its time too
      auto state = shared.change();
      state->current->error = error;
      state->current->done = true;
      state->current = nullptr;
    }
  }

  const std::shared_ptr<Synchronized<State>> state_ = std::make_shared<Synchronized<State>>();
};
using CallerPtr = std::shared_ptr<Caller>;

// The callers that no file uses at present, and those that are stuck with a file.
class Callers {
 public:
  // Takes a caller for a call about `path`. If several callers are stuck with the path, it is one
  // of them; otherwise it is another, because a new call may get through where an old one never
  // will.
  CallerPtr take(const std::string& path, const std::string& action) {
    const std::lock_guard lock(mutex_);
    forget_after_fork();
    drop_free();
    CallerPtr caller;
    if (stuck_.count(path) >= kMostStuckWithAFile) {
      const auto found = stuck_.find(path);
      caller = std::move(found->second);
      stuck_.erase(found);
    } else if (!idle_.empty()) {
      caller = std::move(idle_.back());
      idle_.pop_back();
    } else {
      caller = std::make_shared<Caller>(action);
    }
    return caller;
  }
  // Gives back a caller whose call is over, or which its file no longer needs.
  void give_back(CallerPtr caller) {
    if (!caller->is_free()) return;  // its thread ends with the call
    const std::lock_guard lock(mutex_);
    if (process_ == ::getpid() && idle_.size() < kMostIdle) idle_.push_back(std::move(caller));
  }
  void keep_stuck(const std::string& path, CallerPtr caller) {
    const std::lock_guard lock(mutex_);
    drop_free();
    stuck_.emplace(path, std::move(caller));
  }

 private:
  static constexpr size_t kMostStuckWithAFile = 4;
  static constexpr size_t kMostIdle = 4;

  // Drops stuck callers whose call has come back after all.
  void drop_free() {
    std::erase_if(stuck_, [](const auto& one) { return one.second->is_free(); });
  }
  // A child of fork has none of its parent's threads. The parent's callers are left as they are,
  // because one of their mutexes may have been held.
  void forget_after_fork() {
    if (process_ == ::getpid()) return;
    process_ = ::getpid();
    static_cast<void>(new auto(std::move(idle_)));
    static_cast<void>(new auto(std::move(stuck_)));
    idle_.clear();
    stuck_.clear();
  }

  std::mutex mutex_;
  pid_t process_ = ::getpid();
  std::vector<CallerPtr> idle_;
  std::multimap<std::string, CallerPtr> stuck_;
};
// Never destroyed: threads may still be stuck when the program ends.
Callers& callers() {
  static auto* const callers = new Callers;
  return *callers;
}

class WatchedFile final : public ReadableFile {
 public:
  WatchedFile(std::unique_ptr<const ReadableFile> file, std::string path, CallerPtr caller,
              milliseconds timeout)
      : file_(std::move(file)),
        path_(std::move(path)),
        caller_(std::move(caller)),
        timeout_(timeout),
        size_(file_->size()),
        remote_(file_->is_remote()) {}
  ~WatchedFile() override { callers().give_back(caller_); }

  uint64_t size() const override { return size_; }
  bool is_remote() const override { return remote_; }
  void read(uint64_t offset, void* out, size_t length) const override {
    // The call has memory of its own: a read that comes back too late must not write into the
    // caller's memory.
    const auto bytes = std::make_shared_for_overwrite<char[]>(length);
    caller_->run(
        timeout_, str("reading ", quoted(path_), " at byte ", offset),
        [file = file_, offset, bytes, length] { file->read(offset, bytes.get(), length); });
    std::copy_n(bytes.get(), length, static_cast<char*>(out));
  }

 private:
  const std::shared_ptr<const ReadableFile> file_;
  const std::string path_;
  const CallerPtr caller_;
  const milliseconds timeout_;
  const uint64_t size_;
  const bool remote_;
};

// The caller that has made the call, and can make others.
CallerPtr call_on_another_thread(const FileDeadline& deadline, const std::string& path,
                                 const std::string& action, std::function<void()> call) {
  CallerPtr caller = callers().take(path, action);
  try {
    caller->run(deadline.timeout, action, std::move(call));
  } catch (const DeadlineExceededError&) {
    callers().keep_stuck(path, std::move(caller));
    throw;
  } catch (...) {
    callers().give_back(std::move(caller));
    throw;
  }
  return caller;
}

}  // namespace

FileDeadline file_deadline(const std::optional<milliseconds>& read_timeout,
                           const std::string& whose) {
  if (!read_timeout) return kDefaultFileDeadline;
  if (read_timeout->count() < 0) {
    throw InvalidArgumentError(
        str(whose, ": read_timeout is ", read_timeout->count(), " ms; it must be at least 0"));
  }
  return {.timeout = bounded_wait(*read_timeout)};
}

std::unique_ptr<ReadableFile> open_within(FileSystem& files, const std::string& path,
                                          const FileDeadline& deadline) {
  if (deadline.timeout.count() == 0) return files.open(path);
  const auto opened = std::make_shared<std::unique_ptr<ReadableFile>>();
  CallerPtr caller = call_on_another_thread(deadline, path, "opening " + quoted(path),
                                            [&files, path, opened] { *opened = files.open(path); });
  if (deadline.remote_only && !(*opened)->is_remote()) {
    callers().give_back(std::move(caller));
    return std::move(*opened);
  }
  return std::make_unique<WatchedFile>(std::move(*opened), path, std::move(caller),
                                       deadline.timeout);
}

void call_within(const FileDeadline& deadline, const std::string& path, const std::string& action,
                 std::function<void()> call) {
  if (deadline.timeout.count() == 0) return call();
  callers().give_back(call_on_another_thread(deadline, path, action, std::move(call)));
}

}  // namespace cohort::internal
