// Losses of regression: how far numbers are from those that were wanted.
//
// Of all of them: Shapes: y_true and y_pred [batch, .., d] -> [batch, ..]; one of them may lack or
// have a last dimension of 1. y_true of any dtype, y_pred of a floating one.
// Errors: InvalidArgument (other shapes).
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/losses/loss.h"

namespace cohort::keras::losses {

// The mean over the last dimension of (y_true - y_pred)^2.
class COHORT_API MeanSquaredError : public Loss {
 public:
  explicit MeanSquaredError(const LossOptions& options = {});
};

// The mean over the last dimension of |y_true - y_pred|.
class COHORT_API MeanAbsoluteError : public Loss {
 public:
  explicit MeanAbsoluteError(const LossOptions& options = {});
};

// 100 times the mean over the last dimension of |y_true - y_pred| / |y_true|; the divisor is
// at least 1e-7.
class COHORT_API MeanAbsolutePercentageError : public Loss {
 public:
  explicit MeanAbsolutePercentageError(const LossOptions& options = {});
};

// The mean over the last dimension of (log(y_true + 1) - log(y_pred + 1))^2, where values below
// 1e-7 count as 1e-7.
class COHORT_API MeanSquaredLogarithmicError : public Loss {
 public:
  explicit MeanSquaredLogarithmicError(const LossOptions& options = {});
};

// The mean over the last dimension of log(cosh(y_pred - y_true)), computed without overflow.
class COHORT_API LogCosh : public Loss {
 public:
  explicit LogCosh(const LossOptions& options = {});
};

struct HuberOptions {
  double delta = 1;  // errors up to it count by their square, larger ones linearly; above 0
  Reduction reduction = Reduction::AUTO;
  std::string name = "huber_loss";
};

// The mean over the last dimension of e^2 / 2 where |e| <= delta, else of
// delta * (|e| - delta / 2), with e = y_pred - y_true.
// Errors: also InvalidArgument (delta).
class COHORT_API Huber : public Loss {
 public:
  explicit Huber(const HuberOptions& options = {});
};

struct CosineSimilarityOptions {
  int64_t axis = -1;  // along which the vectors lie
  Reduction reduction = Reduction::AUTO;
  std::string name = "cosine_similarity";
};

// Minus the cosine of the angle between vectors: -1 for those of one direction, 0 where one is 0.
// Errors: also InvalidArgument (axis).
class COHORT_API CosineSimilarity : public Loss {
 public:
  explicit CosineSimilarity(const CosineSimilarityOptions& options = {});
};

}  // namespace cohort::keras::losses

namespace cohort::internal {
// The cosine itself, of equal shapes. Errors: InvalidArgument (axis; names `what`).
Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t axis, const char* what);
}  // namespace cohort::internal
