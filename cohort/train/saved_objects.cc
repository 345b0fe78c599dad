#include "cohort/train/saved_objects.h"

#include <set>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {

using train::Trackable;
using train::TrackableChild;

namespace {

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
    const auto& position = RestorePosition::of(*order_[i]);
    if (position != nullptr) nodes_.emplace(Place(position->session.get(), position->node), i);
  }
  for (uint32_t i = 0; i < order_.size(); ++i) {
    const auto& position = RestorePosition::of(*order_[i]);
    if (position == nullptr || !order_[i]->awaits_children()) continue;
    carry_children(i, {position->session.get(), position->node}, add);
  }
}

// Adds to node `id` the children that the place `from` has and it has not.
void SavedObjects::carry_children(uint32_t id, const Place& from, const Add& add) {
  std::set<std::string> present;
  for (const auto& child : graph_.nodes[id].children) present.insert(child.name);
  RestoreSession& session = *from.first;
  for (const auto& saved : session.graph().nodes[from.second].children) {
    if (present.count(saved.name) != 0) continue;
    const Place place(&session, saved.node);
    const auto known = nodes_.find(place);
    if (known != nodes_.end()) {
      graph_.nodes[id].children.push_back({saved.name, known->second});
      continue;
    }
    if (session.is_taken(saved.node)) continue;  // by an object that is not saved here
    const auto carried = static_cast<uint32_t>(graph_.nodes.size());
    nodes_.emplace(place, carried);
    graph_.nodes.emplace_back();
    paths_.push_back(child_path(paths_[id], saved.name));
    graph_.nodes[id].children.push_back({saved.name, carried});
    for (const auto& attribute : session.graph().nodes[saved.node].attributes) {
      std::string key = attribute_key(paths_[carried], attribute.name);
      add(key, session.read(attribute.checkpoint_key));
      graph_.nodes[carried].attributes.push_back(
          {attribute.name, attribute.full_name, std::move(key)});
    }
    carry_children(carried, place, add);
  }
}

}  // namespace cohort::internal
