#include "cohort/train/objects/saved_objects.h"

#include <set>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {

using train::Trackable;
using train::TrackableChild;

namespace {

// A hostile graph has as many levels as it likes; each takes some of the stack, and its path
// memory.
constexpr int kDeepest = 1000;
constexpr size_t kMostQuoted = 200;

std::string child_path(const std::string& parent, const std::string& name) {
  return (parent.empty() ? "" : parent + "/") + escape_name(name);
}

}  // namespace

SavedObjects::SavedObjects(Trackable& root) {
  std::unordered_map<const Trackable*, uint32_t> number = {{&root, 0}};
  order_.push_back(&root);
  paths_.emplace_back();
  for (size_t i = 0; i < order_.size(); ++i) {
    graph_.nodes.emplace_back();
    for (const TrackableChild& child : order_[i]->checkpoint_children()) {
      const auto [known, added] =
          number.try_emplace(child.object, static_cast<uint32_t>(order_.size()));
      if (added) {
        order_.push_back(child.object);
        paths_.push_back(child_path(paths_[i], child.name));
      }
      graph_.nodes[i].children.push_back({child.name, known->second});
    }
  }
}

std::shared_ptr<train::SaveGroup> SavedObjects::save_group() const {
  std::shared_ptr<train::SaveGroup> found;
  size_t first = 0;
  for (size_t i = 0; i < order_.size(); ++i) {
    auto group = order_[i]->save_group();
    if (group == nullptr || group == found) continue;
    if (found != nullptr) {
      throw FailedPreconditionError(
          str("objects ", quoted(paths_[first]), " and ", quoted(paths_[i]), " of one checkpoint ",
              "belong to different groups of processes (members ", quoted(found->name()), " and ",
              quoted(group->name()), "); give each group's objects a Checkpoint of their own"));
    }
    found = std::move(group);
    first = i;
  }
  return found == nullptr ? train::alone() : found;
}

void SavedObjects::carry_over(const Add& add) {
  for (uint32_t i = 0; i < order_.size(); ++i) {
    const auto& position = restore_position(*order_[i]);
    if (position != nullptr) nodes_.emplace(Place(position->session.get(), position->node), i);
  }
  for (uint32_t i = 0; i < order_.size(); ++i) {
    const auto& position = restore_position(*order_[i]);
    if (position == nullptr || !order_[i]->awaits_children()) continue;
    carry_children({.node = i,
                    .from = {position->session.get(), position->node},
                    .path = paths_[i],
                    .depth = 0},
                   add);
  }
}

// Adds the children that the place has and the node has not.
void SavedObjects::carry_children(const Parent& parent, const Add& add) {
  std::set<std::string> present;
  for (const auto& child : graph_.nodes[parent.node].children) present.insert(child.name);
  LateRestore& session = *parent.from.first;
  for (const auto& saved : session.graph().nodes[parent.from.second].children) {
    if (present.count(saved.name) != 0) continue;
    const Place place(&session, saved.node);
    const auto known = nodes_.find(place);
    if (known != nodes_.end()) {
      graph_.nodes[parent.node].children.push_back({saved.name, known->second});
      continue;
    }
    if (session.is_taken(saved.node)) continue;  // by an object that is not saved here
    if (parent.depth == kDeepest) {
      throw DataLossError(str("checkpoint '", session.prefix(), "', which was restored, nests ",
                              "objects more than ", kDeepest, " levels below ",
                              quoted(parent.path.substr(0, kMostQuoted)), "; no program does"));
    }
    const auto carried = static_cast<uint32_t>(graph_.nodes.size());
    nodes_.emplace(place, carried);
    graph_.nodes.emplace_back();
    graph_.nodes[parent.node].children.push_back({saved.name, carried});
    const Parent next{.node = carried,
                      .from = place,
                      .path = child_path(parent.path, saved.name),
                      .depth = parent.depth + 1};
    for (const auto& attribute : session.graph().nodes[saved.node].attributes) {
      std::string key = attribute_key(next.path, attribute.name);
      add(key, session.read(attribute.checkpoint_key));
      graph_.nodes[carried].attributes.push_back(
          {attribute.name, attribute.full_name, std::move(key)});
    }
    carry_children(next, add);
  }
}

}  // namespace cohort::internal
