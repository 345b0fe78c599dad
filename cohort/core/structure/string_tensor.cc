#include "cohort/core/structure/string_tensor.h"

#include <algorithm>
#include <new>
#include <ostream>
#include <span>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/core/text.h"

namespace cohort {
namespace {

using internal::shape_str;
using internal::str;

int64_t checked_numel(const std::vector<int64_t>& shape) {
  int64_t numel = 1;
  bool overflow = false;
  for (int64_t size : shape) {
    if (size < 0) {
      throw InvalidArgumentError(
          str("a string tensor's shape cannot have a negative size, but got ", shape_str(shape)));
    }
    overflow |= __builtin_mul_overflow(numel, size, &numel);
  }
  // A size of 0 anywhere makes the tensor empty, however large the others are.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  if (overflow) {
    throw InvalidArgumentError(
        str("the shape ", shape_str(shape), " has more elements than an int64 can count"));
  }
  return numel;
}

// The shape of one row of dimension 0.
std::vector<int64_t> row_shape(const std::vector<int64_t>& shape) {
  return {shape.begin() + 1, shape.end()};
}

void check_dimension_zero(const char* what, int64_t dimension, const std::vector<int64_t>& shape) {
  if (shape.empty()) {
    throw InvalidArgumentError(
        str(what, " needs a string tensor of rank 1 or more, but got a scalar"));
  }
  if (dimension != 0) {
    throw InvalidArgumentError(
        str(what, " of a string tensor works along dimension 0 only, but got ", dimension));
  }
}

// Writes the part of `tensor` from `dimension` on that starts at element `next`.
void print(std::ostream& out, const StringTensor& tensor, size_t dimension, int64_t& next) {
  if (dimension == tensor.sizes().size()) {
    out << internal::quoted(tensor[next++], '"');
    return;
  }
  out << '[';
  for (int64_t i = 0; i < tensor.sizes()[dimension]; ++i) {
    if (i > 0) out << ", ";
    print(out, tensor, dimension + 1, next);
  }
  out << ']';
}

// All views first, then all bytes, in one block.
template <class Strings>
StringTensor copied(const Strings& strings, std::vector<int64_t> shape) {
  using Unit = uint64_t;  // aligned as the views need
  static_assert(alignof(std::string_view) <= alignof(Unit));
  size_t bytes = std::size(strings) * sizeof(std::string_view);
  for (const std::string_view string : strings) bytes += string.size();
  const auto memory =
      std::make_shared_for_overwrite<Unit[]>((bytes + sizeof(Unit) - 1) / sizeof(Unit));
  auto* views = reinterpret_cast<std::string_view*>(memory.get());
  auto* to = reinterpret_cast<char*>(views + std::size(strings));
  std::string_view* next = views;
  for (const std::string_view string : strings) {
    std::copy(string.begin(), string.end(), to);
    new (next++) std::string_view(to, string.size());
    to += string.size();
  }
  return StringTensor::over(memory, views, std::move(shape));
}

}  // namespace

StringTensor::StringTensor() : shape_{0} {}

StringTensor::StringTensor(std::initializer_list<std::string_view> values)
    : StringTensor(copied(values, {static_cast<int64_t>(values.size())})) {}

StringTensor::StringTensor(const std::vector<std::string>& values)
    : StringTensor(values, {static_cast<int64_t>(values.size())}) {}

StringTensor::StringTensor(const std::vector<std::string>& values, std::vector<int64_t> shape) {
  if (checked_numel(shape) != static_cast<int64_t>(values.size())) {
    throw InvalidArgumentError(str("the shape ", shape_str(shape), " has ", checked_numel(shape),
                                   " elements, but ", values.size(), " strings were given"));
  }
  *this = copied(values, std::move(shape));
}

StringTensor StringTensor::scalar(std::string_view value) {
  return copied(std::span(&value, 1), {});
}

StringTensor StringTensor::over(std::shared_ptr<const void> memory, const std::string_view* values,
                                std::vector<int64_t> shape) {
  StringTensor tensor;
  tensor.numel_ = checked_numel(shape);
  tensor.memory_ = std::move(memory);
  tensor.values_ = values;
  tensor.shape_ = std::move(shape);
  return tensor;
}

int64_t StringTensor::size(int64_t dimension) const {
  if (dimension < 0 || dimension >= dim()) {
    throw OutOfRangeError(str("dimension ", dimension, " of a string tensor of shape ",
                              shape_str(shape_), " does not exist"));
  }
  return shape_[static_cast<size_t>(dimension)];
}

