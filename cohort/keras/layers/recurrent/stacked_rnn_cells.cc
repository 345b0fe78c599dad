#include "cohort/keras/layers/recurrent/stacked_rnn_cells.h"

#include <utility>
#include <vector>

#include "cohort/keras/layers/base/layer_reader.h"
#include "cohort/keras/layers/base/serialized_layer.h"
#include "cohort/keras/layers/recurrent/cell.h"

namespace cohort::keras::layers {

using internal::str;

std::shared_ptr<AbstractRNNCell> cell_of(const LayerHandle& cell, const char* user) {
  if (auto found = std::dynamic_pointer_cast<AbstractRNNCell>(cell.pointer())) return found;
  throw InvalidArgumentError(str(user,
                                 " takes a cell (LSTMCell, GRUCell, SimpleRNNCell, "
                                 "StackedRNNCells, or a class derived from AbstractRNNCell), "
                                 "but got '",
                                 cell.name(), "' of class ", cell.class_name()));
}

namespace {

class StackedRnnCellsImpl final : public AbstractRNNCell, public RunsSequences {
 public:
  StackedRnnCellsImpl(const std::vector<LayerHandle>& cells, const StackedRNNCellsOptions& options)
      : AbstractRNNCell("StackedRNNCells", {.name = options.name, .dtype = options.dtype}) {
    if (cells.empty()) throw InvalidArgumentError("StackedRNNCells: there are no cells");
    for (const LayerHandle& cell : cells) cells_.push_back(cell_of(cell, "StackedRNNCells"));
    track("cells", cells);
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](internal::FieldWriter& field) {
      internal::Json cells = internal::Json::array();
      for (const auto& cell : cells_) cells.push_back(internal::serialized_layer(*cell));
      field.always("cells", std::move(cells));
    });
  }

  std::vector<Shape> state_size() const override {
    std::vector<Shape> sizes;
    for (const auto& cell : cells_) {
      for (Shape& size : cell->state_size()) sizes.push_back(std::move(size));
    }
    return sizes;
  }
  Shape output_size() const override { return cells_.back()->output_size(); }
  std::vector<Tensor> get_initial_state(const Tensor& inputs) const override {
    std::vector<Tensor> states;
    for (const auto& cell : cells_) {
      for (Tensor& state : cell->get_initial_state(inputs)) states.push_back(std::move(state));
    }
    return states;
  }
  std::shared_ptr<AbstractRNNCell> clone() const override {
    std::vector<LayerHandle> clones;
    for (const auto& cell : cells_) {
      const std::shared_ptr<AbstractRNNCell> clone = cell->clone();
      if (clone == nullptr) return nullptr;
      clones.emplace_back(clone);
    }
    return std::make_shared<StackedRnnCellsImpl>(
        clones, StackedRNNCellsOptions{.dtype = dtype_policy(), .name = name()});
  }

  // A cell's steps depend on those of the cells below alone, so that each can go over the whole
  // sequence by itself.
  Run run(const Pass& pass) const override {
    Run all;
    Pass own = pass;
    size_t first = 0;
    for (const auto& cell : cells_) {
      own.state = states_of(*cell, pass.state, first);
      Run run = run_cell(*cell, own);
      all.state.insert(all.state.end(), run.state.begin(), run.state.end());
      own.sequences = run.outputs;
      all.outputs = std::move(run.outputs);
      all.last = std::move(run.last);
    }
    return all;
  }

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    Shape inputs = input_shapes[0];
    for (const auto& cell : cells_) {
      inputs[0] = 1;
      build_cell(*cell, inputs);
      inputs = cell->output_size();
      inputs.insert(inputs.begin(), 1);
    }
  }

  Step step(const Tensor& inputs, const std::vector<Tensor>& states,
            const CallOptions& options) override {
    Step all{inputs, {}};
    size_t first = 0;
    for (const auto& cell : cells_) {
      std::vector<Structure> members = {all.output};
      for (Tensor& state : states_of(*cell, states, first)) members.emplace_back(std::move(state));
      const Structure made = (*cell)(Structure::make_tuple(std::move(members)), options);
      all.output = made[0].tensor();
      for (size_t i = 1; i < made.size(); ++i) all.states.push_back(made[i].tensor());
    }
    return all;
  }

 private:
  // The states from `first` on that are the cell's; `first` is then after them.
  static std::vector<Tensor> states_of(const AbstractRNNCell& cell, const std::vector<Tensor>& all,
                                       size_t& first) {
    const auto begin = all.begin() + static_cast<int64_t>(first);
    const size_t count = cell.state_size().size();
    first += count;
    return {begin, begin + static_cast<int64_t>(count)};
  }

  std::vector<std::shared_ptr<AbstractRNNCell>> cells_;
};

}  // namespace

StackedRNNCells::StackedRNNCells(const std::vector<LayerHandle>& cells,
                                 StackedRNNCellsOptions options)
    : LayerHandle(std::make_shared<StackedRnnCellsImpl>(cells, options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

keras::layers::LayerHandle read_stacked_rnn_cells(FieldReader& field) {
  keras::layers::StackedRNNCellsOptions options;
  field.common(options);
  return keras::layers::StackedRNNCells(layers_field(field, "cells"), std::move(options));
}

}  // namespace cohort::internal
