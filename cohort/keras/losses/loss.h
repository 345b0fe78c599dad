// Loss functions: what training minimises.
//
//   losses::SparseCategoricalCrossentropy loss_object(
//       {.from_logits = true, .reduction = losses::Reduction::NONE});
//   Tensor per_example = loss_object(labels, predictions);
//   losses::Loss distance(
//       [](const Tensor& y_true, const Tensor& y_pred) { return (y_true - y_pred).abs().sum(-1); },
//       {.reduction = losses::Reduction::SUM});
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/keras/base/config.h"

namespace cohort::keras::losses {

// How the losses of the examples are combined.
enum class Reduction {
  AUTO,                 // SUM_OVER_BATCH_SIZE
  NONE,                 // they are returned as they are
  SUM,                  // one sum
  SUM_OVER_BATCH_SIZE,  // their mean; 0 for an empty batch
};

struct LossOptions {
  Reduction reduction = Reduction::AUTO;
  std::string name = "";  // empty: the loss's own ("loss" for a function of yours)
};

// A value. Thread safety: immutable.
class COHORT_API Loss {
 public:
  // Shapes: y_true, y_pred [batch, d0, .., dN] -> [batch, d0, .., dN-1], of y_pred's dtype.
  // Losses of float16 and bfloat16 are turned into float32, in which those of this library are
  // computed.
  using Function = std::function<Tensor(const Tensor& y_true, const Tensor& y_pred)>;

  Loss(Function per_example, LossOptions options = {});

  // Each loss is multiplied by its sample_weight (undefined: 1), then reduced. Of predictions with
  // a mask (see layers::Masking) the losses of steps that do not count are 0, and no part of the
  // mean; so are those of an ignored class.
  // Shapes: sample_weight [], or broadcasts to the losses -> [batch, d0, .., dN-1], or [] if
  // reduced.
  // Errors: InvalidArgument (AUTO or SUM_OVER_BATCH_SIZE under a strategy outside of fit, where
  // only you know the global batch size; shapes that do not fit).
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& sample_weight = Tensor()) const;

  const std::string& name() const { return options_.name; }
  Reduction reduction() const { return options_.reduction; }
  Loss with_reduction(Reduction reduction) const;
  // Keras's form: {"class_name": "Huber", "config": {"delta": 1, ..}, ..}; nullopt for a function
  // of the program.
  std::optional<Config> serialize() const;

 protected:
  // Says how the loss was made, in Keras's names; reduction and name go without saying.
  void describe(std::string_view class_name, const Config& config = Config());

 private:
  Function per_example_;
  LossOptions options_;
  std::string class_name_;  // empty: a function of the program
  Config config_;
};

}  // namespace cohort::keras::losses
