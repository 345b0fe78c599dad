#include "cohort/parameter_server/variables/placement.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/core/error.h"
#include "cohort/core/structure/device.h"
#include "cohort/core/text.h"
#include "cohort/distribute/variables/colocation.h"
#include "cohort/parameter_server/variables/served_variable.h"

namespace cohort::internal {

using distribute::VariablePlacement;
using distribute::VariableSpec;

namespace {

RowRange all_rows(const VariableSpec& spec) { return {0, spec.shape.empty() ? 1 : spec.shape[0]}; }

std::vector<PlacedShard> beside(const ServedVariable& other, const VariableSpec& spec) {
  const auto& others = other.layout().shards;
  if (colocation() == Colocation::kWhole) return {{{others[0].place.ps, {}}, all_rows(spec)}};
  if (other.shape() != at::IntArrayRef(spec.shape)) {
    return {{{others[0].place.ps, {}}, all_rows(spec), others[0].place.key}};
  }
  std::vector<PlacedShard> shards;
  for (const PlacedShard& one : others) {
    shards.push_back({{one.place.ps, {}}, one.rows, one.place.key});
  }
  return shards;
}

int64_t bytes_of(const VariableSpec& spec, const RowRange& rows) {
  auto bytes = static_cast<int64_t>(c10::elementSize(spec.dtype)) * rows.size();
  for (size_t i = 1; i < spec.shape.size(); ++i) bytes *= spec.shape[i];
  return bytes;
}

}  // namespace

Placement::Placement(int num_ps, VariablePlacement how,
                     distribute::partitioners::Partitioner partitioner)
    : how_(how), partitioner_(std::move(partitioner)), bytes_(static_cast<size_t>(num_ps)) {}

// What is put elsewhere has its turn all the same, as in TensorFlow.
int Placement::next(int64_t bytes, std::optional<int> ps) {
  int chosen = next_;
  if (how_ == VariablePlacement::LEAST_LOADED) {
    chosen = static_cast<int>(std::min_element(bytes_.begin(), bytes_.end()) - bytes_.begin());
  } else {
    next_ = (next_ + 1) % static_cast<int>(bytes_.size());
  }
  if (ps) chosen = *ps;
  bytes_[static_cast<size_t>(chosen)] += bytes;
  return chosen;
}

int Placement::ps_of(const std::string& device, const std::string& variable) const {
  const DeviceSpec spec = DeviceSpec::parse(device);
  const auto num_ps = static_cast<int>(bytes_.size());
  const bool is_cpu = spec.type.value_or("CPU") == "CPU" && spec.index.value_or(0) == 0;
  if (spec.job == kPs && spec.task && *spec.task < num_ps && is_cpu) return *spec.task;
  throw InvalidArgumentError(str("a variable creator asks for device ", quoted(device),
                                 " for variable ", quoted(variable), "; there are ", num_ps,
                                 " ps tasks: name one as \"/job:", kPs, "/task:0\""));
}

// A constraint that spans rows needs all of them. Errors: Unimplemented (it is a function of the
// program, which no ps task knows).
bool Placement::is_kept_whole(const VariableSpec& spec) {
  const optim::Constraint& constraint = spec.options.constraint;
  if (!constraint) return false;
  if (const auto* projection = constraint.projection()) {
    return optim::spans_rows(*projection, spec.shape);
  }
  throw UnimplementedError(str("the constraint of variable ", quoted(spec.options.name),
                               " is a function of the program, which ps tasks cannot run; give "
                               "one of keras::constraints"));
}

std::vector<PlacedShard> Placement::place(const VariableSpec& spec, int64_t id,
                                          std::optional<int> ps) {
  std::vector<PlacedShard> shards;
  if (const auto* shard = dynamic_cast<const ShardVariable*>(colocated_with())) {
    shards = {{{shard->ps(), {}}, all_rows(spec)}};
  } else if (const auto* other = dynamic_cast<const ServedVariable*>(colocated_with())) {
    shards = beside(*other, spec);
  }
  const std::lock_guard lock(mutex_);
  if (shards.empty()) {
    const int64_t count = is_kept_whole(spec)
                              ? 1
                              : shards_of(partitioner_, spec.options.name, spec.shape, spec.dtype);
    for (const RowRange& rows : split_rows(all_rows(spec).end, count)) {
      shards.push_back({{next(bytes_of(spec, rows), ps), {}}, rows});
    }
  } else {
    for (const PlacedShard& shard : shards) {
      bytes_[static_cast<size_t>(shard.place.ps)] += bytes_of(spec, shard.rows);
    }
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    shards[i].place.key = {id, static_cast<int64_t>(i)};
  }
  return shards;
}

}  // namespace cohort::internal
