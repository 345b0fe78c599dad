#include "cohort/train/checkpoint_restore.h"

#include <ATen/ops/empty.h>

#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/text.h"
#include "cohort/train/value_bytes.h"

namespace cohort::internal {
namespace {

using train::RestoreSource;
using train::TensorSlice;
using train::Trackable;
using train::TrackableChild;

ObjectGraph read_graph(const BundleReader& bundle) {
  if (!bundle.contains(kObjectGraphKey)) {
    throw NotFoundError(str("checkpoint '", bundle.prefix(), "' has no object graph: it was not ",
                            "saved from objects (tf.train.Checkpoint), but by variable names"));
  }
  const BundleEntry& entry = bundle.entry(kObjectGraphKey);
  if (entry.type != BundleType::kString || !entry.shape.empty()) {
    throw DataLossError(str("checkpoint '", bundle.prefix(), "': its object graph is no string"));
  }
  return parse_object_graph(bundle.read_strings(kObjectGraphKey)[0],
                            bundle_index_path(bundle.prefix()));
}

std::string list_lines(const std::vector<std::string>& lines) {
  constexpr size_t kMost = 50;
  std::string text;
  for (size_t i = 0; i < lines.size() && i < kMost; ++i) text += "\n  " + lines[i];
  if (lines.size() > kMost) text += str("\n  and ", lines.size() - kMost, " more");
  return text;
}

}  // namespace

// The values of one node; collects what is to be done when all have been read.
class RestoreSession::Source final : public RestoreSource {
 public:
  Source(const BundleReader& bundle, std::vector<std::function<void()>>& actions,
         std::set<std::string, std::less<>>& read, bool late)
      : bundle_(bundle), actions_(actions), read_(read), late_(late) {}

  void set_node(const ObjectGraph::Node& node) { node_ = &node; }

  bool has(std::string_view attribute) const override { return find(attribute) != nullptr; }
  bool late() const override { return late_; }

  Tensor read(std::string_view attribute, at::IntArrayRef shape, DType dtype) override {
    const std::string& key = checked_key(attribute, shape, dtype);
    Tensor value = at::empty(shape, dtype);
    bundle_.read(key, value.data_ptr());
    read_.insert(key);
    return value;
  }

  Tensor read_slice(std::string_view attribute, at::IntArrayRef full_shape,
                    const TensorSlice& slice, DType dtype) override {
    const std::string& key = checked_key(attribute, full_shape, dtype);
    Tensor value = at::empty(slice.length, dtype);
    bundle_.read_slice(key, slice, value.data_ptr());
    return value;  // other parts of the value may stay unread: the key is not marked
  }

  StringTensor read_strings(std::string_view attribute) override {
    const std::string& key = key_of(attribute);
    const BundleEntry& entry = bundle_.entry(key);
    if (entry.type != BundleType::kString) {
      throw InvalidArgumentError(str(readable_key(key), ": the checkpoint has ",
                                     type_name(entry.type), ", the program strings"));
    }
    StringTensor value(bundle_.read_strings(key), entry.shape);
    read_.insert(key);
    return value;
  }

  void on_commit(std::function<void()> action) override { actions_.push_back(std::move(action)); }

 private:
  const ObjectGraph::Attribute* find(std::string_view attribute) const {
    for (const auto& candidate : node_->attributes) {
      if (candidate.name == attribute) return &candidate;
    }
    return nullptr;
  }

  const std::string& key_of(std::string_view attribute) const {
    if (const auto* found = find(attribute)) return found->checkpoint_key;
    throw NotFoundError(str("checkpoint '", bundle_.prefix(), "': an object has no value ",
                            quoted(attribute)));
  }

  const std::string& checked_key(std::string_view attribute, at::IntArrayRef shape,
                                 DType dtype) const {
    const std::string& key = key_of(attribute);
    const BundleEntry& entry = bundle_.entry(key);
    if (at::IntArrayRef(entry.shape) == shape && dtype_of(entry.type) == dtype) return key;
    throw InvalidArgumentError(str(readable_key(key), ": the checkpoint has ",
                                   type_name(entry.type), " ", shape_str(entry.shape),
                                   ", the program ", dtype_name(dtype), " ", shape_str(shape)));
  }

