#include "cohort/train/objects/checkpoint_restore.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/train/bundle/value_bytes.h"
#include "cohort/train/objects/pending_value.h"
#include "cohort/train/objects/restore_source.h"
#include "cohort/train/objects/saved_graph.h"
#include "cohort/train/objects/saved_kind.h"

namespace cohort::internal {
namespace {

using train::Trackable;
using train::TrackableChild;

std::string list_lines(const std::vector<std::string>& lines) {
  constexpr size_t kMost = 50;
  std::string text;
  for (size_t i = 0; i < lines.size() && i < kMost; ++i) text += "\n  " + lines[i];
  if (lines.size() > kMost) text += str("\n  and ", lines.size() - kMost, " more");
  return text;
}

// Errors: InvalidArgument (the node's object is of another kind).
void check_kind(const Trackable& object, const ObjectGraph& graph, uint32_t node) {
  const auto* kind = dynamic_cast<const SavedKind*>(&object);
  if (kind == nullptr) return;
  std::vector<SavedChild> children;
  for (const ObjectGraph::Child& child : graph.nodes[node].children) {
    const ObjectGraph::Node& saved = graph.nodes[child.node];
    children.push_back({child.name, saved.children.empty() && saved.attributes.empty()});
  }
  kind->check_saved(children);
}

const std::string& value_key(const ObjectGraph::Node& node) {
  const auto is_value = [](const auto& attribute) {
    return attribute.name == train::kVariableValue;
  };
  return std::find_if(node.attributes.begin(), node.attributes.end(), is_value)->checkpoint_key;
}

}  // namespace

RestoreSession::RestoreSession(FileSystem& files, std::string prefix)
    : files_(files),
      prefix_(std::move(prefix)),
      bundle_(std::in_place, files, prefix_),
      index_crc_(bundle_->index_crc()),
      graph_(read_saved_graph(*bundle_)),
      holders_(graph_.nodes.size()) {}

RestoreSession::~RestoreSession() {
  if (!warn_) return;
  try {
    const std::vector<std::string> unused = values_without_object();
    if (!unused.empty()) {
      log_warning("values of checkpoint '", prefix_, "' were restored to no object; ",
                  "status.expect_partial() says that this is meant:", list_lines(unused));
    }
  } catch (...) {  // a warning is not worth more
  }
}

// Breadth first, so that the shortest path decides where several lead to an object.
std::vector<RestoreSession::Match> RestoreSession::match(uint32_t node, Trackable& object,
                                                         bool late) {
  std::vector<Match> matches;
  std::unordered_map<const Trackable*, uint32_t> node_of;
  std::unordered_map<uint32_t, const Trackable*> object_of;
  std::deque<Match> pending = {{node, &object}};
  while (!pending.empty()) {
    const auto [id, current] = pending.front();
    pending.pop_front();
    const auto& position = restore_position(*current);
    if (position != nullptr && position->session.get() == this) continue;  // has its values
    const auto known_node = node_of.find(current);
    const auto known_object = object_of.find(id);
    if (known_node != node_of.end() && known_node->second == id) continue;
    const bool taken = !late && holders_[id].lock() != nullptr;
    if (known_node != node_of.end() || known_object != object_of.end() || taken) {
      log_warning("checkpoint '", prefix_, "': two of its objects are one in this program, or ",
                  "the other way round (near object ", id, "); the first match counts");
      continue;
    }
    node_of.emplace(current, id);
    object_of.emplace(id, current);
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

void RestoreSession::apply(const std::vector<Match>& matches, const RestoreAgreement& agree) {
  std::vector<std::string> differences;
  NodeSource source(files_, *bundle_, !agree);
  const auto has_values = [&](const Match& match) {
    return match.second->has_checkpoint_values() && !graph_.nodes[match.first].attributes.empty();
  };
  for (const Match& match : matches) {
    source.set_node(graph_.nodes[match.first]);
    try {
      check_kind(*match.second, graph_, match.first);
      if (has_values(match)) match.second->prepare_restore(source);
    } catch (const InvalidArgumentError& error) {
      differences.emplace_back(error.what());
    }
  }
  if (!differences.empty()) {
    throw InvalidArgumentError(str("checkpoint '", prefix_, "' does not fit this program, ",
                                   "nothing was restored:", list_lines(differences)));
  }
  source.fill();
  // Memory is taken before the first object changes.
  std::vector<std::shared_ptr<RestorePosition>> positions;
  for (const Match& match : matches) {
    positions.push_back(std::make_shared<RestorePosition>(
        RestorePosition{shared_from_this(), match.first, has_values(match)}));
  }
  std::set<std::string, std::less<>> taken = agree ? agree(source.keys()) : source.keys();
  consumed_.merge(taken);
  for (size_t i = 0; i < matches.size(); ++i) {
    holders_[matches[i].first] = positions[i];
    restore_position(*matches[i].second) = std::move(positions[i]);
  }
  source.commit();
  close_if_consumed();
}

bool RestoreSession::is_consumed(uint32_t node, const ObjectGraph::Attribute& attribute) const {
  if (consumed_.count(attribute.checkpoint_key) != 0) return true;
  if (attribute.name != train::kReplicaComponents) return false;
  return consumed_.count(graph_.nodes[node].attributes[0].checkpoint_key) != 0;
}

// A file that is open keeps its space on the disk after it was deleted.
void RestoreSession::close_if_consumed() {
  for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
    for (const auto& attribute : graph_.nodes[i].attributes) {
      if (!is_consumed(i, attribute)) return;
    }
  }
  bundle_.reset();
}

void RestoreSession::restore(Trackable& root, const RestoreAgreement& agree) {
  std::lock_guard lock(mutex_);
  apply(match(0, root, false), agree);
}

const BundleReader& RestoreSession::bundle() {
  if (bundle_) return *bundle_;
  BundleReader& opened = bundle_.emplace(files_, prefix_);
  if (opened.index_crc() != index_crc_) {
    bundle_.reset();
    throw DataLossError(
        str("checkpoint '", prefix_,
            "' was rewritten since it was restored: what appears late would get values of another "
            "save; restore it again"));
  }
  read_saved_graph(opened);
  return opened;
}

const uint32_t* RestoreSession::find_child(uint32_t parent, std::string_view name) const {
  for (const auto& saved : graph_.nodes[parent].children) {
    if (saved.name == name) return &saved.node;
  }
  return nullptr;
}

void RestoreSession::restore_late(uint32_t parent, std::string_view name, Trackable& child) {
  std::lock_guard lock(mutex_);
  const uint32_t* node = find_child(parent, name);
  if (node == nullptr) return;
  const std::vector<Match> matches = match(*node, child, true);
  if (matches.empty()) return;
  bundle();
  apply(matches, {});
}

class RestoreSession::Pending final : public PendingValue {
 public:
  Pending(std::shared_ptr<RestoreSession> session, uint32_t node)
      : session_(std::move(session)), node_(node) {}

  Tensor read(const train::TensorSlice& part) const override {
    const std::lock_guard lock(session_->mutex_);
    NodeSource source = late_source();
    source.set_node(saved());
    const BundleEntry& entry = session_->bundle().entry(value_key(saved()));
    const std::vector<int64_t>& shape = entry.shape;
    const DType dtype = dtype_of(entry.type);
    Tensor value;
    const auto take = [&](const Tensor& read) { value = read; };
    if (part.length == shape) {
      source.read(train::kVariableValue, shape, dtype, take);
    } else {
      source.read_slice(train::kVariableValue, shape, part, dtype, take);
    }
    source.fill();
    source.commit();
    return value;
  }
  bool read_elsewhere(std::vector<train::RemoteRead> parts) const override {
    if (parts.empty()) return true;
    const std::lock_guard lock(session_->mutex_);
    NodeSource source = late_source();
    for (train::RemoteRead& one : parts) one.key = value_key(saved());
    if (!source.read_by(*parts[0].part->keeper(), parts)) return false;
    source.commit();
    return true;
  }
  void hand_over(Trackable& object) const override {
    const std::lock_guard lock(session_->mutex_);
    auto position =
        std::make_shared<RestorePosition>(RestorePosition{session_, node_, /*restored=*/true});
    session_->consumed_.insert(value_key(saved()));
    session_->holders_[node_] = position;
    restore_position(object) = std::move(position);
    session_->close_if_consumed();
  }

 private:
  NodeSource late_source() const {
    return NodeSource(session_->files_, session_->bundle(), /*late=*/true);
  }
  const ObjectGraph::Node& saved() const { return session_->graph_.nodes[node_]; }

  const std::shared_ptr<RestoreSession> session_;
  const uint32_t node_;
};

std::shared_ptr<PendingValue> RestoreSession::find_pending(uint32_t parent, std::string_view name,
                                                           at::IntArrayRef shape, DType dtype) {
  std::lock_guard lock(mutex_);
  const uint32_t* node = find_child(parent, name);
  if (node == nullptr) return nullptr;
  NodeSource source(files_, bundle(), /*late=*/true);
  source.set_node(graph_.nodes[*node]);
  if (!source.has(train::kVariableValue, shape, dtype)) return nullptr;
  return std::make_shared<Pending>(shared_from_this(), *node);
}

bool RestoreSession::has_place(Trackable& object) const {
  const auto& position = restore_position(object);
  return position != nullptr && position->session.get() == this;
}

// An object whose parent has no place has none either, or another way leads to it.
bool RestoreSession::has_match_below(Trackable& root) {
  std::unordered_set<const Trackable*> seen = {&root};
  std::deque<Trackable*> pending = {&root};
  while (!pending.empty()) {
    Trackable* const object = pending.front();
    pending.pop_front();
    for (const TrackableChild& child : object->checkpoint_children()) {
      if (object == &root && child.name == kSaveCounter) continue;
      if (has_place(*child.object)) return true;
      if (seen.insert(child.object).second) pending.push_back(child.object);
    }
  }
  return false;
}

std::vector<std::string> RestoreSession::objects_without_values(Trackable& root) {
  std::vector<std::string> found;
  std::unordered_set<const Trackable*> seen = {&root};
  std::deque<std::pair<std::string, Trackable*>> pending = {{"", &root}};
  while (!pending.empty()) {
    const auto [path, object] = pending.front();
    pending.pop_front();
    if (object->has_checkpoint_values()) {
      const bool restored = has_place(*object) && restore_position(*object)->restored;
      if (!restored) found.push_back(path.empty() ? "the root" : path);
    }
    for (const TrackableChild& child : object->checkpoint_children()) {
      if (child.may_be_missing && has_place(*object) && !has_place(*child.object)) continue;
      if (!seen.insert(child.object).second) continue;
      pending.emplace_back(path.empty() ? child.name : path + "/" + child.name, child.object);
    }
  }
  return found;
}

std::vector<std::string> RestoreSession::values_without_object() {
  std::lock_guard lock(mutex_);
  std::vector<std::string> found;
  for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
    for (const auto& attribute : graph_.nodes[i].attributes) {
      if (!is_consumed(i, attribute)) found.push_back(readable_key(attribute.checkpoint_key));
    }
  }
  return found;
}

void RestoreSession::no_warning() {
  std::lock_guard lock(mutex_);
  warn_ = false;
}

bool RestoreSession::is_taken(uint32_t node) {
  std::lock_guard lock(mutex_);
  return holders_[node].lock() != nullptr;
}

void RestoreSession::give_up(uint32_t node) {
  std::lock_guard lock(mutex_);
  std::unordered_set<uint32_t> seen = {node};
  std::deque<uint32_t> pending = {node};
  while (!pending.empty()) {
    const ObjectGraph::Node& given_up = graph_.nodes[pending.front()];
    pending.pop_front();
    for (const auto& attribute : given_up.attributes) consumed_.insert(attribute.checkpoint_key);
    for (const auto& child : given_up.children) {
      if (seen.insert(child.node).second) pending.push_back(child.node);
    }
  }
  close_if_consumed();
}

Leaf RestoreSession::read(const std::string& key) {
  std::lock_guard lock(mutex_);
  // Another process of the group took what this one still waits for, so all was consumed.
  const BundleEntry& entry = bundle().entry(key);
  if (entry.type == BundleType::kString) {
    return Leaf(StringTensor(bundle().read_strings(key), entry.shape));
  }
  const DType dtype = dtype_of(entry.type);
  if (dtype == DType::Undefined) {
    throw UnimplementedError(str("checkpoint '", prefix_, "': ", readable_key(key), " is of type ",
                                 type_name(entry.type), ", which cannot be carried over"));
  }
  Tensor value = empty_for_reading(entry.shape, dtype);
  bundle().read(key, value.data_ptr());
  return Leaf(value);
}

}  // namespace cohort::internal
