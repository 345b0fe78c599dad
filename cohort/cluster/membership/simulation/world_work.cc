// What the tasks of a simulated cluster do.
#include "cohort/cluster/membership/simulation/world.h"

namespace cohort::internal::membership {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// How late an answer may be: timers of the process itself.
constexpr milliseconds kSlack(5);

}  // namespace

uint64_t World::service_of(const Life& life) const {
  const ViewPtr view = life.agent->view();
  // One that looks for a service has the view of the last.
  if (options_.elastic && life.agent->generation() == 0) return 0;
  return view ? view->service : 0;
}

void World::work(Life& life) {
  life.process.call_at(life.process.now() + random_.between(milliseconds(50), milliseconds(500)),
                       [this, &life] {
                         if (life.agent->error()) return;
                         if (life.node == 0 || options_.elastic) write_to_others(life);
                         if (life.agent->generation() > 0) {
                           if (random_.one_in(3)) {
                             wait_at_barrier(life);
                           } else {
                             use_store(life);
                           }
                         }
                         work(life);
                       });
}

MembershipAgent::Done World::in_time(Life& life, Duration timeout, MembershipAgent::Done done) {
  const auto called = std::make_shared<int>(0);
  life.process.call_at(life.process.now() + timeout, [this, &life, called] {
    life.process.call_at(life.process.now() + kSlack, [this, &life, called] {
      if (*called == 0) violate(str("a call of ", task_of(life.node), " has not ended in time"));
    });
  });
  return [this, &life, called, done = std::move(done)](std::exception_ptr error,
                                                       const StoreReply& reply) {
    if (life.process.ended()) return;
    if (++*called > 1) violate(str("a call of ", task_of(life.node), " ended twice"));
    done(error, reply);
  };
}

void World::use_store(Life& life) {
  ++result_.store_calls;
  const uint64_t service = service_of(life);
  const Duration timeout = random_.between(milliseconds(100), seconds(3));
  const Time begin = time_.now();
  // The service that answered is known only if it was the same all along.
  const auto same = [this, &life, service] {
    return service_of(life) == service && (service != 0 || !options_.elastic);
  };
  const auto check = [this](const std::string& wrong) {
    if (!wrong.empty()) violate(wrong);
  };
  switch (random_.below(3)) {
    case 0: {
      const int64_t floor = history_.floor(service);
      history_.begin_add();
      life.agent->start_store("add", {.key = "counter", .delta = 1}, timeout,
                              in_time(life, timeout, [=, this](auto error, const auto& reply) {
                                if (!error && same()) {
                                  check(history_.end_add(service, floor, reply.number));
                                }
                              }));
      break;
    }
    case 1: {
      const std::string value = history_.begin_set(begin);
      life.agent->start_store("set", {.key = "register", .value = value}, timeout,
                              in_time(life, timeout, [=, this](auto error, const auto&) {
                                if (!error && same()) {
                                  history_.end_set(value, service, time_.now());
                                }
                              }));
      break;
    }
    default:
      life.agent->start_store(
          "get", {.key = "register"}, timeout,
          in_time(life, timeout, [=, this](auto error, const auto& reply) {
            if (error || !same()) return;
            check(history_.end_get(service, begin,
                                   reply.has_value ? std::optional(reply.value) : std::nullopt));
          }));
  }
}

void World::wait_at_barrier(Life& life) {
  const std::string name = str("round ", time_.now() / seconds(1));
  BarrierOptions options;
  for (int node = 0; node < tasks_; ++node) options.tasks.push_back(task_of(node));
  options.timeout = random_.between(milliseconds(100), seconds(2));
  history_.begin_barrier(name, task_of(life.node));
  life.agent->start_barrier(
      name, options,
      in_time(life, options.timeout, [this, name, tasks = options.tasks](auto error, const auto&) {
        if (error) return;
        ++result_.barriers_passed;
        const std::string wrong = history_.end_barrier(name, tasks);
        if (!wrong.empty()) violate(wrong);
      }));
}

void World::write_to_others(Life& life) {
  if (life.agent->generation() == 0) return;
  if (options_.elastic) {  // the first of the group is the one that writes
    const Membership group = life.agent->view()->live();
    if (group.members.empty() || group.members.front().task != task_of(life.node)) return;
  }
  for (const auto& peer : life.peers) {
    peer->start("resource/write", {}, {.timeout = seconds(1)}, [](const rpc::CallResult&) {});
  }
}

}  // namespace cohort::internal::membership
