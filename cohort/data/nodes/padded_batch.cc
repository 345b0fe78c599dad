#include "cohort/core/structure/composite.h"
#include "cohort/core/text.h"
#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/batch_rows.h"
#include "cohort/data/iteration/blocks.h"
#include "cohort/data/iteration/counting_iterator.h"
#include "cohort/data/iteration/origin.h"
#include "cohort/data/nodes/padding.h"

namespace cohort::internal {
namespace {

// Rows of RaggedTensors as the tensors that they are. Tree: Structure or StructureSpec.
template <class Tree>
Tree plain_rows(const Tree& element) {
  if (!has_composites(element)) return element;
  return map_nodes(element, [](const Tree& node) -> Tree {
    const Composite kind = composite_kind(node);
    if (kind == Composite::kNone) return node;
    if (kind == Composite::kRaggedRow) return node.items()[0].second;
    throw InvalidArgumentError(
        str("padded_batch: ", node, " cannot be padded; make it dense in a map before"));
  });
}

class PaddedBatchIterator final : public CountingIterator {
 public:
  PaddedBatchIterator(std::unique_ptr<DataIterator> input, int64_t batch_size,
                      data::PaddedBatchOptions options)
      : CountingIterator(std::move(input)), batch_size_(batch_size), options_(std::move(options)) {}

  bool next(Structure& out) override {
    std::vector<Structure> elements;
    const int64_t rows = read_counted(index_, batch_size_, [&] {
      collect(*input_, batch_size_, elements);
      return std::ssize(elements);
    });
    if (rows == 0 || (options_.drop_remainder && rows < batch_size_)) return false;
    for (Structure& element : elements) element = plain_rows(element);
    if (!padding_) padding_ = padding_values(elements[0], options_.padding_values);
    out = pad_and_stack(elements, options_.padded_shapes, *padding_,
                        Positions::run(index_ - rows, rows));
    return true;
  }
  std::shared_ptr<const std::string> last_origin() const override {
    return of_several("a batch", *input_);
  }

 private:
  int64_t batch_size_;
  data::PaddedBatchOptions options_;
  std::optional<std::vector<Leaf>> padding_;  // one a leaf
};

class PaddedBatchNode final : public UnaryNode {
 public:
  PaddedBatchNode(DataNodePtr input, int64_t batch_size, data::PaddedBatchOptions options)
      : UnaryNode("padded_batch", std::move(input)),
        batch_size_(batch_size),
        options_(std::move(options)) {
    if (batch_size < 1) {
      throw InvalidArgumentError(
          str("padded_batch: batch_size is ", batch_size, "; it must be at least 1"));
    }
    for (const auto& shape : options_.padded_shapes) {
      for (const int64_t size : shape) {
        if (size >= kUnknownDim) continue;
        throw InvalidArgumentError(str("padded_batch: a padded shape is ", shape_str(shape),
                                       "; sizes are at least 0, or kUnknownDim"));
      }
    }
    if (this->input().guesses_spec()) return;  // other elements may look otherwise
    check_padding(plain_rows(this->input().element_spec()), options_.padded_shapes,
                  options_.padding_values);
  }

  Attributes attributes() const override {
    Attributes attributes = {{"batch_size", str(batch_size_)}};
    std::string shapes;
    for (const auto& shape : options_.padded_shapes) shapes += shape_str(shape);
    if (!shapes.empty()) attributes.emplace_back("padded_shapes", shapes);
    if (options_.padding_values) {
      attributes.emplace_back("padding_values", str(*options_.padding_values));
    }
    if (options_.drop_remainder) attributes.emplace_back("drop_remainder", "true");
    return attributes;
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<PaddedBatchNode>(std::move(inputs[0]), batch_size_, options_);
  }
  StructureSpec element_spec() const override {
    const int64_t rows = options_.drop_remainder ? batch_size_ : kUnknownDim;
    const bool guessed = input().guesses_spec();
    size_t leaf = 0;
    return plain_rows(input().element_spec()).map([&](const TensorSpec& spec) {
      const size_t i = leaf++;
      const bool given = i < options_.padded_shapes.size();
      if (!given && (!guessed || !spec.shape())) return spec.with_leading_dim(rows);
      // Elements differ if their padding is not given: one says little about others.
      std::vector<int64_t> shape = given ? options_.padded_shapes[i]
                                         : std::vector<int64_t>(spec.shape()->size(), kUnknownDim);
      shape.insert(shape.begin(), rows);
      return spec.is_string() ? TensorSpec::strings(shape) : TensorSpec(shape, spec.dtype());
    });
  }
  int64_t cardinality() const override {
    const int64_t rows = input().cardinality();
    if (rows < 0) return rows;
    return num_batches(rows, batch_size_, options_.drop_remainder);
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    return std::make_unique<PaddedBatchIterator>(input().make_iterator(context), batch_size_,
                                                 options_);
  }
  bool passes_file_sharding() const override { return true; }
  int64_t batch_size() const override { return batch_size_; }

 private:
  int64_t batch_size_;
  data::PaddedBatchOptions options_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::padded_batch(int64_t batch_size, PaddedBatchOptions options) const {
  return Dataset(std::make_shared<internal::PaddedBatchNode>(node_, batch_size, std::move(options)),
                 options_);
}

}  // namespace cohort::data
