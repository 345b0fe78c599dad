#include "cohort/cluster/membership/elastic_service.h"

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "cohort/cluster/membership/coordination_service.h"
#include "cohort/cluster/membership/message_body.h"
#include "cohort/cluster/membership/search.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal::membership {
namespace {

// How often it looks for another service, while this one's group does not count.
constexpr Duration kLookEvery = std::chrono::milliseconds(100);
// The same of one whose group counts, while a task is missing.
constexpr Duration kLookForMissingEvery = std::chrono::milliseconds(500);

// So many calls to a task that nobody took, one after the other, show that it is not there.
constexpr int kAbsentAfter = 2;

bool is_alive(const View& view, const TaskId& task) {
  const Member* member = view.find(task);
  return member != nullptr && member->state == TaskState::kAlive;
}

}  // namespace

// Timers and answers refer to it weakly.
class ElasticServiceCore : public std::enable_shared_from_this<ElasticServiceCore> {
 public:
  using ServicePtr = std::shared_ptr<CoordinationService>;

  ElasticServiceCore(rpc::Clock& clock, ElasticServiceOptions options)
      : clock_(clock), options_(std::move(options)) {}

  ServicePtr current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }

  void coordinate(const View& record) {
    CoordinationOptions options = options_.options();
    options.roster.elastic->record = record;
    const Duration dead_after = options.roster.heartbeat.dead_after;
    ServicePtr service;
    {
      const std::lock_guard lock(mutex_);
      if (stopped_ || current_) return;
      service = std::make_shared<CoordinationService>(clock_, std::move(options));
      current_ = service;
      waits_since_ = clock_.now();
      failures_.clear();
      dead_after_ = dead_after;
    }
    options_.log(record.generation == 0
                     ? str(options_.self, " holds the coordination service of a new group")
                     : str(options_.self, " holds the coordination service, after that of ",
                           record.coordinator, " (term ", record.term, ", generation ",
                           record.generation, ")"));
    look_later(service, kLookEvery);
  }

  Standing standing() const {
    std::function<Standing()> of_agent;
    ServicePtr service;
    {
      const std::lock_guard lock(mutex_);
      of_agent = of_agent_;
      service = current_;
    }
    Standing now = of_agent();
    if (!service) return now;
    const View view = service->status();
    now.stage = view.generation > 0 ? Stage::kHolds : Stage::kPrepares;
    if (!view.failure.empty()) now.stage = Stage::kEnded;
    now.service = view.service;
    now.term = view.term;
    now.agreed = view.agreed;
    return now;
  }

  void follow(std::function<Standing()> of_agent) {
    const std::lock_guard lock(mutex_);
    of_agent_ = std::move(of_agent);
  }

  void stop() {
    ServicePtr service;
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      service = std::exchange(current_, nullptr);
    }
    if (service) service->stop();
  }

 private:
  void look_later(const ServicePtr& service, Duration delay) {
    clock_.call_at(clock_.now() + delay, [weak = weak_from_this(), held = std::weak_ptr(service)] {
      const auto self = weak.lock();
      const ServicePtr kept = held.lock();
      if (self && kept && self->current() == kept) self->look(kept);
    });
  }

  // A group that counts may be one of two all the same, where processes were taken for ended: it
  // asks those that it misses.
  void look(const ServicePtr& service) {
    const View view = service->status();
    const bool agreed = view.agreed;
    {
      const std::lock_guard lock(mutex_);
      if (agreed) {
        waits_since_.reset();
      } else if (!waits_since_) {
        waits_since_ = clock_.now();
      }
    }
    for (const TaskId& task : options_.tasks) {
      if (task != options_.self && !(agreed && is_alive(view, task))) ask(task, service);
    }
    look_later(service, agreed ? kLookForMissingEvery : kLookEvery);
  }

  void ask(const TaskId& task, const ServicePtr& service) {
    std::shared_ptr<rpc::Channel> channel;
    try {
      channel = options_.channel_to(task);
    } catch (const Error&) {  // not known yet, or this task ends
      return;
    }
    channel->retry_now();
    channel->start(
        "membership/standing", {}, {.timeout = kSilentIsAway},
        [weak = weak_from_this(), held = std::weak_ptr(service), task](rpc::CallResult result) {
          const auto self = weak.lock();
          const ServicePtr kept = held.lock();
          if (!self || !kept) return;
          self->reached(kept, task, result.error);
          if (result.error) return;
          try {
            self->heard(kept, task, Standing::decode(result.reply.control));
          } catch (const Error&) {  // of another version: it says nothing of use
          }
        });
  }

  // A task at whose address nobody answers need not be waited for; a connection may also be reset.
  void reached(const ServicePtr& service, const TaskId& task, const std::exception_ptr& error) {
    bool is_absent = false;
    {
      const std::lock_guard lock(mutex_);
      int& failures = failures_[task];
      failures = error && record_error(error).code == Code::kUnavailable ? failures + 1 : 0;
      is_absent = failures >= kAbsentAfter;
    }
    if (is_absent) service->absent(task);
  }

  void heard(const ServicePtr& service, const TaskId& task, const Standing& other) {
    const Standing own = standing();
    if (own.agreed && is_alive(service->status(), task)) return;  // it was asked earlier
    bool waits_long = false;
    {
      const std::lock_guard lock(mutex_);
      waits_long = current_ == service && waits_since_ &&
                   clock_.now() - *waits_since_ >= kLongWaits * dead_after_;
    }
    if (!gives_way(options_.self, own, waits_long, task, other)) return;
    const std::string why = str("the coordination service of ", task, " goes before that of ",
                                options_.self, " (term ", other.term, ", here ", own.term, ")");
    // Members may act in a group that has started: they must learn that it is none.
    if (own.stage == Stage::kHolds) {
      return service->fail(rpc::make_error(Code::kAborted,
                                           str("fenced, ", why, "; this one has been superseded"),
                                           "", {.phase = "agreement"}));
    }
    {
      const std::lock_guard lock(mutex_);
      if (current_ != service) return;
      current_ = nullptr;
    }
    options_.log(why);
    service->stop();
  }

  rpc::Clock& clock_;
  const ElasticServiceOptions options_;

  mutable std::mutex mutex_;  // guards what follows
  std::function<Standing()> of_agent_ = [] { return Standing(); };
  ServicePtr current_;
  std::optional<rpc::Clock::Time> waits_since_;  // for its group to count
  Duration dead_after_{0};
  std::map<TaskId, int> failures_;  // to reach a task, one after the other
  bool stopped_ = false;
};

