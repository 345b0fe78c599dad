#include "cohort/core/structure/spec.h"

#include <algorithm>
#include <ostream>

#include "cohort/core/text.h"

namespace cohort {
namespace {

using internal::str;
using Shape = std::optional<std::vector<int64_t>>;

bool fits(const std::vector<int64_t>& shape, const std::vector<int64_t>& sizes) {
  return std::equal(
      shape.begin(), shape.end(), sizes.begin(), sizes.end(),
      [](int64_t expected, int64_t size) { return expected == kUnknownDim || expected == size; });
}

Shape merge_shapes(const Shape& a, const Shape& b) {
  if (!a || !b || a->size() != b->size()) return std::nullopt;
  std::vector<int64_t> merged = *a;
  for (size_t i = 0; i < merged.size(); ++i) {
    if (merged[i] != (*b)[i]) merged[i] = kUnknownDim;
  }
  return merged;
}

std::string dtype_str(const TensorSpec& spec) {
  return spec.is_string() ? "string" : internal::dtype_name(spec.dtype());
}

void check_has_leading_dim(const char* what, const TensorSpec& spec) {
  if (spec.shape() && spec.shape()->empty()) {
    throw InvalidArgumentError(str(what, " needs a spec of rank 1 or more, but got ", spec));
  }
}

void check_size(int64_t size) {
  if (size < kUnknownDim) {
    throw InvalidArgumentError(
        str("a size in a spec's shape must be at least 0, or -1 for unknown, but got ", size));
  }
}

}  // namespace

TensorSpec::TensorSpec(std::optional<std::vector<int64_t>> shape, DType dtype, std::string name)
    : shape_(std::move(shape)), dtype_(dtype), name_(std::move(name)) {
  if (shape_) std::for_each(shape_->begin(), shape_->end(), check_size);
}

TensorSpec TensorSpec::strings(std::optional<std::vector<int64_t>> shape, std::string name) {
  TensorSpec spec(std::move(shape), DType::Undefined, std::move(name));
  spec.is_string_ = true;
  return spec;
}

TensorSpec::TensorSpec(std::initializer_list<Dim> shape, DType dtype, std::string name)
    : TensorSpec(std::vector<int64_t>(shape.begin(), shape.end()), dtype, std::move(name)) {}

TensorSpec TensorSpec::strings(std::initializer_list<Dim> shape, std::string name) {
  return strings(std::vector<int64_t>(shape.begin(), shape.end()), std::move(name));
}

TensorSpec TensorSpec::of(const Leaf& leaf) {
  if (leaf.is_strings()) return strings(leaf.sizes());
  if (!leaf.tensor().defined()) {
    throw InvalidArgumentError("an undefined tensor has no spec");
  }
  return TensorSpec(leaf.sizes(), leaf.tensor().scalar_type());
}

DType TensorSpec::dtype() const {
  if (is_string_) {
    throw InvalidArgumentError(str("a spec of strings has no dtype of libtorch: ", *this));
  }
  return dtype_;
}

bool TensorSpec::is_fully_defined() const {
  return shape_ && std::find(shape_->begin(), shape_->end(), kUnknownDim) == shape_->end();
}

bool TensorSpec::is_compatible_with(const Leaf& leaf) const {
  if (leaf.is_strings() != is_string_) return false;
  if (!is_string_ && (!leaf.tensor().defined() || leaf.tensor().scalar_type() != dtype_)) {
    return false;
  }
  return !shape_ || fits(*shape_, leaf.sizes());
}

TensorSpec TensorSpec::most_specific_compatible(const TensorSpec& other) const {
  if (is_string_ != other.is_string_ || dtype_ != other.dtype_) {
    throw InvalidArgumentError(str("no spec fits both ", *this, " and ", other));
  }
  TensorSpec merged = *this;
  merged.shape_ = merge_shapes(shape_, other.shape_);
  if (name_ != other.name_) merged.name_.clear();
  return merged;
}

TensorSpec TensorSpec::with_leading_dim(int64_t size) const {
  check_size(size);
  TensorSpec result = *this;
  if (result.shape_) result.shape_->insert(result.shape_->begin(), size);
  return result;
}

TensorSpec TensorSpec::without_leading_dim() const {
  check_has_leading_dim("without_leading_dim", *this);
  TensorSpec result = *this;
  if (result.shape_) result.shape_->erase(result.shape_->begin());
  return result;
}

TensorSpec TensorSpec::with_batch_dim(int64_t size) const {
  check_size(size);
  check_has_leading_dim("with_batch_dim", *this);
  TensorSpec result = *this;
  if (result.shape_) result.shape_->front() = size;
  return result;
}

bool TensorSpec::operator==(const TensorSpec& other) const {
  return is_string_ == other.is_string_ && dtype_ == other.dtype_ && shape_ == other.shape_;
}

std::ostream& operator<<(std::ostream& out, const TensorSpec& spec) {
  out << "TensorSpec(shape=";
  if (!spec.shape()) {
    out << "<unknown>";
  } else {
    const auto& shape = *spec.shape();
    out << '(';
    for (size_t i = 0; i < shape.size(); ++i) {
      if (i > 0) out << ", ";
      if (shape[i] == kUnknownDim) {
        out << "None";
      } else {
        out << shape[i];
      }
    }
    out << (shape.size() == 1 ? ",)" : ")");
  }
  out << ", dtype=" << dtype_str(spec);
  if (!spec.name().empty()) out << ", name=" << internal::quoted(spec.name());
  return out << ')';
}

}  // namespace cohort
