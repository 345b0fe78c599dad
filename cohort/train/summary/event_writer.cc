#include "cohort/train/summary/event_writer.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "cohort/core/durations.h"
#include "cohort/core/error.h"
#include "cohort/core/host/host_name.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/start_thread.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/bounded_wait.h"
#include "cohort/data/records/tfrecord_writer.h"
#include "cohort/train/summary/event_encoding.h"

namespace cohort::internal {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxWaitingBytes = size_t{64} << 20;

// "events.out.tfevents.SECONDS.HOST.PROCESS.NUMBER" and the suffix, as TensorFlow has it.
std::string new_file_name(const std::string& suffix) {
  static std::atomic<int64_t> count{0};
  const std::string seconds = with_zeros(static_cast<int64_t>(wall_time()), 10);
  return str("events.out.tfevents.", seconds, ".", host_name(), ".", getpid(), ".", count++,
             suffix);
}

std::string checked_path(const std::string& logdir, const EventWriterOptions& options) {
  if (logdir.empty()) {
    throw InvalidArgumentError("create_file_writer: logdir is empty; name a directory");
  }
  if (options.max_queue < 0 || options.flush_interval.count() < 0) {
    throw InvalidArgumentError(str("create_file_writer: max_queue is ", options.max_queue,
                                   " and flush_millis ", options.flush_interval.count(),
                                   "; neither may be below 0"));
  }
  check_not_negative("create_file_writer: timeout", options.timeout);
  if (options.filename_suffix.find('/') != std::string::npos) {
    throw InvalidArgumentError(str("create_file_writer: filename_suffix is ",
                                   quoted(options.filename_suffix), "; it cannot hold a '/'"));
  }
  return join_path(logdir, new_file_name(options.filename_suffix));
}

io::TFRecordWriter make_file(FileSystem& files, const std::string& path) {
  const std::string directory = parent_directory(path);
  files.make_directories(directory);
  io::TFRecordWriter file(files, path);
  file.write(encode_file_version(wall_time()));
  file.flush();
  files.sync_directory(directory);
  return file;
}

}  // namespace

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// What the thread shares with the writer.
struct EventWriter::Shared {
  Shared(io::TFRecordWriter file, const EventWriterOptions& options)
      : max_queue(static_cast<size_t>(options.max_queue)),
        interval(bounded_wait(options.flush_interval)),
        file(std::move(file)) {}

  void run();
  // Writes `events` with no lock held; whether that went well.
  bool write(std::unique_lock<std::mutex>& lock, std::vector<std::string> events);
  void finish(std::unique_lock<std::mutex>& lock);

  const size_t max_queue;
  const std::chrono::milliseconds interval;
  io::TFRecordWriter file;  // the thread's alone

  std::mutex mutex;
  std::condition_variable work;   // for the thread
  std::condition_variable moved;  // for those who wait for it
  // All guarded by mutex.
  std::vector<std::string> queue;
  size_t queued_bytes = 0;
  Clock::time_point oldest;  // when the first of the queue came
  uint64_t added = 0;
  uint64_t durable = 0;  // of those added, the first so many are on the device
  bool flushing = false;
  bool closing = false;
  bool ended = false;  // the thread has
  std::exception_ptr error;
};

bool EventWriter::Shared::write(std::unique_lock<std::mutex>& lock,
                                std::vector<std::string> events) {
  const uint64_t upto = added;
  lock.unlock();
  std::exception_ptr failed;
  try {
    for (const std::string& event : events) file.write(event);
    file.flush();
  } catch (...) {
    failed = std::current_exception();
  }
  lock.lock();
  error = failed;
  if (!error) durable = upto;
  moved.notify_all();
  return !error;
}

void EventWriter::Shared::finish(std::unique_lock<std::mutex>& lock) {
  if (!error) {
    lock.unlock();
    std::exception_ptr failed;
    try {
      file.close();
    } catch (...) {
      failed = std::current_exception();
    }
    lock.lock();
    error = failed;
  }
  queue.clear();
  ended = true;
  moved.notify_all();
}

