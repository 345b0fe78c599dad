// Nodes of libtorch's graph that compute what Cohort computes. Each step makes them anew, since
// libtorch numbers them in the order in which they are made; their memory is the thread's, from the
// step before.
//
//   class Negated final : public GraphNode {
//     variable_list apply(variable_list&& gradients) override {
//       return only(std::move(gradients), -gradients[0]);
//     }
//   };
//   record(output, edges_of(x), make_node<Negated>());
#pragma once

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/function.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "cohort/core/bytes/kept_blocks.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

class GraphNode : public torch::autograd::Node {
 public:
  GraphNode() = default;
  ~GraphNode() override;  // keeps the memory of its edges
  // Gives up what the node holds when its last user goes, while there are weak pointers; a libtorch
  // whose pointers are std::shared_ptr calls the destructor instead.
  virtual void release_resources();

  static void* operator new(size_t bytes) { return take_block(bytes); }
  static void operator delete(void* node, size_t bytes) { give_back_block(node, bytes); }
};

// How libtorch refers to nodes: by std::shared_ptr, or later (2.15) by pointers of its own.
template <class Node, class OfLibtorch = decltype(torch::autograd::Edge::function)>
struct NodePointers;
template <class Node, class Base>
struct NodePointers<Node, std::shared_ptr<Base>> {
  using Strong = std::shared_ptr<Node>;
  using Weak = std::weak_ptr<Node>;

  static Strong own(Node* node) {
    return Strong(
        node, [](Node* ended) { deleteNode(ended); }, KeptAllocator<Node>());
  }
  static Strong from(Node* node) {
    return std::static_pointer_cast<Node>(node->shared_from_this());
  }
};
template <class Node, class Base>
struct NodePointers<Node, c10::intrusive_ptr<Base>> {
  using Strong = c10::intrusive_ptr<Node>;
  using Weak = c10::weak_intrusive_ptr<Node>;

  static Strong own(Node* node) { return Strong::unsafe_steal_from_new(node); }
  static Strong from(Node* node) { return Strong::unsafe_reclaim_from_nonowning(node); }
};
template <class Node>
using NodePtr = typename NodePointers<Node>::Strong;
template <class Node>
using WeakNodePtr = typename NodePointers<Node>::Weak;

template <class Node, class... Arguments>
NodePtr<Node> make_node(Arguments&&... arguments) {
  return NodePointers<Node>::own(new Node(std::forward<Arguments>(arguments)...));
}

// Empty, in memory of an earlier node.
torch::autograd::edge_list take_edges();
// To the node of a tensor, which may be undefined; for each of several, as libtorch's
// collect_next_edges.
torch::autograd::Edge edge_of(const Tensor& tensor);
torch::autograd::edge_list edges_of(at::TensorList tensors);

// Makes `output` the result of `node`.
void record(Tensor& output, torch::autograd::edge_list edges, const NodePtr<GraphNode>& node);

// The number of a scalar: of a float on the host without a call into libtorch.
float number_of(const Tensor& scalar);

// For the results of a node, which libtorch frees: the list of its inputs, which must have been
// read, with `count` undefined tensors. Allocates where there are more results than inputs.
torch::autograd::variable_list undefined(torch::autograd::variable_list&& inputs, size_t count);
// `result` alone, in the same way. `result` must not refer to the inputs.
torch::autograd::variable_list only(torch::autograd::variable_list&& inputs, Tensor result);

}  // namespace cohort::internal
