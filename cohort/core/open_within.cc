#include "cohort/core/open_within.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

using std::chrono::milliseconds;

// Runs `call`, which owns all that it touches, on a thread of its own.
void run_within(milliseconds timeout, const std::string& action, std::function<void()> call) {
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;         // guarded by mutex
    std::exception_ptr error;  // guarded by mutex
  };
  const auto state = std::make_shared<State>();
  try {
    std::thread([state, call = std::move(call)] {
      std::exception_ptr error;
      try {
        call();
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard lock(state->mutex);
      state->done = true;
      state->error = error;
      state->changed.notify_all();
    }).detach();
  } catch (const std::system_error& error) {
    throw ResourceExhaustedError(str("no thread for ", action, ": ", error.what()));
  }
  std::unique_lock lock(state->mutex);
  if (!state->changed.wait_for(lock, timeout, [&] { return state->done; })) {
    throw DeadlineExceededError(str(action, " has not come back within ", timeout.count(),
                                    " ms: the device or the server of the file does not answer"));
  }
  if (state->error) std::rethrow_exception(state->error);
}

class WatchedFile final : public ReadableFile {
 public:
  WatchedFile(std::shared_ptr<const ReadableFile> file, std::string path, milliseconds timeout)
      : file_(std::move(file)), path_(std::move(path)), timeout_(timeout), size_(file_->size()) {}

  uint64_t size() const override { return size_; }
  void read(uint64_t offset, void* out, size_t length) const override {
    // Of its own: a read that comes back too late must not write into the caller's memory.
    const auto bytes = std::make_shared_for_overwrite<char[]>(length);
    run_within(timeout_, str("reading ", quoted(path_), " at byte ", offset),
               [file = file_, offset, bytes, length] { file->read(offset, bytes.get(), length); });
    std::copy_n(bytes.get(), length, static_cast<char*>(out));
  }

 private:
  const std::shared_ptr<const ReadableFile> file_;
  const std::string path_;
  const milliseconds timeout_;
  const uint64_t size_;
};

}  // namespace

std::unique_ptr<ReadableFile> open_within(FileSystem& files, const std::string& path,
                                          milliseconds timeout) {
  const auto opened = std::make_shared<std::shared_ptr<const ReadableFile>>();
  run_within(timeout, "opening " + quoted(path),
             [&files, path, opened] { *opened = files.open(path); });
  return std::make_unique<WatchedFile>(*opened, path, timeout);
}

}  // namespace cohort::internal
