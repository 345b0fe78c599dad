#include "cohort/parameter_server/variables/served_variable.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/profiler/tracing.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/replica.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/parameter_server/variables/read_cache.h"
#include "cohort/parameter_server/variables/row_lookup.h"

namespace cohort::internal {

namespace {

ShardLayout layout_of(const distribute::VariableSpec& spec, std::vector<PlacedShard> shards) {
  return {.name = spec.options.name,
          .shape = spec.shape,
          .dtype = spec.dtype,
          .shards = std::move(shards)};
}

std::vector<int64_t> looked_up_shape(const Tensor& ids, at::IntArrayRef variable) {
  std::vector<int64_t> shape = ids.sizes().vec();
  shape.insert(shape.end(), variable.begin() + 1, variable.end());
  return shape;
}

// Memory of its own: the caller may change his while a step still needs the ids.
Tensor own_ids(const Tensor& ids) {
  const Tensor flat = ids.detach().to(at::kCPU, int64).reshape({-1}).contiguous();
  return flat.is_alias_of(ids) ? flat.clone() : flat;
}

}  // namespace

ServedVariable::ServedVariable(std::shared_ptr<StrategyCore> strategy, VariableHost& host,
                               const distribute::VariableSpec& spec,
                               std::vector<PlacedShard> shards)
    : VariableImpl(std::move(strategy), spec),
      host_(host),
      copies_(std::make_shared<TaskCopies>(host, layout_of(spec, std::move(shards)), trainable())) {
}

ServedVariable::~ServedVariable() {
  try {
    std::vector<StoreClient::Release> released;
    for (size_t i = 0; i < layout().shards.size(); ++i) {
      released.push_back({layout().shards[i].place, layout().shard_name(i)});
    }
    host_.release(std::move(released));
  } catch (const std::exception&) {  // no memory: they stay as long as this coordinator
  }
}

const char* ServedVariable::kind() const {
  return layout().is_divided() ? "ShardedVariable" : "Variable";
}

std::vector<std::shared_ptr<VariableImpl>> ServedVariable::shards() {
  std::vector<std::shared_ptr<VariableImpl>> variables;
  if (!layout().is_divided()) return variables;
  for (size_t i = 0; i < layout().shards.size(); ++i) {
    variables.push_back(std::make_shared<ShardVariable>(shared_from_this(), i));
  }
  return variables;
}

std::string ServedVariable::device() const {
  if (!layout().is_divided()) return device_of_ps(layout().shards[0].place.ps);
  throw FailedPreconditionError(str("variable '", name(), "' lies in ", layout().shards.size(),
                                    " shards on several devices; ask each of its shards()"));
}

// merge_call runs across replicas, on the thread of one of them.
ServedVariable::Caller ServedVariable::caller(const char* operation) const {
  Caller caller{.replica = calling_replica(operation)};
  const ContextFrame* frame = current_frame();
  while (frame != nullptr && (frame->core != core().get() || frame->replica == nullptr)) {
    frame = frame->parent;
  }
  caller.in_step = frame != nullptr;
  return caller;
}

bool ServedVariable::is_one_of_several(const Caller& caller) {
  return caller.replica != nullptr && caller.replica->num_replicas_in_sync() > 1;
}

void ServedVariable::bind_component(size_t replica, Tensor leaf) {
  copies_->bind(replica, std::move(leaf));
}

Tensor ServedVariable::fetch() const {
  std::vector<StoreClient::Known> known;
  layout().add_all(known);
  const auto values = host_.store().read(known);
  return layout().whole(values);  // nobody else has what was received
}

Tensor ServedVariable::read_outside() const {
  CachedReads::Entry* cached = cached_entry(*this);
  if (cached == nullptr) return fetch();
  if (!cached->value.defined()) cached->value = fetch();
  return cached->value;
}

Tensor ServedVariable::read() const {
  if (is_tracing()) return at::zeros(shape(), at::dtype(dtype()));
  const Caller caller = this->caller("read");
  if (!caller.in_step) return stands_for(copies_->outside_leaf(), read_outside());
  return copies_->read(caller.replica, cached_entry(*this));
}

std::vector<Tensor> ServedVariable::read_together(
    std::span<const distribute::Variable> variables) const {
  std::vector<const ServedVariable*> served;
  for (const distribute::Variable& variable : variables) {
    const auto* one = dynamic_cast<const ServedVariable*>(&variable.impl());
    if (one != nullptr && &one->host_ == &host_) served.push_back(one);
  }
  std::vector<Tensor> values;
  // A step has pulled them together; what a scope has read stays as it was.
  const bool is_fetched = served.size() == variables.size() && !is_tracing() &&
                          cached_reads() == nullptr && !caller("read").in_step;
  if (!is_fetched) {
    for (const distribute::Variable& variable : variables) values.push_back(variable.value());
    return values;
  }
  std::vector<StoreClient::Known> known;
  for (const ServedVariable* one : served) one->layout().add_all(known);
  const std::vector<VariableStore::Value> parts = host_.store().read(known);
  std::span<const VariableStore::Value> rest = parts;
  for (const ServedVariable* one : served) {
    const size_t count = one->layout().shards.size();
    values.push_back(
        stands_for(one->copies_->outside_leaf(), one->layout().whole(rest.first(count))));
    rest = rest.subspan(count);
  }
  return values;
}

Tensor ServedVariable::tape_source() const {
  const Replica* replica = is_tracing() ? nullptr : calling_replica("read");
  return replica == nullptr ? copies_->outside_leaf() : copies_->leaf(*replica);
}

// One call to each ps task that has any of the rows, all at once.
Tensor ServedVariable::fetch_rows(const Tensor& ids) const {
  std::vector<StoreClient::Rows> rows;
  layout().add_rows(ids, rows);
  return ShardLayout::together(host_.store().read_rows(rows));
}

Tensor ServedVariable::rows_outside(const Tensor& ids) const {
  CachedReads::Entry* cached = cached_entry(*this);
  if (cached == nullptr) return fetch_rows(ids);
  if (cached->value.defined()) return gather_rows(cached->value, ids);
  const Tensor missing = cached->rows.missing(ids);
  if (missing.numel() > 0) cached->rows.add(missing, fetch_rows(missing));
  return gather_rows(cached->rows.rows(), positions_in(cached->rows.ids(), ids));
}

// No ps task is asked for no rows. The gradient has no rows either, but there is one.
Tensor ServedVariable::no_rows(const Replica* replica) const {
  if (replica != nullptr) return copies_->read_no_rows(*replica);
  const Tensor ids = at::empty({0}, int64);
  const Tensor rows = at::empty(looked_up_shape(ids, shape()), at::dtype(dtype()));
  return looked_up(copies_->outside_leaf(), rows, ids, {ids, ids});
}

Tensor ServedVariable::read_rows(const Tensor& ids) const {
  const std::vector<int64_t> result = looked_up_shape(ids, shape());
  if (is_tracing()) return at::zeros(result, at::dtype(dtype()));
  const Caller caller = this->caller("read");
  if (ids.numel() == 0) return no_rows(caller.replica).view(result);
  const Tensor flat = own_ids(ids);
  const DistinctRows distinct = distinct_rows(flat);
  if (caller.in_step) return copies_->read_rows(caller.replica, flat, distinct).view(result);
  return looked_up(copies_->outside_leaf(), rows_outside(distinct.ids), distinct.positions,
                   distinct)
      .view(result);
}

Tensor ServedVariable::read_ascending_rows(const Tensor& ids) const {
  if (is_tracing() || ids.numel() == 0) return read_rows(ids);
  const Caller caller = this->caller("read");
  return caller.in_step ? copies_->read_ascending_rows(caller.replica, ids) : read_rows(ids);
}

}  // namespace cohort::internal
