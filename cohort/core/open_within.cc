#include "cohort/core/open_within.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

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
    try {
      std::thread([state = state_] { state->work(); }).detach();
    } catch (const std::system_error& error) {
      throw ResourceExhaustedError(str("no thread for ", action, ": ", error.what()));
    }
  }
  // The thread ends with the call it is in.
  ~Caller() {
    const std::lock_guard lock(state_->mutex);
    state_->ended = true;
    state_->changed.notify_all();
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // Errors: what `call` throws; DeadlineExceeded (it, or one before that was given up, is not back
  // within `timeout`: names `action`).
  void run(milliseconds timeout, const std::string& action, Call call) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    std::unique_lock lock(state_->mutex);
    const auto wait = [&](const auto& condition) {
      if (state_->changed.wait_until(lock, deadline, condition)) return;
      throw DeadlineExceededError(str(action, " has not come back within ", timeout.count(),
                                      " ms: the device or the server of the file does not answer"));
    };
    wait([&] { return !state_->current; });
    const auto own = std::make_shared<Request>();
    own->call = std::move(call);
    state_->current = own;
    state_->changed.notify_all();
    wait([&] { return own->done; });
    if (own->error) std::rethrow_exception(own->error);
  }

  // Whether no call is under way.
  bool is_free() const {
    const std::lock_guard lock(state_->mutex);
    return !state_->current;
  }

 private:
  struct Request {
    Call call;
    bool done = false;
    std::exception_ptr error;
  };
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::shared_ptr<Request> current;  // null: the thread is free; guarded by mutex, as it is
    bool ended = false;                // guarded by mutex

    void work() {
      std::unique_lock lock(mutex);
      while (true) {
        changed.wait(lock, [this] { return ended || current; });
        if (!current) return;
        Call call = std::move(current->call);
        lock.unlock();
        std::exception_ptr error;
        try {
          call();
        } catch (...) {
          error = std::current_exception();
        }
        call = nullptr;  // may close a file, which may take its time too
        lock.lock();
        current->error = error;
        current->done = true;
        current = nullptr;
        changed.notify_all();
      }
    }
  };

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};
using CallerPtr = std::shared_ptr<Caller>;

// Those whose call to open a file has not come back, by path, for whoever tries it next.
class StuckCallers {
 public:
  // Null as long as there are few: a new call may get through where an old one never will.
  CallerPtr take(const std::string& path) {
    const std::lock_guard lock(mutex_);
    drop_free();
    if (callers_.count(path) < kMostOfAFile) return nullptr;
    const auto found = callers_.find(path);
    CallerPtr caller = std::move(found->second);
    callers_.erase(found);
    return caller;
  }
  void keep(const std::string& path, CallerPtr caller) {
    const std::lock_guard lock(mutex_);
    drop_free();
    callers_.emplace(path, std::move(caller));
  }

 private:
  static constexpr size_t kMostOfAFile = 4;

  // Whose call has come back after all.
  void drop_free() {
    std::erase_if(callers_, [](const auto& one) { return one.second->is_free(); });
  }

  std::mutex mutex_;
  std::multimap<std::string, CallerPtr> callers_;
};
// Never destroyed: threads may still be stuck when the program ends.
StuckCallers& stuck_callers() {
  static auto* const callers = new StuckCallers;
  return *callers;
}

class WatchedFile final : public ReadableFile {
 public:
  WatchedFile(std::shared_ptr<const ReadableFile> file, std::string path, CallerPtr caller,
              milliseconds timeout)
      : file_(std::move(file)),
        path_(std::move(path)),
        caller_(std::move(caller)),
        timeout_(timeout),
        size_(file_->size()) {}

  uint64_t size() const override { return size_; }
  void read(uint64_t offset, void* out, size_t length) const override {
    // Of its own: a read that comes back too late must not write into the caller's memory.
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
};

}  // namespace

std::unique_ptr<ReadableFile> open_within(FileSystem& files, const std::string& path,
                                          milliseconds timeout) {
  const std::string action = "opening " + quoted(path);
  CallerPtr caller = stuck_callers().take(path);
  if (caller == nullptr) caller = std::make_shared<Caller>(action);
  const auto opened = std::make_shared<std::shared_ptr<const ReadableFile>>();
  try {
    caller->run(timeout, action, [&files, path, opened] { *opened = files.open(path); });
  } catch (const DeadlineExceededError&) {
    stuck_callers().keep(path, std::move(caller));
    throw;
  }
  return std::make_unique<WatchedFile>(*opened, path, std::move(caller), timeout);
}

}  // namespace cohort::internal
