#include "cohort/distribute/input/shared_order.h"

#include <limits>
#include <string_view>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/data/graph/graph.h"
#include "cohort/data/graph/node.h"

namespace cohort::distribute::internal_input {

using data::IteratorState;

namespace {

// What states of readers, of divisions (shard) and of batches that are cut up (split_batches) have.
constexpr const char* kGraph = "graph";
constexpr const char* kPass = "pass";
constexpr const char* kRoot = "root";
constexpr const char* kGiven = "given";  // elements since then
constexpr const char* kGap = "gap";      // elements of others before the next of its own
constexpr const char* kChecked = "checked";
constexpr const char* kInput = "input";
constexpr const char* kPiece = "split_piece";

int64_t given_of(const IteratorState& state) {
  return state.has(kGiven) ? state.get_int(kGiven, 0, std::numeric_limits<int32_t>::max()) : 0;
}

IteratorState reader_state(const std::shared_ptr<const std::string>& graph,
                           const IteratorState& like, IteratorState::Child root, int64_t given) {
  IteratorState state;
  state.set_bytes(kGraph, graph);
  if (like.has(kPass)) state.set_int(kPass, like.get_int(kPass));
  state.set_child(kRoot, std::move(root));
  if (given > 0) state.set_int(kGiven, given);
  return state;
}

}  // namespace

std::string without_agreed(std::string graph) {
  for (const std::string_view seed : {", seed=agreed", "seed=agreed"}) {
    for (size_t at; (at = graph.find(seed)) != std::string::npos;) graph.erase(at, seed.size());
  }
  return graph;
}

IteratorState whole_position(const SharedOrder& order, int64_t number, const IteratorState& own) {
  const bool divided = order.pipelines > 1;
  const IteratorState::Child& root = own.shared_child(kRoot);
  const IteratorState::Child& cut = divided ? root->shared_child(kInput) : root;
  const bool within = order.pieces > 1 && cut->has(kPiece);
  // The next piece of this pipeline, counted from the batch at which the input stands.
  const int64_t next = (within ? cut->get_int(kPiece) : 0) + (divided ? root->get_int(kGap) : 0) +
                       given_of(own) * order.pipelines - number;
  if (next % order.pieces != 0) {
    throw FailedPreconditionError(
        "the position of distributed input is known between two steps alone, and this iterator "
        "has read a part of one");
  }
  return reader_state(order.graph, own, within ? cut->shared_child(kInput) : cut,
                      next / order.pieces);
}

IteratorState own_position(const SharedOrder& order, int64_t number,
                           const std::shared_ptr<const std::string>& graph,
                           const IteratorState& whole) {
  if (const auto difference = internal::first_graph_difference(
          without_agreed(whole.get_bytes(kGraph)), without_agreed(*order.graph))) {
    throw InvalidArgumentError("this state is of another pipeline: " + *difference);
  }
  const int64_t given = given_of(whole) * (order.pieces / order.pipelines);
  const IteratorState::Child& root = whole.shared_child(kRoot);
  if (order.pipelines == 1) return reader_state(graph, whole, root, given);
  if (root->has(kPiece)) {
    throw InvalidArgumentError(
        "this state was taken within a batch that was cut into pieces; take it between two steps");
  }
  IteratorState share;
  share.set_int(kGap, number);
  share.set_int(kChecked, 1);
  share.set_child(kInput, root);
  return reader_state(graph, whole, std::make_shared<const IteratorState>(std::move(share)), given);
}

}  // namespace cohort::distribute::internal_input
