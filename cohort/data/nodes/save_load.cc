#include "cohort/data/dataset.h"
#include "cohort/data/graph/graph.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/storage/element_file.h"

namespace cohort::internal {
namespace {

// The one file of a directory that save() wrote.
std::string elements_path(const std::string& directory) { return join_path(directory, "elements"); }

class LoadedElements final : public IndexedData {
 public:
  explicit LoadedElements(std::shared_ptr<const ElementFile> file) : file_(std::move(file)) {}
  int64_t size() const override { return file_->size(); }
  void read(int64_t position, Structure& out) override { out = file_->read(position); }

 private:
  std::shared_ptr<const ElementFile> file_;
};

class LoadNode final : public DataNode {
 public:
  LoadNode(std::string path, std::shared_ptr<const ElementFile> file)
      : DataNode("load", {}), path_(std::move(path)), file_(std::move(file)) {}

  Attributes attributes() const override { return {{"path", path_}}; }
  DataNodePtr with_inputs(std::vector<DataNodePtr>) const override {
    return std::make_shared<LoadNode>(path_, file_);
  }
  StructureSpec element_spec() const override { return file_->info().spec; }
  int64_t cardinality() const override { return file_->size(); }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext&) const override {
    return std::make_unique<IndexedIterator>(make_indexed());
  }
  std::unique_ptr<IndexedData> make_indexed() const override {
    return std::make_unique<LoadedElements>(file_);
  }
  SourceKind source() const override { return SourceKind::kUnshardable; }

 private:
  std::string path_;
  std::shared_ptr<const ElementFile> file_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

void Dataset::save(const std::string& path) const {
  internal::FileSystem& files = internal::posix_file_system();
  files.make_directories(path);
  internal::ElementFileWriter writer(files, internal::elements_path(path));
  for (const Structure& element : *this) writer.append(element);
  writer.finish({.graph = internal::describe_graph(*node_), .start = "", .spec = element_spec()});
}

Dataset Dataset::load(const std::string& path) {
  auto file = std::make_shared<const internal::ElementFile>(internal::posix_file_system(),
                                                            internal::elements_path(path));
  return Dataset(std::make_shared<internal::LoadNode>(path, std::move(file)));
}

}  // namespace cohort::data
