#include "cohort/keras/layers/base/kept_elements.h"

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {

Tensor kept_elements(const random::RandomGenerator& generator, at::IntArrayRef shape, double rate,
                     const at::TensorOptions& options) {
  return generator.uniform(shape).ge_(rate).to(options);
}

keras::Shape noise_shape(const keras::Shape& wanted, at::IntArrayRef input,
                         const std::string& layer) {
  if (wanted.empty()) return input.vec();
  keras::Shape shape = wanted;
  bool fits = shape.size() == input.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) {
    if (shape[i] == kUnknownDim) shape[i] = input[i];
    fits = shape[i] == 1 || shape[i] == input[i];
  }
  if (fits) return shape;
  throw InvalidArgumentError(str("layer '", layer, "': noise_shape is ", shape_str(wanted),
                                 ", whose sizes must be 1 or those of the input, ",
                                 shape_str(input)));
}

Tensor dropped(const Tensor& x, double rate) {
  if (rate == 1) return x * 0;
  return x * kept_elements(random::get_global_generator(), x.sizes(), rate, x.options()) /
         (1 - rate);
}

void check_rate(double rate, const char* layer, const char* option) {
  if (rate >= 0 && rate <= 1) return;
  throw InvalidArgumentError(str(layer, ": ", option, " is ", rate, "; it must lie in [0, 1]"));
}

}  // namespace cohort::internal
