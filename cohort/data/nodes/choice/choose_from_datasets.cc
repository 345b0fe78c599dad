#include "cohort/core/error_context.h"
#include "cohort/data/dataset.h"
#include "cohort/data/functions/answers.h"
#include "cohort/data/nodes/choice/chosen_inputs.h"

namespace cohort::internal {
namespace {

// The elements of a dataset of indices.
class ReadChoices final : public Choices {
 public:
  ReadChoices(std::unique_ptr<DataIterator> indices, size_t num_datasets)
      : indices_(std::move(indices)), num_datasets_(static_cast<int64_t>(num_datasets)) {}

  std::optional<size_t> next(const std::vector<bool>&) override {
    const int64_t position = position_++;
    Structure element;
    if (!indices_->next(element)) return std::nullopt;
    try {
      const int64_t choice = integer_of(element, "the choice is ");
      if (choice >= 0 && choice < num_datasets_) return static_cast<size_t>(choice);
      throw InvalidArgumentError(str("the choice is ", choice, "; with ", num_datasets_,
                                     " datasets it must be in [0, ", num_datasets_, ")"));
    } catch (...) {
      rethrow_with_context(str("choose_from_datasets: element ", position, " of choice_dataset"));
    }
  }
  void rewind(uint64_t epoch) override {
    position_ = 0;
    indices_->rewind(epoch);
  }
  IteratorState save() override {
    IteratorState state;
    state.set_int("position", position_);
    state.set_child("input", indices_->save());
    return state;
  }
  void restore(const IteratorState& state) override {
    position_ = state.get_int("position", 0, kMostElements);
    indices_->restore(state.child("input"));
  }

 private:
  std::unique_ptr<DataIterator> indices_;
  const int64_t num_datasets_;
  int64_t position_ = 0;
};

// The last input is the dataset of indices.
class ChooseNode final : public ChosenNode {
 public:
  ChooseNode(std::vector<DataNodePtr> inputs, bool stop_on_empty)
      : ChosenNode("choose_from_datasets", inputs, inputs.size() - 1, stop_on_empty) {
    if (choices().guesses_spec()) return;  // other elements may look otherwise
    const StructureSpec spec = choices().element_spec();
    const bool fits = spec.is_leaf() && !spec.leaf().is_string() &&
                      c10::isIntegralType(spec.leaf().dtype(), /*includeBool=*/false) &&
                      (!spec.leaf().shape() || spec.leaf().shape()->empty());
    if (fits) return;
    throw InvalidArgumentError(str("choose_from_datasets: the elements of choice_dataset are ",
                                   spec, "; they must be integer scalars, int64 best"));
  }

  Attributes attributes() const override {
    return {{"stop_on_empty_dataset", stop_on_empty() ? "true" : "false"}};
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<ChooseNode>(std::move(inputs), stop_on_empty());
  }
  int64_t cardinality() const override {
    const int64_t choices = this->choices().cardinality(), endless = endless_cardinality();
    if (choices == 0 || endless == 0) return 0;
    return choices == data::kInfiniteCardinality ? endless : data::kUnknownCardinality;
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    return chosen_by(
        std::make_unique<ReadChoices>(choices().make_iterator(context), num_datasets()), context);
  }

 private:
  const DataNode& choices() const { return *inputs().back(); }
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::choose_from_datasets(const std::vector<Dataset>& datasets,
                                      const Dataset& choice_dataset,
                                      ChooseFromDatasetsOptions options) {
  if (datasets.empty()) {
    throw InvalidArgumentError("choose_from_datasets: there are no datasets to choose from");
  }
  std::vector<internal::DataNodePtr> nodes;
  Options merged;
  for (const Dataset& dataset : datasets) {
    nodes.push_back(dataset.node());
    merged = merged.merged_with(dataset.options());
  }
  nodes.push_back(choice_dataset.node());
  return Dataset(
      std::make_shared<internal::ChooseNode>(std::move(nodes), options.stop_on_empty_dataset),
      merged.merged_with(choice_dataset.options()));
}

}  // namespace cohort::data
