#include "cohort/distribute/gradients/slice_pass.h"

#include <c10/util/accumulate.h>

#include <algorithm>
#include <cstring>

#include "cohort/collective/add_in_tree.h"
#include "cohort/core/profiler/phase.h"
#include "cohort/distribute/variables/local_variable.h"

namespace cohort::internal {

using collective::SliceRange;

void SlicePass::update(size_t i, SliceRange range) {
  const UpdateTarget& target = targets_[i];
  if (!collect_sources(i)) return;
  use_components(target);
  if (!sparse_rows_.empty()) {
    const auto& shape = target.variable.shape();
    return update_sparse(range, c10::multiply_integers(shape.begin() + 1, shape.end()));
  }
  for (int64_t begin = range.begin; begin < range.end; begin += kUpdateBlock) {
    const int64_t count = std::min(kUpdateBlock, range.end - begin);
    update_block(begin, count);
    copy_to_others(begin, count);
  }
}

void SlicePass::add_up(size_t i, SliceRange range, const Tensor& out) {
  dtype_ = out.scalar_type();
  item_size_ = static_cast<int64_t>(out.element_size());
  auto* const data = static_cast<char*>(out.data_ptr());
  const bool any = collect_sources(i);
  for (int64_t begin = range.begin; begin < range.end; begin += kUpdateBlock) {
    const int64_t count = std::min(kUpdateBlock, range.end - begin);
    const auto bytes = static_cast<size_t>(count * item_size_);
    if (any) {
      std::memcpy(at(data, begin), summed_gradient(begin, count), bytes);
    } else {
      std::memset(at(data, begin), 0, bytes);
    }
  }
}

void SlicePass::use_components(const UpdateTarget& target) {
  slots_.clear();
  copies_.clear();
  written_.clear();
  param_ = use_component(target.variable);
  for (const auto& slot : target.slots) slots_.push_back(use_component(slot));
}

// The first one; what is written there goes to the others, too.
char* SlicePass::use_component(const distribute::Variable& variable) {
  const LocalVariable& local = variable.impl().local();
  const auto data = [&](size_t i) { return static_cast<char*>(local.component(i).data_ptr()); };
  char* const first = data(0);
  written_.push_back(first);
  for (const size_t i : local.distinct_components()) {
    if (i == 0) continue;
    copies_.push_back({first, data(i)});
    written_.push_back(data(i));
  }
  return first;
}

void SlicePass::use_sum(const Tensor& sum) {
  sources_.push_back(static_cast<const char*>(sum.data_ptr()));
  dtype_ = sum.scalar_type();
  item_size_ = static_cast<int64_t>(sum.element_size());
}

// The gradients of target `i` that replicas have, in replica order. False where none has one.
bool SlicePass::collect_sources(size_t i) {
  sources_.clear();
  sparse_rows_.clear();
  if (!from_.sums.empty()) {
    if (!from_.rows.empty() && !from_.rows[i].empty()) {
      for (const SparseRows& part : from_.rows[i]) sparse_rows_.add(part);
      if (from_.rows[i].size() > 1) sparse_rows_.add_as(from_.row_additions);
      dtype_ = targets_[i].variable.dtype();
      item_size_ = static_cast<int64_t>(c10::elementSize(dtype_));
      return true;
    }
    if (from_.sums[i].defined()) use_sum(from_.sums[i]);
    return !sources_.empty();
  }
  const bool in_tree = from_.additions != nullptr && from_.replicas.size() > 1;
  bool any = false, any_rows = false;
  for (size_t r = 0; r < from_.replicas.size(); ++r) {
    const Tensor& gradient = of_replica(from_.replicas, r).gradients[i];
    if (!gradient.defined()) continue;
    any = true;
    any_rows = any_rows || gradient.layout() != at::kStrided;
    dtype_ = gradient.scalar_type();
    item_size_ = static_cast<int64_t>(gradient.element_size());
  }
  for (size_t r = 0; any && r < from_.replicas.size(); ++r) {
    const Tensor& gradient = of_replica(from_.replicas, r).gradients[i];
    if (!gradient.defined() && !in_tree) continue;  // in a tree every replica has its place
    if (any_rows) {
      static const SparseRows kNone;
      sparse_rows_.add(gradient.defined() ? of_replica(from_.replicas, r).sparse[i] : kNone);
    } else {
      sources_.push_back(gradient.defined() ? static_cast<const char*>(gradient.data_ptr())
                                            : nullptr);
    }
  }
  if (in_tree && any_rows) sparse_rows_.add_as(from_.additions);
  return any;
}

// Updates the rows that begin in elements [range).
void SlicePass::update_sparse(SliceRange range, int64_t row_size) {
  const auto first_row_from = [&](int64_t element) { return (element + row_size - 1) / row_size; };
  const int64_t end = first_row_from(range.end);
  int64_t begin = first_row_from(range.begin);
  sparse_rows_.skip_to(begin);
  if (rule_->zero_gradient_is_no_op()) return update_given_rows(end, row_size);
  int64_t ids[kRowsAtOnce];
  const int64_t capacity = std::min(kRowsAtOnce, kUpdateBlock / row_size);
  while (begin < end) {
    const int64_t count = add_up_rows(end, row_size, {ids, static_cast<size_t>(capacity)});
    const int64_t next = count == capacity ? ids[count - 1] + 1 : end;
    for (int64_t k = 0; k < count; ++k) ids[k] -= begin;
    update_rows(begin, next, row_size, {ids, static_cast<size_t>(count)});
    begin = next;
  }
}

// Adds up the next rows before `end`, as many as `ids` has places for, into sum_; returns how many.
int64_t SlicePass::add_up_rows(int64_t end, int64_t row_size, std::span<int64_t> ids) {
  const ScopedPhase phase(profiler::Phase::kReduce);
  char* sum = sum_;
  int64_t count = 0;
  for (int64_t& id : ids) {
    id = sparse_rows_.next_id(end);
    if (id == end) break;
    const char* found = sparse_rows_.take(id, row_size, dtype_, sum, scratch_);
    if (found != sum) std::memcpy(sum, found, static_cast<size_t>(row_size * item_size_));
    sum += row_size * item_size_;
    ++count;
  }
  return count;
}

// Updates the rows before `end` that have a gradient, one by one: the others stay as they are.
void SlicePass::update_given_rows(int64_t end, int64_t row_size) {
  for (int64_t id = sparse_rows_.next_id(end); id != end; id = sparse_rows_.next_id(end)) {
    sparse_rows_.prefetch(written_, row_size * item_size_);
    const char* gradient = sparse_rows_.take(id, row_size, dtype_, sum_, scratch_);
    apply_rule(id * row_size, row_size, gradient);
    copy_to_others(id * row_size, row_size);
  }
}

// Updates rows [begin, end). The gradient of row begin + ids[k] is row k of sum_; the others are
// zeros.
void SlicePass::update_rows(int64_t begin, int64_t end, int64_t row_size,
                            std::span<const int64_t> ids) {
  void* slots[optim::kMaxSlots];
  for (size_t s = 0; s < slots_.size(); ++s) slots[s] = at(slots_[s], begin * row_size);
  optim::update_rows(*rule_, *scalars_,
                     {.param = at(param_, begin * row_size),
                      .slots = slots,
                      .num_rows = end - begin,
                      .row_size = row_size,
                      .gradient = sum_,
                      .row_ids = ids.data(),
                      .num_row_ids = static_cast<int64_t>(ids.size()),
                      .dtype = dtype_});
  copy_to_others(begin * row_size, (end - begin) * row_size);
}

const void* SlicePass::summed_gradient(int64_t begin, int64_t count) {
  if (sources_.size() == 1) return sources_[0] + begin * item_size_;
  c10::SmallVector<const void*, 8> parts;
  for (const char* source : sources_) {
    parts.push_back(source == nullptr ? nullptr : source + begin * item_size_);
  }
  const ScopedPhase phase(profiler::Phase::kReduce);
  if (from_.additions != nullptr) {
    void* const target = sum_;
    collective::add_in_tree({&target, 1}, parts, *from_.additions, count, dtype_);
  } else {
    collective::add_slices(sum_, parts, count, dtype_);
  }
  return sum_;
}

const void* SlicePass::scaled(const void* gradient, int64_t count) {
  const auto multiply = [&](auto zero) {
    using Number = decltype(zero);
    const auto* in = static_cast<const Number*>(gradient);
    auto* out = reinterpret_cast<Number*>(sum_);
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<Number>(in[i] * from_.scale);
  };
  dtype_ == DType::Double ? multiply(double{}) : multiply(float{});
  return sum_;
}

void SlicePass::update_block(int64_t begin, int64_t count) {
  const void* gradient = summed_gradient(begin, count);
  apply_rule(begin, count, from_.scale == 1 ? gradient : scaled(gradient, count));
}

void SlicePass::apply_rule(int64_t begin, int64_t count, const void* gradient) {
  void* slots[optim::kMaxSlots];
  for (size_t s = 0; s < slots_.size(); ++s) slots[s] = at(slots_[s], begin);
  rule_->update(*scalars_, {.param = at(param_, begin),
                            .slots = slots,
                            .gradient = gradient,
                            .size = count,
                            .dtype = dtype_});
}

void SlicePass::copy_to_others(int64_t begin, int64_t count) const {
  const auto bytes = static_cast<size_t>(count * item_size_);
  const int64_t offset = begin * item_size_;
  for (const Copy& copy : copies_) std::memcpy(copy.to + offset, copy.from + offset, bytes);
}

}  // namespace cohort::internal
