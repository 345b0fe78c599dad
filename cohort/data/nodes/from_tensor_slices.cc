#include "cohort/core/text.h"
#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/batch_rows.h"
#include "cohort/data/iteration/composite_rows.h"
#include "cohort/data/iteration/row_specs.h"
#include "cohort/data/iteration/stacking.h"

namespace cohort::internal {
namespace {

class SlicesIndexed final : public IndexedData {
 public:
  explicit SlicesIndexed(Structure rows) : rows_(std::move(rows)), size_(num_rows(rows_)) {}
  int64_t size() const override { return size_; }
  void read(int64_t position, Structure& out) override { out = select_row(rows_, position); }
  bool has_blocks() const override { return true; }
  void read_block(const Positions& positions, Structure& out) override {
    out = gather_rows(rows_, positions);
  }

 private:
  Structure rows_;
  int64_t size_;
};

void check_defined(const Structure& rows) {
  rows.for_each_with_path([](const std::string& path, const Leaf& leaf) {
    if (!leaf.is_tensor() || leaf.tensor().defined()) return;
    throw InvalidArgumentError(
        str("from_tensor_slices: the leaf at ", place(path), " is an undefined tensor"));
  });
}

void check_rows(const Structure& rows) {
  std::string first_path;
  int64_t first_size = -1;
  for_each_rows(rows, [&](const std::string& path, std::optional<int64_t> size) {
    if (!size) {
      throw InvalidArgumentError(
          str("from_tensor_slices: the leaf at ", place(path),
              " is a scalar, which has no rows; from_tensors makes a dataset "
              "of one element"));
    }
    if (first_size < 0) {
      first_path = path;
      first_size = *size;
    } else if (*size != first_size) {
      throw InvalidArgumentError(str("from_tensor_slices: the leaf at ", place(path), " has ",
                                     *size, " rows, but the one at ", place(first_path), " has ",
                                     first_size, "; all leaves need one size of dimension 0"));
    }
  });
  if (first_size < 0) throw InvalidArgumentError("from_tensor_slices: a structure without leaves");
}

class SlicesNode final : public DataNode {
 public:
  explicit SlicesNode(Structure rows)
      : DataNode("from_tensor_slices", {}), rows_(std::move(rows)) {}

  Attributes attributes() const override {
    return {{"rows", str(cardinality())}, {"spec", str(element_spec())}};
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr>) const override {
    return std::make_shared<SlicesNode>(rows_);
  }
  StructureSpec element_spec() const override { return row_spec(StructureSpec::of(rows_)); }
  int64_t cardinality() const override { return num_rows(rows_); }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext&) const override {
    return std::make_unique<IndexedIterator>(make_indexed());
  }
  std::unique_ptr<IndexedData> make_indexed() const override {
    return std::make_unique<SlicesIndexed>(rows_);
  }
  SourceKind source() const override { return SourceKind::kUnshardable; }
  int64_t batch_size() const override { return kSingleExamples; }

 private:
  Structure rows_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::from_tensor_slices(Structure rows) {
  internal::check_defined(rows);
  rows = internal::with_dense_vectors(internal::with_marked_sparse(rows));
  internal::check_rows(rows);
  // Detached: reading data never records for gradients.
  return Dataset(std::make_shared<internal::SlicesNode>(rows.map([](const Leaf& leaf) -> Leaf {
    return leaf.is_tensor() ? Leaf(leaf.tensor().detach()) : leaf;
  })));
}

}  // namespace cohort::data
