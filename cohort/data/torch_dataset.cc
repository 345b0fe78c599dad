#include "cohort/data/torch_dataset.h"

#include "cohort/core/error_context.h"
#include "cohort/core/threads/lazy.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/composite_rows.h"

namespace cohort::internal {
namespace {

struct IndexedSource {
  int64_t size = 0;
  std::function<Structure(int64_t)> read;
};

class SourceElements final : public IndexedData {
 public:
  SourceElements(std::string name, std::shared_ptr<const IndexedSource> source)
      : name_(std::move(name)), source_(std::move(source)) {}
  int64_t size() const override { return source_->size; }
  void read(int64_t position, Structure& out) override {
    try {
      out = with_marked_sparse(source_->read(position));
    } catch (...) {
      rethrow_with_context(str(name_, ": element ", position));
    }
  }

 private:
  std::string name_;
  std::shared_ptr<const IndexedSource> source_;
};

class IndexedSourceNode final : public DataNode {
 public:
  IndexedSourceNode(std::string name, std::shared_ptr<const IndexedSource> source)
      : DataNode(std::move(name), {}), source_(std::move(source)) {}

  Attributes attributes() const override { return {{"size", str(source_->size)}}; }
  DataNodePtr with_inputs(std::vector<DataNodePtr>) const override {
    return std::make_shared<IndexedSourceNode>(name(), source_);
  }
  // Finds the spec by reading the first element.
  StructureSpec element_spec() const override {
    return spec_.get([&] {
      if (source_->size == 0) {
        throw FailedPreconditionError(
            str(name(), ": what its elements look like is unknown, since it has none"));
      }
      Structure element;
      make_indexed()->read(0, element);
      return StructureSpec::of(element);
    });
  }
  int64_t cardinality() const override { return source_->size; }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext&) const override {
    return std::make_unique<IndexedIterator>(make_indexed());
  }
  std::unique_ptr<IndexedData> make_indexed() const override {
    return std::make_unique<SourceElements>(name(), source_);
  }
  SourceKind source() const override { return SourceKind::kUnshardable; }
  int64_t batch_size() const override { return kSingleExamples; }

 private:
  std::shared_ptr<const IndexedSource> source_;
  Lazy<StructureSpec> spec_;
};

}  // namespace

data::Dataset make_indexed_source(std::string name, int64_t size,
                                  std::function<Structure(int64_t)> read) {
  auto source = std::make_shared<const IndexedSource>(IndexedSource{size, std::move(read)});
  return data::Dataset(std::make_shared<IndexedSourceNode>(std::move(name), std::move(source)));
}

}  // namespace cohort::internal
