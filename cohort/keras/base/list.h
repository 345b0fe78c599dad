// A std::vector whose indices are checked: what layers, models, metrics and optimizers list is
// empty before they are built, and a program that takes its first element then learns why.
//
//   layers::LayerHandle layer = layers::Dense(2);
//   layer.weights()[0];   // OutOfRangeError: index 0 of a list of 0: layer 'dense' is not built
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/structure/to_structure.h"

namespace cohort {
namespace keras {

// Thread safety: as std::vector. Errors of its accessors: OutOfRange (no such element; says how
// many there are, and why there are none).
template <class T>
class List : public std::vector<T> {
 public:
  using Base = std::vector<T>;

  List() = default;
  // why_empty: what a program has to do to get elements, where there are none.
  List(Base elements, std::string why_empty = "")
      : Base(std::move(elements)), why_empty_(std::move(why_empty)) {}

  T& operator[](size_t i) { return Base::operator[](checked(i)); }
  const T& operator[](size_t i) const { return Base::operator[](checked(i)); }
  T& at(size_t i) { return (*this)[i]; }
  const T& at(size_t i) const { return (*this)[i]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[last()]; }
  const T& back() const { return (*this)[last()]; }

 private:
  size_t last() const { return this->empty() ? 0 : this->size() - 1; }
  size_t checked(size_t i) const {
    if (i < this->size()) return i;
    const bool explains = this->empty() && !why_empty_.empty();
    throw OutOfRangeError(internal::str("index ", i, " of a list of ", this->size(),
                                        explains ? ": " : "", explains ? why_empty_ : ""));
  }

  std::string why_empty_;
};

}  // namespace keras

namespace internal {
// A list is one result, as a vector is.
template <class T>
inline constexpr bool kIsVectorResult<keras::List<T>> = true;
}  // namespace internal
}  // namespace cohort
