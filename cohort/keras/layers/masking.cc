#include "cohort/keras/layers/masking.h"

#include <utility>

#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/base/layer_config.h"

namespace cohort::keras::layers {
namespace {

class MaskingImpl final : public Layer {
 public:
  explicit MaskingImpl(const MaskingOptions& options)
      : Layer("Masking", {.name = options.name, .dtype = options.dtype}),
        mask_value_(options.mask_value) {
    set_input_spec({.min_rank = 3});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) { field("mask_value", mask_value_); });
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override {
    const Tensor mask = (input != mask_value_).any(-1);
    return internal::with_mask(input * internal::mask_factors(mask, input), mask);
  }

 private:
  const double mask_value_;
};

}  // namespace

Masking::Masking(MaskingOptions options) : LayerHandle(std::make_shared<MaskingImpl>(options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

keras::layers::LayerHandle read_masking(FieldReader& field) {
  keras::layers::MaskingOptions options;
  field.common(options);
  field("mask_value", options.mask_value);
  return keras::layers::Masking(std::move(options));
}

}  // namespace cohort::internal
