#include "cohort/keras/layers/lookup/lookup_state.h"

#include <ATen/ops/empty.h>

#include <utility>

namespace cohort::internal {
namespace {

using train::CheckpointValue;
using train::RestoreSource;

constexpr const char* kTableKeys = "table-keys";
constexpr const char* kTableValues = "table-values";

class Vocabulary final : public train::Trackable {
 public:
  explicit Vocabulary(LookupHooks hooks) : hooks_(std::move(hooks)) {}

  bool has_checkpoint_values() const override { return true; }
  std::vector<CheckpointValue> checkpoint_values() override {
    const std::optional<StringTensor> tokens = hooks_.vocabulary();
    if (!tokens) return {};
    const Leaf no_keys =
        hooks_.keys_are_text ? Leaf(StringTensor()) : Leaf(at::empty({0}, at::dtype(int64)));
    return {{.attribute = kTableKeys, .parts = {{no_keys}}},
            {.attribute = kTableValues, .parts = {{Leaf(at::empty({0}, at::dtype(int64)))}}},
            {.attribute = kVocabularyAttribute, .parts = {{Leaf(*tokens)}}}};
  }
  void prepare_restore(RestoreSource& source) override {
    pass_over_table(source);
    if (!source.shape(kVocabularyAttribute)) return;  // Keras's, or one that had not learned
    source.on_commit(hooks_.prepare_vocabulary(source.read_strings(kVocabularyAttribute)));
  }

 private:
  void pass_over_table(RestoreSource& source) const {
    if (source.shape(kTableKeys)) {
      if (hooks_.keys_are_text) {
        source.read_strings(kTableKeys);
      } else {
        source.read(kTableKeys, *source.shape(kTableKeys), int64, [](const Tensor&) {});
      }
    }
    if (source.shape(kTableValues)) {
      source.read(kTableValues, *source.shape(kTableValues), int64, [](const Tensor&) {});
    }
  }

  LookupHooks hooks_;
};

class IdfWeights final : public train::Trackable {
 public:
  explicit IdfWeights(LookupHooks hooks) : hooks_(std::move(hooks)) {}

  bool has_checkpoint_values() const override { return true; }
  std::vector<CheckpointValue> checkpoint_values() override {
    return {{.attribute = train::kVariableValue,
             .full_name = "idf_weights",
             .parts = {{Leaf(hooks_.idf_weights())}}}};
  }
  void prepare_restore(RestoreSource& source) override {
    const auto shape = source.shape(train::kVariableValue);
    if (!shape) return;
    source.read(train::kVariableValue, *shape, float32,
                [this](const Tensor& value) { hooks_.set_idf_weights(value); });
  }

 private:
  LookupHooks hooks_;
};

}  // namespace

LookupState::LookupState(bool has_vocabulary, bool has_idf_weights, LookupHooks hooks) {
  if (has_vocabulary) named_.emplace_back("token_counts", std::make_unique<Vocabulary>(hooks));
  if (has_idf_weights) named_.emplace_back("idf_weights", std::make_unique<IdfWeights>(hooks));
}

std::vector<train::TrackableChild> LookupState::children() const {
  std::vector<train::TrackableChild> children;
  for (const auto& [name, object] : named_) children.push_back({name, object.get()});
  return children;
}

}  // namespace cohort::internal
