// Losses as functions, one value for each example: what the classes of the same name compute.
//
//   Tensor each = losses::mean_squared_error(y_true, y_pred);
//   Tensor loss = nn::compute_average_loss(losses::binary_crossentropy(y_true, y_pred));
//
// Shapes and errors: those of the classes. Of options that a class has, `reduction` and `name` say
// nothing here.
#pragma once

#include "cohort/core/export.h"
#include "cohort/keras/losses/crossentropy.h"
#include "cohort/keras/losses/focal.h"
#include "cohort/keras/losses/regression.h"

namespace cohort::keras::losses {

COHORT_API Tensor mean_squared_error(const Tensor& y_true, const Tensor& y_pred);
COHORT_API Tensor mean_absolute_error(const Tensor& y_true, const Tensor& y_pred);
COHORT_API Tensor mean_absolute_percentage_error(const Tensor& y_true, const Tensor& y_pred);
COHORT_API Tensor mean_squared_logarithmic_error(const Tensor& y_true, const Tensor& y_pred);
COHORT_API Tensor log_cosh(const Tensor& y_true, const Tensor& y_pred);
COHORT_API Tensor huber(const Tensor& y_true, const Tensor& y_pred,
                        const HuberOptions& options = {});
COHORT_API Tensor cosine_similarity(const Tensor& y_true, const Tensor& y_pred,
                                    const CosineSimilarityOptions& options = {});

COHORT_API Tensor binary_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                      const BinaryCrossentropyOptions& options = {});
COHORT_API Tensor binary_focal_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                            const BinaryFocalCrossentropyOptions& options = {});
COHORT_API Tensor categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                           const CategoricalCrossentropyOptions& options = {});
COHORT_API Tensor
categorical_focal_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                               const CategoricalFocalCrossentropyOptions& options = {});
COHORT_API Tensor
sparse_categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                const SparseCategoricalCrossentropyOptions& options = {});

COHORT_API Tensor hinge(const Tensor& y_true, const Tensor& y_pred);
COHORT_API Tensor squared_hinge(const Tensor& y_true, const Tensor& y_pred);
COHORT_API Tensor categorical_hinge(const Tensor& y_true, const Tensor& y_pred);
COHORT_API Tensor kl_divergence(const Tensor& y_true, const Tensor& y_pred);
COHORT_API Tensor poisson(const Tensor& y_true, const Tensor& y_pred);

}  // namespace cohort::keras::losses
