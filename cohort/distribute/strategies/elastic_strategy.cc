#include "cohort/distribute/strategies/elastic_strategy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cohort/collective/gathered_bytes.h"
#include "cohort/collective/task_collectives.h"
#include "cohort/core/error.h"
#include "cohort/distribute/step/step_call.h"
#include "cohort/distribute/tasks/structure_message.h"

namespace cohort::internal {

using collective::ReplicaRange;

namespace {

// A larger result stays with the task of its replica.
constexpr size_t kMostResultBytes = 64 << 10;

// Sets a flag for as long as it lives.
class ScopedFlag {
 public:
  explicit ScopedFlag(bool& flag) : flag_(flag), before_(std::exchange(flag, true)) {}
  ~ScopedFlag() { flag_ = before_; }
  ScopedFlag(const ScopedFlag&) = delete;
  ScopedFlag& operator=(const ScopedFlag&) = delete;

 private:
  bool& flag_;
  const bool before_;
};

// What a task brings to the end of a step: this, then for each of its replicas a PartOfReplica, its
// state and its result.
struct PartOfTask {
  int64_t call;
  StepTransaction::Made made;  // values 0: it has come later, and got those of the others
  int32_t first;               // replica
  int32_t replicas;
  uint64_t must_form;  // 1: see GroupFormer
};
struct PartOfReplica {
  uint64_t state_bytes;
  int64_t result_bytes;  // negative: the result did not come along
};

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Takes a T, or so many bytes, from the front.
std::string_view take(std::string_view& bytes, size_t size) {
  if (bytes.size() < size)
    throw DataLossError("what a task brought to the end of a step is cut off");
  const std::string_view taken = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return taken;
}
template <class T>
T take(std::string_view& bytes) {
  T value;
  std::memcpy(&value, take(bytes, sizeof value).data(), sizeof value);
  return value;
}

std::string encode_result(const Structure& result) {
  const rpc::Message message = to_message(result);
  if (message.bulk_bytes() > kMostResultBytes) return {};
  std::string bytes;
  append(bytes, uint64_t{message.control.size()});
  bytes += message.control;
  for (const rpc::Bytes& bulk : message.bulk) {
    append(bytes, uint64_t{bulk.size});
    bytes.append(bulk.data, bulk.size);
  }
  return bytes;
}

Structure decode_result(const std::string& result) {
  std::string_view bytes = result;
  rpc::Message message;
  message.control = take(bytes, take<uint64_t>(bytes));
  while (!bytes.empty()) {
    const auto bulk = std::make_shared<const std::string>(take(bytes, take<uint64_t>(bytes)));
    message.bulk.push_back({bulk, bulk->data(), bulk->size()});
  }
  return to_structure(message, "the result of a step");
}

}  // namespace

// What the tasks have told each other at the end of a step: the results of all replicas.
class ElasticStrategy::StepRecord final : public ReplicaSource {
 public:
  StepRecord(int first, int64_t step, int replicas)
      : ReplicaSource(first), step_(step), results_(static_cast<size_t>(replicas)) {}

  void set(int replica, std::string_view result) {
    results_[static_cast<size_t>(replica)].emplace(result);
  }
  Structure component(int replica) const override {
    const auto& result = results_[static_cast<size_t>(replica)];
    if (result) return decode_result(*result);
    throw UnavailableError(str("the result of replica ", replica, " in call ", step_,
                               " of the strategy was lost with its worker: it has more than ",
                               kMostResultBytes >> 10, " KiB, or is of a kind that is not sent"));
  }
  bool has_all() const override {
    return std::all_of(results_.begin(), results_.end(),
                       [](const auto& result) { return result.has_value(); });
  }

 private:
  const int64_t step_;
  std::vector<std::optional<std::string>> results_;
};

// The generators from which the replicas draw.
class ElasticStrategy::HostedGenerators final : public Hosted {
 public:
  explicit HostedGenerators(StrategyGenerators& all) : all_(all) {}

