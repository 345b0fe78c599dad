#include "cohort/core/files/simulated_disk.h"

#include <algorithm>
#include <functional>
#include <random>
#include <utility>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

using NodePtr = std::shared_ptr<SimulatedNode>;

constexpr size_t kSectorBytes = 512;

// Names from the root on.
std::vector<std::string> steps(std::string_view path) {
  std::vector<std::string> result;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (name == "..") {
      if (!result.empty()) result.pop_back();
    } else if (!name.empty() && name != ".") {
      result.emplace_back(name);
    }
  }
  return result;
}

NodePtr walk(NodePtr node, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto entry = node->entries.find(name);
    if (entry == node->entries.end()) return nullptr;
    node = entry->second;
  }
  return node;
}

void visit_files(const SimulatedNode& node, const std::string& path,
                 const std::function<void(const std::string&, const SimulatedNode&)>& visit) {
  if (!node.directory) return visit(path, node);
  for (const auto& [name, child] : node.entries) visit_files(*child, str(path, "/", name), visit);
}

NodePtr look_up(const SimulatedNode::Entries& entries, const std::string& name) {
  const auto entry = entries.find(name);
  return entry == entries.end() ? nullptr : entry->second;
}

// Copies nodes, each once, however many names lead to it.
class Copier {
 public:
  NodePtr copy(const NodePtr& from) {
    NodePtr& to = copies_[from.get()];
    if (to) return to;
    NodePtr result = to = std::make_shared<SimulatedNode>(*from);
    result->locked = false;
    for (auto& [name, child] : result->entries) child = copy(child);
    for (auto& [name, child] : result->synced_entries) child = copy(child);
    return result;
  }

 private:
  std::map<const SimulatedNode*, NodePtr> copies_;
};

// Copies what a power cut leaves.
class Survivors {
 public:
  explicit Survivors(const PowerCut& cut) : cut_(cut), random_(cut.seed) {}

  NodePtr of(const NodePtr& from) {
    NodePtr& to = copies_[from.get()];
    if (to) return to;
    NodePtr result = to = std::make_shared<SimulatedNode>();
    result->directory = from->directory;
    result->bytes = result->synced_bytes = content(*from);
    for (const auto& [name, child] : entries(*from)) result->entries[name] = of(child);
    result->synced_entries = result->entries;
    return result;
  }

 private:
  bool happened(Unsynced choice) {
    return choice == Unsynced::kKept || (choice == Unsynced::kMixed && random_() % 2 == 0);
  }

  SimulatedNode::Entries entries(const SimulatedNode& node) {
    SimulatedNode::Entries all = node.synced_entries;
    all.insert(node.entries.begin(), node.entries.end());
    SimulatedNode::Entries result;
    for (const auto& [name, any] : all) {
      const NodePtr before = look_up(node.synced_entries, name);
      const NodePtr now = look_up(node.entries, name);
      const NodePtr chosen = before == now || happened(cut_.entries) ? now : before;
      if (chosen) result[name] = chosen;
    }
    return result;
  }

  std::string content(const SimulatedNode& node) {
    const std::string& before = node.synced_bytes;
    const std::string& now = node.bytes;
    if (before == now || cut_.content == Unsynced::kLost || node.pages_dropped) return before;
    if (cut_.content == Unsynced::kKept) return now;
    const size_t least = std::min(before.size(), now.size());
    const size_t most = std::max(before.size(), now.size());
    std::string result(least + random_() % (most - least + 1), '\0');
    for (size_t at = 0; at < result.size(); at += kSectorBytes) {
      const uint64_t choice = random_() % 3;
      const std::string& source = choice == 0 ? now : before;
      if (choice == 2 && at >= before.size()) continue;  // zeros, where nothing was before
      if (at >= source.size()) continue;
      const size_t count = std::min({kSectorBytes, result.size() - at, source.size() - at});
      result.replace(at, count, source, at, count);
    }
    return result;
  }

  const PowerCut cut_;
  std::mt19937_64 random_;
  std::map<const SimulatedNode*, NodePtr> copies_;
};

}  // namespace

SimulatedDisk::SimulatedDisk() : root_(std::make_shared<SimulatedNode>()) {
  root_->directory = true;
}

NodePtr SimulatedDisk::find(std::string_view path) const { return walk(root_, steps(path)); }

SimulatedPlace SimulatedDisk::place(std::string_view path) const {
  std::vector<std::string> names = steps(path);
  SimulatedPlace place;
  if (!names.empty()) {
    place.name = std::move(names.back());
    names.pop_back();
  }
  const NodePtr node = walk(root_, names);
  if (node && node->directory) place.directory = node;
  return place;
}

uint64_t SimulatedDisk::used_bytes() const {
  uint64_t used = 0;
  visit_files(*root_, "", [&](const std::string&, const SimulatedNode& node) {
    used += std::max<uint64_t>(node.bytes.size(), node.reserved_bytes);
  });
  return used;
}

std::vector<std::string> SimulatedDisk::file_paths() const {
  std::vector<std::string> paths;
  visit_files(*root_, "",
              [&](const std::string& path, const SimulatedNode&) { paths.push_back(path); });
  std::sort(paths.begin(), paths.end());
  return paths;
}

SimulatedDisk SimulatedDisk::copy() const {
  SimulatedDisk result;
  result.root_ = Copier().copy(root_);
  return result;
}

SimulatedDisk SimulatedDisk::after(const PowerCut& cut) const {
  SimulatedDisk result;
  result.root_ = Survivors(cut).of(root_);
  return result;
}

}  // namespace cohort::internal
