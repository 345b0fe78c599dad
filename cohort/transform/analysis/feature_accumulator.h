// Accumulators of numbers with a state for each feature: each position within a row, or one for all
// values.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"
#include "cohort/transform/analysis/numeric_column.h"

namespace cohort::internal {

// Some features of a saved state, from number `first` on.
struct SavedFeatures {
  std::string form;
  uint64_t first = 0;
  std::vector<std::string> states;
};
void fields(auto& f, SavedFeatures& saved) {
  f(1, saved.form);
  f(2, saved.first);
  f(3, saved.states);
}

// Feature has add(const T* values, count, stride), merge(const Feature&), saved() and
// add_saved(bytes, what).
template <class Feature>
class FeatureAccumulator : public Accumulator {
 protected:
  FeatureAccumulator(std::string name, size_t num_inputs, const NumericOptions& options,
                     const Feature& empty = {})
      : Accumulator(std::move(name), num_inputs), form_(options), empty_(empty) {}

  const NumericForm& form() const { return form_; }

  void add_columns(std::span<const ColumnBatch> columns) override {
    try {
      const NumericValues values = form_.take(columns[0]);
      grow();
      add_values(columns, values, features_);
    } catch (const InvalidArgumentError& error) {
      fail(error.what());
    }
  }
  virtual void add_values(std::span<const ColumnBatch> /*columns*/, const NumericValues& values,
                          std::vector<Feature>& features) {
    // Blocks of rows that stay in the cache while one feature after another reads its values.
    const int64_t block =
        std::max<int64_t>(kBlockValues / std::max<int64_t>(values.features, 1), 1);
    visit_values(values, [&](const auto* first) {
      for (int64_t begin = 0; begin < values.rows; begin += block) {
        const auto* const row = first + begin * values.features;
        const int64_t rows = std::min(block, values.rows - begin);
        for (int64_t i = 0; i < values.features; ++i) {
          features[static_cast<size_t>(i)].add(row + i, rows, values.features);
        }
      }
    });
  }

  void merge_same(Accumulator& accumulator) override {
    auto& other = static_cast<FeatureAccumulator&>(accumulator);
    try {
      form_.join(other.form_);
    } catch (const InvalidArgumentError& error) {
      fail(error.what());
    }
    if (other.features_.empty()) return;
    grow();
    for (size_t i = 0; i < features_.size(); ++i) features_[i].merge(other.features_[i]);
    other.features_.clear();
  }

  std::unique_ptr<SavedPieces> payloads() override { return std::make_unique<Pieces>(*this); }

  void add_payload(std::string_view payload, std::string_view source) override {
    const auto saved = decode_fields<SavedFeatures>(payload, source);
    form_.join_saved(saved.form, source);
    const WireReader reader(payload, source);
    const size_t count = form_.num_features();
    if (saved.first > count || saved.states.size() > count - saved.first) {
      reader.fail("has more features than a row");
    }
    if (saved.states.empty()) return;
    grow();
    for (size_t i = 0; i < saved.states.size(); ++i) {
      features_[saved.first + i].add_saved(saved.states[i], source);
    }
  }

  // One for each feature, for results: as if no row had been added, at least.
  const std::vector<Feature>& features() {
    grow();
    return features_;
  }
  // fn(feature) of each.
  template <class Function>
  auto of_features(Function fn) {
    std::vector<std::decay_t<decltype(fn(empty_))>> out;
    for (const Feature& feature : features()) out.push_back(fn(feature));
    return out;
  }

 private:
  static constexpr int64_t kBlockValues = 1 << 16;

  class Pieces final : public SavedPieces {
   public:
    explicit Pieces(const FeatureAccumulator& of) : of_(of) {}
    std::optional<std::string> next() override {
      const std::vector<Feature>& features = of_.features_;
      if (done_ && next_ == features.size()) return std::nullopt;
      done_ = true;
      SavedFeatures saved = {of_.form_.saved(), next_, {}};
      for (size_t bytes = 0; next_ < features.size() && bytes < kPieceBytes; ++next_) {
        saved.states.push_back(features[next_].saved());
        bytes += saved.states.back().size() + kFrameBytes;
      }
      return encode_fields(saved);
    }

   private:
    static constexpr size_t kFrameBytes = 4;  // around a state

    const FeatureAccumulator& of_;
    size_t next_ = 0;
    bool done_ = false;  // of an accumulator without features, the form is a piece
  };

  void grow() {
    if (features_.empty()) features_.resize(form_.num_features(), empty_);
  }

  NumericForm form_;
  const Feature empty_;
  std::vector<Feature> features_;  // none before the first rows
};

}  // namespace cohort::internal
