#include "cohort/core/profiler/profiler.h"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/profiler/background_profile.h"
#include "cohort/core/profiler/phase.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

using Clock = std::chrono::steady_clock;

struct Session {
  profiler::ProfilerOptions options;
  uint64_t number = 0;
  bool background = false;
  Clock::time_point start;
  std::vector<std::shared_ptr<ThreadRecord>> records;
};

// Guards the session and its list; records belong to their threads while it runs.
std::mutex session_mutex;
std::optional<Session> session;
std::atomic<uint64_t> session_number{0};
std::atomic<int64_t> steps{0};

std::string thread_name() {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return name;
}

}  // namespace

struct ThreadRecord {
  profiler::ThreadProfile profile;
  uint64_t session = 0;
  Clock::time_point session_start;
  int64_t max_events = 0;
  int phase = -1;
  Clock::time_point since;
};

std::atomic<bool> profiler_on{false};

ThreadRecord* current_record() {
  thread_local std::shared_ptr<ThreadRecord> mine;
  if (mine != nullptr && mine->session == session_number.load(std::memory_order_relaxed)) {
    return mine.get();
  }
  std::lock_guard lock(session_mutex);
  if (!session) return nullptr;
  mine = std::make_shared<ThreadRecord>();
  mine->profile.name = thread_name();
  mine->session = session->number;
  mine->session_start = session->start;
  mine->max_events = session->options.trace ? session->options.max_trace_events : 0;
  session->records.push_back(mine);
  return mine.get();
}

int switch_phase(ThreadRecord& record, int phase) {
  const Clock::time_point now = Clock::now();
  const int before = record.phase;
  if (before >= 0) {
    const auto duration = now - record.since;
    record.profile.time[static_cast<size_t>(before)] += duration;
    if (static_cast<int64_t>(record.profile.events.size()) < record.max_events) {
      record.profile.events.push_back(
          {static_cast<profiler::Phase>(before), record.since - record.session_start, duration});
    }
  }
  record.phase = phase;
  record.since = now;
  return before;
}

ThreadRecord* tracing_record() {
  ThreadRecord* const record = current_record();
  return record != nullptr && record->max_events > 0 ? record : nullptr;
}

void add_part(ThreadRecord& record, const std::string& name, Clock::time_point begin) {
  if (static_cast<int64_t>(record.profile.parts.size()) >= record.max_events) return;
  record.profile.parts.push_back({name, begin - record.session_start, Clock::now() - begin});
}

void count_step() {
  if (profiler_on.load(std::memory_order_relaxed)) steps.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace cohort::internal

namespace cohort::internal {
namespace {

// Under the mutex.
void begin_session(const profiler::ProfilerOptions& options, bool background) {
  session.emplace();
  session->options = options;
  session->number = ++session_number;
  session->background = background;
  session->start = Clock::now();
  steps = 0;
  profiler_on = true;
}

profiler::Profile end_session() {
  profiler_on = false;
  profiler::Profile profile;
  profile.wall = Clock::now() - session->start;
  profile.steps = steps;
  for (const auto& record : session->records) profile.threads.push_back(record->profile);
  session.reset();
  return profile;
}

}  // namespace

std::optional<uint64_t> start_background_profile() {
  std::lock_guard lock(session_mutex);
  if (session) return std::nullopt;
  begin_session({}, true);
  return session->number;
}

std::optional<profiler::Profile> stop_background_profile(uint64_t number) {
  std::lock_guard lock(session_mutex);
  if (!session || session->number != number) return std::nullopt;
  return end_session();
}

}  // namespace cohort::internal

namespace cohort::profiler {
namespace {

double milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

std::string thousandths(double value) { return internal::fixed_digits(value, 3); }

std::string padded(const std::string& text, size_t width) {
  std::string line(width - std::min(width, text.size()), ' ');
  line += text;
  return line;
}

// Thread names are the program's, and may hold anything.
std::string json_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += byte < 0x20 || byte >= 0x7f ? '?' : c;
  }
  return quoted + '"';
}

}  // namespace

const char* phase_name(Phase phase) {
  constexpr const char* kNames[kNumPhases] = {"input", "compute", "reduce", "update", "wait"};
  return kNames[static_cast<size_t>(phase)];
}

void start(const ProfilerOptions& options) {
  std::lock_guard lock(internal::session_mutex);
  if (internal::session && !internal::session->background) {
    throw FailedPreconditionError("profiler::start: the profiler runs already; stop it first");
  }
  internal::begin_session(options, false);
}

Profile stop() {
  std::lock_guard lock(internal::session_mutex);
  if (!internal::session || internal::session->background) {
    throw FailedPreconditionError("profiler::stop: the profiler does not run; start it first");
  }
  return internal::end_session();
}

std::string Profile::table() const {
  constexpr size_t kWidth = 10;
  std::string text = padded("ms a step", 16);
  for (size_t p = 0; p < kNumPhases; ++p) text += padded(phase_name(static_cast<Phase>(p)), kWidth);
  text += padded("other", kWidth) + '\n';
  const double count = steps > 0 ? static_cast<double>(steps) : 1;
  for (const ThreadProfile& thread : threads) {
    text += padded(thread.name, 16);
    double rest = milliseconds(wall);
    for (const auto time : thread.time) {
      text += padded(thousandths(milliseconds(time) / count), kWidth);
      rest -= milliseconds(time);
    }
    text += padded(thousandths(rest / count), kWidth) + '\n';
  }
  return text +
         internal::str(steps, " steps of ", thousandths(milliseconds(wall) / count), " ms\n");
}

void Profile::write_chrome_trace(const std::string& path) const {
  std::string json = "{\"traceEvents\":[";
  const char* separator = "\n";
  for (size_t t = 0; t < threads.size(); ++t) {
    json += internal::str(separator, "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":", t,
                          ",\"args\":{\"name\":", json_string(threads[t].name), "}}");
    separator = ",\n";
    const auto append = [&](const std::string& name, const auto& event) {
      json += internal::str(separator, "{\"name\":", json_string(name),
                            ",\"ph\":\"X\",\"pid\":1,\"tid\":", t,
                            ",\"ts\":", thousandths(milliseconds(event.begin) * 1e3),
                            ",\"dur\":", thousandths(milliseconds(event.duration) * 1e3), "}");
    };
    for (const TraceEvent& event : threads[t].events) append(phase_name(event.phase), event);
    for (const TracePart& part : threads[t].parts) append(part.name, part);
  }
  json += "\n]}\n";
  const auto file = internal::posix_file_system().create(path);
  file->append(json);
  file->close();
}

}  // namespace cohort::profiler
