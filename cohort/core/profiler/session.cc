#include "cohort/core/profiler/session.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cohort/core/profiler/phase.h"

namespace cohort::internal {
namespace {

using Clock = std::chrono::steady_clock;

struct Session {
  profiler::ProfilerOptions options;
  uint64_t number = 0;
  SessionKind kind = SessionKind::kProgram;
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

std::optional<uint64_t> begin_session(const profiler::ProfilerOptions& options, SessionKind kind) {
  const std::lock_guard lock(session_mutex);
  const bool gives_way =
      session && session->kind == SessionKind::kBackground && kind == SessionKind::kProgram;
  if (session && !gives_way) return std::nullopt;
  session.emplace();
  session->options = options;
  session->number = ++session_number;
  session->kind = kind;
  session->start = Clock::now();
  steps = 0;
  profiler_on = true;
  return session->number;
}

std::optional<profiler::Profile> end_session(SessionKind kind, std::optional<uint64_t> number) {
  const std::lock_guard lock(session_mutex);
  if (!session || session->kind != kind || (number && session->number != *number)) {
    return std::nullopt;
  }
  profiler_on = false;
  profiler::Profile profile;
  profile.wall = Clock::now() - session->start;
  profile.steps = steps;
  for (const auto& record : session->records) profile.threads.push_back(record->profile);
  session.reset();
  return profile;
}

}  // namespace cohort::internal
