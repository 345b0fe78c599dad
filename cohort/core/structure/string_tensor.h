// A tensor of byte strings, which libtorch lacks and preprocessing needs.
//
//   StringTensor words({"a", "bc", "d"});        // shape [3]
//   words.slice(0, 1, 3)[0] == "bc";             // shares the bytes
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"

namespace cohort {

// Immutable, row-major, dense. Copies and slices along dimension 0 share one block of memory.
// Thread safety: immutable.
class COHORT_API StringTensor {
 public:
  // Shape [0].
  StringTensor();
  // Shape [n].
  StringTensor(std::initializer_list<std::string_view> values);
  explicit StringTensor(const std::vector<std::string>& values);
  // Errors: InvalidArgument (the product of `shape` is not the number of values; a negative size).
  StringTensor(const std::vector<std::string>& values, std::vector<int64_t> shape);
  // Shape [].
  static StringTensor scalar(std::string_view value);
  // A tensor over existing strings; no byte is copied. `values` points to one view per element of
  // `shape`; the views and their bytes must not change while `memory` lives.
  // Errors: InvalidArgument (a negative size).
  static StringTensor over(std::shared_ptr<const void> memory, const std::string_view* values,
                           std::vector<int64_t> shape);

  const std::vector<int64_t>& sizes() const { return shape_; }
  int64_t dim() const { return static_cast<int64_t>(shape_.size()); }
  // Errors: OutOfRange.
  int64_t size(int64_t dimension) const;
  int64_t numel() const { return numel_; }

  // Element `i` in row-major order. The view lives as long as any tensor that shares the bytes.
  // Errors: OutOfRange.
  std::string_view operator[](int64_t i) const;
  // The views of all elements, contiguous and row-major. They live as long as any tensor that
  // shares the bytes.
  const std::string_view* data() const { return values_; }
  // The only element. Errors: InvalidArgument (there is not exactly one).
  std::string_view item() const;
  std::vector<std::string> to_vector() const;

  // Rows [begin, end) of dimension 0, without a copy; `dimension` must be 0.
  // Errors: InvalidArgument (rank 0, another dimension), OutOfRange.
  StringTensor slice(int64_t dimension, int64_t begin, int64_t end) const;
  // Row `i` of dimension 0 without that dimension. Errors: as slice.
  StringTensor select(int64_t dimension, int64_t i) const;
  // Errors: InvalidArgument (another number of elements).
  StringTensor reshape(std::vector<int64_t> shape) const;

  // Element by element, and by shape.
  bool operator==(const StringTensor& other) const;

 private:
  std::shared_ptr<const void> memory_;  // holds the views and the bytes
  const std::string_view* values_ = nullptr;
  int64_t numel_ = 0;
  std::vector<int64_t> shape_;
};

// Stacks tensors of the same shape along a new dimension 0.
// Errors: InvalidArgument (no tensors, shapes differ).
COHORT_API StringTensor stack(const std::vector<StringTensor>& tensors);
// Concatenates along dimension 0.
// Errors: InvalidArgument (no tensors, rank 0, other dimensions differ).
COHORT_API StringTensor concat(const std::vector<StringTensor>& tensors);

// ["a", "bc"]: nested by shape.
COHORT_API std::ostream& operator<<(std::ostream& out, const StringTensor& tensor);

}  // namespace cohort
