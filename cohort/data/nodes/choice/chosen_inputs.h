// Reading several datasets in an order that something else chooses: choose_from_datasets and
// sample_from_datasets.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/data/graph/node.h"

namespace cohort::internal {

// Thread safety: none.
class Choices {
 public:
  virtual ~Choices() = default;
  // The index of the dataset that is read next; nothing at the end. `ended`: those that have none
  // left, which may be chosen nevertheless: then another choice follows.
  virtual std::optional<size_t> next(const std::vector<bool>& ended) = 0;
  virtual void rewind(uint64_t epoch) = 0;
  // The position, as DataIterator's.
  virtual IteratorState save() = 0;
  virtual void restore(const IteratorState& state) = 0;
};

class ChosenIterator final : public DataIterator {
 public:
  // `stop_on_empty`: the first choice of a dataset that has ended is the end.
  ChosenIterator(std::vector<std::unique_ptr<DataIterator>> inputs,
                 std::unique_ptr<Choices> choices, bool stop_on_empty);

  bool next(Structure& out) override;
  std::shared_ptr<const std::string> last_origin() const override;
  void rewind(uint64_t epoch) override;
  IteratorState save() override;
  void restore(const IteratorState& state) override;

 private:
  std::vector<std::unique_ptr<DataIterator>> inputs_;
  std::unique_ptr<Choices> choices_;
  const bool stop_on_empty_;
  std::vector<bool> ended_;  // the inputs
  size_t last_ = 0;          // the input that was read last
  bool over_ = false;
};

// A node whose elements are those of its first `num_datasets` inputs in some order.
class ChosenNode : public DataNode {
 public:
  // Errors: InvalidArgument (the datasets' elements differ in form or dtype).
  ChosenNode(std::string name, std::vector<DataNodePtr> inputs, size_t num_datasets,
             bool stop_on_empty);

  StructureSpec element_spec() const override;
  bool guesses_spec() const override { return !known_spec_.has_value(); }
  int64_t batch_size() const override;

 protected:
  size_t num_datasets() const { return num_datasets_; }
  bool stop_on_empty() const { return stop_on_empty_; }
  // The cardinality, where choices do not end.
  int64_t endless_cardinality() const;
  std::unique_ptr<DataIterator> chosen_by(std::unique_ptr<Choices> choices,
                                          const IteratorContext& context) const;

 private:
  bool datasets_guess() const;
  StructureSpec joined() const;

  const size_t num_datasets_;
  const bool stop_on_empty_;
  std::optional<StructureSpec> known_spec_;
};

}  // namespace cohort::internal
