// The base class of layers and models, for those who write their own classes.
//
//   class Scale : public keras::layers::Layer {
//     void build(const std::vector<Shape>& input_shapes) override {
//       factor_ = add_weight("factor", {input_shapes[0].back()}, {.initializer = "ones"});
//     }
//     Tensor call(const Tensor& x, const CallOptions&) override { return x * factor_.value(); }
//     Variable factor_;
//   };
//   keras::Sequential model({std::make_shared<Scale>(), keras::layers::Dense(10)});
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/structure.h"
#include "cohort/distribute/variables/variable.h"
#include "cohort/keras/base/config.h"
#include "cohort/keras/base/constraints.h"
#include "cohort/keras/base/initializers.h"
#include "cohort/keras/base/list.h"
#include "cohort/keras/base/policy.h"
#include "cohort/keras/base/regularizers.h"
#include "cohort/train/objects/trackable.h"

namespace cohort {
namespace keras {
struct CallOptions;
namespace layers {
class Layer;
}
}  // namespace keras

namespace internal {
class Segment;
struct LayerState;
Structure call_chain(std::span<keras::layers::Layer* const> chain, const Structure& inputs,
                     const keras::CallOptions& options);
}  // namespace internal

namespace keras {

using Shape = std::vector<int64_t>;

struct CallOptions {
  // Missing: the value of the calling layer or model; false if there is none.
  std::optional<bool> training = std::nullopt;
  // The steps of the input that count: [batch, steps], bool, for the first of several inputs.
  // Undefined: the steps that the layers before have marked.
  Tensor mask = {};
};

namespace layers {

class LayerHandle;

struct LayerOptions {
  std::string name = "";  // empty: the class name in snake case, with a number from the second on
  bool trainable = true;
  // The dtypes of its computations and of its weights: one (float64), or a policy by name
  // ("mixed_bfloat16"). Missing: mixed_precision::global_policy().
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  // Penalty on the layer's output, divided by the size of the (replica's) batch.
  regularizers::Regularizer activity_regularizer = {};
  // Whether inputs of a floating dtype are cast to the dtype in which the layer computes.
  bool autocast = true;
};

struct WeightOptions {
  initializers::Initializer initializer = "glorot_uniform";
  regularizers::Regularizer regularizer = {};
  bool trainable = true;
  std::optional<DType> dtype = std::nullopt;  // missing: the layer's variable_dtype()
  VariableSynchronization synchronization = VariableSynchronization::AUTO;
  VariableAggregation aggregation = VariableAggregation::NONE;
  // Whether `call` reads it in the layer's compute_dtype(). Its gradient keeps its dtype.
  bool autocast = true;
  // What optimizers do to it after each update.
  constraints::Constraint constraint = {};
};

// Requirements of a layer on each of its inputs.
struct InputSpec {
  std::optional<int64_t> rank = std::nullopt;
  std::optional<int64_t> min_rank = std::nullopt;
  std::optional<int64_t> last_dim = std::nullopt;
  bool floating = false;
  // The least sizes of dimensions 1, 2 and so on, of inputs with a rank and a floating dtype: the
  // window that must fit.
  std::vector<int64_t> window = {};
  // The sizes that other dimensions must have, by their number, which is below the rank.
  std::map<int64_t, int64_t> axes = {};
};

// A function with weights. It is built when it first sees an input. Inside a step one replica
// builds it for all. It is built under the strategy of the scope in which it was made, or else the
// current one.
//
// Layer objects stay where they are created; programs pass handles (LayerHandle). In a checkpoint a
// layer's weights and child layers have the names that were passed to add_weight and track; names
// must differ.
// Thread safety: calls and reads from any thread, once it is built or inside a step; track,
// set_trainable and set_weights from one thread while no step runs.
class COHORT_API Layer : public train::Trackable {
 public:
  struct Child {
    std::string name;
    Layer* layer = nullptr;
    std::shared_ptr<Layer> owner;  // nullptr for a member that lives in this object
  };

  explicit Layer(LayerOptions options = {});
  ~Layer() override;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  // Builds the layer if necessary, checks the input, and runs `call`.
  // Errors: InvalidArgument (rank, dtype or shape of an input or mask, and any error of libtorch
  // inside of `call`, with this layer's name and the shapes), what build and call throw.
  Structure operator()(const Structure& inputs, const CallOptions& options = {});
  Tensor operator()(const Tensor& input, const CallOptions& options = {});

  const std::string& name() const;
  // "Dense".
  const std::string& class_name() const;
  DType dtype() const { return variable_dtype(); }
  // In which it computes, and which its outputs have.
  DType compute_dtype() const;
  DType variable_dtype() const;
  const mixed_precision::Policy& dtype_policy() const;
  bool built() const;
  // Whether tapes and optimizers are meant to change the variables. Set also in all children that
  // there are, which can be set otherwise afterwards; as long as it is false here, none of the
  // children's variables is trainable.
  bool trainable() const;
  void set_trainable(bool trainable);