ElasticService::ElasticService(rpc::Clock& clock, ElasticServiceOptions options)
    : core_(std::make_shared<ElasticServiceCore>(clock, std::move(options))) {}

ElasticService::~ElasticService() { core_->stop(); }

std::span<const rpc::MethodSpec> ElasticService::methods() const { return coordination_methods(); }

void ElasticService::handle(size_t method, std::unique_ptr<rpc::Call> call) {
  if (method == CoordinationMethod::kStanding) {
    return call->reply({.control = core_->standing().encode()});
  }
  if (const auto service = core_->current()) return service->handle(method, std::move(call));
  call->fail(make_error(Code::kNotFound, "another task holds the coordination service"));
}

void ElasticService::stop() { core_->stop(); }

void ElasticService::follow(std::function<Standing()> standing) {
  core_->follow(std::move(standing));
}

void ElasticService::coordinate(const View& record) { core_->coordinate(record); }

std::optional<View> ElasticService::status() const {
  const auto service = core_->current();
  if (!service) return std::nullopt;
  return service->status();
}

Standing ElasticService::standing() const { return core_->standing(); }

int64_t ElasticService::stale_refused() const {
  const auto service = core_->current();
  return service ? service->stale_refused() : 0;
}

}  // namespace cohort::internal::membership
