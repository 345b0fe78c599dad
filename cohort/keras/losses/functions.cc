#include "cohort/keras/losses/functions.h"

#include "cohort/keras/losses/divergences.h"
#include "cohort/keras/losses/hinges.h"

namespace cohort::keras::losses {
namespace {

template <class LossClass, class Options>
Tensor each(const Tensor& y_true, const Tensor& y_pred, Options options) {
  options.reduction = Reduction::NONE;
  return LossClass(options)(y_true, y_pred);
}

template <class LossClass>
Tensor each(const Tensor& y_true, const Tensor& y_pred) {
  static const LossClass loss(LossOptions{.reduction = Reduction::NONE});
  return loss(y_true, y_pred);
}

}  // namespace

Tensor mean_squared_error(const Tensor& y_true, const Tensor& y_pred) {
  return each<MeanSquaredError>(y_true, y_pred);
}

Tensor mean_absolute_error(const Tensor& y_true, const Tensor& y_pred) {
  return each<MeanAbsoluteError>(y_true, y_pred);
}

Tensor mean_absolute_percentage_error(const Tensor& y_true, const Tensor& y_pred) {
  return each<MeanAbsolutePercentageError>(y_true, y_pred);
}

Tensor mean_squared_logarithmic_error(const Tensor& y_true, const Tensor& y_pred) {
  return each<MeanSquaredLogarithmicError>(y_true, y_pred);
}

Tensor log_cosh(const Tensor& y_true, const Tensor& y_pred) {
  return each<LogCosh>(y_true, y_pred);
}

Tensor huber(const Tensor& y_true, const Tensor& y_pred, const HuberOptions& options) {
  return each<Huber>(y_true, y_pred, options);
}

Tensor cosine_similarity(const Tensor& y_true, const Tensor& y_pred,
                         const CosineSimilarityOptions& options) {
  return each<CosineSimilarity>(y_true, y_pred, options);
}

Tensor binary_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                           const BinaryCrossentropyOptions& options) {
  return each<BinaryCrossentropy>(y_true, y_pred, options);
}

Tensor binary_focal_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                 const BinaryFocalCrossentropyOptions& options) {
  return each<BinaryFocalCrossentropy>(y_true, y_pred, options);
}

Tensor categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                const CategoricalCrossentropyOptions& options) {
  return each<CategoricalCrossentropy>(y_true, y_pred, options);
}

Tensor categorical_focal_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                      const CategoricalFocalCrossentropyOptions& options) {
  return each<CategoricalFocalCrossentropy>(y_true, y_pred, options);
}

Tensor sparse_categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                       const SparseCategoricalCrossentropyOptions& options) {
  return each<SparseCategoricalCrossentropy>(y_true, y_pred, options);
}

Tensor hinge(const Tensor& y_true, const Tensor& y_pred) { return each<Hinge>(y_true, y_pred); }

Tensor squared_hinge(const Tensor& y_true, const Tensor& y_pred) {
  return each<SquaredHinge>(y_true, y_pred);
}

Tensor categorical_hinge(const Tensor& y_true, const Tensor& y_pred) {
  return each<CategoricalHinge>(y_true, y_pred);
}

Tensor kl_divergence(const Tensor& y_true, const Tensor& y_pred) {
  return each<KLDivergence>(y_true, y_pred);
}

Tensor poisson(const Tensor& y_true, const Tensor& y_pred) { return each<Poisson>(y_true, y_pred); }

}  // namespace cohort::keras::losses
