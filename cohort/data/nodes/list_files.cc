#include "cohort/data/nodes/list_files.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cohort/core/files/crc32c.h"
#include "cohort/core/files/file_deadline.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/graph/rewrite.h"
#include "cohort/data/records/glob.h"
#include "cohort/ops/random.h"

namespace cohort::internal {
namespace {

std::string joined(const std::vector<std::string>& patterns) {
  std::string text;
  for (const std::string& pattern : patterns) text += (text.empty() ? "" : ", ") + quoted(pattern);
  return text;
}

struct Found {
  std::vector<std::string> paths;
  std::optional<std::string> denied;  // the first directory that may not be listed
};

std::shared_ptr<const Found> list_within(const FileDeadline& deadline, const std::string& pattern) {
  const auto found = std::make_shared<Found>();
  call_within(deadline, pattern, str("listing the files that match ", quoted(pattern)),
              [found, pattern] {
                found->paths = matching_paths(posix_file_system(), pattern, &found->denied);
              });
  return found;
}

// A slice of names, that says where they are from.
class ListFilesNode final : public DataNode {
 public:
  ListFilesNode(std::vector<std::string> patterns, const std::vector<std::string>& paths)
      : DataNode("list_files", {}),
        patterns_(std::move(patterns)),
        slices_(data::Dataset::from_tensor_slices(StringTensor(paths)).node()),
        count_(static_cast<int64_t>(paths.size())) {
    for (const std::string& path : paths) {
      names_crc_ = crc32c(path.c_str(), path.size() + 1, names_crc_);
    }
  }

  // A state is of these files: others of the same number would not do.
  Attributes attributes() const override {
    return {{"patterns", joined(patterns_)}, {"files", str(count_)}, {"crc", str(names_crc_)}};
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr>) const override {
    return std::make_shared<ListFilesNode>(*this);
  }
  StructureSpec element_spec() const override { return slices_->element_spec(); }
  int64_t cardinality() const override { return count_; }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    return slices_->make_iterator(context);
  }
  std::unique_ptr<IndexedData> make_indexed() const override { return slices_->make_indexed(); }
  SourceKind source() const override { return SourceKind::kUnshardable; }
  // Once a list, of however many workers.
  bool is_first_warning() const { return !warned_->exchange(true); }

  ListFilesNode(const ListFilesNode& other)
      : DataNode("list_files", {}),
        patterns_(other.patterns_),
        slices_(other.slices_),
        count_(other.count_),
        names_crc_(other.names_crc_),
        warned_(other.warned_) {}

 private:
  const std::vector<std::string> patterns_;
  const DataNodePtr slices_;
  const int64_t count_;
  uint32_t names_crc_ = 0;
  const std::shared_ptr<std::atomic<bool>> warned_ = std::make_shared<std::atomic<bool>>(false);
};

// The list that the node shuffles without a seed; null where it is no such node.
const ListFilesNode* unseeded_shuffled_list(const DataNode& node) {
  if (node.sharding_role() != ShardingRole::kShuffle || node.inputs().size() != 1) return nullptr;
  const auto attributes = node.attributes();
  const bool seeded = std::any_of(attributes.begin(), attributes.end(),
                                  [](const auto& attribute) { return attribute.first == "seed"; });
  return seeded ? nullptr : dynamic_cast<const ListFilesNode*>(node.inputs()[0].get());
}

}  // namespace

void warn_of_unseeded_file_lists(const DataNodePtr& root) {
  if (random::get_seed()) return;
  bool found = false;
  for_each_node(root, [&](const DataNodePtr& node) {
    const ListFilesNode* list = unseeded_shuffled_list(*node);
    found = found || (list != nullptr && list->is_first_warning());
  });
  if (!found) return;
  log_warning(
      "a shuffled list of files without a seed is divided between workers: each shuffles it in its "
      "own way, so that some files are read twice and others never; give list_files a seed, or "
      "shuffle = false");
}

}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::list_files(const Paths& patterns, ListFilesOptions options) {
  std::set<std::string> found;
  std::optional<std::string> denied;
  for (const std::string& pattern : patterns.list()) {
    const auto listed =
        internal::list_within(internal::file_deadline(options.read_timeout, "list_files"), pattern);
    found.insert(listed->paths.begin(), listed->paths.end());
    if (!denied) denied = listed->denied;
  }
  if (found.empty()) internal::throw_no_match(internal::joined(patterns.list()), denied);
  const std::vector<std::string> paths(found.begin(), found.end());
  const Dataset files(std::make_shared<internal::ListFilesNode>(patterns.list(), paths));
  if (!options.shuffle) return files;
  return files.shuffle(static_cast<int64_t>(paths.size()), {.seed = options.seed});
}

}  // namespace cohort::data
