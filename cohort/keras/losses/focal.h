// Focal losses (Lin et al., 2017): crossentropies in which well classified examples count little,
// so that many easy ones do not drown the few hard ones.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/losses/loss.h"

namespace cohort::keras::losses {

struct BinaryFocalCrossentropyOptions {
  bool apply_class_balancing = false;  // weigh class 1 by alpha and class 0 by 1 - alpha
  double alpha = 0.25;
  double gamma = 2;            // each loss is multiplied by (1 - p of the true class) ** gamma
  bool from_logits = false;    // predictions are scores rather than probabilities
  double label_smoothing = 0;  // in [0, 1]: labels move that far towards 0.5
  int64_t axis = -1;           // over which the mean is taken
  Reduction reduction = Reduction::AUTO;
  std::string name = "binary_focal_crossentropy";
};

// The mean over `axis` of BinaryCrossentropy's losses, weighed as the options say.
// Shapes: labels and predictions [batch, .., d] -> [batch, ..]; labels of any dtype.
// Errors: InvalidArgument (shapes; axis outside of them; label_smoothing outside [0, 1]).
class COHORT_API BinaryFocalCrossentropy : public Loss {
 public:
  explicit BinaryFocalCrossentropy(const BinaryFocalCrossentropyOptions& options = {});
};

// One weight for all classes, or a list of one for each.
class FocalAlpha {
 public:
  FocalAlpha(double of_all) : weights_{of_all} {}
  FocalAlpha(std::vector<double> of_each) : weights_(std::move(of_each)), is_list_(true) {}

  const std::vector<double>& weights() const { return weights_; }
  bool is_list() const { return is_list_; }

 private:
  std::vector<double> weights_;
  bool is_list_ = false;
};

struct CategoricalFocalCrossentropyOptions {
  FocalAlpha alpha = 0.25;     // weighs the classes, which lie along the last axis: {0.2, 0.3, 0.5}
  double gamma = 2;            // each term is multiplied by (1 - p) ** gamma
  bool from_logits = false;    // predictions are scores rather than probabilities
  double label_smoothing = 0;  // in [0, 1]: labels move that far towards 1 / classes
  int64_t axis = -1;           // that of the classes
  Reduction reduction = Reduction::AUTO;
  std::string name = "categorical_focal_crossentropy";
};

// -sum(alpha (1 - p) ** gamma y log p) over the classes, for labels that are probabilities (one-
// hot, for example). Predictions are divided by their sum first.
// Shapes: labels and predictions [batch, .., classes] -> [batch, ..]; labels of any dtype.
// Errors: InvalidArgument (shapes; axis outside of them; label_smoothing outside [0, 1]; a list of
// alphas that does not have one for each class).
class COHORT_API CategoricalFocalCrossentropy : public Loss {
 public:
  explicit CategoricalFocalCrossentropy(const CategoricalFocalCrossentropyOptions& options = {});
};

}  // namespace cohort::keras::losses
