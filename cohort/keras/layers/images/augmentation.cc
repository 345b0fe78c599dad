#include "cohort/keras/layers/images/augmentation.h"

#include <utility>
#include <vector>

#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/layers/base/layer_state.h"
#include "cohort/keras/layers/images/image_layer.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras::layers {

Structure Augmentation::operator()(random::RandomGenerator& random,
                                   const Structure& element) const {
  const bool is_tuple = element.is_tuple() && !element.members().empty();
  const Structure& images = is_tuple ? element.members().front() : element;
  if (!images.is_leaf() || !images.leaf().is_tensor()) {
    throw InvalidArgumentError(internal::str(
        "an Augmentation takes an image, or a tuple whose first member is one, but got ",
        internal::describe_leaves(element),
        "; take the image of another element out in a function of your own"));
  }
  const NoGradient no_gradient;
  const internal::ElementDraws draws(random);
  const internal::CallsStayWithInputs on_host;
  const Structure changed = layer_(images, {.training = true});
  if (!is_tuple) return changed;
  std::vector<Structure> members(element.members().begin(), element.members().end());
  members.front() = changed;
  return Structure::make_tuple(std::move(members));
}

}  // namespace cohort::keras::layers