  // Own variables before those of children, in order of creation; shared ones once. Lists are
  // empty, but for what constructors made, until the layer is built.
  List<Variable> trainable_variables() const;
  List<Variable> non_trainable_variables() const;
  // Trainable ones first; of a Model layer by layer, then its own, as Keras has them.
  virtual List<Variable> variables() const;
  List<Variable> weights() const { return variables(); }
  // Errors: FailedPrecondition (its weights are still to be made).
  int64_t count_params() const;

  // The values of variables(), copied. set_weights takes the same list.
  // Errors: FailedPrecondition (a layer of layers, or model, whose weights are still to be made),
  // InvalidArgument (their number or a shape; nothing has changed then), as Variable::assign.
  List<Tensor> get_weights() const;
  void set_weights(const std::vector<Tensor>& values) const;

  // The penalties on weights, computed now and recorded by the calling thread's tape, and what
  // add_loss and activity regularisers added in the latest forward pass of the calling replica.
  // Scalars; scale them with nn::scale_regularization_loss.
  List<Tensor> losses() const;
  // Forgets the state of recurrent layers with `stateful`, here and in all children: the next batch
  // begins new sequences. Outside of steps.
  virtual void reset_states();
  // In `call`: adds a loss that depends on the input, for example a mean over the batch.
  // Errors: InvalidArgument (not a scalar).
  void add_loss(const Tensor& loss);
  // In `call`: adds all elements of `value` to a mean, which fit and evaluate report under `name`
  // beside the metrics of compile, and reset with them. A further call of that name adds to the
  // same one. A batch without rows adds nothing. COLLECTIVE as calls of layers are.
  // Errors: InvalidArgument (no name; "loss" and what begins with "val_", which the logs have for
  // other numbers; an undefined or complex value). Of fit and evaluate, after the first step:
  // InvalidArgument (another metric of the model has this name).
  void add_metric(const Tensor& value, const std::string& name);
  // Removes the losses that the calling replica's latest forward pass added, here and in all
  // children. A call from outside of any layer begins with this.
  void clear_losses();

  const List<Child>& children() const;
  bool has_activity_regularizer() const;
  // The spec of the first call's output, with an unknown batch size; missing before it.
  std::optional<StructureSpec> output_spec() const;

  // What the layer was made with, so that a saved model can make it again; see config.h. Nothing
  // (unless overridden): models with this layer cannot be saved as a whole. Who saves adds the
  // layer's name, under "name", whether it is trainable, under "trainable", and its dtype, under
  // "dtype".
  // Errors: Unimplemented (an option that is a function of the program).
  virtual std::optional<Config> get_config() const;

  // Own weights, then child layers and lists of them.
  std::vector<train::TrackableChild> checkpoint_children() override;
  bool awaits_children() const override { return !built(); }

 protected:
  // For layers whose class name differs from the name that users know.
  Layer(std::string class_name, LayerOptions options);

  // Makes the weights. Runs once, before the first `call`; shapes are of the tensors in the input,
  // dimension 0 as kUnknownDim.
  virtual void build(const std::vector<Shape>& input_shapes);
  // Override one of these. `options.training` always has a value. By default the second hands a
  // single tensor to the first, and refuses anything else with InvalidArgument.
  virtual Tensor call(const Tensor& input, const CallOptions& options);
  virtual Structure call(const Structure& inputs, const CallOptions& options);

  // Makes a variable "layer_name/name" and lists it among the layer's. In build or a constructor.
  // If a checkpoint with a value for it was restored before, it starts from that value, and the
  // initializer makes none (see initializers::Initializer).
  // Errors (of track, too): InvalidArgument (the name is taken; that value, or what the initializer
  // made, has another shape or dtype; the constraint names an axis that the weight has not).
  Variable add_weight(const std::string& name, const Shape& shape, WeightOptions options = {});
  // In `call`: the tensor in the dtype in which floating inputs come, compute_dtype(); on CPUs,
  // which do not compute in float16, for that float32 with float16's values.
  Tensor in_compute_dtype(const Tensor& x) const;
  // Lists a variable made elsewhere. `regularizer` may be empty.
  void track(std::string name, const Variable& variable,
             regularizers::Regularizer regularizer = {});
  // Lists a layer used in `call`, so that its variables and losses are found. A member that is an
  // object is kept by reference, a handle is shared.
  void track(std::string name, Layer& member);
  void track(std::string name, const LayerHandle& layer);
  // Lists several layers, which are "name/0", "name/1", ... in a checkpoint.
  void track(const std::string& name, const std::vector<LayerHandle>& layers);
  // Removes the layer that was tracked last from the list; it must not be one of several.
  void pop_child();

  void set_input_spec(InputSpec spec);
  InputSpec& input_spec();

 private:
  friend class internal::Segment;
  friend struct internal::LayerState;
  friend Structure internal::call_chain(std::span<keras::layers::Layer* const> chain,
                                        const Structure& inputs, const keras::CallOptions& options);

  // The Python module in which Keras has the class, if it is one of Keras's.
  virtual const char* keras_module() const { return "keras.layers"; }

  std::unique_ptr<internal::LayerState> state_;
};

}  // namespace layers
}  // namespace keras
}  // namespace cohort
