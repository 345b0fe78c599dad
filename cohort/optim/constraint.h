// What an optimizer does to a variable after each update of it, so that it keeps a property: that
// no element is negative, or that no row is long.
//
//   Variable weight(initial, {.constraint = [](const Tensor& w) { return w.clamp(-1, 1); }});
//
// Those of Keras are in keras/base/constraints.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::optim {

// A constraint as data, which other tasks can be told.
struct Projection {
  enum class Kind {
    kNonNegative,  // negative elements become 0
    // The norms over `axes` move into [least, most], by `rate` of the way there. To avoid a
    // division by 0 they count `epsilon` more than they are.
    kNorm,
    kRadial,  // elements of equal distance from the middle of axes 0 and 1 become equal
  };
  Kind kind = Kind::kNonNegative;
  std::vector<int64_t> axes = {};  // negative ones count from the end
  double least = 0;
  double most = 0;
  double rate = 1;
  double epsilon = 1e-7;
  bool operator==(const Projection&) const = default;
};

// Errors: InvalidArgument (an axis that a variable of this shape has not; a kRadial that is no
// square kernel of images; `variable` is named).
COHORT_API void check_projection(const Projection& projection, at::IntArrayRef shape,
                                 const std::string& variable);
// Whether a row of the result depends on other rows.
COHORT_API bool spans_rows(const Projection& projection, at::IntArrayRef shape);

// A function from a variable's value to the one that it gets instead; default-made none.
// Thread safety: immutable.
class COHORT_API Constraint {
 public:
  Constraint() = default;
  explicit Constraint(const Projection& projection)
      : projection_(std::make_shared<const Projection>(projection)) {}
  template <class Fn>
  requires(std::is_invocable_r_v<Tensor, const Fn&, const Tensor&> &&
           !std::derived_from<Fn, Constraint>) Constraint(Fn fn)
      : fn_(std::move(fn)) {}

  explicit operator bool() const { return projection_ != nullptr || fn_ != nullptr; }
  // Shape: value [..] -> [..], new memory. Call it only if there is one.
  // Errors: those of check_projection; InvalidArgument (the function gave another shape).
  Tensor operator()(const Tensor& value) const;
  // nullptr: it is a function of the program.
  const Projection* projection() const { return projection_.get(); }

 private:
  std::function<Tensor(const Tensor&)> fn_;
  std::shared_ptr<const Projection> projection_;
};

}  // namespace cohort::optim
