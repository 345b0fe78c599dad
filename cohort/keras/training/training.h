// How a model is trained: what compile said, and what goes on in fit.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cohort/core/function_ref.h"
#include "cohort/distribute/step/step_runner.h"
#include "cohort/keras/metrics/reported_metrics.h"
#include "cohort/keras/model/model.h"
#include "cohort/keras/training/compiled_model.h"
#include "cohort/keras/training/training_turn.h"

namespace cohort::internal {

class ClassWeightTable;

struct FitState;

using ClassWeights = std::map<int64_t, double>;

// One for each model. Thread safety: as ModelHandle's training; what steps call, from all replicas
// at once.
class Training {
 public:
  static Training& of(keras::Model& model);

  // Errors: also FailedPrecondition (fit, evaluate or a step is under way: their numbers would be
  // lost); InvalidArgument (the values that wait for the optimizer are not those of this one: they
  // wait on).
  void compile(const keras::CompileOptions& options, keras::Model& model);
  // What the restore that `model` was just part of has for an "optimizer" beside the weights waits
  // for that of the next compile, until weights are restored from elsewhere.
  void keep_optimizer_values(keras::Model& model);
  // Such values, which a checkpoint that has this object carries on. nullptr: none wait.
  std::shared_ptr<train::Trackable> waiting_optimizer(keras::Model& model) const;
  // Errors: FailedPrecondition (not compiled; names the model).
  CompiledModel& compiled(const keras::Model& model) const;
  bool is_compiled() const { return compiled_ != nullptr; }

  // What the model reports: its own metrics(), under the names of compile.
  std::vector<NamedMetric> metrics(const keras::Model& model) const;
  // Metrics that are made later appear to it as long as it lives, until all are reset. Between
  // steps.
  void report_to(const std::shared_ptr<ReportedMetrics>& reported, keras::Model& model);
  // Resets all metrics, also those whose sums a restore brought and that are still to be made.
  void reset_metrics(const keras::Model& model);

  // Steps of fit, evaluate and predict. They keep the model alive.
  static std::shared_ptr<const StepFunction> train_step(std::shared_ptr<keras::Model> model,
                                                        const ClassWeights& weights = {});
  static std::shared_ptr<const StepFunction> test_step(std::shared_ptr<keras::Model> model);
  // with_index: elements are (number of the row, x), and so are results.
  static std::shared_ptr<const StepFunction> predict_step(std::shared_ptr<keras::Model> model,
                                                          bool with_index);

  // The graphs of the steps of one kind; nothing on hosts, and where compile wants none.
  enum class StepKind { kTrain, kTest, kPredict };
  std::optional<distribute::StepGraphs> graphs(const std::shared_ptr<keras::Model>& model,
                                               StepKind kind);

  TrainingTurns turns;
  bool stop = false;
  FitState* fit = nullptr;  // while fit runs
  std::set<std::string>
      used_backups;  // directories of BackupAndRestore whose fit has come to its end

 private:
  // Errors: InvalidArgument.
  void restore_waiting(const keras::optimizers::Optimizer& optimizer, keras::Model& model) const;

  std::shared_ptr<CompiledModel> compiled_;
  // The table of the weights; the same one for the same weights. Graphs are of one table.
  std::shared_ptr<const ClassWeightTable> use_class_weights(const ClassWeights& weights);

  std::array<std::optional<distribute::StepGraphs>, 3> graphs_;  // of each StepKind
  ClassWeights class_weights_;
  std::shared_ptr<const ClassWeightTable> class_weight_table_;  // nullptr: no weights
  std::shared_ptr<train::Trackable> waiting_optimizer_;
  std::weak_ptr<ReportedMetrics> reported_;
};

// The model behind a handle.
std::shared_ptr<keras::Model> model_of(const keras::ModelHandle& handle);
// Calls `write`, which writes files: in each task, which write as a group; or where workers run
// steps by themselves in the coordinator alone, for which the others wait, as in fit. COLLECTIVE
// over tasks, but for callbacks. Errors: those of `write`, in every task.
void write_for_all(const keras::Model& model, FunctionRef<void()> write);
// Current numbers of those that steps have updated since their reset. COLLECTIVE over tasks.
void read_metrics(const std::vector<NamedMetric>& metrics,
                  std::vector<keras::Logs::Entry>& entries);

}  // namespace cohort::internal
