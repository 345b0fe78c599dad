#include "cohort/distribute/preemption/stop_agreement.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/distribute/preemption/done_together.h"

namespace cohort::internal {

using distribute::ClusterView;

namespace {

// Stands in the place of the decision, before the reason.
constexpr std::string_view kNoDecision = "none ";
// An answer, and then a decision: a task makes no more calls.
constexpr std::string_view kOver = "over";

// "12 some note": a call's number, and what follows it. Errors: DataLoss.
std::pair<int64_t, std::string> parse(const std::string& text) {
  const size_t end = text.find(' ');
  const auto call = parse_number<int64_t>(std::string_view(text).substr(0, end));
  if (!call) throw DataLossError(str("where the number of a call was to stand is ", quoted(text)));
  return {*call, end == text.npos ? "" : text.substr(end + 1)};
}

bool is_no_decision(const std::string& outcome) { return outcome.starts_with(kNoDecision); }

std::string reason_of(const std::string& outcome) { return outcome.substr(kNoDecision.size()); }

std::string no_decision(const std::exception_ptr& reason) {
  return str(kNoDecision, record_error(reason).message);
}

bool contains(const std::vector<size_t>& tasks, size_t task) {
  return std::find(tasks.begin(), tasks.end(), task) != tasks.end();
}

}  // namespace

// The thread that calls the function begins no call after the one that it has begun before.
class StopAgreement::Hold {
 public:
  // `state`: the agreement's.
  Hold(StopAgreement& agreement, State& state, size_t asker)
      : agreement_(agreement), attempt_(state.attempt), next_(state.finished + 1) {
    ++state.holds;
    state.asker = asker;
  }
  ~Hold() { --agreement_.state_.change()->holds; }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  int attempt() const { return attempt_; }
  // The call that this task finishes next.
  int64_t next() const { return next_; }

