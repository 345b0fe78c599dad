// StackedRNNCells for sources of layers; programs have rnn_cells.h.
#pragma once

#include <memory>

#include "cohort/keras/layers/base/layer_handle.h"
#include "cohort/keras/layers/recurrent/abstract_rnn_cell.h"

namespace cohort::keras::layers {

// The cell behind a handle. Errors: InvalidArgument (another layer; `user` takes cells).
std::shared_ptr<AbstractRNNCell> cell_of(const LayerHandle& cell, const char* user);

}  // namespace cohort::keras::layers
