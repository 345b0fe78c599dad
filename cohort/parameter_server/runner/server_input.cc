#include "cohort/parameter_server/runner/server_input.h"

#include <limits>
#include <utility>

#include "cohort/data/graph/cardinality.h"
#include "cohort/data/iteration/state.h"
#include "cohort/distribute/variables/variable_creation.h"

namespace cohort::internal {
namespace {

constexpr const char* kPass = "pass";
constexpr const char* kNext = "next";
constexpr const char* kStartKey = "start";

distribute::DistributedDataset dataset_of(const ServerInput::Source& source,
                                          const distribute::InputContext& context) {
  const ScopedDatasetFunction no_variables;
  return source.make(context);
}

}  // namespace

ServerInput::ServerInput(std::shared_ptr<const StrategyCore> strategy,
                         const distribute::InputContext& context, std::shared_ptr<LoopCall> call,
                         const LoopTable::InputKey& key, Source source)
    : strategy_(std::move(strategy)),
      call_(std::move(call)),
      key_(key),
      source_(std::move(source)),
      dataset_(dataset_of(source_, context)) {
  call_->table.set_input(*call_, key_, std::make_shared<ServedInput>(source_.make, context));
}

ServerInput::~ServerInput() { call_->table.remove_input(*call_, key_); }

bool ServerInput::has_next() {
  if (found_->has_ended) return false;
  const int64_t count = cardinality();
  return !source_.is_numbered || count < 0 || next_ < count;
}

void ServerInput::restart() {
  if (next_ > 0) ++pass_;
  next_ = 0;
  start_.reset();
  found_ = std::make_shared<Pass>();
}

int64_t ServerInput::cardinality() const {
  const int64_t count = dataset_.cardinality();
  // One pipeline alone says nothing if nobody knows how several divide the data.
  if (!source_.is_numbered && count >= 0) return data::kUnknownCardinality;
  return count;
}

bool ServerInput::knows_end() const {
  return source_.is_endless || (source_.is_numbered && cardinality() >= 0);
}

Structure ServerInput::example() const {
  return dataset_.iterator_of_pass(static_cast<uint64_t>(pass_)).get_next().value(0);
}

BatchPlace ServerInput::take() {
  const int64_t number = next_++;
  if (!source_.is_numbered) return {.pass = pass_};
  return {.pass = pass_, .number = number, .start = start()};
}

const std::string& ServerInput::start() {
  if (!start_) {
    start_ = dataset_.iterator_of_pass(static_cast<uint64_t>(pass_)).state().serialize();
  }
  return *start_;
}

std::vector<train::CheckpointValue> ServerInput::checkpoint_values() {
  data::IteratorState state;
  state.set_int(kPass, pass_);
  state.set_int(kNext, next_);
  state.set_bytes(kStartKey, source_.is_numbered ? start() : "");
  return {{.attribute = train::kIteratorState,
           .parts = {{Leaf(StringTensor::scalar(state.serialize()))}}}};
}

void ServerInput::prepare_restore(train::RestoreSource& source) {
  const StringTensor bytes = source.read_strings(train::kIteratorState);
  const auto state = data::IteratorState::parse(bytes.item());
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const int64_t pass = state.get_int(kPass, 0, kMost);
  const int64_t next = state.get_int(kNext, 0, kMost);
  const std::string start(state.get_bytes(kStartKey));
  source.on_commit([this, pass, next, start] {
    found_ = std::make_shared<Pass>();
    // The positions of workers in their own pipelines went with them: another pass begins.
    pass_ = source_.is_numbered ? pass : pass + 1;
    next_ = source_.is_numbered ? next : 0;
    start_.reset();
    if (!start.empty()) start_ = start;
  });
}

}  // namespace cohort::internal
