#include "cohort/keras/layers/recurrent/rnn.h"

#include <utility>

#include "cohort/keras/layers/base/layer_reader.h"
#include "cohort/keras/layers/base/serialized_layer.h"
#include "cohort/keras/layers/recurrent/recurrent_layer.h"
#include "cohort/keras/layers/recurrent/stacked_rnn_cells.h"

namespace cohort::keras::layers {
namespace {

template <class Fields, class Options>
void rnn_fields(Fields& field, Options& options) {
  field("return_sequences", options.return_sequences);
  field("return_state", options.return_state);
  field("go_backwards", options.go_backwards);
  field("stateful", options.stateful);
  field("unroll", options.unroll);
  field("time_major", options.time_major);
  field.unless("zero_output_for_mask", options.zero_output_for_mask, false);
}

class RnnImpl final : public RecurrentLayer {
 public:
  RnnImpl(std::shared_ptr<AbstractRNNCell> cell, const RNNOptions& options)
      : RecurrentLayer("RNN", {.name = options.name, .dtype = options.dtype}, std::move(cell),
                       {options.return_sequences, options.return_state, options.go_backwards,
                        options.stateful, options.time_major, options.zero_output_for_mask}),
        options_(options) {}

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](internal::FieldWriter& field) {
      rnn_fields(field, options_);
      field.always("cell", internal::serialized_layer(cell()));
    });
  }

  LayerHandle again(const std::string& name, bool reversed) const override {
    std::shared_ptr<AbstractRNNCell> clone = cell().clone();
    if (clone == nullptr) {
      throw InvalidArgumentError(internal::str(
          "layer '", this->name(), "' has the cell '", cell().name(), "' of class ",
          cell().class_name(),
          ", which cannot be made again for a second direction; override AbstractRNNCell::clone"));
    }
    RNNOptions options = options_;
    options.name = name;
    if (reversed) options.go_backwards = !options.go_backwards;
    return std::make_shared<RnnImpl>(std::move(clone), options);
  }

 private:
  const RNNOptions options_;
};

}  // namespace

RNN::RNN(const LayerHandle& cell, RNNOptions options)
    : LayerHandle(std::make_shared<RnnImpl>(cell_of(cell, "RNN"), options)) {}

RNN::RNN(const std::vector<LayerHandle>& cells, RNNOptions options)
    : RNN(StackedRNNCells(cells), std::move(options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

keras::layers::LayerHandle read_rnn(FieldReader& field) {
  keras::layers::RNNOptions options;
  field.common(options);
  keras::layers::rnn_fields(field, options);
  return keras::layers::RNN(layer_field(field, "cell"), std::move(options));
}

}  // namespace cohort::internal
