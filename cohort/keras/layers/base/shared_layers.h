// Layers that stand in several places of a model which is being written.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "cohort/keras/layers/base/layer.h"

namespace cohort::internal {

// Within one model a shared layer is written once; in models of a model it is written in each of them, and
// whoever reads them must make it once: Keras's shared_object_id.
// Thread safety: none; an object is there for the thread that made it, as long as it lives.
class SharedLayers {
 public:
  explicit SharedLayers(const keras::layers::Layer& model);
  ~SharedLayers();
  SharedLayers(const SharedLayers&) = delete;
  SharedLayers& operator=(const SharedLayers&) = delete;

  // nullptr: the calling thread writes none.
  static const SharedLayers* current();
  // Nothing: it stands in one place.
  std::optional<int64_t> number_of(const keras::layers::Layer& layer) const;

 private:
  void visit(const keras::layers::Layer& layer);

  // 0: met once by now.
  std::unordered_map<const keras::layers::Layer*, int64_t> numbers_;
  int64_t last_ = 0;
  const SharedLayers* const before_;
};

}  // namespace cohort::internal
