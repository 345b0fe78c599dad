// Two layers as one where that costs less: a lookup of rows, and the mean of those of each sequence.
// Layers say by these interfaces that they can; models ask can_fuse and know no layer by name.
#pragma once

#include "cohort/core/structure.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::internal {

// A layer that looks rows up, of which the next one may want the means alone.
class LooksUpRows {
 public:
  virtual ~LooksUpRows() = default;
  // The mean of each sequence's rows. Shapes: ids [batch, length] -> [batch, row]. Undefined where that
  // would cost more than the rows. The last bits may differ from those of the rows' mean.
  virtual Tensor mean_of_rows(const Tensor& ids) = 0;
  // Shapes: ids [..] -> [.., row].
  virtual Tensor look_up(const Tensor& ids) = 0;
};

// A layer that gives the mean of each sequence, [batch, length, row] -> [batch, row].
class AveragesSequences {
 public:
  virtual ~AveragesSequences() = default;
};

// They may be unbuilt.
bool can_fuse(const keras::layers::Layer& first, const keras::layers::Layer& second);

// Runs such a pair, each layer as by operator(): built, checked, its losses collected.
// Errors: as Layer::operator().
Structure call_fused(keras::layers::Layer& first, keras::layers::Layer& second,
                     const Structure& inputs, const keras::CallOptions& options);

}  // namespace cohort::internal