void EventWriter::Shared::run() {
  std::unique_lock lock(mutex);
  while (true) {
    const auto due = [&] { return closing || flushing || queue.size() > max_queue; };
    if (queue.empty()) {
      work.wait(lock, [&] { return due() || !queue.empty(); });
    } else {
      work.wait_until(lock, oldest + interval, due);
    }
    if (!due() && (queue.empty() || Clock::now() < oldest + interval)) continue;
    flushing = false;
    queued_bytes = 0;
    if (!queue.empty() && !write(lock, std::exchange(queue, {}))) break;
    if (queue.empty()) durable = added;
    moved.notify_all();
    if (closing && queue.empty()) break;
  }
  finish(lock);
}

EventWriter::EventWriter(FileSystem& files, const std::string& logdir,
                         const EventWriterOptions& options)
    : path_(checked_path(logdir, options)),
      timeout_(bounded_wait(options.timeout)),
      shared_(std::make_shared<Shared>(make_file(files, path_), options)) {
  thread_ = start_thread("to write " + quoted(path_), [shared = shared_] { shared->run(); });
}

EventWriter::~EventWriter() {
  if (!home_.is_here()) {  // the thread is the parent's: there is nothing to join or detach
    new std::thread(std::move(thread_));
    return;
  }
  try {
    close();
  } catch (const std::exception& error) {
    log(logging::Level::kError, "summaries of ", quoted(path_), " may be lost: ", error.what());
  } catch (...) {
    log(logging::Level::kError, "summaries of ", quoted(path_), " may be lost");
  }
  std::unique_lock lock(shared_->mutex);
  const bool ended = shared_->ended;
  lock.unlock();
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();  // the device hangs
  }
}

bool EventWriter::is_closed() const {
  require_own_process();
  std::lock_guard lock(shared_->mutex);
  return shared_->closing;
}

void EventWriter::require_own_process() const {
  if (!home_.is_here()) home_.check(str("the writer of ", quoted(path_)).c_str());
}

void EventWriter::add(std::string event) {
  require_own_process();
  Shared& shared = *shared_;
  std::unique_lock lock(shared.mutex);
  const auto room = [&] { return shared.queued_bytes < kMaxWaitingBytes || shared.error; };
  if (!room() && !shared.moved.wait_for(lock, timeout_, room)) {
    throw DeadlineExceededError(
        str(shared.queued_bytes, " bytes of summaries wait to be written to ", quoted(path_),
            " and none has been for ", timeout_.count(), " ms; is the disk stuck?"));
  }
  if (shared.error) std::rethrow_exception(shared.error);
  if (shared.closing) {
    throw FailedPreconditionError(str("the writer of ", quoted(path_), " is already closed"));
  }
  const bool first = shared.queue.empty();
  if (first) shared.oldest = Clock::now();
  shared.queued_bytes += event.size();
  shared.queue.push_back(std::move(event));
  ++shared.added;
  if (shared.queued_bytes >= kMaxWaitingBytes) shared.flushing = true;
  if (first || shared.flushing || shared.queue.size() > shared.max_queue) shared.work.notify_one();
}

void EventWriter::flush() {
  require_own_process();
  Shared& shared = *shared_;
  std::unique_lock lock(shared.mutex);
  const uint64_t upto = shared.added;
  if (!shared.error && shared.durable < upto) {
    shared.flushing = true;
    shared.work.notify_one();
    if (!shared.moved.wait_for(lock, timeout_,
                               [&] { return shared.durable >= upto || shared.error; })) {
      throw DeadlineExceededError(str("summaries are still being written to ", quoted(path_),
                                      " after ", timeout_.count(), " ms; is the disk stuck?"));
    }
  }
  if (shared.error) std::rethrow_exception(shared.error);
}

void EventWriter::close() {
  require_own_process();
  Shared& shared = *shared_;
  std::unique_lock lock(shared.mutex);
  if (shared.closing && shared.ended) return;
  shared.closing = true;
  shared.work.notify_one();
  if (!shared.moved.wait_for(lock, timeout_, [&] { return shared.ended; })) {
    throw DeadlineExceededError(str(quoted(path_), " is still being written after ",
                                    timeout_.count(), " ms; is the disk stuck?"));
  }
  if (shared.error) std::rethrow_exception(shared.error);
}

}  // namespace cohort::internal
