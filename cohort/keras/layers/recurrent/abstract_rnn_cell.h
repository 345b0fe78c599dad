// The base class of cells: what a recurrent layer does with one step of a sequence.
//
//   class MinimalCell : public keras::layers::AbstractRNNCell {
//    public:
//     explicit MinimalCell(int64_t units) : units_(units) {}
//     std::vector<keras::Shape> state_size() const override { return {{units_}}; }
//
//    protected:
//     void build(const std::vector<keras::Shape>& input_shapes) override {
//       kernel_ = add_weight("kernel", {input_shapes[0].back(), units_});
//       recurrent_kernel_ = add_weight("recurrent_kernel", {units_, units_});
//     }
//     Step step(const Tensor& x, const std::vector<Tensor>& states,
//               const keras::CallOptions&) override {
//       const Tensor h = x.matmul(kernel_.value()) + states[0].matmul(recurrent_kernel_.value());
//       return {h, {h}};
//     }
//
//    private:
//     const int64_t units_;
//     Variable kernel_;
//     Variable recurrent_kernel_;
//   };
//   keras::layers::RNN layer(std::make_shared<MinimalCell>(32));
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer.h"

namespace cohort::keras::layers {

// Called as a layer it makes one step: a tuple of the inputs [batch, ..] and the states [batch, ..]
// -> a tuple of the output and the new states. RNN calls it for each step of a sequence.
// Thread safety: Layer's. Replicas make steps at the same time: what a cell remembers from one step
// to the next belongs into its states.
class COHORT_API AbstractRNNCell : public Layer {
 public:
  explicit AbstractRNNCell(LayerOptions options = {}) : Layer(std::move(options)) {}

  // The shape of each state of one example.
  virtual std::vector<Shape> state_size() const = 0;
  // The shape of the output of one example: that of the first state, where not overridden.
  virtual Shape output_size() const;
  // The states at the beginning of sequences: zeros, where not overridden. `inputs` [batch, ..] has
  // their number, dtype and device.
  virtual std::vector<Tensor> get_initial_state(const Tensor& inputs) const;
  // A new cell, made as this one was and not built, which Bidirectional needs for its two layers;
  // nullptr, where not overridden.
  virtual std::shared_ptr<AbstractRNNCell> clone() const;

 protected:
  // For cells whose class name differs from the name that users know.
  AbstractRNNCell(std::string class_name, LayerOptions options)
      : Layer(std::move(class_name), std::move(options)) {}

  struct Step {
    Tensor output;
    std::vector<Tensor> states;
  };
  // inputs: of one step, [batch, ..]; states: of the step before, in the order of state_size.
  virtual Step step(const Tensor& inputs, const std::vector<Tensor>& states,
                    const CallOptions& options) = 0;

  // `build` gets the shapes of a step's inputs and of the states.
  // Errors: InvalidArgument (not one tensor more than there are states; another number of new
  // states).
  Structure call(const Structure& inputs, const CallOptions& options) final;
};

}  // namespace cohort::keras::layers
