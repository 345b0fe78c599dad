// Losses of classifiers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/losses/loss.h"

namespace cohort::keras::losses {

struct SparseCategoricalCrossentropyOptions {
  bool from_logits = false;  // predictions are scores rather than probabilities
  // Examples with this label have a loss of 0, give no gradient, and are no part of the mean: the
  // "void" of segmentation, -1 or 255. It may lie outside [0, classes).
  std::optional<int64_t> ignore_class = std::nullopt;
  Reduction reduction = Reduction::AUTO;
  std::string name = "sparse_categorical_crossentropy";
};

// -log of the probability that the predictions assign to the label.
// Shapes: labels [batch, d0, ..] (or with a last dimension of 1), any integer dtype, or whole
// numbers of a floating one; predictions [batch, d0, .., classes] -> [batch, d0, ..].
// Errors: InvalidArgument (shapes; a label outside [0, classes), naming it and its place).
class COHORT_API SparseCategoricalCrossentropy : public Loss {
 public:
  explicit SparseCategoricalCrossentropy(const SparseCategoricalCrossentropyOptions& options = {});
};

struct BinaryCrossentropyOptions {
  bool from_logits = false;
  double label_smoothing = 0;  // in [0, 1]: labels move that far towards 0.5
  Reduction reduction = Reduction::AUTO;
  std::string name = "binary_crossentropy";
};

// The mean over the last dimension of -(y log p + (1 - y) log (1 - p)).
// Shapes: labels and predictions [batch, .., d] -> [batch, ..]; labels of any dtype.
// Errors: InvalidArgument (shapes; label_smoothing outside [0, 1]).
class COHORT_API BinaryCrossentropy : public Loss {
 public:
  explicit BinaryCrossentropy(const BinaryCrossentropyOptions& options = {});
};

struct CategoricalCrossentropyOptions {
  bool from_logits = false;    // predictions are scores rather than probabilities
  double label_smoothing = 0;  // in [0, 1]: labels move that far towards 1 / classes
  int64_t axis = -1;           // that of the classes
  Reduction reduction = Reduction::AUTO;
  std::string name = "categorical_crossentropy";
};

// -sum(y log p) over the classes, for labels that are probabilities (one-hot, for example).
// Predictions that are no logits are divided by their sum first.
// Shapes: labels and predictions [batch, .., classes] -> [batch, ..]; labels of any dtype.
// Errors: InvalidArgument (shapes; axis outside of them; label_smoothing outside [0, 1]).
class COHORT_API CategoricalCrossentropy : public Loss {
 public:
  explicit CategoricalCrossentropy(const CategoricalCrossentropyOptions& options = {});
};

}  // namespace cohort::keras::losses

namespace cohort::internal {
// Before labels become real numbers, which would drop an imaginary part.
// Errors: InvalidArgument (they are complex).
void check_real_labels(const Tensor& labels, const char* what);
// Whether they are numbers of classes where one-hot labels are wanted.
bool are_class_numbers(const Tensor& labels, const Tensor& predictions);
// What errors advise where labels are of the other kind.
inline constexpr const char* kForSparse =
    "; labels that are numbers of classes are for SparseCategoricalCrossentropy (as a metric, "
    "SparseCategoricalAccuracy)";
inline constexpr const char* kForCategorical =
    "; one-hot labels are for CategoricalCrossentropy (as a metric, CategoricalAccuracy), and "
    "labels.argmax(-1) makes numbers of classes of them";
// Labels for SparseCategoricalCrossentropy: int64, in the shape of predictions without its last
// dimension. Errors: InvalidArgument (shapes; complex labels).
Tensor sparse_labels(const Tensor& labels, const Tensor& predictions, const char* what);
// Labels in predictions' dtype, once ranks that differ by a last dimension of 1 are made equal.
// Errors: InvalidArgument (shapes; scalars; complex labels; predictions of a dtype that is not
// floating).
struct Matched {
  Tensor y_true;
  Tensor y_pred;
};
Matched match_shapes(Tensor y_true, Tensor y_pred, const char* what);
// Errors: InvalidArgument (label_smoothing outside [0, 1]).
void check_smoothing(const char* loss, double label_smoothing);
}  // namespace cohort::internal
