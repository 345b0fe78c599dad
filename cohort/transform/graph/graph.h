// A traced preprocessing function: its steps in order, and the analyses that it asks for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/transform/graph/column.h"
#include "cohort/transform/graph/node.h"

namespace cohort::internal {

using NamedTypes = std::vector<std::pair<std::string, ColumnType>>;

// Steps and analyses that are equal stand once. Thread safety: immutable.
struct TransformGraph {
  struct Step {
    std::shared_ptr<const TransformNode> node;
    std::vector<int> inputs = {};  // steps before it
    int analysis = -1;             // of a statistic
    int phase = 0;                 // the number of passes after which its value is known
  };
  struct AnalysisStep {
    std::shared_ptr<const Analysis> analysis;
    std::vector<int> inputs = {};  // steps
    std::string vocabulary_name = {};
    int phase = 0;  // the pass that makes it, from 0
  };

  NamedTypes columns;            // all that the dataset has
  std::vector<Step> steps = {};  // inputs before their users
  std::vector<AnalysisStep> analyses = {};
  std::vector<std::pair<std::string, int>> outputs = {};     // steps
  std::vector<std::pair<std::string, int>> statistics = {};  // that are kept: steps
  int num_phases = 0;

  // Errors: NotFound (names the vocabularies that there are).
  int vocabulary(std::string_view name) const;
};

// Calls `function` once, with columns of these types.
// Errors: InvalidArgument (no outputs; an output that is a statistic or holds nothing; two
// vocabularies of one name; names them), what the function throws.
TransformGraph trace(const transform::PreprocessingFunction& function, const NamedTypes& columns);

// What `trace` made, as JSON text, and back. Two functions that do the same have the same text.
// Errors: InvalidArgument "`where`: ..." (no graph, or one of a later version; says where), what
// operations say of their attributes, NotFound and FailedPrecondition (mapped functions; see
// mapped_function.h).
std::string graph_json(const TransformGraph& graph);
TransformGraph read_graph(std::string_view json, const std::string& where);

// What differs first between two graphs, in words: "output 'x' is add(..), but was z_score(..)".
// nullopt: nothing does.
std::optional<std::string> graph_difference(const TransformGraph& given,
                                            const TransformGraph& analysed);

// What a vocabulary without a name is called: "<prefix><suffix>", "<prefix>_1<suffix>", ...
struct DefaultName {
  std::string_view prefix;
  std::string_view suffix;
};
// A vocabulary that the function being traced asks for, even if no output needs it.
// Errors: InvalidArgument (another one has the name, or a file of it), FailedPrecondition (no
// function is being traced).
std::shared_ptr<const AnalysisCall> trace_vocabulary(std::shared_ptr<const Analysis> analysis,
                                                     TransformNodes inputs, std::string name,
                                                     const DefaultName& default_name);
// A statistic that is to be kept. Errors: InvalidArgument (the name is taken or empty),
// FailedPrecondition.
void trace_statistic(std::string_view name, std::shared_ptr<const TransformNode> node);
// The name of the file of a vocabulary: letters, digits, '_' and '-' stay, as in tf.Transform.
std::string vocabulary_file_name(std::string_view name);

}  // namespace cohort::internal
