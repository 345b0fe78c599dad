// Runs layers that follow each other as one, where that gives the same result for less.
//
// Layers say by these interfaces what they can leave to the next one, take over from the one
// before, or leave out because nobody reads it; models ask fused_chain and know no layer by name.
#pragma once

#include <optional>
#include <span>

#include "cohort/core/structure.h"
#include "cohort/keras/activations.h"
#include "cohort/keras/layers/layer.h"
#include "cohort/keras/layers/window.h"

namespace cohort::internal {

// How a layer's call ends: a bias for each channel is added, then an activation applied.
struct Epilogue {
  Tensor bias;  // [channels]; undefined where there is none
  const keras::activations::Activation* activation;
};

// A layer that can leave its epilogue to the next.
class HasEpilogue {
 public:
  virtual ~HasEpilogue() = default;
  virtual const keras::activations::Activation& final_activation() const = 0;
  virtual Tensor call_without_epilogue(const Tensor& input) = 0;
  // For a built layer.
  virtual Epilogue epilogue() const = 0;
};

// A layer that commutes with epilogues, and is cheaper before than after them.
class TakesEpilogue {
 public:
  virtual ~TakesEpilogue() = default;
  // Whether values and gradients stay the same.
  virtual bool commutes_with(const keras::activations::Activation& activation) const = 0;
  virtual Tensor call_with_epilogue(const Tensor& input, const Epilogue& epilogue) = 0;
};

// A layer whose output pixels come from windows of its input image, [batch, height, width,
// channels].
class SlidesWindow {
 public:
  virtual ~SlidesWindow() = default;
  // Missing where windows reach over the border.
  virtual std::optional<Window> inner_window() const = 0;
};

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
  // Shapes: ids [batch, length] -> [batch, row]. Missing where that would cost more than the rows. The
  // last bits may differ from those of the rows' mean.
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
  // A call with the product's value, which it need not compute: where the matrix has few columns, it
  // multiplies from the right. The last bits may differ from those of a call.
  virtual Tensor call_on_product(const Product& input) = 0;
};

// How many layers, from the first on, call_chain can run together; 0: none. They may be unbuilt.
size_t fused_chain(std::span<keras::layers::Layer* const> layers);

// Runs such a chain, each layer as by operator(): built, checked, its losses collected.
// Errors: as Layer::operator().
Structure call_chain(std::span<keras::layers::Layer* const> chain, const Structure& inputs,
                     const keras::CallOptions& options);

}  // namespace cohort::internal
