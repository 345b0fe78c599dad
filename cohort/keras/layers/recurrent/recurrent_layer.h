// The layer around a cell: it takes a tuple of sequences and states apart and puts one together.
// For sources only.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/keras/base/replica_tensors.h"
#include "cohort/keras/layers/recurrent/cell.h"

namespace cohort::keras::layers {

class RecurrentLayer : public Layer, public internal::DescribesOperation {
 public:
  struct Options {
    bool return_sequences;
    bool return_state;
    bool go_backwards;
    bool stateful;
    bool time_major = false;
    bool zeros_where_masked = false;  // see Pass
  };
  RecurrentLayer(const char* class_name, LayerOptions layer_options,
                 std::shared_ptr<AbstractRNNCell> cell, const Options& options);

  internal::LayerOperation operation(bool training) const override;
  const AbstractRNNCell& cell() const { return *cell_; }
  const Options& options() const { return options_; }
  // A new layer like this one, perhaps in the other direction. Errors: InvalidArgument (its cell
  // cannot be made again).
  virtual LayerHandle again(const std::string& name, bool reversed) const = 0;
  // For Bidirectional.
  void set_zeros_where_masked(bool zeros) { options_.zeros_where_masked = zeros; }
  void reset_states() override { kept_.clear_all(); }

 protected:
  void build(const std::vector<Shape>& input_shapes) override;
  Structure call(const Structure& inputs, const CallOptions& call_options) override;

 private:
  bool takes(const std::vector<Shape>& shapes) const;
  Pass pass_over(const std::vector<Tensor>& tensors, const Tensor& mask, bool training) const;
  // The state of the batch before, for so many rows; none where there is none.
  // Errors: InvalidArgument (it had another number of rows).
  std::vector<Tensor> kept_state(int64_t rows) const;
  void keep_state(const std::vector<Tensor>& state);

  const std::shared_ptr<AbstractRNNCell> cell_;
  Options options_;
  internal::ReplicaTensors kept_;  // with `stateful`: the state of the latest batch
};

// In the order in which Keras writes them.
template <class Fields, class Units, class Options>
void recurrent_fields(Fields& field, Units& units, Options& options) {
  field("return_sequences", options.return_sequences);
  field("return_state", options.return_state);
  field("go_backwards", options.go_backwards);
  field("stateful", options.stateful);
  field.without_effect("unroll", false);
  field.always("time_major", false);
  cell_fields(field, units, options);
  field.always("activity_regularizer", nullptr);
}

// The layers with a cell of their own. Recurrent: the handle.
template <class Recurrent, class CellType, class OwnOptions>
class RecurrentOf final : public RecurrentLayer {
 public:
  RecurrentOf(const char* class_name, int64_t units, const OwnOptions& options)
      : RecurrentLayer(class_name, {.name = options.name, .dtype = options.dtype},
                       std::make_shared<CellType>(units, options, CellUse{.maker = class_name}),
                       {options.return_sequences, options.return_state, options.go_backwards,
                        options.stateful}),
        units_(units),
        options_(options) {}

  std::optional<Config> get_config() const override {
    return internal::layer_config(
        *this, [this](internal::FieldWriter& field) { recurrent_fields(field, units_, options_); });
  }
  LayerHandle again(const std::string& name, bool reversed) const override {
    OwnOptions options = options_;
    options.name = name;
    if (reversed) options.go_backwards = !options.go_backwards;
    return Recurrent(units_, std::move(options));
  }

 private:
  const int64_t units_;
  const OwnOptions options_;
};

template <class Recurrent, class Options>
LayerHandle read_recurrent(internal::FieldReader& field) {
  int64_t units = 0;
  Options options;
  field.common(options);
  recurrent_fields(field, units, options);
  return Recurrent(units, std::move(options));
}

}  // namespace cohort::keras::layers