std::string_view StringTensor::operator[](int64_t i) const {
  if (i < 0 || i >= numel_) {
    throw OutOfRangeError(
        str("element ", i, " of a string tensor of ", numel_, " elements does not exist"));
  }
  return values_[i];
}

std::string_view StringTensor::item() const {
  if (numel_ != 1) {
    throw InvalidArgumentError(
        str("item() needs a string tensor of one element, but this one of "
            "shape ",
            shape_str(shape_), " has ", numel_));
  }
  return (*this)[0];
}

std::vector<std::string> StringTensor::to_vector() const {
  std::vector<std::string> values;
  values.reserve(static_cast<size_t>(numel_));
  for (int64_t i = 0; i < numel_; ++i) values.emplace_back((*this)[i]);
  return values;
}

StringTensor StringTensor::slice(int64_t dimension, int64_t begin, int64_t end) const {
  check_dimension_zero("slice", dimension, shape_);
  if (begin < 0 || begin > end || end > shape_[0]) {
    throw OutOfRangeError(str("rows [", begin, ", ", end, ") are outside of a string tensor of ",
                              shape_[0], " rows"));
  }
  const int64_t row_numel = shape_[0] == 0 ? 0 : numel_ / shape_[0];
  std::vector<int64_t> shape = shape_;
  shape[0] = end - begin;
  return over(memory_, values_ + begin * row_numel, std::move(shape));
}

StringTensor StringTensor::select(int64_t dimension, int64_t i) const {
  check_dimension_zero("select", dimension, shape_);
  if (i < 0 || i >= shape_[0]) {
    throw OutOfRangeError(str("row ", i, " is outside of a string tensor of ", shape_[0], " rows"));
  }
  return slice(0, i, i + 1).reshape(row_shape(shape_));
}

StringTensor StringTensor::reshape(std::vector<int64_t> shape) const {
  if (checked_numel(shape) != numel_) {
    throw InvalidArgumentError(str("a string tensor of shape ", shape_str(shape_),
                                   " cannot be given the shape ", shape_str(shape), ": ", numel_,
                                   " elements are not ", checked_numel(shape)));
  }
  return over(memory_, values_, std::move(shape));
}

bool StringTensor::operator==(const StringTensor& other) const {
  if (shape_ != other.shape_) return false;
  for (int64_t i = 0; i < numel_; ++i) {
    if ((*this)[i] != other[i]) return false;
  }
  return true;
}

StringTensor stack(const std::vector<StringTensor>& tensors) {
  if (tensors.empty()) throw InvalidArgumentError("stack needs at least one string tensor");
  std::vector<std::string_view> values;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].sizes() != tensors[0].sizes()) {
      throw InvalidArgumentError(str("stack needs string tensors of one shape, but tensor ", i,
                                     " has ", shape_str(tensors[i].sizes()), " and tensor 0 has ",
                                     shape_str(tensors[0].sizes())));
    }
    values.insert(values.end(), tensors[i].data(), tensors[i].data() + tensors[i].numel());
  }
  std::vector<int64_t> shape = tensors[0].sizes();
  shape.insert(shape.begin(), static_cast<int64_t>(tensors.size()));
  return copied(values, std::move(shape));
}

StringTensor concat(const std::vector<StringTensor>& tensors) {
  if (tensors.empty()) throw InvalidArgumentError("concat needs at least one string tensor");
  std::vector<std::string_view> values;
  int64_t rows = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].dim() == 0) {
      throw InvalidArgumentError(
          str("concat needs string tensors of rank 1 or more, but tensor ", i, " is a scalar"));
    }
    if (row_shape(tensors[i].sizes()) != row_shape(tensors[0].sizes())) {
      throw InvalidArgumentError(str("concat needs string tensors of one row shape, but tensor ", i,
                                     " has ", shape_str(tensors[i].sizes()), " and tensor 0 has ",
                                     shape_str(tensors[0].sizes())));
    }
    rows += tensors[i].size(0);
    values.insert(values.end(), tensors[i].data(), tensors[i].data() + tensors[i].numel());
  }
  std::vector<int64_t> shape = tensors[0].sizes();
  shape[0] = rows;
  return copied(values, std::move(shape));
}

std::ostream& operator<<(std::ostream& out, const StringTensor& tensor) {
  int64_t next = 0;
  print(out, tensor, 0, next);
  return out;
}

}  // namespace cohort