  const BundleReader& bundle_;
  std::vector<std::function<void()>>& actions_;
  std::set<std::string, std::less<>>& read_;
  const bool late_;
  const ObjectGraph::Node* node_ = nullptr;
};

RestoreSession::RestoreSession(FileSystem& files, std::string prefix)
    : bundle_(files, std::move(prefix)),
      graph_(read_graph(bundle_)),
      holders_(graph_.nodes.size()),
      consumed_(graph_.nodes.size()) {}

RestoreSession::~RestoreSession() {
  if (!warn_) return;
  try {
    const std::vector<std::string> unused = values_without_object();
    if (!unused.empty()) {
      log_warning("values of checkpoint '", prefix(), "' were restored to no object; ",
                  "status.expect_partial() says that this is meant:", list_lines(unused));
    }
  } catch (...) {  // a warning is not worth more
  }
}

// Breadth first, so that the shortest path decides where several lead to an object.
std::vector<RestoreSession::Match> RestoreSession::match(uint32_t node, Trackable& object) {
  std::vector<Match> matches;
  std::unordered_map<const Trackable*, uint32_t> node_of;
  std::unordered_map<uint32_t, const Trackable*> object_of;
  std::deque<Match> pending = {{node, &object}};
  while (!pending.empty()) {
    const auto [id, current] = pending.front();
    pending.pop_front();
    const auto& position = RestorePosition::of(*current);
    if (position != nullptr && position->session.get() == this) continue;  // has its values
    const auto [known, first_time] = node_of.try_emplace(current, id);
    const auto [holder, free] = object_of.try_emplace(id, current);
    if (!first_time || !free || holders_[id].lock() != nullptr) {
      if (known->second != id || holder->second != current) {
        log_warning("checkpoint '", prefix(), "': two of its objects are one in this program, or ",
                    "the other way round (near object ", id, "); the first match counts");
      }
      continue;
    }
    matches.emplace_back(id, current);
    std::unordered_map<std::string_view, uint32_t> saved;
    for (const auto& child : graph_.nodes[id].children) saved.emplace(child.name, child.node);
    for (const TrackableChild& child : current->checkpoint_children()) {
      const auto found = saved.find(child.name);
      if (found != saved.end()) pending.emplace_back(found->second, child.object);
    }
  }
  return matches;
}

void RestoreSession::apply(const std::vector<Match>& matches, bool late) {
  std::vector<std::function<void()>> actions;
  std::set<std::string, std::less<>> read = {kObjectGraphKey};
  std::vector<std::string> differences;
  Source source(bundle_, actions, read, late);
  const auto has_values = [&](const Match& match) {
    return match.second->has_checkpoint_values() && !graph_.nodes[match.first].attributes.empty();
  };
  for (const Match& match : matches) {
    if (!has_values(match)) continue;
    source.set_node(graph_.nodes[match.first]);
    try {
      match.second->prepare_restore(source);
    } catch (const InvalidArgumentError& error) {
      differences.emplace_back(error.what());
    }
  }
  if (!differences.empty()) {
    throw InvalidArgumentError(str("checkpoint '", prefix(), "' does not fit this program, ",
                                   "nothing was restored:", list_lines(differences)));
  }
  if (!late) verify_unread(read);
  for (const Match& match : matches) {
    auto position = std::make_shared<RestorePosition>(
        RestorePosition{shared_from_this(), match.first, has_values(match)});
    holders_[match.first] = position;
    consumed_[match.first] = true;
    RestorePosition::of(*match.second) = std::move(position);
  }
  for (auto& action : actions) {
    action();
    action = nullptr;  // frees what it holds: values are as large as the model
  }
}

void RestoreSession::verify_unread(const std::set<std::string, std::less<>>& read) const {
  for (const auto& [name, entry] : bundle_.entries()) {
    if (read.count(name) == 0) bundle_.verify(name);
  }
}

void RestoreSession::restore(Trackable& root) {
  std::lock_guard lock(mutex_);
  apply(match(0, root), false);
}

void RestoreSession::restore_late(uint32_t parent, std::string_view name, Trackable& child) {
  std::lock_guard lock(mutex_);
  for (const auto& saved : graph_.nodes[parent].children) {
    if (saved.name == name) return apply(match(saved.node, child), true);
  }
}

std::vector<std::string> RestoreSession::objects_without_values(Trackable& root) {
  std::vector<std::string> found;
  std::unordered_set<const Trackable*> seen = {&root};
  std::deque<std::pair<std::string, Trackable*>> pending = {{"", &root}};
  while (!pending.empty()) {
    const auto [path, object] = pending.front();
    pending.pop_front();
    if (object->has_checkpoint_values()) {
      const auto& position = RestorePosition::of(*object);
      const bool restored =
          position != nullptr && position->session.get() == this && position->restored;
      if (!restored) found.push_back(path.empty() ? "the root" : path);
    }
    for (const TrackableChild& child : object->checkpoint_children()) {
      if (!seen.insert(child.object).second) continue;
      pending.emplace_back(path.empty() ? child.name : path + "/" + child.name, child.object);
    }
  }
  return found;
}

std::vector<std::string> RestoreSession::values_without_object() {
  std::lock_guard lock(mutex_);
  std::vector<std::string> found;
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (consumed_[i]) continue;
    for (const auto& attribute : graph_.nodes[i].attributes) {
      found.push_back(readable_key(attribute.checkpoint_key));
    }
  }
  return found;
}

void RestoreSession::no_warning() {
  std::lock_guard lock(mutex_);
  warn_ = false;
}

}  // namespace cohort::internal
