#include "models/position_embedding.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace models {
namespace {

namespace tf = cohort;
using tf::Tensor;

class PositionEmbedding : public tf::keras::layers::Layer {
 public:
  explicit PositionEmbedding(int64_t length) : length_(length) {}

  std::optional<tf::keras::Config> get_config() const override {
    return tf::keras::Config().set("length", length_);
  }

 protected:
  void build(const std::vector<tf::keras::Shape>& input_shapes) override {
    embeddings_ =
        add_weight("embeddings", {length_, input_shapes[0].back()}, {.initializer = "uniform"});
  }

  Tensor call(const Tensor& input, const tf::keras::CallOptions&) override {
    const int64_t steps = input.size(1);
    if (steps > length_) {
      throw tf::InvalidArgumentError("there are " + std::to_string(steps) + " steps, and " +
                                     std::to_string(length_) + " positions at most");
    }
    return embeddings_.value().narrow(0, 0, steps).expand_as(input);
  }

 private:
  int64_t length_;
  tf::Variable embeddings_;
};

}  // namespace

tf::keras::layers::LayerHandle position_embedding(int64_t length) {
  return std::make_shared<PositionEmbedding>(length);
}

}  // namespace models
