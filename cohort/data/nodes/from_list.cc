#include "cohort/data/nodes/from_list.h"

#include "cohort/core/text.h"
#include "cohort/data/dataset.h"
#include "cohort/data/iteration/composite_rows.h"

namespace cohort::internal {
namespace {
using ListPtr = std::shared_ptr<const std::vector<Structure>>;

class ListIndexed final : public IndexedData {
 public:
  explicit ListIndexed(ListPtr elements) : elements_(std::move(elements)) {}
  int64_t size() const override { return std::ssize(*elements_); }
  void read(int64_t position, Structure& out) override {
    out = (*elements_)[static_cast<size_t>(position)];
  }

 private:
  const ListPtr elements_;
};

class ListNode final : public DataNode {
 public:
  ListNode(std::string name, ListPtr elements, DataNodePtr like)
      : DataNode(std::move(name), {}), elements_(std::move(elements)), like_(std::move(like)) {}

  Attributes attributes() const override { return {{"elements", str(cardinality())}}; }
  DataNodePtr with_inputs(std::vector<DataNodePtr>) const override {
    return std::make_shared<ListNode>(name(), elements_, like_);
  }
  StructureSpec element_spec() const override {
    if (like_) return like_->element_spec();
    StructureSpec spec = StructureSpec::of(elements_->front());
    for (const Structure& element : *elements_) {
      spec = spec.most_specific_compatible(StructureSpec::of(element));
    }
    return spec;
  }
  bool guesses_spec() const override { return like_ && like_->guesses_spec(); }
  int64_t cardinality() const override { return std::ssize(*elements_); }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext&) const override {
    return std::make_unique<IndexedIterator>(make_indexed());
  }
  std::unique_ptr<IndexedData> make_indexed() const override {
    return std::make_unique<ListIndexed>(elements_);
  }
  SourceKind source() const override { return SourceKind::kUnshardable; }

 private:
  const ListPtr elements_;
  const DataNodePtr like_;
};

}  // namespace

DataNodePtr make_list(std::string name, std::vector<Structure> elements, DataNodePtr like) {
  return std::make_shared<ListNode>(
      std::move(name), std::make_shared<const std::vector<Structure>>(std::move(elements)),
      std::move(like));
}

}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::from_list(std::vector<Structure> elements) {
  if (elements.empty()) throw InvalidArgumentError("from_list: there are no elements");
  for (Structure& element : elements) {
    // Detached: reading data never records for gradients.
    element = internal::with_marked_sparse(std::move(element)).map([](const Leaf& leaf) -> Leaf {
      return leaf.is_tensor() && leaf.tensor().defined() ? Leaf(leaf.tensor().detach()) : leaf;
    });
  }
  StructureSpec spec = StructureSpec::of(elements[0]);
  for (size_t i = 1; i < elements.size(); ++i) {
    const StructureSpec other = StructureSpec::of(elements[i]);
    try {
      spec = spec.most_specific_compatible(other);
    } catch (const InvalidArgumentError& error) {
      throw InvalidArgumentError(internal::str("from_list: element ", i, " is ", other,
                                               ", those before it are ", spec, ": ", error.what(),
                                               "; all elements have one form and its dtypes"));
    }
  }
  return Dataset(internal::make_list("from_list", std::move(elements)));
}

}  // namespace cohort::data
