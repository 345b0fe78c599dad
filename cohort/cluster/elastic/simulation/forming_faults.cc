// What happens to the processes of a simulation.
#include <algorithm>

#include "cohort/cluster/elastic/simulation/forming_world.h"

namespace cohort::internal::elastic {
namespace {

using membership::Link;
using std::chrono::milliseconds;

}  // namespace

void FormingWorld::plan_faults() {
  const auto count = random_.below(static_cast<uint64_t>(options_.most_faults) + 1);
  for (uint64_t i = 0; i < count; ++i) {
    const Time when = random_.between(milliseconds(1000), milliseconds(5500));
    time_.at(when, [this] { fault(); });
    // Another one while the group forms because of the first.
    if (random_.one_in(3)) {
      time_.at(when + random_.between(milliseconds(0), milliseconds(60)), [this] { fault(); });
    }
  }
}

void FormingWorld::fault() {
  const std::vector<Life*> candidates = running();
  if (candidates.empty() || healed_) return;
  ++result_.faults;
  Life& life = *candidates[random_.below(candidates.size())];
  switch (random_.below(8)) {
    case 0:
    case 1:
    case 2:
      return kill(life.node);
    case 3:
      return kill(service_node());
    case 4:
      return stop_for_a_while(life);
    case 5:
      return cut();
    default:
      return leave(life);
  }
}

void FormingWorld::kill(int node) {
  if (Life* life = current(node)) end_life(*life, "killed");
}

void FormingWorld::stop_for_a_while(Life& life) {
  const Time pause = random_.one_in(2) ? random_.between(milliseconds(10), milliseconds(800))
                                       : random_.between(milliseconds(2200), milliseconds(4000));
  trace("stop of ", name_of(life), " for ", pause.count() / 1'000'000, " ms");
  deceived_ = true;
  life.process.stop();
  time_.after(pause, [this, &life] {
    if (life.process.ended() || !life.process.stopped()) return;
    trace(name_of(life), " goes on");
    life.process.go_on();
  });
}

void FormingWorld::cut() {
  const int host = service_node();
  int task = static_cast<int>(random_.below(static_cast<uint64_t>(tasks_)));
  if (task == host) task = (task + 1) % tasks_;
  const Link link = random_.one_in(2) ? Link::kSilent : Link::kLoud;
  const Time pause = random_.between(milliseconds(10), milliseconds(3000));
  trace(link == Link::kSilent ? "silent" : "loud", " cut between the service and task ", task,
        " for ", pause.count() / 1'000'000, " ms");
  deceived_ = true;
  network_.set_link(host, task, link);
  network_.set_link(task, host, link);
  time_.after(pause, [this, host, task] {
    network_.set_link(host, task, Link::kUp);
    network_.set_link(task, host, Link::kUp);
  });
}

void FormingWorld::leave(Life& life) {
  trace(name_of(life), " wants to leave");
  life.wants_to_leave = true;
}

void FormingWorld::heal() {
  trace("everything is mended");
  healed_ = true;
  network_.heal();
  for (size_t i = 0; i < lives_.size(); ++i) {
    Life& life = *lives_[i];
    if (life.process.ended()) continue;
    if (life.program != "p") {
      end_life(life, "it has another program");
    } else if (life.process.stopped()) {
      life.process.go_on();
    }
  }
  for (int node = 0; node <= tasks_; ++node) {
    if (!is_launcher(node) || place_ == ServicePlace::kLauncher) start_again_later(node);
  }
}

}  // namespace cohort::internal::elastic
