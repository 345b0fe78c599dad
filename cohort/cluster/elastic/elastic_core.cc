#include "cohort/cluster/elastic/elastic_core.h"

#include <algorithm>
#include <utility>

#include "cohort/cluster/membership/limits.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal::elastic {

using membership::StoreReply;
using membership::StoreRequest;

namespace {

constexpr Duration kTellTimeout = std::chrono::seconds(1);
// How long one call waits for somebody who waits.
constexpr Duration kWatch = std::chrono::seconds(5);
constexpr Duration kWatchPause = std::chrono::milliseconds(200);
constexpr Duration kVainPause = std::chrono::seconds(1);

// How a task says that it waits: as a process that is no member, or as one that wants to leave.
std::string waiter(const TaskId& task, uint64_t incarnation, bool leaves) {
  return str(task, ' ', membership::hex(incarnation), leaves ? " leaves" : "");
}

// Whether the same call may succeed in another round.
bool is_transient(const std::exception_ptr& error) {
  const Code code = record_error(error).code;
  return code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kAborted ||
         code == Code::kCancelled || code == Code::kNotFound;
}

}  // namespace

ElasticCore::ElasticCore(membership::MembershipAgent& agent, ElasticOptions options)
    : agent_(agent),
      clock_(agent.clock()),
      options_(std::move(options)),
      self_(agent.options().task),
      incarnation_(agent.options().incarnation) {
  membership::check_name("the name of an elastic group", options_.group.name,
                         membership::kMostNameBytes);
}

void ElasticCore::change(FunctionRef<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) work();
  }
  calls_.run();
}

void ElasticCore::wake_after(Duration delay, std::function<void()> work) {
  clock_.call_at(clock_.now() + delay, [weak = weak_from_this(), work = std::move(work)] {
    if (const auto self = weak.lock()) self->change(work);
  });
}

void ElasticCore::ask(std::string_view method, StoreRequest request, Duration timeout,
                      Answer answer) {
  auto done = [weak = weak_from_this(), round = round_, answer = std::move(answer)](
                  const std::exception_ptr& error, const StoreReply& reply) {
    const auto self = weak.lock();
    if (!self) return;
    self->change([&] {
      if (round != self->round_ || !self->call_) return;
      if (error) return self->failed(error);
      self->call_->heard = self->clock_.now();
      try {
        answer(reply);
      } catch (const Error&) {  // bytes that are no record
        self->fail(std::current_exception());
      }
    });
  };
  calls_.add(
      [this, method, request = std::move(request), timeout, done = std::move(done)]() mutable {
        agent_.start_store(method, std::move(request), timeout, std::move(done));
      });
}

void ElasticCore::tell(std::string_view method, StoreRequest request) {
  calls_.add([this, method, request = std::move(request)]() mutable {
    agent_.start_store(method, std::move(request), kTellTimeout,
                       [](const std::exception_ptr&, const StoreReply&) {});
  });
}

void ElasticCore::failed(const std::exception_ptr& error) {
  if (const std::exception_ptr end = agent_.error()) return fail(end);
  is_transient(error) ? end_round() : fail(error);
}

void ElasticCore::form(const Standing& mine, Formed done) {
  change([&] {
    std::exception_ptr refusal;
    if (call_) {
      refusal = make_error(Code::kFailedPrecondition,
                           str("group ", quoted(options_.group.name),
                               ": another thread of this task is forming it already"));
    } else if (mine.step < kNoStep || mine.reached < mine.step ||
               mine.program.size() > kMostProgramBytes) {
      refusal = make_error(Code::kInvalidArgument,
                           str("group ", quoted(options_.group.name), ": step ", mine.step,
                               ", reached ", mine.reached, " and a program of ",
                               mine.program.size(), " bytes are no standing of a task"));
    }
    if (refusal) return calls_.add([done = std::move(done), refusal] { done(refusal, {}); });
    const Time now = clock_.now();
    // Greater than those of an earlier object of this process, too.
    last_attempt_ = std::max<int64_t>(last_attempt_ + 1, now.time_since_epoch().count());
    call_ = Call{.mine = {self_, incarnation_, last_attempt_, mine},
                 .done = std::move(done),
                 .began = now,
                 .heard = now,
                 .next_report = now + kReportEvery};
    tick();
    tick_later();
  });
}

