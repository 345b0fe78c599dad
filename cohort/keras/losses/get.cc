#include "cohort/keras/losses/get.h"

#include <vector>

#include "cohort/keras/base/named.h"
#include "cohort/keras/losses/crossentropy.h"
#include "cohort/keras/losses/divergences.h"
#include "cohort/keras/losses/focal.h"
#include "cohort/keras/losses/hinges.h"
#include "cohort/keras/losses/regression.h"

namespace cohort {
namespace internal {
namespace {

using keras::losses::Loss;
using keras::losses::LossOptions;

// For a class whose options are more than LossOptions.
template <class T, class Options>
Loss make_loss_with(const LossOptions& options) {
  Options own;
  own.reduction = options.reduction;
  if (!options.name.empty()) own.name = options.name;
  return T(own);
}

template <class T>
Loss make_loss(const LossOptions& options) {
  return T(options);
}

const std::vector<Named<Loss (*)(const LossOptions&)>>& all_losses() {
  using namespace keras::losses;
  static const std::vector<Named<Loss (*)(const LossOptions&)>> all = {
      {"BinaryCrossentropy",
       {"binary_crossentropy", "bce", "BCE"},
       make_loss_with<BinaryCrossentropy, BinaryCrossentropyOptions>},
      {"BinaryFocalCrossentropy",
       {"binary_focal_crossentropy"},
       make_loss_with<BinaryFocalCrossentropy, BinaryFocalCrossentropyOptions>},
      {"CategoricalCrossentropy",
       {"categorical_crossentropy"},
       make_loss_with<CategoricalCrossentropy, CategoricalCrossentropyOptions>},
      {"CategoricalFocalCrossentropy",
       {"categorical_focal_crossentropy"},
       make_loss_with<CategoricalFocalCrossentropy, CategoricalFocalCrossentropyOptions>},
      {"CategoricalHinge", {"categorical_hinge"}, make_loss<CategoricalHinge>},
      {"CosineSimilarity",
       {"cosine_similarity"},
       make_loss_with<CosineSimilarity, CosineSimilarityOptions>},
      {"Hinge", {"hinge"}, make_loss<Hinge>},
      {"Huber", {"huber", "huber_loss"}, make_loss_with<Huber, HuberOptions>},
      {"KLDivergence",
       {"kl_divergence", "kullback_leibler_divergence", "kld", "KLD"},
       make_loss<KLDivergence>},
      {"LogCosh", {"log_cosh", "logcosh"}, make_loss<LogCosh>},
      {"MeanAbsoluteError", {"mean_absolute_error", "mae", "MAE"}, make_loss<MeanAbsoluteError>},
      {"MeanAbsolutePercentageError",
       {"mean_absolute_percentage_error", "mape", "MAPE"},
       make_loss<MeanAbsolutePercentageError>},
      {"MeanSquaredError", {"mean_squared_error", "mse", "MSE"}, make_loss<MeanSquaredError>},
      {"MeanSquaredLogarithmicError",
       {"mean_squared_logarithmic_error", "msle", "MSLE"},
       make_loss<MeanSquaredLogarithmicError>},
      {"Poisson", {"poisson"}, make_loss<Poisson>},
      {"SparseCategoricalCrossentropy",
       {"sparse_categorical_crossentropy"},
       make_loss_with<SparseCategoricalCrossentropy, SparseCategoricalCrossentropyOptions>},
      {"SquaredHinge", {"squared_hinge"}, make_loss<SquaredHinge>},
  };
  return all;
}

}  // namespace

std::optional<Loss> find_loss(std::string_view name, const LossOptions& options) {
  const auto* found = find_named(all_losses(), name);
  if (found == nullptr) return std::nullopt;
  return found->value(options);
}

}  // namespace internal

namespace keras::losses {

Loss get(std::string_view name, const LossOptions& options) {
  if (auto loss = internal::find_loss(name, options)) return *loss;
  internal::throw_unknown_name("loss", name, internal::names_of(internal::all_losses()));
}

}  // namespace keras::losses
}  // namespace cohort
