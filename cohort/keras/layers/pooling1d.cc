#include "cohort/keras/layers/pooling1d.h"

namespace cohort::keras::layers {
namespace {

class GlobalAveragePooling1DImpl final : public Layer {
 public:
  explicit GlobalAveragePooling1DImpl(const GlobalPooling1DOptions& options)
      : Layer("GlobalAveragePooling1D", {.name = options.name}) {
    set_input_spec({.rank = 3, .floating = true});
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override { return input.mean({1}); }
};

}  // namespace

GlobalAveragePooling1D::GlobalAveragePooling1D(GlobalPooling1DOptions options)
    : LayerHandle(std::make_shared<GlobalAveragePooling1DImpl>(options)) {}

}  // namespace cohort::keras::layers