void ElasticCore::finish(std::exception_ptr error, Record record) {
  Call call = std::move(*call_);
  call_.reset();
  end_round();
  // A proposal that has led to a record stays until the next one: others may still look for it. So
  // does one that was refused, for nobody is to wait for it.
  const bool withdraws = error && record_error(error).code != Code::kFailedPrecondition;
  if (withdraws && !proposed_.empty()) tell("remove", {.key = std::exchange(proposed_, "")});
  if (std::exchange(knocked_, false)) tell("remove", {.key = key("waits")});
  if (!error) current_ = record;
  calls_.add([done = std::move(call.done), error, record] { done(error, record); });
  if (!error) watch();
}

void ElasticCore::learn(const Record& record) {
  if (!known_ || record.number > known_->number) known_ = record;
}

// The first member of the current record keeps a call open that ends when somebody waits.
void ElasticCore::watch() {
  if (!current_ || current_->members.front().task != self_) return;
  calls_.add([this, number = current_->number] {
    agent_.start_store("get", {.key = key("waits"), .at_most = kWatch}, kWatch,
                       [weak = weak_from_this(), number](const std::exception_ptr& error,
                                                         const StoreReply& reply) {
                         const auto self = weak.lock();
                         if (self) self->change([&] { self->watched(error, reply, number); });
                       });
  });
}

void ElasticCore::watched(const std::exception_ptr& error, const StoreReply& reply,
                          int64_t number) {
  if (current_->number != number || agent_.error()) return;
  if (!error && !reply.has_value) return watch();
  // What a member has said as a comer goes a little later than it has become a member.
  const auto& members = current_->members;
  const bool is_old = !error && std::any_of(members.begin(), members.end(), [&](const auto& one) {
    return reply.value == waiter(one.task, one.incarnation, false);
  });
  // A task that asks again at once has not come in time, or has gone: the members do not form at
  // each step because of it.
  const bool is_vain = !error && reply.value == last_waiter_;
  if (!error && !is_old) last_waiter_ = is_vain ? "" : reply.value;
  if (!error && !is_old && !is_vain) {
    waited_at_ = number;
    return;
  }
  wake_after(is_vain ? kVainPause : kWatchPause, [this, number] {
    if (current_->number == number) watch();
  });
}

void ElasticCore::knock(bool leaves) {
  knocked_ = true;
  tell("set", {.key = key("waits"), .value = waiter(self_, incarnation_, leaves), .session = true});
}

bool ElasticCore::somebody_waits() const {
  const std::lock_guard lock(mutex_);
  return current_ && waited_at_ == current_->number;
}

bool ElasticCore::is_formed() const {
  // The store of a service that has taken over is empty until the group has formed again, which it
  // does at the end of its step.
  constexpr Duration kPatience = std::chrono::seconds(5);
  const membership::ViewPtr first = agent_.view();
  std::optional<std::string> latest;
  try {
    latest = first && first->generation > 1 ? agent_.get(key("latest"), kPatience)
                                            : agent_.find(key("latest"));
  } catch (const DeadlineExceededError&) {
    return false;
  }
  const membership::ViewPtr view = agent_.view();
  return latest && view && is_inhabited(Record::decode(*latest), *view, options_.group);
}

void ElasticCore::ask_to_form() {
  change([&] { knock(true); });
}

std::optional<Record> ElasticCore::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

bool ElasticCore::must_form() const {
  const std::lock_guard lock(mutex_);
  const membership::ViewPtr view = agent_.view();
  return current_ && view && agent_.generation() != 0 &&
         (view->service != current_->service || !is_whole(*current_, *view, options_.group));
}

std::vector<TaskId> ElasticCore::lost() const {
  const std::lock_guard lock(mutex_);
  const membership::ViewPtr view = agent_.view();
  std::vector<TaskId> tasks;
  if (!current_ || !view || agent_.generation() == 0) return tasks;
  for (const RecordMember& member : current_->members) {
    if (!is_alive(*view, options_.group, member.task, member.incarnation)) {
      tasks.push_back(member.task);
    }
  }
  return tasks;
}

std::string ElasticCore::key(std::string_view kind) const {
  return str("elastic/", options_.group.name, '/', kind);
}

void ElasticCore::stop() {
  change([&] {
    if (call_) fail(make_error(Code::kCancelled, "the elastic group has ended"));
  });
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  calls_.stop();
}

}  // namespace cohort::internal::elastic
