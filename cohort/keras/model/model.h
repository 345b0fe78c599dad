// Models: layers that are made of layers.
//
//   class Regression : public keras::Model {
//    public:
//     Regression() { track("hidden", hidden_); track("output", output_); }
//     Tensor call(const Tensor& x, const CallOptions&) override { return output_(hidden_(x)); }
//    private:
//     keras::layers::LayerHandle hidden_ = keras::layers::Dense(64, {.activation = "relu"});
//     keras::layers::LayerHandle output_ = keras::layers::Dense(1);
//   };
//   keras::ModelHandle model = std::make_shared<Regression>();
//   model.compile({.optimizer = "adam", .loss = "mse"});
//   model.fit(x, y, {.epochs = 10});
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"
#include "cohort/keras/model/compile_options.h"
#include "cohort/keras/model/data.h"
#include "cohort/keras/model/fit_options.h"
#include "cohort/keras/model/logs.h"

namespace cohort {
namespace internal {
class Training;
struct SummaryTable;
}  // namespace internal
namespace keras {

struct SaveOptions {
  bool overwrite = true;  // replaces a model that is there
};

// The base class of models. Thread safety: as Layer.
class COHORT_API Model : public layers::Layer {
 public:
  explicit Model(layers::LayerOptions options = {}) : Layer(std::move(options)) {}

  List<Variable> variables() const override;

  // A table of the layers with output shapes, numbers of parameters and, of a graph that is no
  // chain, what each layer is connected to, as Keras prints it: to stdout, to `out`, or as a text.
  // Errors: FailedPrecondition (not built yet: call it first, or give it an Input).
  void summary() const;
  void summary(std::ostream& out) const;
  std::string summary_text() const;

  // How the model runs, for people: which layers run as one plan, what is fused in it, how often it
  // ran, and why the others run by themselves. See docs/keras.md.
  virtual std::string explain() const;

  // What fit and evaluate report and reset: those of compile, and those that layers have added by
  // now (Layer::add_metric); a model with steps of its own may return its own.
  // Errors: InvalidArgument (a layer has added one whose name another has).
  virtual std::vector<metrics::Metric> metrics() const;
  // Names of the outputs, by which compile knows them: of a Functional those of the layers that
  // make them, of a Sequential that of its last layer, of a subclass "output_1", ...; dicts have
  // their keys.
  virtual std::vector<std::string> output_names(size_t count) const;
  // Errors: FailedPrecondition (not compiled).
  const optimizers::Optimizer& optimizer() const;

 protected:
  Model(std::string class_name, layers::LayerOptions options)
      : Layer(std::move(class_name), std::move(options)) {}

  // What fit, evaluate and predict run on every replica for its part of a batch. train_step and
  // test_step return the empty tuple, or a dict of scalars for the logs, each of which is summed
  // over the replicas; what they add to metrics() is in the logs without being returned.
  // predict_step returns a row for each row of the batch. See unpack_x_y_sample_weight.
  virtual Structure train_step(const Structure& data);
  virtual Structure test_step(const Structure& data);
  virtual Structure predict_step(const Structure& data);

  // For these steps: what they do, piece by piece. In a replica.
  //
  // The sum of the compiled losses and of the layers' penalties, over the number of replicas, since
  // gradients are summed; its mean over all rows so far is reported as "loss". COLLECTIVE with
  // Reduction::SUM and NONE, whose mean counts a batch by the square of its rows, as in Keras.
  Tensor compute_loss(const Structure& y, const Structure& y_pred,
                      const Structure& sample_weight = Structure());
  // Updates the metrics of compile.
  void compute_metrics(const Structure& y, const Structure& y_pred,
                       const Structure& sample_weight = Structure());

 private:
  friend class internal::Training;
  const char* keras_module() const final { return "keras"; }
  virtual internal::SummaryTable summary_table() const;

  std::shared_ptr<internal::Training> training_;  // made when it is first needed
};

// The handle through which programs use a model; copies name the same model.
// Thread safety: as Layer.
class COHORT_API ModelHandle : public layers::LayerHandle {
 public:
  // Errors: InvalidArgument (nullptr).
  template <class T>
  requires std::is_base_of_v<Model, T> ModelHandle(std::shared_ptr<T> model)
      : LayerHandle(std::move(model)) {}

  // Layers in the order of the model; errors name the existing ones.
  List<std::string> layer_names() const;
  // They live as long as the model.
  List<layers::Layer*> layers() const;
  // The layer as a reference: a model's member cannot be shared.
  // Errors: NotFound (names those there are); OutOfRange.
  layers::Layer& get_layer(std::string_view name) const;
  layers::Layer& get_layer(size_t index) const;

