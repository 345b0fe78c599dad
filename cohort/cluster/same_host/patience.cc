#include "cohort/cluster/same_host/patience.h"

#include <algorithm>

#include "cohort/core/host/free_cores.h"
#include "cohort/core/host/spin_pause.h"

namespace cohort::internal::rpc {
namespace {

using std::chrono::steady_clock;

// About the cost of sleeping and being woken, so that a wait costs at most twice as much as it
// must.
constexpr std::chrono::microseconds kLookingTime{50};
// One of 1,024 waits looks, if looking never helps.
constexpr int kMostInVain = 10;

// Whether a thread of this process looks: each task has one core for that.
std::atomic<bool>& somebody_looks() {
  static std::atomic<bool> looks{false};
  return looks;
}

}  // namespace

Patience::Patience() : Patience([](Time now) { return host_cores().are_free(now); }) {}

bool Patience::begins(Time now) {
  if (!allowed_.load(std::memory_order_relaxed)) return false;
  if (left_out_ > 0) {
    --left_out_;
    return false;
  }
  return cores_are_free_(now) && !somebody_looks().exchange(true, std::memory_order_relaxed);
}

Patience::Look::Look(Patience& patience) : patience_(patience) {
  const Time now = steady_clock::now();
  looks_ = patience.begins(now);
  end_ = now + kLookingTime;
}

bool Patience::Look::goes_on() {
  if (!looks_ || found_ || steady_clock::now() >= end_) return false;
  spin_pause();
  return true;
}

void Patience::Look::found() { found_ = true; }

Patience::Look::~Look() {
  if (!looks_) return;
  somebody_looks().store(false, std::memory_order_relaxed);
  if (found_) {
    patience_.in_vain_ = std::max(0, patience_.in_vain_ - 1);
  } else {
    patience_.in_vain_ = std::min(kMostInVain, patience_.in_vain_ + 1);
    patience_.left_out_ = (1 << patience_.in_vain_) - 1;
  }
}

}  // namespace cohort::internal::rpc
