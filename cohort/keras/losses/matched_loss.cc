#include "cohort/keras/losses/matched_loss.h"

#include <utility>

#include "cohort/keras/losses/crossentropy.h"

namespace cohort::internal {

keras::losses::Loss matched_loss(keras::losses::LossOptions options, const char* own_name,
                                 MatchedLoss loss) {
  if (options.name.empty()) options.name = own_name;
  return keras::losses::Loss(
      [name = options.name, loss = std::move(loss)](const Tensor& labels,
                                                    const Tensor& predictions) {
        const auto [y_true, y_pred] = match_shapes(labels, predictions, name.c_str());
        return loss(y_true, y_pred);
      },
      options);
}

}  // namespace cohort::internal
