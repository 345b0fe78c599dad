#include "cohort/ops/graph_node.h"

#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <array>

namespace cohort::internal {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::variable_list;

// Nodes may outlive what the thread keeps.
constinit thread_local bool keeps_edges = true;

// The memory of lists of edges. Those of steps are short, and a step has few.
class KeptEdges {
 public:
  ~KeptEdges() { keeps_edges = false; }

  edge_list take() { return count_ > 0 ? std::move(lists_[--count_]) : edge_list(); }
  // edges: empty. (To clear them here might end nodes that give back theirs, too.)
  void give_back(edge_list&& edges) {
    if (count_ == lists_.size() || edges.capacity() == 0 || edges.capacity() > kMostEdges) return;
    lists_[count_++] = std::move(edges);
  }

 private:
  static constexpr size_t kMostEdges = 64;

  std::array<edge_list, 32> lists_;
  size_t count_ = 0;
};

KeptEdges& kept_edges() {
  thread_local KeptEdges kept;
  return kept;
}

// Lists of edges that the thread is about to clear, while it does.
using Ending = c10::SmallVector<edge_list, 16>;
constinit thread_local Ending* ending = nullptr;

// A node that ends may be the last user of others. They end in turn and not within each other,
// since graphs are longer than a stack is deep. libtorch may have taken the edges out before.
void end(edge_list&& edges) {
  if (ending != nullptr) {
    ending->push_back(std::move(edges));
    return;
  }
  Ending lists;
  lists.push_back(std::move(edges));
  ending = &lists;
  while (!lists.empty()) {
    edge_list last = lists.pop_back_val();
    last.clear();
    if (keeps_edges) kept_edges().give_back(std::move(last));
  }
  ending = nullptr;
}

}  // namespace

GraphNode::~GraphNode() { end(std::move(next_edges())); }

void GraphNode::release_resources() {
  end(std::move(next_edges()));
  [](auto* node) {
    if constexpr (requires { node->torch::autograd::Node::release_resources(); }) {
      node->torch::autograd::Node::release_resources();
    }
  }(this);
}

edge_list take_edges() { return keeps_edges ? kept_edges().take() : edge_list(); }

Edge edge_of(const Tensor& tensor) {
  return tensor.defined() && tensor.requires_grad() ? torch::autograd::impl::gradient_edge(tensor)
                                                    : Edge();
}

edge_list edges_of(at::TensorList tensors) {
  edge_list edges = take_edges();
  for (const Tensor& tensor : tensors) edges.push_back(edge_of(tensor));
  return edges;
}

float number_of(const Tensor& scalar) {
  const bool is_plain = scalar.is_cpu() && scalar.layout() == at::kStrided &&
                        scalar.scalar_type() == at::kFloat && scalar.numel() == 1 &&
                        !scalar.is_neg() && !scalar._is_zerotensor();
  return is_plain ? *scalar.data_ptr<float>() : scalar.item<float>();
}

void record(Tensor& output, edge_list edges, const NodePtr<GraphNode>& node) {
  node->set_next_edges(std::move(edges));
  torch::autograd::set_history(output, node);
}

variable_list undefined(variable_list&& inputs, size_t count) {
  variable_list results = std::move(inputs);
  results.clear();
  results.resize(count);
  return results;
}

variable_list only(variable_list&& inputs, Tensor result) {
  variable_list results = undefined(std::move(inputs), 1);
  results[0] = std::move(result);
  return results;
}

}  // namespace cohort::internal
