#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/data/graph/graph.h"
#include "cohort/data/iteration/stacking.h"
#include "cohort/data/storage/cache_store.h"
#include "cohort/data/storage/element_file.h"

namespace cohort::internal {
namespace {

class FileContents final : public CacheContents {
 public:
  explicit FileContents(std::shared_ptr<const ElementFile> file) : file_(std::move(file)) {}
  const std::string& start() const override { return file_->info().start; }
  int64_t size() const override { return file_->size(); }
  void read(int64_t position, Structure& out) const override { out = file_->read(position); }

 private:
  std::shared_ptr<const ElementFile> file_;
};

class FileStore final : public CacheStore, public std::enable_shared_from_this<FileStore> {
 public:
  FileStore(std::string path, DataNodePtr input)
      : path_(std::move(path)), input_(std::move(input)) {}

  std::shared_ptr<const CacheContents> contents() override;
  std::unique_ptr<CacheFiller> fill(const std::string& start) override;

  const std::string& path() const { return path_; }
  const DataNode& input() const { return *input_; }

 private:
  const std::string path_;
  const DataNodePtr input_;
  std::mutex mutex_;
  std::shared_ptr<const CacheContents> contents_;
};

class FileFiller final : public CacheFiller {
 public:
  FileFiller(std::shared_ptr<FileStore> store, std::string start)
      : store_(std::move(store)),
        start_(std::move(start)),
        writer_(posix_file_system(), store_->path()) {}

  void add(const Structure& element) override { writer_.append(element); }
  void add_block(const Structure& block, int64_t count) override {
    for (int64_t row = 0; row < count; ++row) writer_.append(select_row(block, row));
  }
  // Reads the file it has put there: another process may have put its own over it.
  std::shared_ptr<const CacheContents> finish(std::vector<CacheMark>) override {
    // The spec is the input node's to know; finding it may call user functions.
    writer_.finish({.graph = describe_graph(store_->input()), .start = start_, .spec = {}});
    return store_->contents();
  }

 private:
  std::shared_ptr<FileStore> store_;
  std::string start_;
  ElementFileWriter writer_;
};

// A file that was not written to its end is as good as none.
std::shared_ptr<const CacheContents> FileStore::contents() {
  const std::lock_guard lock(mutex_);
  if (contents_) return contents_;
  std::shared_ptr<const ElementFile> file;
  try {
    file = std::make_shared<const ElementFile>(posix_file_system(), path_);
  } catch (const NotFoundError&) {
    return nullptr;
  } catch (const DataLossError& error) {
    log_warning("cache: the file is written anew, since it cannot be used: ", error.what());
    return nullptr;
  }
  if (const auto difference = first_graph_difference(file->info().graph, describe_graph(*input_))) {
    throw InvalidArgumentError(str("cache: file ", quoted(path_), " holds the elements of another ",
                                   "pipeline: ", *difference, "; remove it, or name another file"));
  }
  contents_ = std::make_shared<const FileContents>(std::move(file));
  return contents_;
}

std::unique_ptr<CacheFiller> FileStore::fill(const std::string& start) {
  return std::make_unique<FileFiller>(shared_from_this(), start);
}

}  // namespace

std::shared_ptr<CacheStore> make_file_cache(std::string path, DataNodePtr input) {
  return std::make_shared<FileStore>(std::move(path), std::move(input));
}

}  // namespace cohort::internal
