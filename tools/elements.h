// Elements of tensors as they lie in a checkpoint: as C++ types, and as text.
#pragma once

#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "cohort/train/bundle/bundle_entry.h"

namespace cohort::tools {

// Numbers of 16 bits, for which C++20 has no type.
struct Float16 {
  uint16_t bits = 0;
};
struct Bfloat16 {
  uint16_t bits = 0;
};
float to_float(Float16 number);
inline float to_float(Bfloat16 number) {
  return std::bit_cast<float>(static_cast<uint32_t>(number.bits) << 16);
}

// Calls `function.operator()<T>()` with the C++ type of a dtype's elements, and true; false for
// strings and what has no C++ type.
template <class Function>
bool with_element_type(internal::BundleType type, Function&& function) {
  using internal::BundleType;
  switch (type) {
    case BundleType::kFloat32:
      function.template operator()<float>();
      return true;
    case BundleType::kFloat64:
      function.template operator()<double>();
      return true;
    case BundleType::kFloat16:
      function.template operator()<Float16>();
      return true;
    case BundleType::kBfloat16:
      function.template operator()<Bfloat16>();
      return true;
    case BundleType::kInt8:
      function.template operator()<int8_t>();
      return true;
    case BundleType::kInt16:
      function.template operator()<int16_t>();
      return true;
    case BundleType::kInt32:
      function.template operator()<int32_t>();
      return true;
    case BundleType::kInt64:
      function.template operator()<int64_t>();
      return true;
    case BundleType::kUint8:
      function.template operator()<uint8_t>();
      return true;
    case BundleType::kUint16:
      function.template operator()<uint16_t>();
      return true;
    case BundleType::kUint32:
      function.template operator()<uint32_t>();
      return true;
    case BundleType::kUint64:
      function.template operator()<uint64_t>();
      return true;
    case BundleType::kBool:
      function.template operator()<bool>();
      return true;
    case BundleType::kComplex64:
      function.template operator()<std::complex<float>>();
      return true;
    case BundleType::kComplex128:
      function.template operator()<std::complex<double>>();
      return true;
    default:
      return false;
  }
}

// Element `index` of an array that may lie at any address. A bool of any byte but 0 is true.
template <class T>
T element_at(const char* bytes, uint64_t index) {
  if constexpr (std::is_same_v<T, bool>) {
    return bytes[index] != 0;
  } else {
    T element;
    std::memcpy(&element, bytes + index * sizeof(T), sizeof(T));
    return element;
  }
}

// As Python would print it: "0.1", "2.", "-3", "True", "(1.+2.j)"; as short as reads back the same.
std::string element_text(internal::BundleType type, const char* bytes, uint64_t index);

struct PrintArrayOptions {
  std::vector<int64_t> shape;
  uint64_t max_elements = 100;  // "..." stands for the others
};

// Nested brackets, a line for each row; long rows are broken.
// `element`: the text of an element by its number in row-major order.
void print_array(const PrintArrayOptions& options,
                 const std::function<std::string(uint64_t)>& element, std::ostream& out);

}  // namespace cohort::tools
