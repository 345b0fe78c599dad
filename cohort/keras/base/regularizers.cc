#include "cohort/keras/base/regularizers.h"

#include <ATen/ops/zeros.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/config_json.h"
#include "cohort/keras/base/named.h"
#include "cohort/ops/plan/squares.h"

namespace cohort::keras::regularizers {
namespace {

constexpr double kDefaultFactor = 0.01;

}  // namespace

L1L2::L1L2(double l1, double l2) : l1_(l1), l2_(l2) {
  if (!std::isfinite(l1) || !std::isfinite(l2)) {
    throw InvalidArgumentError(
        internal::str("a regularizer's factors must be finite, but l1 is ", l1, " and l2 is ", l2));
  }
}

Tensor L1L2::operator()(const Tensor& x) const {
  Tensor penalty;
  if (l1_ != 0) penalty = x.abs().sum() * l1_;
  if (l2_ != 0) {
    const Tensor l2_penalty = internal::sum_of_squares(x, l2_);
    penalty = penalty.defined() ? penalty + l2_penalty : l2_penalty;
  }
  return penalty.defined() ? penalty : at::zeros({}, x.options());
}

Config L1L2::serialize() const {
  if (l1_ == 0) return internal::serialized("keras.regularizers", "L2", {{"l2", l2_}});
  if (l2_ == 0) return internal::serialized("keras.regularizers", "L1", {{"l1", l1_}});
  return internal::serialized("keras.regularizers", "L1L2", {{"l1", l1_}, {"l2", l2_}});
}

std::optional<Config> Regularizer::serialize() const {
  if (config_ == nullptr) return std::nullopt;
  return *config_;
}

Regularizer::Regularizer(std::string_view name) {
  if (name == "l1") {
    *this = L1();
  } else if (name == "l2") {
    *this = L2();
  } else if (name == "l1_l2") {
    *this = L1L2(kDefaultFactor, kDefaultFactor);
  } else {
    const std::vector<std::string_view> known = {"l1", "l2", "l1_l2"};
    internal::throw_unknown_name("regularizer", name, {known, known});
  }
}

}  // namespace cohort::keras::regularizers
