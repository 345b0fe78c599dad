// Describes a tensor before it exists: its dtype, and its shape with unknown dimensions.
//
//   dataset.element_spec();   // (TensorSpec(shape=(None, 28, 28, 1), dtype=float32), ...)
#pragma once

#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/structure.h"

namespace cohort {

// A dimension of unknown size in a spec's shape.
inline constexpr int64_t kUnknownDim = -1;

// The spec of one leaf. Strings have no libtorch dtype: `is_string` marks them.
// Thread safety: immutable.
class COHORT_API TensorSpec {
 public:
  // A size in a shape that is written in braces.
  class Dim {
   public:
    Dim(int64_t size) : size_(size) {}
    operator int64_t() const { return size_; }

   private:
    int64_t size_;
  };

  // An unknown rank is a missing shape. Errors: InvalidArgument (a size below kUnknownDim).
  TensorSpec(std::optional<std::vector<int64_t>> shape, DType dtype, std::string name = "");
  // TensorSpec({kUnknownDim, 28}, float32); {} is a scalar.
  TensorSpec(std::initializer_list<Dim> shape, DType dtype, std::string name = "");
  static TensorSpec strings(std::optional<std::vector<int64_t>> shape, std::string name = "");
  static TensorSpec strings(std::initializer_list<Dim> shape, std::string name = "");
  // The exact spec of a leaf.
  static TensorSpec of(const Leaf& leaf);

  const std::optional<std::vector<int64_t>>& shape() const { return shape_; }
  bool is_string() const { return is_string_; }
  // Errors: InvalidArgument (strings).
  DType dtype() const;
  const std::string& name() const { return name_; }
  bool is_fully_defined() const;

  // Whether a leaf fits: kind, dtype, rank, every known dimension.
  bool is_compatible_with(const Leaf& leaf) const;
  // The most specific spec that both fit. It has a name only if both have the same.
  // Errors: InvalidArgument (kind or dtype differ).
  TensorSpec most_specific_compatible(const TensorSpec& other) const;
  // These three return the spec with a new dimension 0, without dimension 0, and with another size
  // of dimension 0. An unknown rank stays unknown.
  // Errors: InvalidArgument (rank 0 where there must be a dimension 0; a size below kUnknownDim).
  TensorSpec with_leading_dim(int64_t size) const;
  TensorSpec without_leading_dim() const;
  TensorSpec with_batch_dim(int64_t size) const;

  bool operator==(const TensorSpec& other) const;  // names do not count

 private:
  TensorSpec() = default;
  std::optional<std::vector<int64_t>> shape_;
  DType dtype_ = DType::Float;
  bool is_string_ = false;
  std::string name_;
};

// A tree of TensorSpecs of the same form as the structures it describes.
// Thread safety: as std::vector.
class COHORT_API StructureSpec {
 public:
  using Dict = std::vector<std::pair<std::string, StructureSpec>>;

  // The empty tuple.
  StructureSpec();
  StructureSpec(TensorSpec leaf);
  static StructureSpec make_tuple(std::vector<StructureSpec> members);
  static StructureSpec make_dict(Dict members);
  // The exact spec of a structure.
  static StructureSpec of(const Structure& structure);

  bool is_leaf() const { return std::holds_alternative<TensorSpec>(node_); }
  bool is_tuple() const { return std::holds_alternative<std::vector<StructureSpec>>(node_); }
  bool is_dict() const { return std::holds_alternative<Dict>(node_); }
  // Errors: InvalidArgument (not of that kind).
  const TensorSpec& leaf() const;
  const std::vector<StructureSpec>& members() const;
  const Dict& items() const;

  std::vector<TensorSpec> flatten() const;
  StructureSpec map(FunctionRef<TensorSpec(const TensorSpec&)> fn) const;
  // A structure of this form with the leaf fn(spec) for each spec (dummy batches use this).
  Structure make_structure(FunctionRef<Leaf(const TensorSpec&)> fn) const;
  // The first place where `structure` does not fit: path, what is expected, what was found.
  std::optional<std::string> first_mismatch(const Structure& structure) const;
  // Leaf by leaf. Errors: InvalidArgument (forms, kinds or dtypes differ).
  StructureSpec most_specific_compatible(const StructureSpec& other) const;

  bool operator==(const StructureSpec& other) const;

 private:
  std::variant<TensorSpec, std::vector<StructureSpec>, Dict> node_;
};

// TensorSpec(shape=(None, 28, 28, 1), dtype=float32, name='x'); an unknown rank prints <unknown>.
COHORT_API std::ostream& operator<<(std::ostream& out, const TensorSpec& spec);
COHORT_API std::ostream& operator<<(std::ostream& out, const StructureSpec& spec);

}  // namespace cohort