  void summary() const { model().summary(); }
  void summary(std::ostream& out) const { model().summary(out); }
  std::string summary_text() const { return model().summary_text(); }
  std::string explain() const { return model().explain(); }

  // ---- training: docs/fit.md
  // ---------------------------------------------------------------------- All of it outside of
  // steps, one call at a time, on the strategy in whose scope the model was made. With several
  // tasks COLLECTIVE: all of them make the same calls with the same options.

  // Says how the model is trained; a second call begins afresh, with the weights that there are.
  // Errors: InvalidArgument (unknown names; lists that do not fit the outputs; steps_per_execution
  // below 1; the values of load_weights that wait are those of another optimizer).
  void compile(const CompileOptions& options = {}) const;

  // Trains over epochs of the data. Returns the logs of all epochs.
  // Errors: FailedPrecondition (not compiled; called in a step), InvalidArgument (options that do
  // not fit the data; data without examples, or endless without steps), Interrupted (Ctrl-C), those
  // of the data, the steps and the callbacks.
  History fit(const Data& data, const FitOptions& options = {}) const;
  History fit(const Data& x, const Structure& y, const FitOptions& options = {}) const;
  // The loss and the metrics over the data. Errors: as fit.
  Logs evaluate(const Data& data, const EvaluateOptions& options = {}) const;
  Logs evaluate(const Data& x, const Structure& y, const EvaluateOptions& options = {}) const;
  // The model's outputs, a row for each row of the data and in its order, on the CPU. Of a
  // dataset's (x, y) it uses x. Errors: as fit, but for compile.
  Structure predict(const Data& data, const PredictOptions& options = {}) const;

  // One step on one global batch. Logs as fit's and evaluate's. Errors: as fit.
  Logs train_on_batch(const Structure& x, const Structure& y = Structure(),
                      const OnBatchOptions& options = {}) const;
  Logs test_on_batch(const Structure& x, const Structure& y = Structure(),
                     const OnBatchOptions& options = {}) const;
  Structure predict_on_batch(const Structure& x) const;

  List<metrics::Metric> metrics() const { return model().metrics(); }
  void reset_metrics() const;
  // Errors: FailedPrecondition (not compiled).
  const optimizers::Optimizer& optimizer() const { return model().optimizer(); }
  // Whether fit ends after this batch (set between batches: this epoch). In all tasks or in none.
  bool stop_training() const;
  void set_stop_training(bool stop) const;

  // The weights, and the optimizer of compile if there is one, as a train::Checkpoint, which
  // becomes the latest of its directory; Keras 2.15 reads and writes the same files. load_weights
  // reads the optimizer, with its iterations and learning rate, where the file has one (of another
  // class: it warns, and leaves compile's alone). If the model is not compiled, the next compile
  // takes these values, a later one begins afresh, and a save before carries them on.
  // Errors: as Checkpoint::write and read; save_weights: FailedPrecondition (the weights are still
  // to be made); load_weights: InvalidArgument (the file lacks one of the model's weights).
  void save_weights(const std::string& path) const;
  void load_weights(const std::string& path) const;

  // The architecture as JSON, as Keras 2.15 writes and reads it. models::model_from_json makes the
  // model again, without its weights.
  // Errors (all name the layer): Unimplemented (no configuration, or a function of the program),
  // InvalidArgument (a text that is not UTF-8; as LayerHandle::get_config; models nested deeper
  // than what is read again, some sixty Sequentials in each other), what a get_config throws.
  std::string to_json() const;
  // Writes the whole model into the directory `path`: its architecture, weights, optimizer and what
  // compile said. models::load_model makes it again. What a kill leaves at any moment is the model
  // saved before or this one. With several tasks COLLECTIVE; one writes. See docs/fit.md.
  // Errors: as to_json and Checkpoint::write; AlreadyExists (with .overwrite = false).
  void save(const std::string& path, const SaveOptions& options = {}) const;

 protected:
  ModelHandle(Unnamed unnamed, std::shared_ptr<Model> model)
      : LayerHandle(unnamed, std::move(model)) {}

 private:
  Model& model() const { return *static_cast<Model*>(get()); }
};

}  // namespace keras

namespace internal {
// The names of a model's layers in checkpoints, as Keras gives them: "layer-0", "layer-1", ...; the
// k-th layer with weights is also "layer_with_weights-k". A layer counts if its weights exist by
// now, or if it has learned a vocabulary.
std::vector<train::TrackableChild> number_layers(const std::vector<keras::layers::Layer*>& layers);
}  // namespace internal
}  // namespace cohort
