#include "cohort/keras/layers/lambda.h"

#include "cohort/core/error.h"
#include "cohort/keras/layers/base/layer_config.h"

namespace cohort::keras::layers {
namespace {

class LambdaImpl final : public Layer {
 public:
  LambdaImpl(internal::StructureFunction<> function, LambdaOptions options)
      : Layer("Lambda", {.name = std::move(options.name), .dtype = options.dtype}),
        function_(std::move(function)) {}

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [](internal::FieldWriter&) {
      throw UnimplementedError(
          "its function is one of the program, which no file can hold; save the weights alone "
          "(save_weights), or write a layer class of your own");
    });
  }

 protected:
  Structure call(const Structure& inputs, const CallOptions&) override { return function_(inputs); }

 private:
  const internal::StructureFunction<> function_;
};

}  // namespace

Lambda::Lambda(internal::StructureFunction<> function, LambdaOptions options)
    : LayerHandle(std::make_shared<LambdaImpl>(std::move(function), std::move(options))) {}

}  // namespace cohort::keras::layers
