// What happens to a simulated cluster.
#include <algorithm>

#include "cohort/cluster/membership/simulation/world.h"

namespace cohort::internal::membership {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// What any task must survive: less than it takes to be declared dead, with a heartbeat to spare.
constexpr milliseconds kLongestShortStop(1000);
constexpr milliseconds kLongestShortCut(600);

}  // namespace

void World::plan_faults() {
  const auto count = random_.below(static_cast<uint64_t>(options_.most_faults) + 1);
  for (uint64_t i = 0; i < count; ++i) {
    time_.at(random_.between(milliseconds(1500), milliseconds(5500)), [this] { fault(); });
  }
}

void World::touch(Life& life) {
  life.touched = true;
  if (life.node != 0 || options_.elastic) return;
  for (const auto& other : lives_) other->touched = true;
}

void World::disturb(Life& life, Time until) {
  const bool holds = options_.elastic ? holder() == &life : life.node == 0;
  if (holds) {  // the service: all others miss it
    for (const auto& other : lives_) {
      if (other.get() == &life) continue;
      if (other->node != 0 && !options_.elastic) disturb(*other, until);
      if (!options_.elastic) continue;
      other->disturbed_until = std::max(other->disturbed_until, until);
    }
  }
  // Two such faults at once may be more than it must survive.
  if (time_.now() < life.disturbed_until + seconds(3) && life.disturbed_until != Time(0)) {
    touch(life);
  }
  life.disturbed_until = std::max(life.disturbed_until, until);
}

void World::fault() {
  const std::vector<Life*> candidates = running();
  if (candidates.empty()) return;
  Life& life = *candidates[random_.below(candidates.size())];
  if (options_.elastic && random_.one_in(3)) {
    elastic_fault();
    ++faults_;
    return;
  }
  switch (random_.below(9)) {
    case 0:
    case 1:
      crash(life);
      break;
    case 2:
    case 3:
      stop_for_a_while(life);
      break;
    case 4:
    case 5:
      cut();
      break;
    case 6:
      reset();
      break;
    case 7:
      start_life(life.node == 0 ? tasks_ - 1 : life.node, true);
      break;
    case 8:
      replace_stopped(life);
      break;
  }
  ++faults_;
}

void World::crash(Life& life) {
  expect_all_learn(
      life, heartbeat_.reconnect_grace * 11 / 10 + 6 * network_.delays.longest + milliseconds(10));
  touch(life);
  end_life(life, "crash");
}

void World::stop_for_a_while(Life& life) {
  const bool is_short = random_.one_in(2);
  const Time pause = is_short ? random_.between(milliseconds(10), kLongestShortStop)
                              : random_.between(milliseconds(2500), milliseconds(4500));
  trace("stop of ", task_of(life.node), " for ", pause.count() / 1'000'000, " ms");
  if (is_short) {
    disturb(life, time_.now() + pause);
  } else {
    expect_all_learn(
        life,
        heartbeat_.dead_after * 21 / 20 + heartbeat_.interval * 3 / 4 + 6 * network_.delays.longest,
        true);
    touch(life);
  }
  life.process.stop();
  time_.after(pause, [this, &life] {
    if (life.process.ended() || !life.process.stopped()) return;
    trace(task_of(life.node), " goes on");
    life.process.go_on();
  });
}

