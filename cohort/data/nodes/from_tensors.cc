#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/composite_rows.h"

namespace cohort::internal {
namespace {

class TensorsIndexed final : public IndexedData {
 public:
  explicit TensorsIndexed(Structure element) : element_(std::move(element)) {}
  int64_t size() const override { return 1; }
  void read(int64_t, Structure& out) override { out = element_; }

 private:
  Structure element_;
};

class TensorsNode final : public DataNode {
 public:
  explicit TensorsNode(Structure element)
      : DataNode("from_tensors", {}), element_(std::move(element)) {}

  Attributes attributes() const override { return {{"spec", str(element_spec())}}; }
  DataNodePtr with_inputs(std::vector<DataNodePtr>) const override {
    return std::make_shared<TensorsNode>(element_);
  }
  StructureSpec element_spec() const override { return StructureSpec::of(element_); }
  int64_t cardinality() const override { return 1; }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext&) const override {
    return std::make_unique<IndexedIterator>(make_indexed());
  }
  std::unique_ptr<IndexedData> make_indexed() const override {
    return std::make_unique<TensorsIndexed>(element_);
  }
  SourceKind source() const override { return SourceKind::kUnshardable; }

 private:
  Structure element_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::from_tensors(Structure element) {
  // Detached: reading data never records for gradients.
  return Dataset(std::make_shared<internal::TensorsNode>(
      internal::with_marked_sparse(element).map([](const Leaf& leaf) -> Leaf {
        return leaf.is_tensor() && leaf.tensor().defined() ? Leaf(leaf.tensor().detach()) : leaf;
      })));
}

}  // namespace cohort::data
