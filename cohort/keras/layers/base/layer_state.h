// What a Layer keeps to itself: everything that those who write one need not see.
#pragma once

#include <c10/util/SmallVector.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <unordered_set>
#include <vector>

#include "cohort/core/function_ref.h"
#include "cohort/core/threads/lazy.h"
#include "cohort/distribute/core/build_once.h"
#include "cohort/keras/base/policy.h"
#include "cohort/keras/base/replica_tensors.h"
#include "cohort/keras/layers/base/layer.h"
#include "cohort/keras/metrics/mean.h"

namespace cohort {
namespace internal {

class ReportedMetrics;
class StrategyCore;

// The objects met on a walk over children; takes no memory where there are few.
class Visited {
 public:
  // False if it was there.
  bool insert(const void* object) {
    if (std::find(few_.begin(), few_.end(), object) != few_.end()) return false;
    if (few_.size() == kFew) return many_.insert(object).second;
    few_.push_back(object);
    return true;
  }

 private:
  static constexpr size_t kFew = 64;
  c10::SmallVector<const void*, kFew> few_;
  std::unordered_set<const void*> many_;
};

// Thread safety: Layer's.
// During its lifetime the calling thread's layer calls outside of steps run where their inputs lie,
// not on the device of the layer's weights: in a pipeline.
class CallsStayWithInputs {
 public:
  CallsStayWithInputs();
  ~CallsStayWithInputs();
  CallsStayWithInputs(const CallsStayWithInputs&) = delete;
  CallsStayWithInputs& operator=(const CallsStayWithInputs&) = delete;

 private:
  bool outer_;
};

struct LayerState {
  static const LayerState& of(const keras::layers::Layer& layer) { return *layer.state_; }
  static LayerState& of(keras::layers::Layer& layer) { return *layer.state_; }

  using Layer = keras::layers::Layer;
  struct Weight {
    std::string name;
    Variable variable;
    keras::regularizers::Regularizer regularizer;
  };

  // Errors: InvalidArgument (the dtype is not a floating one).
  LayerState(Layer& layer, std::string class_name, keras::layers::LayerOptions options);

  const char* keras_module() const { return layer.keras_module(); }
  // Layer::operator(), with `body` for `call`.
  Structure run(const Structure& inputs, const keras::CallOptions& options,
                FunctionRef<Structure(const keras::CallOptions&)> body);

  // Builds the layer for these inputs, where it is not built yet, without a call.
  void build_for(const Structure& inputs) {
    if (!build_once.done()) ensure_built(inputs);
  }

  // The name in a file of a layer that was just made for it. What its constructor has made keeps
  // names with the old one. Errors: InvalidArgument (the layer has been in use under another name).
  void take_name(const std::string& wanted);
  void check_name_is_free(std::string_view name) const;
  void track_child(Layer::Child child);
  // To be called of each layer that becomes a child, before anybody calls it.
  void adopt(Layer& child);
  void set_trainable(bool wanted, Visited& visited);
  // Calls visit(layer) for this layer and those in it, each once.
  void for_each_layer(FunctionRef<void(const Layer&)> visit, Visited& visited) const;
  void clear_losses(Visited& visited);
  void collect_losses(std::vector<Tensor>& found, Visited& visited) const;
  struct AddedMetric {
    keras::metrics::Metric metric;
    const Layer* layer;
  };
  void collect_metrics(std::vector<AddedMetric>& found, Visited& visited) const;
  // The mean of this name that add_metric adds to; the first call makes it.
  keras::metrics::Mean added_mean(const std::string& name);
  // Means of layers that are here, or become children, appear to `reported` as long as it lives.
  void report_means_to(const std::shared_ptr<ReportedMetrics>& reported, Visited& visited);
  // Whether the call that the calling thread is in is of a batch with rows, and no look at the
  // shapes.
  static bool counts_in_metrics();
  // What a layer loses that another one calls and none tracks; a warning says it once for each.
  enum class Lost { kVariables, kLosses, kMetrics };
  void warn_unless_tracked(Lost lost);
  // `elements` of the layer's weights; where there are none because it is not built, the list says
  // so.
  template <class T>
  keras::List<T> listed(std::vector<T> elements) const {
    std::string why = elements.empty() && !build_once.done() ? why_no_weights() : "";
    return {std::move(elements), std::move(why)};
  }
  // For a layer that is not built.
  std::string why_no_weights() const;
  // What the layer is called with outside of steps: tensors of the host are copied to the device
  // where its weights are, or will be. Where a step runs, they are there already.
  Structure beside_weights(const Structure& inputs) const;
  // Whether this layer, or one in it, is not built and has made no weights in its constructor. A
  // model that is never called itself has those of its layers.
  bool awaits_weights() const;
  // Errors: FailedPrecondition (awaits_weights; `what` cannot be done).
  void check_has_weights(const char* what) const;
  void collect_variables(bool parent_trainable, bool want_trainable, std::vector<Variable>& found,
                         Visited& visited) const;

  // Whether an input of a floating dtype has another one than the layer computes in; the same
  // inputs in that.
  bool needs_cast(const Structure& inputs) const;
  bool casts_weights() const { return policy.is_mixed() || policy.compute_dtype() == DType::Half; }
  Structure cast(const Structure& inputs) const;

  Layer& layer;
  Lazy<std::string> name;
  Lazy<std::string> class_name;
  keras::mixed_precision::Policy policy;
  bool autocast;
  bool trainable;
  // What `training` is in calls outside of every model that do not say.
  bool trains_by_default = false;
  bool tracked = false;  // by some other layer, which lists its variables
  bool has_taken_name = false;
  keras::regularizers::Regularizer activity_regularizer;
  std::shared_ptr<StrategyCore> strategy;  // of the scope it was made in, if any
  keras::layers::InputSpec input_spec;
  BuildOnce build_once;
  std::vector<Weight> weights;
  keras::List<Layer::Child> children;
  // The children as a checkpoint names them: layers and `lists`.
  std::vector<train::TrackableChild> named_children;
  std::vector<std::unique_ptr<train::TrackableList>> lists;
  ReplicaTensors losses;
  Lazy<StructureSpec> output_spec;

 private:
  mutable std::mutex means_mutex_;
  std::vector<keras::metrics::Mean> means_;  // of add_metric, guarded by means_mutex_
  std::weak_ptr<ReportedMetrics> reported_;
  std::atomic<unsigned> warned_of_{0};  // a bit for each Lost

  void ensure_built(const Structure& inputs);
  void build(const Structure& inputs);
  void check_inputs(const Structure& inputs) const;
  void add_activity_loss(const Structure& outputs);
  Structure as_computed(const Structure& outputs) const;
};

// The strategy under which the layer's weights are made: that of the scope it was made in, or else
// the current one.
std::shared_ptr<StrategyCore> strategy_of(const keras::layers::Layer& layer);
// A layer that Keras counts among those with weights although it has no variables.
class VocabularyKeeper {
 public:
  virtual ~VocabularyKeeper() = default;
  virtual bool keeps_weights() const = 0;
};
// Whether Keras counts the layer, or one within it, among those with weights.
bool has_weights(const keras::layers::Layer& layer);
// "Dense" of cohort::keras::layers::Dense.
std::string unqualified_type_name(const std::type_info& type);

}  // namespace internal
}  // namespace cohort
