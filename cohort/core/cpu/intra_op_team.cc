#include "cohort/core/cpu/intra_op_team.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "cohort/core/cpu/flush_denormals.h"
#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/core/program/process.h"
#include "cohort/core/threads/thread_pool.h"
#include "cohort/core/threads/wait_point.h"

namespace cohort::internal {
namespace {

// A part is this many times smaller than an equal share, so that a thread that is done early takes
// another part.
constexpr int64_t kPartsOfThread = 4;
// How long a thread polls before it sleeps. A training step's operations follow each other sooner.
// Polling yields in between, see WaitPoint.
constexpr std::chrono::microseconds kLookOut{200};

struct Call {
  int64_t end;
  int64_t part;  // elements
  FunctionRef<void(int64_t, int64_t)> body;
  uint64_t float_control_word;
};

// A calling thread's helpers. Never destroyed: a thread that ends leaves its team to another one.
class Team {
 public:
  // The calling thread's.
  static Team& of_this_thread();

  void run(int64_t begin, const Call& call, int helpers) {
    const auto places = static_cast<uint32_t>(start(helpers));
    call_ = &call;
    next_part_.store(begin, std::memory_order_relaxed);
    state_.store(places * kPlace, std::memory_order_seq_cst);
    called_.notify();
    work(call);
    left_.wait([this] { return state_.load(std::memory_order_seq_cst) == 0; }, kLookOut,
               WaitPoint::kForever);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  // state_: helpers inside, and places for more of them. A call is over where it is 0.
  static constexpr uint32_t kPlace = 1 << 16;
  static constexpr int kMostHelpers = kPlace - 1;

  struct Lease;

  // Starts helpers until there are `wanted`, or no more can be had; returns how many there are,
  // `wanted` at most.
  int start(int wanted) {
    wanted = std::min(wanted, kMostHelpers);
    for (; helpers_ < wanted; ++helpers_) {
      try {
        std::thread([this] { help(); }).detach();
      } catch (const std::system_error&) {  // no more threads to be had
        break;
      }
    }
    return std::min(helpers_, wanted);
  }

  void help() {
    set_thread_name("intra-op");
    set_intra_op_threads(1);
    while (true) {
      called_.wait([this] { return state_.load(std::memory_order_seq_cst) >= kPlace; }, kLookOut,
                   WaitPoint::kForever);
      uint32_t seen = state_.load(std::memory_order_relaxed);
      while (seen >= kPlace &&
             !state_.compare_exchange_weak(seen, seen - kPlace + 1, std::memory_order_acq_rel)) {
      }
      if (seen < kPlace) continue;  // others were first
      set_float_control_word(call_->float_control_word);
      work(*call_);
      if (state_.fetch_sub(1, std::memory_order_seq_cst) == 1) left_.notify();
    }
  }

  // Takes parts until none is left; then nobody else needs to come.
  void work(const Call& call) {
    try {
      while (true) {
        const int64_t first = next_part_.fetch_add(call.part, std::memory_order_relaxed);
        if (first >= call.end) break;
        call.body(first, std::min(first + call.part, call.end));
      }
    } catch (...) {
      next_part_.store(call.end, std::memory_order_relaxed);
      const std::lock_guard lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
    }
    state_.fetch_and(kPlace - 1, std::memory_order_seq_cst);
  }

  const Call* call_ = nullptr;  // while state_ is not 0
  int helpers_ = 0;             // the calling thread's
  std::atomic<int64_t> next_part_{0};
  std::atomic<uint32_t> state_{0};
  WaitPoint called_;
  WaitPoint left_;
  std::mutex error_mutex_;
  std::exception_ptr error_;  // guarded by error_mutex_ until the call is over
  Team* next_ = nullptr;      // of those without a calling thread
  const HomeProcess home_;
};

// Holds a team for a thread, from the thread's first call to its end.
struct Team::Lease {
  Lease() {
    {
      const std::lock_guard lock(mutex);
      team = free;
      if (team != nullptr) free = team->next_;
    }
    if (team == nullptr) team = new Team;
  }
  ~Lease() {
    if (!team->home_.is_here()) return;  // a child of fork, where the lock may be held for ever
    const std::lock_guard lock(mutex);
    team->next_ = free;
    free = team;
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Team* team;

  static inline std::mutex mutex;
  static inline Team* free = nullptr;  // guarded by mutex
};

Team& Team::of_this_thread() {
  thread_local const Lease lease;
  return *lease.team;
}

}  // namespace

void share_by_team(int threads, int64_t begin, int64_t end, int64_t grain,
                   FunctionRef<void(int64_t, int64_t)> body) {
  const int64_t count = end - begin;
  if (count <= 0) return;
  const int64_t most_parts = kPartsOfThread * threads;
  const int64_t part = std::max<int64_t>({grain, (count + most_parts - 1) / most_parts, 1});
  const int64_t parts = (count + part - 1) / part;
  const OneIntraOpThread inside;
  Team::of_this_thread().run(begin, {end, part, body, float_control_word()},
                             static_cast<int>(std::min<int64_t>(threads, parts)) - 1);
}

}  // namespace cohort::internal
