// A variable in parts along its rows: what a partitioner makes of a large variable, or variables of
// the user's put together.
//
//   const auto sharded = ShardedVariable::of(table);     // whichever strategy made the variable
//   sharded.variables()[1].device();                     // "/job:ps/replica:0/task:1/device:CPU:0"
//   Tensor some = sharded[Slice{.start = -10}];          // ten rows, of the shards that have them
//   Tensor all = sharded.value();                        // the concatenation
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/variables/variable.h"
#include "cohort/distribute/variables/variable_operators.h"
#include "cohort/ops/indexed_slices.h"

namespace cohort::internal {
enum class ScatterOp;
}

namespace cohort::distribute {

// Python's start:stop:step; what is missing is the end of the dimension. Negative numbers count
// from its end, and numbers beyond it are its end.
struct Slice {
  std::optional<int64_t> start = std::nullopt;
  std::optional<int64_t> stop = std::nullopt;
  std::optional<int64_t> step = std::nullopt;
};
struct Ellipsis {};
struct NewAxis {};
inline constexpr Ellipsis ellipsis{};  // as many whole dimensions as there are left
inline constexpr NewAxis newaxis{};    // a new dimension of size 1

// One place between the brackets of Python's v[2, ::-1, ..., None].
class SliceItem {
 public:
  SliceItem(int64_t index) : item_(index) {}
  SliceItem(int index) : item_(static_cast<int64_t>(index)) {}
  SliceItem(const Slice& slice) : item_(slice) {}
  SliceItem(Ellipsis) : item_(Ellipsis{}) {}
  SliceItem(NewAxis) : item_(NewAxis{}) {}
  // A mask of bool: [rows], or of the first dimensions. Only as the first item.
  SliceItem(const Tensor& mask) : item_(mask) {}

  const std::variant<int64_t, Slice, Ellipsis, NewAxis, Tensor>& item() const { return item_; }

 private:
  std::variant<int64_t, Slice, Ellipsis, NewAxis, Tensor> item_;
};

// A handle: copies name the same parts. Parts follow one another in the order of their rows. No
// call but value(), and what uses it (the operators of variables, say), brings more rows together
// than the caller asks for.
// Thread safety: as Variable.
class COHORT_API ShardedVariable {
 public:
  // Errors: InvalidArgument (no variables; one that is empty or of rank 0; dtypes, or shapes beyond
  // axis 0, that differ: names the first).
  explicit ShardedVariable(std::vector<Variable> variables, std::string name = "ShardedVariable");
  // The parts in which a strategy keeps `variable`; one, where it has not divided it.
  static ShardedVariable of(const Variable& variable);

  const std::vector<Variable>& variables() const&;
  std::vector<Variable> variables() && {
    return variables();
  }  // for (auto& part : of(v).variables())
  const std::string& name() const;
  std::vector<int64_t> shape() const;
  DType dtype() const;

  // The concatenation. Where a Tensor is expected it stands for it.
  Tensor value() const;
  operator Tensor() const { return value(); }

  // Each part takes its rows of the value. They return this variable.
  // Errors: InvalidArgument (shape, dtype).
  const ShardedVariable& assign(const Tensor& value) const;
  const ShardedVariable& assign_add(const Tensor& delta) const;
  const ShardedVariable& assign_sub(const Tensor& delta) const;

  // The scatter operations of Variable, each row in the part that has it. Shapes: indices [n],
  // values [n, ..]. Errors: also InvalidArgument (indices of another rank).
  const ShardedVariable& scatter_add(const IndexedSlices& slices) const;
  const ShardedVariable& scatter_sub(const IndexedSlices& slices) const;
  const ShardedVariable& scatter_update(const IndexedSlices& slices) const;
  const ShardedVariable& batch_scatter_update(const IndexedSlices& slices) const {
    return scatter_update(slices);
  }
  const ShardedVariable& scatter_min(const IndexedSlices& slices) const;
  const ShardedVariable& scatter_max(const IndexedSlices& slices) const;
  const ShardedVariable& scatter_mul(const IndexedSlices& slices) const;
  const ShardedVariable& scatter_div(const IndexedSlices& slices) const;

  // value()[indices], recorded by tapes, one read of each part that has any of them.
  // Shapes: indices [n] of int32 or int64 -> [n, row..].
  // Errors: InvalidArgument (another rank or dtype; an index outside of the rows).
  Tensor sparse_read(const Tensor& indices) const;

  // value()[item, ...] as in NumPy, of which only the rows that it needs are read.
  // Errors: OutOfRange (a number outside of its dimension), InvalidArgument (too many items; a step
  // of 0; two ellipses; a mask of another shape; a tensor that is no mask: use sparse_read).
  Tensor index(const std::vector<SliceItem>& items) const;
  Tensor operator[](const SliceItem& item) const { return index({item}); }

  // For train::Checkpoint: slices of one tensor, which restore into any number of parts.
  std::shared_ptr<train::Trackable> trackable() const;

 private:
  class Impl;
  explicit ShardedVariable(std::shared_ptr<Impl> impl);
  const ShardedVariable& scatter(internal::ScatterOp op, const IndexedSlices& slices) const;
  Tensor rows(const Tensor& ids) const;

  std::shared_ptr<Impl> impl_;
};

// ShardedVariable:[ <Variable 'w/part_0:0' ...>, ... ]
COHORT_API std::ostream& operator<<(std::ostream& out, const ShardedVariable& variable);

}  // namespace cohort::distribute

namespace cohort::internal {
template <>
inline constexpr bool kHasVariableOperators<distribute::ShardedVariable> = true;
}  // namespace cohort::internal

namespace cohort {
using distribute::ellipsis;
using distribute::newaxis;
using distribute::Slice;
}  // namespace cohort