  void write_state(int replica, std::string& out) const override {
    append(out, all_.of_stream(static_cast<uint64_t>(replica)).state());
  }
  void read_state(int replica, std::string_view bytes) override {
    all_.of_stream(static_cast<uint64_t>(replica)).restore(take<random::GeneratorState>(bytes));
  }
  void host(ReplicaRange) override {}

 private:
  StrategyGenerators& all_;
};

ElasticStrategy::ElasticStrategy(Config config, std::shared_ptr<GroupFormer> former, bool is_coming)
    : LocalStrategy(std::move(config)),
      former_(std::move(former)),
      generators_(std::make_unique<HostedGenerators>(all_generators())),
      has_come_(is_coming),
      calls_(is_coming ? GroupFormer::kComing : 0) {
  if (former_ == nullptr) return;
  transaction_.add(*generators_, "the generators of the replicas");
  group().set_repeater(this);
}

ElasticStrategy::~ElasticStrategy() { transaction_.remove(*generators_); }

ReplicaRange ElasticStrategy::own_replicas() const {
  const auto& view = group().view();
  return {view->first_replica(), view->first_replica() + view->num_local_replicas()};
}

ReplicasOfTask ElasticStrategy::replicas_here() const {
  const ReplicaRange own = own_replicas();
  return {own.first, own.size()};
}

void ElasticStrategy::run(const std::shared_ptr<RunFrame>& frame,
                          const distribute::RunOptions& options) {
  if (former_ == nullptr) return LocalStrategy::run(frame, options);
  const auto alive = shared_from_this();
  if (calls_ == GroupFormer::kComing) {
    throw FailedPreconditionError(
        "this worker has come to a job that runs already, and has not joined it; call "
        "CheckpointManager::restore_or_initialize before the first step, and save on all workers: "
        "it joins where the others have saved");
  }
  frame->check_can_move();
  retired_.clear();
  if (!std::exchange(have_told_states_, true) && is_together()) tell_own_states();
  frame->host(replicas_here(), /*all=*/false);
  struct Ended {
    StepTransaction& transaction;
    ~Ended() { transaction.end(); }
  } ended{transaction_};
  while (true) {
    bool has_ended = false;
    try {
      run_once(frame, options);
      has_ended = true;
    } catch (const UnavailableError&) {
      if (!former_->has_lost_a_task()) {
        transaction_.roll_back();
        throw;
      }
    } catch (...) {
      transaction_.roll_back();
      throw;
    }
    if (has_ended) {
      transaction_.end();
      if (must_form_) form_after_call();
      return;
    }
    const ReplicaRange before = own_replicas();
    const GroupFormer::Standing mine{.calls = calls_, .reached = reached_};
    if (const std::optional<std::string> told = form_again(mine)) {
      const auto record = read_commit(*told, before);
      transaction_.end();
      transaction_.host(own_replicas());
      return frame->take_results(replicas_here(), record);
    }
    transaction_.roll_back();
    transaction_.end();
    transaction_.host(own_replicas());
    frame->host(replicas_here(), /*all=*/true);
  }
}

void ElasticStrategy::run_once(const std::shared_ptr<RunFrame>& frame,
                               const distribute::RunOptions& options) {
  reached_ = false;
  if (is_together()) transaction_.begin(own_replicas());
  LocalStrategy::run(frame, options);
  reached_ = true;
  commit(*frame);
}

// The tasks exchange what only they know of their replicas: who has that of all has ended the step.
void ElasticStrategy::commit(RunFrame& frame) {
  write_commit(frame);
  const std::string& mine = messages_[calls_ % 2];
  std::string all;
  if (is_together()) {
    collective::GatheredBytes gathered(group().buffers());
    group().between().gather_bytes({mine.data(), mine.size()}, gathered,
                                   {.name = "the end of a step", .timeout = group().timeout()});
    for (int rank = 0; rank < group().view()->num_tasks(); ++rank) {
      all.append(gathered.of(rank).data(), gathered.of(rank).size());
    }
  } else {
    all = mine;
  }
  frame.source_of_results = read_commit(all, own_replicas());
  answer_ = std::move(all);
}

void ElasticStrategy::write_commit(const RunFrame& frame) {
  const ReplicaRange own = own_replicas();
  std::string& message = messages_[calls_ % 2];
  message.clear();
  append(message, PartOfTask{.call = calls_ + 1,
                             .made = own_made(),
                             .first = own.first,
                             .replicas = own.size(),
                             .must_form = former_->must_form() ? 1u : 0u});
  for (int id = own.first; id < own.last; ++id) {
    const size_t start = message.size();
    append(message, PartOfReplica{});
    if (is_together()) transaction_.write_states(id, message);
    PartOfReplica part{.state_bytes = message.size() - start - sizeof part, .result_bytes = -1};
    const auto result = frame.result_of(static_cast<size_t>(id - own.first));
    if (const std::string bytes = result ? encode_result(*result) : std::string(); !bytes.empty()) {
      part.result_bytes = static_cast<int64_t>(bytes.size());
      message += bytes;
    }
    std::memcpy(message.data() + start, &part, sizeof part);
  }
}

StepTransaction::Made ElasticStrategy::own_made() const {
  StepTransaction::Made made = transaction_.made();
  if (has_come_) made.values = 0;
  return made;
}

// The record of the call under way, which has ended with it. `own`: the replicas of this task in
// it.
std::shared_ptr<const ElasticStrategy::StepRecord> ElasticStrategy::read_commit(
    std::string_view record, ReplicaRange own) {
  auto results =
      std::make_shared<StepRecord>(own.first, calls_ + 1, group().view()->num_replicas());
  must_form_ = false;
  while (!record.empty()) {
    const auto task = take<PartOfTask>(record);
    must_form_ = must_form_ || task.must_form != 0;
    if (task.call != calls_ + 1) {
      throw FailedPreconditionError(str("the task of replica ", task.first, " is at call ",
                                        task.call, " of the strategy, this one at ", calls_ + 1,
                                        "; every task must make the same calls in the same order"));
    }
    const StepTransaction::Made mine = own_made();
    const bool have_values = task.made.values != 0 && mine.values != 0;
    if (task.made.variables != mine.variables || (have_values && task.made.values != mine.values)) {
      throw FailedPreconditionError(str(
          "the task of replica ", task.first, " has made other variables than this one, or with ",
          "other initial values; the last one here is ", transaction_.last_made(),
          "; make the same ones in one order on every worker, with initializers of Cohort or of "
          "equal seeds"));
    }
    for (int id = task.first; id < task.first + task.replicas; ++id) {
      const auto part = take<PartOfReplica>(record);
      const std::string_view state = take(record, part.state_bytes);
      if (id < own.first || id >= own.last) transaction_.read_states(id, state);
      if (part.result_bytes < 0) continue;
      results->set(id, take(record, static_cast<size_t>(part.result_bytes)));
    }
  }
  ++calls_;
  return results;
}

std::string ElasticStrategy::repeatable(FunctionRef<std::string()> call) {
  const bool is_alone = former_ == nullptr || calls_ == GroupFormer::kComing;
  if (is_alone || in_call_ || transaction_.is_open()) return call();
  while (true) {
    std::string answer;
    try {
      const ScopedFlag calls_in_it_are_part_of_it(in_call_);
      answer = call();
    } catch (const UnavailableError&) {
      if (!former_->has_lost_a_task()) throw;
      std::optional<std::string> told = form_again({.calls = calls_});
      transaction_.host(own_replicas());
      if (!told) continue;
      answer = *std::move(told);
    }
    ++calls_;
    answer_ = answer;
    return answer;
  }
}

// Returns what other tasks have got of the call that this one could not end, if they have.
std::optional<std::string> ElasticStrategy::form_again(GroupFormer::Standing mine) {
  while (true) {
    const GroupFormer::Formed formed = former_->form(mine);
    try {
      return take_up(formed);
    } catch (const UnavailableError&) {
      if (!former_->has_lost_a_task()) throw;
    }
  }
}

// COLLECTIVE over the tasks of the group that has formed. Errors: Unavailable (one is lost).
std::optional<std::string> ElasticStrategy::take_up(const GroupFormer::Formed& formed) {
  const int replicas = group().view()->num_replicas();
  const int rank = formed.communicator == nullptr ? 0 : formed.communicator->rank();
  const ReplicaRange own = collective::SumTree(replicas).divide(
      static_cast<int>(formed.calls.size()))[static_cast<size_t>(rank)];
  retired_.push_back(replace_replicas(
      std::vector<std::string>(static_cast<size_t>(own.size()), worker_devices()[0]),
      formed.communicator, formed.cores));
  group().set_repeater(this);
  const ScopedFlag is_no_call_of_its_own(in_call_);
  const auto [least, most] = std::minmax_element(formed.calls.begin(), formed.calls.end());
  if (*most ==
      GroupFormer::kComing) {  // the others are gone: what they have saved is where to begin
    calls_ = 0;
    return std::nullopt;
  }
  if (*least == GroupFormer::kComing) {  // where the others are at the same place: see admit
    tell_all_states();
    calls_ = *most;
    return std::nullopt;
  }
  if (*least == *most) return std::nullopt;
  const auto teller = static_cast<size_t>(most - formed.calls.begin());
  const std::vector<std::string> told = collective::all_tasks_texts(
      group(), static_cast<size_t>(rank) == teller ? answer_ : "", "a call that others ended");
  if (calls_ == *most) return std::nullopt;
  return told[teller];
}

std::string ElasticStrategy::states_of(ReplicaRange range) const {
  std::string states;
  for (int id = range.first; id < range.last; ++id) {
    std::string state;
    transaction_.write_states(id, state);
    append(states, int64_t{id});
    append(states, uint64_t{state.size()});
    states += state;
  }
  return states;
}

void ElasticStrategy::read_states(std::string_view states, ReplicaRange own) {
  while (!states.empty()) {
    const auto id = static_cast<int>(take<int64_t>(states));
    const std::string_view state = take(states, take<uint64_t>(states));
    if (id < own.first || id >= own.last) transaction_.read_states(id, state);
  }
}

// Each task may have restored its own replicas alone.
void ElasticStrategy::tell_own_states() {
  const ReplicaRange before = own_replicas();
  const std::string all = repeatable([&] {
    std::string told;
    const std::string own = states_of(own_replicas());
    for (const std::string& one : collective::all_tasks_texts(group(), own, "restored states")) {
      told += one;
    }
    return told;
  });
  read_states(all, before);
}

// A task that has come gets the states of all replicas.
void ElasticStrategy::tell_all_states() {
  const bool comes = calls_ == GroupFormer::kComing;
  const ReplicaRange all{0, group().view()->num_replicas()};
  const std::vector<std::string> told = collective::all_tasks_texts(
      group(), comes ? std::string() : states_of(all), "the states of replicas");
  if (!comes) return;
  read_states(*std::find_if(told.begin(), told.end(),
                            [](const std::string& text) { return !text.empty(); }),
              {0, 0});
}

// All tasks have ended their last call.
void ElasticStrategy::form_after_call() {
  form_again({.calls = calls_});
  transaction_.host(own_replicas());
}

void ElasticStrategy::admit(FunctionRef<void()> before) {
  if (former_ == nullptr || calls_ == GroupFormer::kComing) return;
  const std::string waits = repeatable([&] {
    const char mine = former_->somebody_waits() ? 1 : 0;
    return collective::all_tasks_bytes(group(), {&mine, 1}, "whether somebody waits to join");
  });
  if (waits.find('\1') == std::string::npos) return;
  before();
  form_again({.calls = calls_, .admits = true});
  transaction_.host(own_replicas());
}

bool ElasticStrategy::join(FunctionRef<void()> restore) {
  if (former_ == nullptr || calls_ != GroupFormer::kComing) return false;
  have_told_states_ = true;  // the others have
  bool restored = false;
  while (calls_ == GroupFormer::kComing) {
    const GroupFormer::Formed formed = former_->form({.calls = GroupFormer::kComing});
    if (!std::exchange(restored, true)) restore();
    try {
      take_up(formed);
    } catch (const UnavailableError&) {
      if (!former_->has_lost_a_task()) throw;
    }
  }
  transaction_.host(own_replicas());
  return true;
}

}  // namespace cohort::internal
