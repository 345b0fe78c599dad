#include "cohort/distribute/step/print.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <utility>

#include "cohort/core/recording/step_recording.h"
#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/text.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/replica.h"
#include "cohort/distribute/core/step_output.h"

namespace cohort::internal {
namespace {

// The number with as many digits as it needs: 6 or 9 of a float, 15 or 17 of a double.
template <class Float>
std::string shortest(Float value, int digits, int all_digits) {
  std::string text = general_digits(value, digits);
  if (std::isnan(value) || parse_number<Float>(text) == value) return text;
  return general_digits(value, all_digits);
}

std::string element(float value) { return shortest(value, 6, 9); }
std::string element(double value) { return shortest(value, 15, 17); }
std::string element(int64_t value) { return decimal_digits(value); }
std::string element(std::string_view value) { return quoted(value, '"'); }

// Row-major values as TensorFlow's StringFormat writes them.
template <class T>
class ArrayText {
 public:
  ArrayText(at::IntArrayRef shape, const T* values, int64_t summarize)
      : shape_(shape), values_(values), ends_(summarize) {}

  std::string text() {
    append(0, 0);
    return std::move(text_);
  }

 private:
  void append(size_t dimension, int64_t begin) {
    if (dimension == shape_.size()) {
      text_ += element(values_[begin]);
      return;
    }
    int64_t step = 1;
    for (size_t d = dimension + 1; d < shape_.size(); ++d) step *= shape_[d];
    const int64_t count = shape_[dimension];
    const bool cut = ends_ >= 0 && count > 2 * ends_;
    text_ += '[';
    for (int64_t i = 0; i < count; ++i) {
      if (i > 0) space(dimension);
      if (cut && i == ends_) {
        text_ += "...";
        i = count - ends_ - 1;
      } else {
        append(dimension + 1, begin + i * step);
      }
    }
    text_ += ']';
  }

  void space(size_t dimension) {
    text_.append(shape_.size() - dimension - 1, '\n');
    text_.append(dimension + 1 == shape_.size() ? 1 : dimension + 1, ' ');
  }

  at::IntArrayRef shape_;
  const T* values_;
  int64_t ends_;
  std::string text_;
};

template <class T>
std::string numbers_text(const Tensor& tensor, DType dtype, int64_t summarize) {
  const Tensor values = contiguous_elements(tensor.detach().to(at::kCPU, dtype));
  return ArrayText<T>(values.sizes(), values.data_ptr<T>(), summarize).text();
}

std::string tensor_text(const Tensor& tensor, int64_t summarize);

std::string sparse_text(const Tensor& coo, int64_t summarize) {
  Tensor shape = at::empty({coo.dim()}, int64);
  std::copy(coo.sizes().begin(), coo.sizes().end(), shape.data_ptr<int64_t>());
  return str("'SparseTensor(indices=", tensor_text(coo._indices().t(), summarize),
             ", values=", tensor_text(coo._values(), summarize),
             ", shape=", tensor_text(shape, summarize), ")'");
}

std::string tensor_text(const Tensor& tensor, int64_t summarize) {
  if (tensor.defined() && tensor.layout() == at::kSparse) return sparse_text(tensor, summarize);
  if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.is_complex() ||
      tensor.is_quantized() || tensor.is_meta()) {
    return describe(tensor);
  }
  if (tensor.scalar_type() == float64) return numbers_text<double>(tensor, float64, summarize);
  if (tensor.is_floating_point()) return numbers_text<float>(tensor, float32, summarize);
  return numbers_text<int64_t>(tensor, int64, summarize);
}

// A number of a RaggedTensor, as tf.strings.as_string writes it.
std::string scalar_text(const Tensor& scalar) {
  if (scalar.is_complex() || scalar.is_quantized()) return describe(scalar);
  if (scalar.scalar_type() == boolean) return scalar.item<bool>() ? "true" : "false";
  if (!scalar.is_floating_point()) return decimal_digits(scalar.item<int64_t>());
  return fixed_digits(scalar.item<double>(), 6);
}

std::string list_text(int64_t count, int64_t summarize, FunctionRef<std::string(int64_t)> member) {
  const bool cut = summarize >= 0 && count > 2 * summarize;
  std::string text = "[";
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) text += ", ";
    if (cut && i == summarize) {
      text += "...";
      i = count - summarize - 1;
    } else {
      text += member(i);
    }
  }
  return text + "]";
}

std::string row_text(const Leaf& row, int64_t summarize) {
  if (row.dim() == 0) {
    return row.is_strings() ? quoted(row.strings().item()) : scalar_text(row.tensor());
  }
  return list_text(row.sizes()[0], summarize, [&](int64_t i) {
    return row.is_strings() ? row_text(row.strings().select(0, i), summarize)
                            : row_text(row.tensor().select(0, i), summarize);
  });
}

std::string rows_text(const RaggedTensor& ragged, int64_t summarize) {
  return list_text(ragged.nrows(), summarize, [&](int64_t i) {
    const Structure row = ragged.row(i);
    return row.is_leaf() ? row_text(row.leaf(), summarize) : rows_text(row, summarize);
  });
}

std::string ragged_text(const RaggedTensor& ragged, int64_t summarize) {
  const Leaf& values = ragged.flat_values();
  std::vector<Tensor> splits;
  for (const Tensor& level : ragged.nested_row_splits()) splits.push_back(level.cpu());
  return rows_text(RaggedTensor::from_nested_row_splits(
                       values.is_strings() ? values : Leaf(values.tensor().detach().cpu()), splits),
                   summarize);
}

std::string tuple_text(const std::vector<std::string>& members) {
  std::string text = "(";
  for (size_t i = 0; i < members.size(); ++i) text += (i > 0 ? ", " : "") + members[i];
  return text + (members.size() == 1 ? ",)" : ")");
}

}  // namespace

std::string print_text(double value) {
  if (!std::isfinite(value)) return element(value);
  const bool fixed = value == 0 || (std::abs(value) >= 1e-4 && std::abs(value) < 1e16);
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value,
                                 fixed ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  if (fixed && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string print_text(const Structure& value, int64_t summarize) {
  if (composite_kind(value) == Composite::kRagged) return ragged_text(value, summarize);
  if (holds_leaf(value)) {
    const Leaf& leaf = value.leaf();
    if (leaf.is_tensor()) return tensor_text(leaf.tensor(), summarize);
    const StringTensor& strings = leaf.strings();
    return ArrayText<std::string_view>(strings.sizes(), strings.data(), summarize).text();
  }
  std::vector<std::string> members;
  if (value.is_tuple()) {
    for (const Structure& member : value.members()) {
      members.push_back(print_text(member, summarize));
    }
    return tuple_text(members);
  }
  std::string text = "{";
  for (const auto& [key, member] : value.items()) {
    text += (text.size() > 1 ? ", " : "") + quoted(key) + ": " + print_text(member, summarize);
  }
  return text + "}";
}

std::string print_text(const std::vector<Tensor>& values, int64_t summarize) {
  std::vector<std::string> members;
  for (const Tensor& value : values) members.push_back(tensor_text(value, summarize));
  return tuple_text(members);
}

void print_line(std::string line, std::ostream* out) {
  if (StepRecording* const recording = StepRecording::current()) recording->refuse("it prints");
  std::ostream& stream = out == nullptr ? std::cerr : *out;
  const Replica* replica = current_replica();
  if (replica != nullptr && replica->output() != nullptr) {
    replica->output()->add(replica->local_replica_id(), stream, std::move(line));
  } else {
    write_line(stream, line);
  }
}

}  // namespace cohort::internal
