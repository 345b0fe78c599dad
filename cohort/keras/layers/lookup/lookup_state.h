// What of a lookup layer goes into a checkpoint: a vocabulary that was learned, and tf_idf's
// weights, under the names of Keras 2.15.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/structure/string_tensor.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::internal {

// The learned tokens as text, beside the counts that Keras keeps there, in a table that is empty
// whenever adapt is not running. TensorFlow wants to find that table and passes the tokens over.
inline constexpr const char* kVocabularyAttribute = "COHORT_VOCABULARY";

struct LookupHooks {
  bool keys_are_text = true;  // or int64
  // The learned tokens; nullopt: none yet.
  std::function<std::optional<StringTensor>()> vocabulary;
  // Checks a vocabulary and returns what makes it the layer's, which must not fail.
  std::function<std::function<void()>(const StringTensor&)> prepare_vocabulary;
  std::function<Tensor()> idf_weights;
  std::function<void(const Tensor&)> set_idf_weights;
};

// Children for Layer::checkpoint_children. Thread safety: none.
class LookupState {
 public:
  LookupState(bool has_vocabulary, bool has_idf_weights, LookupHooks hooks);

  std::vector<train::TrackableChild> children() const;
  bool empty() const { return named_.empty(); }

 private:
  std::vector<std::pair<std::string, std::unique_ptr<train::Trackable>>> named_;
};

}  // namespace cohort::internal
