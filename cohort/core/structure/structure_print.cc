// operator<< of Structure: small tensors by value, others by dtype and shape.
#include <charconv>
#include <cmath>
#include <ostream>

#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/structure/structure.h"
#include "cohort/core/text.h"

namespace cohort {
namespace {

constexpr int64_t kMaxPrintedElements = 16;
constexpr size_t kMaxPrintedBytes = 256;

// The shortest text that reads back as `value`, in the style of Python's repr: 0.5, 1.0, 1e+20.
template <class Float>
std::string float_str(Float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const Float magnitude = std::abs(value);
  const bool fixed = magnitude == 0 || (magnitude >= Float(1e-4) && magnitude < Float(1e16));
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value,
                                 fixed ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  if (fixed && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string number_str(float value) { return float_str(value); }
std::string number_str(double value) { return float_str(value); }
std::string number_str(int64_t value) { return internal::decimal_digits(value); }
std::string number_str(bool value) { return value ? "true" : "false"; }

// Writes the part of a row-major array from `dimension` on that starts at `next`.
template <class Number>
void print_nested(std::ostream& out, at::IntArrayRef sizes, size_t dimension, const Number*& next) {
  if (dimension == sizes.size()) {
    out << number_str(*next++);
    return;
  }
  out << '[';
  for (int64_t i = 0; i < sizes[dimension]; ++i) {
    if (i > 0) out << ", ";
    print_nested(out, sizes, dimension + 1, next);
  }
  out << ']';
}

template <class Number>
void print_values(std::ostream& out, const Tensor& tensor, DType dtype) {
  const Tensor values = internal::contiguous_elements(tensor.detach().to(at::kCPU, dtype));
  const Number* next = values.data_ptr<Number>();
  print_nested(out, values.sizes(), 0, next);
}

// Whether the values can be read, and are few.
bool is_printed_by_value(const Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && !tensor.is_meta() &&
         !tensor.is_complex() && !tensor.is_quantized() && tensor.numel() <= kMaxPrintedElements;
}

void print_tensor(std::ostream& out, const Tensor& tensor) {
  if (!is_printed_by_value(tensor)) {
    out << internal::describe(tensor);
  } else if (tensor.numel() == 0) {
    out << "[]";
  } else if (tensor.scalar_type() == boolean) {
    print_values<bool>(out, tensor, boolean);
  } else if (tensor.scalar_type() == float64) {
    print_values<double>(out, tensor, float64);
  } else if (tensor.is_floating_point()) {
    print_values<float>(out, tensor, float32);
  } else {
    print_values<int64_t>(out, tensor, int64);
  }
}

void print_strings(std::ostream& out, const StringTensor& strings) {
  size_t bytes = 0;
  bool few = strings.numel() <= kMaxPrintedElements;
  for (int64_t i = 0; few && i < strings.numel(); ++i) {
    bytes += strings[i].size();
    few = bytes <= kMaxPrintedBytes;
  }
  if (strings.numel() == 0) {
    out << "[]";
  } else if (few) {
    out << strings;
  } else {
    out << "string " << internal::shape_str(strings.sizes());
  }
}

void print_tuple(std::ostream& out, const std::vector<Structure>& members) {
  out << '(';
  for (size_t i = 0; i < members.size(); ++i) out << (i > 0 ? ", " : "") << members[i];
  out << (members.size() == 1 ? ",)" : ")");
}

void print_dict(std::ostream& out, const Structure::Dict& items) {
  out << '{';
  for (size_t i = 0; i < items.size(); ++i) {
    out << (i > 0 ? ", " : "") << internal::quoted(items[i].first) << ": " << items[i].second;
  }
  out << '}';
}

void print_composite(std::ostream& out, const Structure& structure) {
  switch (internal::composite_kind(structure)) {
    case internal::Composite::kRagged:
      if (internal::ragged_problem(structure)) {  // messages print what is broken too
        print_dict(out, structure.items());
      } else {
        out << RaggedTensor(structure);
      }
      return;
    case internal::Composite::kSparse:
      out << "<sparse " << internal::describe(structure.tensor()) << ", "
          << structure.tensor()._nnz() << " values>";
      return;
    default:
      out << Structure(structure.leaf());
  }
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Structure& structure) {
  if (structure.is_tuple()) {
    print_tuple(out, structure.members());
  } else if (internal::composite_kind(structure) != internal::Composite::kNone) {
    print_composite(out, structure);
  } else if (structure.is_dict()) {
    print_dict(out, structure.items());
  } else if (structure.leaf().is_strings()) {
    print_strings(out, structure.strings());
  } else {
    print_tensor(out, structure.tensor());
  }
  return out;
}

std::ostream& internal::print_optional(std::ostream& out, const Structure* element) {
  return element != nullptr ? out << *element : out << "nullopt";
}

}  // namespace cohort
