#include "cohort/parameter_server/variables/task_step.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "cohort/parameter_server/variables/closure_context.h"

namespace cohort::internal {
namespace {

// Values that wait longer for their step (its input takes long to make) are read again, and the
// next pushes do not ask for any.
constexpr std::chrono::milliseconds kMostAge{20};
constexpr int kPassedOver = 15;

}  // namespace

bool TaskStep::Sent::is_own() const {
  const ClosureContext* running = current_closure();
  return running != nullptr && running->id == closure && running->arrived == closure_arrived;
}

void TaskStep::use(const std::shared_ptr<StepVariable>& variable) {
  const std::lock_guard lock(mutex_);
  used_.push_back(variable);
}

void TaskStep::add(int ps, StoreOp op) {
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<size_t>(ps);
  if (ops_.size() <= index) ops_.resize(index + 1);
  ops_[index].push_back(std::move(op));
}

void TaskStep::add(StepUpdate update) {
  const std::lock_guard lock(mutex_);
  updates_.push_back(std::move(update));
  has_updates_ = true;
}

std::vector<StepUpdate> TaskStep::take_updates(const StepVariable& variable) {
  std::set<const StepVariable*> needed{&variable};
  std::vector<StepUpdate> taken;
  const std::lock_guard lock(mutex_);
  for (size_t i = updates_.size(); i-- > 0;) {
    StepUpdate& update = updates_[i];
    const auto is_needed = [&](const VariablePtr& one) { return needed.contains(one.get()); };
    if (std::none_of(update.written.begin(), update.written.end(), is_needed)) continue;
    for (const VariablePtr& one : update.written) needed.insert(one.get());
    taken.push_back(std::move(update));
    updates_.erase(updates_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::reverse(taken.begin(), taken.end());
  return taken;
}

void TaskStep::see_updates(const StepVariable& variable) {
  if (!has_updates_) return;
  const std::lock_guard others_wait(seeing_);
  for (const StepUpdate& update : take_updates(variable)) update.apply_here();
}

void TaskStep::forget_updates() {
  std::vector<StepUpdate> forgotten;  // freed after the lock
  const std::lock_guard lock(mutex_);
  forgotten.swap(updates_);
  has_updates_ = false;
}

std::vector<TaskStep::VariablePtr> TaskStep::used_variables() {
  const std::lock_guard lock(mutex_);
  std::erase_if(used_, [](const auto& variable) { return variable.expired(); });
  std::vector<VariablePtr> variables;
  for (const auto& variable : used_) {
    if (auto alive = variable.lock()) variables.push_back(std::move(alive));
  }
  return variables;
}

void TaskStep::begin(const StoreClient& store, SessionId session) {
  forget_updates();
  Sent sent;
  {
    const std::lock_guard lock(mutex_);
    for (auto& ops : ops_) ops.clear();
    sent = std::exchange(sent_, {});
  }
  if (sent.push != nullptr) {
    const std::exception_ptr error = sent.push->wait();
    // The closure before gives its error to its caller.
    if (error != nullptr && sent.is_own()) std::rethrow_exception(error);
    if (error != nullptr) sent.asked = {};
  }
  std::vector<VariablePtr> wanted = used_variables();
  std::erase_if(wanted, [](const auto& variable) { return !variable->begin_step(); });
  if (!sent.asked.is_empty()) take_ahead(sent, session, wanted);
  std::vector<StoreClient::Known> shards;
  for (const auto& variable : wanted) variable->add_known(shards);
  if (shards.empty()) return;
  // Some of a worker's variables may be none of the coordinator's any more, which no step needs.
  std::vector<VariableStore::Value> values = store.read_if_there(shards);
  size_t next = 0;
  for (const auto& variable : wanted) {
    const size_t count = variable->num_shards();
    variable->take({values.data() + next, count});
    next += count;
  }
}

// What was asked for after the closure had come is as good as what it would ask for itself: nobody
// who has handed it out can have written in between and expect it to know.
void TaskStep::take_ahead(const Sent& sent, SessionId session, std::vector<VariablePtr>& wanted) {
  const ClosureContext* closure = current_closure();
  if (closure == nullptr || closure->arrived > sent.at || session != sent.session) return;
  if (Clock::now() - sent.at > kMostAge) {
    const std::lock_guard lock(mutex_);
    passed_over_ = kPassedOver;
    return;
  }
  const PushUnderWay::Values values = sent.push->values();
  size_t next = 0;
  for (const auto& asked : sent.asked.whole) {
    const VariablePtr variable = asked.lock();
    if (variable == nullptr) return;  // how many shards it had nobody knows any more
    const size_t count = variable->num_shards();
    const auto found = std::find(wanted.begin(), wanted.end(), variable);
    if (found != wanted.end()) {
      variable->take({values.shards.data() + next, count});
      wanted.erase(found);
    }
    next += count;
  }
  next = 0;
  for (const Table& table : sent.asked.tables) {
    if (const VariablePtr variable = table.variable.lock()) {
      variable->take_rows(table.ids, {values.rows.data() + next, table.parts});
    }
    next += table.parts;
  }
}

bool TaskStep::asks_ahead() {
  const ClosureContext* closure = current_closure();
  if (closure == nullptr || closure->waiting == nullptr || closure->waiting->load() == 0) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  return passed_over_ == 0 || passed_over_-- == 1;
}

StoreClient::Pull TaskStep::ask_ahead(Asked& asked) {
  StoreClient::Pull pull;
  for (const auto& variable : used_variables()) {
    if (variable->pulls_next()) {
      variable->add_known(pull.shards);
      asked.whole.push_back(variable);
    } else if (const Tensor ids = variable->rows_for_next(); ids.defined()) {
      const size_t before = pull.rows.size();
      variable->add_rows(ids, pull.rows);
      asked.tables.push_back({variable, ids, pull.rows.size() - before});
    }
  }
  return pull;
}

// A function that makes a worker's input is no closure: it runs on each worker, and again on one
// that comes back.
StoreClient::Push TaskStep::push_with(uint64_t (ClosureContext::*next_token)()) {
  ClosureContext* const closure = current_closure();
  if (closure == nullptr || closure->makes_input) return {};
  return {.token = (closure->*next_token)(),
          .forget_below = closure->forget_below * ClosureContext::kMostPushes};
}

void TaskStep::apply_now(const StoreClient& store, std::vector<std::vector<StoreOp>> ops) {
  forget_pull();
  store.apply(std::move(ops), push_with(&ClosureContext::token_of_next_assignment));
}

void TaskStep::end(const StoreClient& store, SessionId session) {
  forget_updates();
  std::vector<std::vector<StoreOp>> ops;
  {
    const std::lock_guard lock(mutex_);
    ops.swap(ops_);
  }
  const ClosureContext* const closure = current_closure();
  const StoreClient::Push push = push_with(&ClosureContext::token_of_next_step);
  if (push.token == 0) return store.apply(std::move(ops), push);
  Sent sent;
  sent.closure = closure->id;
  sent.closure_arrived = closure->arrived;
  sent.session = session;
  const StoreClient::Pull pull = asks_ahead() ? ask_ahead(sent.asked) : StoreClient::Pull();
  sent.at = Clock::now();
  sent.push = store.start(std::move(ops), push, pull);
  const std::lock_guard lock(mutex_);
  sent_ = std::move(sent);
}

void TaskStep::settle() const {
  std::shared_ptr<PushUnderWay> push;
  bool is_own = false;
  {
    const std::lock_guard lock(mutex_);
    push = sent_.push;
    is_own = sent_.is_own();
  }
  if (push == nullptr) return;
  const std::exception_ptr error = push->wait();
  if (error != nullptr && is_own) std::rethrow_exception(error);
}

void TaskStep::forget_pull() {
  settle();
  const std::lock_guard lock(mutex_);
  sent_.asked = {};
}

std::shared_ptr<PushUnderWay> TaskStep::last_push() const {
  const std::lock_guard lock(mutex_);
  return sent_.is_own() ? sent_.push : nullptr;
}

}  // namespace cohort::internal
