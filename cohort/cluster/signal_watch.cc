#include "cohort/cluster/signal_watch.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <utility>

#include "cohort/core/host/event_fd.h"
#include "cohort/core/program/process.h"

namespace cohort::internal {
namespace {

// What one kind of watch waits for.
struct Note {
  std::atomic<int> signal{0};  // the first that came
  std::atomic<int> event{-1};  // made once, never closed: a late handler may use it

  // In a signal handler.
  void take(int number) {
    int none = 0;
    signal.compare_exchange_strong(none, number);
    signal_event(event.load());
  }
  void open() {
    if (event.load() < 0) event = make_event_fd().release();
  }
  void clear() {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t size = ::read(event.load(), &count, sizeof count);
    signal = 0;
  }
  // Called in a child of fork, which has the same descriptor: its parent would read what it wrote
  // there.
  void leave_to_parent() {
    event = -1;
    signal = 0;
  }
};

Note any_signal;
Note termination;
std::atomic<int> termination_watches{0};

std::mutex watch_mutex;  // guards what follows
int signal_watches = 0;
bool is_termination_answered = false;

// process_epoch() of the process whose watches these are. A child of fork has the handler, too.
std::atomic<uint64_t> watching_process{0};

void act_as_before(int number);

extern "C" void cohort_note_signal(int number) {
  const int saved_errno = errno;
  if (watching_process.load() == process_epoch()) {
    const bool claimed = number == SIGTERM && termination_watches.load() > 0;
    (claimed ? termination : any_signal).take(number);
  } else {
    act_as_before(number);
  }
  errno = saved_errno;
}

// A signal whose handler is ours while anybody watches it.
struct Watched {
  int number;
  int watches = 0;
  struct sigaction previous = {};

  void add() {
    if (watches++ > 0) return;
    struct sigaction action {};
    action.sa_handler = cohort_note_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(number, &action, &previous);
  }
  void remove() {
    if (--watches == 0) put_back();
  }
  void remove_all() {
    watches = 0;
    struct sigaction now {};  // the program may have put its own there
    if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler == cohort_note_signal) put_back();
  }
  void put_back() const { ::sigaction(number, &previous, nullptr); }
};

Watched sigterm{.number = SIGTERM};
Watched sigint{.number = SIGINT};

// Called in a signal handler: the signal comes again when the handler returns.
void act_as_before(int number) {
  (number == SIGTERM ? sigterm : sigint).put_back();
  ::raise(number);
}

// Called with the lock held. In a child of fork, removes the watches of its parent, which are not
// its own.
void begin_in_this_process() {
  if (watching_process.load() == process_epoch()) return;
  sigterm.remove_all();
  sigint.remove_all();
  any_signal.leave_to_parent();
  termination.leave_to_parent();
  termination_watches = 0;
  signal_watches = 0;
  is_termination_answered = false;
  watching_process = process_epoch();
}

}  // namespace

SignalWatch::SignalWatch() {
  const std::lock_guard lock(watch_mutex);
  begin_in_this_process();
  any_signal.open();
  ++signal_watches;
  sigterm.add();
  sigint.add();
}

SignalWatch::~SignalWatch() {
  if (!home_.is_here()) return;
  const std::lock_guard lock(watch_mutex);
  sigterm.remove();
  sigint.remove();
  if (--signal_watches == 0) any_signal.clear();
}

int SignalWatch::descriptor() const { return any_signal.event.load(); }
int SignalWatch::signal() const { return any_signal.signal.load(); }

TerminationWatch::TerminationWatch() {
  const std::lock_guard lock(watch_mutex);
  begin_in_this_process();
  termination.open();
  ++termination_watches;
  sigterm.add();
}

TerminationWatch::~TerminationWatch() {
  if (!home_.is_here()) return;
  const std::lock_guard lock(watch_mutex);
  sigterm.remove();
  if (--termination_watches > 0 || !std::exchange(is_termination_answered, false)) return;
  termination.clear();
}

int TerminationWatch::descriptor() const { return termination.event.load(); }
bool TerminationWatch::has_come() const { return termination.signal.load() != 0; }

void TerminationWatch::answer() {
  const std::lock_guard lock(watch_mutex);
  is_termination_answered = true;
}

}  // namespace cohort::internal
