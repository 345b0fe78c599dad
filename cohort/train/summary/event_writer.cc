#include "cohort/train/summary/event_writer.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <exception>
#include <utility>
#include <vector>

#include "cohort/core/durations.h"
#include "cohort/core/error.h"
#include "cohort/core/host/host_name.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/start_thread.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/bounded_wait.h"
#include "cohort/core/threads/synchronized.h"
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

  struct Events {
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

  void run();
  // Waits until it is time to write, and takes what is to be written: events up to this number.
  std::vector<std::string> take(uint64_t& upto);
  void finish();

  const size_t max_queue;
  const std::chrono::milliseconds interval;
  io::TFRecordWriter file;  // the thread's alone
  Synchronized<Events> events;
};

std::vector<std::string> EventWriter::Shared::take(uint64_t& upto) {
  auto now = events.lock();
  const auto is_due = [&] {
    return now->closing || now->flushing || now->queue.size() > max_queue;
  };
  if (now->queue.empty()) now.wait([&] { return is_due() || !now->queue.empty(); });
  if (!is_due()) now.wait_until(now->oldest + interval, is_due);
  now->flushing = false;
  now->queued_bytes = 0;
  upto = now->added;
  return std::exchange(now->queue, {});
}

void EventWriter::Shared::run() {
  for (bool goes_on = true; goes_on;) {
    uint64_t upto = 0;
    const std::vector<std::string> taken = take(upto);
    std::exception_ptr failed;
    try {
      for (const std::string& event : taken) file.write(event);
      if (!taken.empty()) file.flush();
    } catch (...) {
      failed = std::current_exception();
    }
    const auto now = events.change();
    now->error = failed;
    if (!failed) now->durable = upto;
    goes_on = !failed && !(now->closing && now->queue.empty());
  }
  finish();
}

void EventWriter::Shared::finish() {
  std::exception_ptr failed = events.lock()->error;
  try {
    if (!failed) file.close();
  } catch (...) {
    failed = std::current_exception();
  }
  const auto now = events.change();
  now->error = failed;
  now->queue.clear();
  now->ended = true;
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
  if (shared_->events.lock()->ended) {
    thread_.join();
  } else {
    thread_.detach();  // the device hangs
  }
}

bool EventWriter::is_closed() const {
  require_own_process();
  return shared_->events.lock()->closing;
}

void EventWriter::require_own_process() const {
  if (!home_.is_here()) home_.check(str("the writer of ", quoted(path_)).c_str());
}

void EventWriter::add(std::string event) {
  require_own_process();
  auto events = shared_->events.lock();
  const auto room = [&] { return events->queued_bytes < kMaxWaitingBytes || events->error; };
  if (!room() && !events.wait_until(Clock::now() + timeout_, room)) {
    throw DeadlineExceededError(
        str(events->queued_bytes, " bytes of summaries wait to be written to ", quoted(path_),
            " and none has been for ", timeout_.count(), " ms; is the disk stuck?"));
  }
  if (events->error) std::rethrow_exception(events->error);
  if (events->closing) {
    throw FailedPreconditionError(str("the writer of ", quoted(path_), " is already closed"));
  }
  const bool first = events->queue.empty();
  if (first) events->oldest = Clock::now();
  events->queued_bytes += event.size();
  events->queue.push_back(std::move(event));
  ++events->added;
  if (events->queued_bytes >= kMaxWaitingBytes) events->flushing = true;
  if (first || events->flushing || events->queue.size() > shared_->max_queue) events.wake();
}

void EventWriter::flush() {
  require_own_process();
  auto events = shared_->events.lock();
  const uint64_t upto = events->added;
  if (!events->error && events->durable < upto) {
    events->flushing = true;
    events.wake();
    if (!events.wait_until(Clock::now() + timeout_,
                           [&] { return events->durable >= upto || events->error; })) {
      throw DeadlineExceededError(str("summaries are still being written to ", quoted(path_),
                                      " after ", timeout_.count(), " ms; is the disk stuck?"));
    }
  }
  if (events->error) std::rethrow_exception(events->error);
}

void EventWriter::close() {
  require_own_process();
  auto events = shared_->events.lock();
  if (events->closing && events->ended) return;
  events->closing = true;
  events.wake();
  if (!events.wait_until(Clock::now() + timeout_, [&] { return events->ended; })) {
    throw DeadlineExceededError(str(quoted(path_), " is still being written after ",
                                    timeout_.count(), " ms; is the disk stuck?"));
  }
  if (events->error) std::rethrow_exception(events->error);
}

}  // namespace cohort::internal
