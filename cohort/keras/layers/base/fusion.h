// Layers as one where that costs less: a lookup of rows, the mean of those of each sequence, and a
// product with it. Layers say by these interfaces that they can; models ask fused_chain and know no
// layer by name.
#pragma once

#include <optional>
#include <span>

#include "cohort/core/structure/structure.h"
#include "cohort/keras/layers/base/layer.h"

namespace cohort::internal {

// left right, two matrices that nobody has multiplied yet.
struct Product {
  Tensor left;   // [rows, inner]
  Tensor right;  // [inner, columns]

  Tensor value() const;
};

// A layer that looks rows up, of which the next one may want the means alone.
class LooksUpRows {
 public:
  virtual ~LooksUpRows() = default;
  // The mean of each sequence's rows: the share that each distinct row has in it, and those rows.
  // Shapes: ids [batch, length] -> [batch, row]. Missing where that would cost more than the rows.
  // The last bits may differ from those of the rows' mean.
  virtual std::optional<Product> mean_of_rows(const Tensor& ids) = 0;
  // Shapes: ids [..] -> [.., row].
  virtual Tensor look_up(const Tensor& ids) = 0;
};

// A layer that gives the mean of each sequence, [batch, length, row] -> [batch, row].
class AveragesSequences {
 public:
  virtual ~AveragesSequences() = default;
};

// A layer that multiplies its input by a matrix of its own.
class MultipliesInput {
 public:
  virtual ~MultipliesInput() = default;
  // A call with the product's value, which it need not compute: where the matrix has few columns,
  // it multiplies from the right. The last bits may differ from those of a call.
  virtual Tensor call_on_product(const Product& input) = 0;
};

// How many layers, from the first on, call_chain can run together: 2, 3, or 0 for none. They may be
// unbuilt.
size_t fused_chain(std::span<keras::layers::Layer* const> layers);

// Runs such a chain, each layer as by operator(): built, checked, its losses collected.
// Errors: as Layer::operator().
Structure call_chain(std::span<keras::layers::Layer* const> chain, const Structure& inputs,
                     const keras::CallOptions& options);

}  // namespace cohort::internal