 private:
  StopAgreement& agreement_;
  const int attempt_;
  const int64_t next_;
};

StopAgreement::StopAgreement(StopGroup group, int round, int64_t finished)
    : group_(std::move(group)), round_(round), state_(finished, finished) {}

std::string StopAgreement::key(int attempt, const std::string& what) const {
  return str(group_.name, "/", round_, "/", attempt, "/", what);
}

// The keys under which tasks say that they make no more calls, for every attempt of every round.
std::string StopAgreement::ended_keys() const { return str(group_.name, "/ended/"); }

std::string StopAgreement::done_keys() const { return str(group_.name, "/", round_, "/done/"); }

void StopAgreement::wait_for_decision(Synchronized<State>::Changing& state) {
  // The maker of a decision gives up after twice the patience.
  const auto limit = 3 * group_.patience;
  const auto is_made = [&] { return state->holds == 0 || state->last_call; };
  if (state.wait_until(std::chrono::steady_clock::now() + limit, is_made)) return;
  throw DeadlineExceededError(str(name_of(group_, state->asker),
                                  " has asked all to stop, and nobody has said ",
                                  "after which call for ", limit.count(), " ms"));
}

void StopAgreement::begin_call() {
  auto state = state_.lock();
  wait_for_decision(state);
  if (state->failure != nullptr) std::rethrow_exception(std::exchange(state->failure, nullptr));
  state->begun = state->finished + 1;
}

bool StopAgreement::finish_call() {
  auto state = state_.lock();
  state->finished = state->begun;
  wait_for_decision(state);
  return state->last_call && *state->last_call <= state->finished;
}

void StopAgreement::meet(int64_t call) {
  met_after_ = call;
  if (group_.cluster != nullptr) wait_for_others(call);
  has_met_ = true;
}

void StopAgreement::wait_for_others(int64_t call) {
  const StopWait wait{"the tasks cannot save together: ", " has not come to the agreed call for ",
                      StopWait::Clock::now(), group_.patience_for_call};
  const std::string arrived = str(group_.name, "/", round_, "/arrived at ", call, "/");
  until_answered(wait, [&] { group_.cluster->set(str(arrived, group_.self), ""); });
  std::vector<size_t> awaited = others(group_);
  have_come_.clear();
  while (true) {
    // Looks first for tasks that have ended or are gone, and then for tasks that have come: a task
    // may come and end at once.
    const std::vector<size_t> ended = tasks_under(group_, ended_keys(), wait);
    const ClusterView view = group_.cluster->view();
    for (const size_t task : tasks_under(group_, arrived, wait)) {
      if (contains(awaited, task)) have_come_.push_back(task);
    }
    drop(awaited, have_come_);
    drop(awaited, tasks_under(group_, done_keys(), wait));
    if (has_met_) drop_gone(awaited, view);
    if (awaited.empty()) return;
    check_none_has_ended(awaited, ended);
    check_awaited(group_, awaited, view, wait);
    look_for(group_, str(arrived, awaited.front()));
  }
}

// Leaves out tasks that are gone: another try does without them.
void StopAgreement::drop_gone(std::vector<size_t>& awaited, const ClusterView& view) const {
  const std::vector<size_t> gone = gone_of(group_, awaited, view);
  for (const size_t task : gone) log_info("tries again without ", name_of(group_, task));
  drop(awaited, gone);
}

// Errors: FailedPrecondition.
void StopAgreement::check_none_has_ended(const std::vector<size_t>& awaited,
                                         const std::vector<size_t>& ended) {
  const auto task = std::find_if(awaited.begin(), awaited.end(),
                                 [&](size_t one) { return contains(ended, one); });
  if (task == awaited.end()) return;
  std::optional<int64_t> call;
  {
    const auto state = state_.lock();
    state->has_ended = true;
    call = std::exchange(state->last_call, std::nullopt);
  }
  throw FailedPreconditionError(str("all tasks had agreed to save after call ", call.value(),
                                    ", and ", name_of(group_, *task),
                                    " has ended its handler and has not: this task does not save, "
                                    "either; keep the handlers of all tasks for the same calls"));
}

void StopAgreement::do_together(const std::string& what, train::SaveGroup& calls,
                                FunctionRef<void()> part) {
  if (group_.cluster == nullptr) {
    part();
  } else {
    DoneTogether(group_, str(group_.name, "/", round_, "/after ", met_after_), have_come_, calls)
        .run(what, part);
  }
  set_done();
}

// For those that do not know that all have done it. What is done is done, also where the
// coordinating task has gone.
void StopAgreement::set_done() {
  is_done_ = true;
  if (group_.cluster == nullptr) return;
  try {
    group_.cluster->set(str(done_keys(), group_.self), "");
  } catch (const std::exception& error) {
    log_info("the other tasks are not told that this one has saved: ", error.what());
  }
}

bool StopAgreement::is_due() const { return is_decided() && !is_done_; }

bool StopAgreement::is_settled() const {
  const auto state = state_.lock();
  return state->last_call || state->has_ended;
}

bool StopAgreement::is_decided() const { return state_.lock()->last_call.has_value(); }

std::string StopAgreement::note() const { return state_.lock()->note; }

int StopAgreement::current_attempt() const { return state_.lock()->attempt; }

bool StopAgreement::ask(const std::string& note) {
  std::optional<Hold> hold;
  {
    const auto state = state_.lock();
    const bool has_asked = state->holds > 0 || state->last_call || state->has_ended;
    if (has_asked) return false;  // another task
    hold.emplace(*this, *state, group_.self);
  }
  const int attempt = hold->attempt();
  if (group_.cluster == nullptr) {
    conclude(group_.self, attempt, str(hold->next(), " ", note));
    return true;
  }
  const std::string self = decimal_digits(group_.self), asked = key(attempt, "asked");
  // It may stand there already: from a call that could not say how the attempt ends.
  const bool is_first = until_answered(for_agreement(group_.patience), [&] {
    return group_.cluster->compare_and_set(asked, std::nullopt, self);
  });
  if (!is_first && group_.cluster->get(asked, group_.patience) != self) {
    return false;  // answer() takes part
  }
  std::string outcome;
  try {
    const std::optional<int64_t> others =
        answers_of_others(attempt, for_agreement(group_.patience));
    outcome = settle(attempt,
                     others ? str(std::max(hold->next(), *others), " ", note) : std::string(kOver));
  } catch (...) {
    fail(attempt, std::current_exception());
    throw;
  }
  conclude(group_.self, attempt, outcome);
  if (!is_no_decision(outcome)) return outcome != kOver;
  throw DeadlineExceededError(str("asked all to stop, but ", reason_of(outcome)));
}

// The highest of them; nothing where a task makes no more calls, this one or another.
std::optional<int64_t> StopAgreement::answers_of_others(int attempt, const StopWait& wait) {
  const std::string answers = key(attempt, "next/");
  std::vector<size_t> awaited = others(group_);
  while (true) {
    const ClusterView view = group_.cluster->view();
    drop(awaited, tasks_under(group_, answers, wait));
    if (somebody_has_ended(wait)) return std::nullopt;
    if (awaited.empty()) break;
    check_awaited(group_, awaited, view, wait);
    look_for(group_, str(answers, awaited.front()));
  }
  int64_t highest = 0;
  for (const size_t task : others(group_)) {
    const std::string answer = group_.cluster->get(str(answers, task), group_.patience);
    if (answer == kOver) return std::nullopt;
    highest = std::max(highest, parse(answer).first);
  }
  return highest;
}

bool StopAgreement::somebody_has_ended(const StopWait& wait) const {
  return is_settled() || !tasks_under(group_, ended_keys(), wait).empty();
}

StopWait StopAgreement::for_agreement(std::chrono::milliseconds patience) {
  return {"the tasks cannot agree on a call after which they stop: ", " has not answered for ",
          StopWait::Clock::now(), patience};
}

// Says how an attempt ends, unless another task has. Returns what stands.
std::string StopAgreement::settle(int attempt, const std::string& outcome) {
  const StopWait wait = for_agreement(group_.patience);
  const std::string decision = key(attempt, "decision");
  const bool is_ours = until_answered(
      wait, [&] { return group_.cluster->compare_and_set(decision, std::nullopt, outcome); });
  if (is_ours) return outcome;
  return group_.cluster->get(decision, group_.patience);
}

void StopAgreement::fail(int attempt, const std::exception_ptr& reason) {
  try {
    conclude(group_.self, attempt, settle(attempt, no_decision(reason)));
  } catch (const std::exception& error) {
    log_warning("the tasks of ", group_.name, " are not told that there is no decision (",
                record_error(reason).message, "): ", error.what());
  }
}

void StopAgreement::conclude(size_t asker, int attempt, const std::string& outcome) {
  const auto state = state_.change();
  if (attempt != state->attempt || state->last_call || state->has_ended) return;  // known
  if (is_no_decision(outcome)) {
    ++state->attempt;
    if (asker == group_.self) return;  // ask() throws
    state->failure = std::make_exception_ptr(UnavailableError(
        str(name_of(group_, asker), " asked all to stop, but ", reason_of(outcome))));
  } else if (outcome == kOver) {
    state->has_ended = true;
  } else {
    std::tie(state->last_call, state->note) = parse(outcome);
  }
}

// For whoever asks from now on or comes to the agreed call, and for the one who waits for this
// task's answer.
void StopAgreement::end() {
  int attempt = 0;
  bool is_known = false;
  {
    const auto state = state_.lock();
    is_known = state->last_call || state->has_ended;
    state->has_ended = true;
    attempt = state->attempt;
  }
  if (group_.cluster == nullptr) return;
  group_.cluster->set(str(ended_keys(), group_.self), "");
  if (is_known) return;
  group_.cluster->set(key(attempt, str("next/", group_.self)), std::string(kOver));
}

bool StopAgreement::answer(std::chrono::milliseconds timeout) {
  const int attempt = current_attempt();
  size_t asker = 0;
  try {
    asker = parse_task(group_, group_.cluster->get(key(attempt, "asked"), timeout));
    if (asker == group_.self) {  // in another thread
      conclude(asker, attempt, group_.cluster->get(key(attempt, "decision"), timeout));
      return is_settled();
    }
  } catch (const DeadlineExceededError&) {
    return is_settled();
  }
  std::optional<Hold> hold;
  hold.emplace(*this, *state_.lock(), asker);
  const StopWait wait = for_agreement(2 * group_.patience);
  const std::string answer_key = key(attempt, str("next/", group_.self));
  until_answered(wait, [&] { group_.cluster->set(answer_key, decimal_digits(hold->next())); });
  conclude(asker, attempt, decision_of(asker, attempt, wait));
  return is_settled();
}

// A task that has ended meanwhile waits no longer.
std::string StopAgreement::decision_of(size_t asker, int attempt, const StopWait& wait) {
  try {
    while (!is_settled()) {
      if (auto decision = look_for(group_, key(attempt, "decision"))) return *std::move(decision);
      check_awaited(group_, {asker}, group_.cluster->view(), wait);
    }
    return std::string(kOver);
  } catch (const Error&) {
    return settle(attempt, no_decision(std::current_exception()));
  }
}

}  // namespace cohort::internal
