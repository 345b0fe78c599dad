// How long a thread looks for bytes of another task of this host before it sleeps. Waking a thread
// that sleeps takes longer than most answers do.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>

namespace cohort::internal::rpc {

// A thread polls only if the tasks at both ends can have cores of their own, nobody else computes
// on this host, no other thread of this process polls, and polling has helped of late. Each time
// that it did not help, the next waits do not poll, twice as many as the last time.
// Thread safety: allow() from any thread, the rest one thread at a time.
class Patience {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using CoresAreFree = std::function<bool(Time now)>;
  Patience();
  explicit Patience(CoresAreFree cores_are_free) : cores_are_free_(std::move(cores_are_free)) {}

  // Whether each end can have a core to itself; before, nobody looks.
  void allow(bool each_has_a_core) { allowed_.store(each_has_a_core, std::memory_order_relaxed); }

  // One wait.
  class Look {
   public:
    explicit Look(Patience& patience);
    ~Look();
    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;

    // Whether to look once more.
    bool goes_on();
    // What was looked for is there.
    void found();

   private:
    Patience& patience_;
    bool looks_;
    bool found_ = false;
    Time end_;
  };

 private:
  bool begins(Time now);

  const CoresAreFree cores_are_free_;
  std::atomic<bool> allowed_{false};
  int in_vain_ = 0;   // of late
  int left_out_ = 0;  // waits that come without a look
};

}  // namespace cohort::internal::rpc
