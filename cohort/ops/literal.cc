#include "cohort/ops/literal.h"

#include <ATen/ops/empty.h>
#include <c10/core/ScalarType.h>

#include "cohort/core/error.h"
#include "cohort/ops/held_number.h"

namespace cohort {
namespace {

using internal::dtype_name;
using internal::shape_str;
using internal::str;

void check_same_shape(const std::vector<int64_t>& first, const std::vector<int64_t>& other,
                      size_t index) {
  if (first == other) return;
  throw InvalidArgumentError(str("member ", index, " of a list has shape ", shape_str(other),
                                 ", but member 0 has ", shape_str(first),
                                 "; the members of a list need one shape"));
}

// The dtype of a list with members of both.
DType common_dtype(DType a, DType b) {
  if (a == b) return a;
  if (a == boolean || b == boolean) {
    throw InvalidArgumentError("a list has both numbers and true or false");
  }
  if (at::isFloatingType(a) || at::isFloatingType(b)) return float32;
  return a == int64 || b == int64 ? int64 : int32;
}

void check_can_hold(DType dtype, const at::Scalar& value) {
  if (internal::can_hold(dtype, value)) return;
  const std::string number = internal::number_text(value);
  if (at::isIntegralType(dtype, false) && value.isIntegral(/*includeBool=*/false)) {
    throw InvalidArgumentError(str(number, " does not fit ", dtype_name(dtype)));
  }
  throw InvalidArgumentError(str("cannot make a tensor of ", dtype_name(dtype), " of ", number,
                                 "; cast(constant(...), dtype) converts it"));
}

template <class T, class Get>
Tensor fill_with(const std::vector<int64_t>& shape, DType dtype,
                 const std::vector<at::Scalar>& values, Get get) {
  const Tensor tensor = at::empty(shape, at::dtype(dtype));
  T* out = static_cast<T*>(tensor.data_ptr());
  for (const at::Scalar& value : values) *out++ = get(value);
  return tensor;
}

}  // namespace

NumberLiteral::NumberLiteral(std::initializer_list<NumberLiteral> members)
    : dtype_(members.size() == 0 ? float32 : members.begin()->dtype_),
      shape_{static_cast<int64_t>(members.size())} {
  size_t index = 0;
  for (const NumberLiteral& member : members) {
    check_same_shape(members.begin()->shape_, member.shape_, index++);
    dtype_ = common_dtype(dtype_, member.dtype_);
    values_.insert(values_.end(), member.values_.begin(), member.values_.end());
  }
  if (index == 0) return;
  const std::vector<int64_t>& inner = members.begin()->shape_;
  shape_.insert(shape_.end(), inner.begin(), inner.end());
}

Tensor NumberLiteral::tensor(std::optional<DType> dtype) const {
  const DType wanted = dtype.value_or(dtype_);
  for (const at::Scalar& value : values_) check_can_hold(wanted, value);
  if (wanted == boolean) {
    return fill_with<bool>(shape_, wanted, values_, [](const at::Scalar& v) { return v.toBool(); });
  }
  if (!at::isIntegralType(wanted, false)) {
    return fill_with<double>(shape_, float64, values_,
                             [](const at::Scalar& v) { return v.toDouble(); })
        .to(wanted);
  }
  const Tensor exact =
      fill_with<int64_t>(shape_, int64, values_, [](const at::Scalar& v) { return v.toLong(); });
  return exact.to(wanted);
}

const at::Scalar& NumberLiteral::number() const {
  if (shape_.empty()) return values_[0];
  throw InvalidArgumentError(
      str("a list of shape ", shape_str(shape_), " was given in place of a number"));
}

StringLiteral::StringLiteral(std::initializer_list<StringLiteral> members)
    : shape_{static_cast<int64_t>(members.size())} {
  size_t index = 0;
  for (const StringLiteral& member : members) {
    check_same_shape(members.begin()->shape_, member.shape_, index++);
    values_.insert(values_.end(), member.values_.begin(), member.values_.end());
  }
  if (index == 0) return;
  const std::vector<int64_t>& inner = members.begin()->shape_;
  shape_.insert(shape_.end(), inner.begin(), inner.end());
}

}  // namespace cohort