void World::cut() {
  if (one_host_) return reset();
  const int one = static_cast<int>(random_.below(static_cast<uint64_t>(tasks_)));
  const int other =
      (one + 1 + static_cast<int>(random_.below(static_cast<uint64_t>(tasks_ - 1)))) % tasks_;
  const Link link = random_.one_in(2) ? Link::kSilent : Link::kLoud;
  const bool one_way = random_.one_in(3);
  const bool is_short = link == Link::kSilent && random_.one_in(2);
  const Time pause = is_short ? random_.between(milliseconds(10), kLongestShortCut)
                              : random_.between(milliseconds(700), milliseconds(4000));
  trace(link == Link::kSilent ? "silent" : "loud", " cut from ", task_of(one), " to ",
        task_of(other), one_way ? "" : " and back", " for ", pause.count() / 1'000'000, " ms");
  network_.set_link(one, other, link);
  if (!one_way) network_.set_link(other, one, link);
  for (const auto& life : lives_) {
    if (one != 0 && other != 0 && !options_.elastic) {
      break;  // only the service decides who is dead
    }
    if (life->node == 0 && !options_.elastic) continue;
    if (life->node != one && life->node != other) continue;
    if (is_short) {
      disturb(*life, time_.now() + pause);
    } else {
      touch(*life);
    }
  }
  time_.after(pause, [this, one, other] {
    last_cut_ = time_.now();
    network_.set_link(one, other, Link::kUp);
    network_.set_link(other, one, Link::kUp);
  });
}

void World::reset() {
  const int other = 1 + static_cast<int>(random_.below(static_cast<uint64_t>(tasks_ - 1)));
  if (options_.elastic) {
    const int one = static_cast<int>(random_.below(static_cast<uint64_t>(other)));
    trace("reset of the connections between ", task_of(one), " and ", task_of(other));
    for (const auto& life : lives_) {
      const bool is_end = life->node == one || life->node == other;
      const bool is_hindered =
          network_.link(one, other) != Link::kUp || network_.link(other, one) != Link::kUp;
      if (!is_end) continue;
      // One that cannot call again at once looks like one that has ended.
      if (is_hindered) touch(*life);
      for (const auto& peer : lives_) {
        if ((peer->node == one || peer->node == other) && peer->process.stopped()) touch(*life);
      }
      disturb(*life, time_.now());
    }
    return network_.reset_connections(one, other);
  }
  trace("reset of the connections between ", task_of(0), " and ", task_of(other));
  for (const auto& life : lives_) {
    // One that cannot call again at once looks like one that has ended.
    const bool chief_stopped = current(0) == nullptr || current(0)->process.stopped();
    if (life->node == other && (!life->process.runs() || chief_stopped)) touch(*life);
    if (life->node == other && network_.link(0, other) != Link::kUp) touch(*life);
    if (life->node == other && network_.link(other, 0) != Link::kUp) touch(*life);
  }
  for (const auto& life : lives_) {  // stopped before it has called again, it looks ended, too
    if (life->node == other) disturb(*life, time_.now());
  }
  network_.reset_connections(0, other);
}

// The launcher takes a stopped process for dead, and starts another; then the first goes on.
void World::replace_stopped(Life& life) {
  touch(life);
  life.process.stop();
  trace("stop of ", task_of(life.node), ", which is replaced");
  const int node = life.node;
  time_.after(random_.between(milliseconds(100), milliseconds(2500)), [this, &life, node] {
    if (life.process.ended() || current(node) != &life || healed_) return;
    for (const auto& other : lives_) {
      if (node == 0) other->touched = true;
    }
    start_life(node, false);
    time_.after(random_.between(milliseconds(100), milliseconds(3000)), [this, &life] {
      if (life.process.ended()) return;
      trace("the replaced ", task_of(life.node), " goes on");
      life.process.go_on();
    });
  });
}

void World::heal() {
  trace("everything is mended");
  healed_ = true;
  network_.heal();
  for (size_t i = 0; i < lives_.size(); ++i) {
    Life& life = *lives_[i];
    if (life.process.ended()) continue;
    // The one that starts a task anew makes sure in the end that its predecessor is gone.
    const bool reachable = network_.find(to_string(task_of(life.node))) == &life.endpoint;
    if (current(life.node) != &life || !reachable) {
      end_life(life, "it has been replaced");
    } else if (life.process.stopped()) {
      life.process.go_on();
    }
  }
  for (int node = 0; node < tasks_; ++node) start_again_later(node);
}

}  // namespace cohort::internal::membership
