#include "cohort/keras/sidecar_evaluator.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/distribute/variables/variable_impl.h"
#include "cohort/keras/optimizers/optimizer.h"
#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/checkpoint.h"
#include "cohort/train/checkpoints_iterator.h"

namespace cohort::keras::utils {
namespace {

using internal::str;

// Whether the checkpoint has an object of this name below its root.
bool has_object(const internal::BundleReader& bundle, const std::string& name) {
  const auto first = bundle.entries().lower_bound(name + "/");
  return first != bundle.entries().end() && first->first.starts_with(name + "/");
}

// Errors: InvalidArgument (it has no weights; no iterations).
void check_can_be_evaluated(const internal::BundleReader& bundle) {
  const bool has_weights =
      std::any_of(bundle.entries().begin(), bundle.entries().end(), [](const auto& entry) {
        const std::string& key = entry.first;
        return key.find('/') != key.npos && !key.starts_with("optimizer/") &&
               !key.starts_with("save_counter/");
      });
  if (!has_weights) {
    throw InvalidArgumentError(str("Nothing to load: checkpoint '", bundle.prefix(),
                                   "' has no weights; build the model before it is saved"));
  }
  if (!has_object(bundle, "optimizer/_iterations")) {
    throw InvalidArgumentError(
        str("`iterations` cannot be loaded from the checkpoint file '", bundle.prefix(),
            "': it has no optimizer; save it as \"optimizer\" beside the model, or with "
            "save_weights of the compiled model"));
  }
}

// The iterations of the optimizer, which may be of another class than that of the training.
class IterationsAlone final : public train::Trackable {
 public:
  explicit IterationsAlone(Variable iterations) : iterations_(std::move(iterations)) {}
  std::vector<train::TrackableChild> checkpoint_children() override {
    return {{"_iterations", &iterations_.impl()}};
  }

 private:
  const Variable iterations_;
};

}  // namespace

SidecarEvaluator::SidecarEvaluator(const ModelHandle& model, const Data& data,
                                   SidecarEvaluatorOptions options)
    : model_(model), data_(data), options_(std::move(options)) {
  if (options_.checkpoint_dir.empty()) {
    throw InvalidArgumentError("SidecarEvaluator: checkpoint_dir names no directory");
  }
  if (options_.max_evaluations && *options_.max_evaluations < 1) {
    throw InvalidArgumentError(str("SidecarEvaluator: max_evaluations is ",
                                   *options_.max_evaluations, " and must be at least 1"));
  }
}

Logs SidecarEvaluator::start() const {
  const train::Checkpoint checkpoint(
      {{"model", model_},
       {"optimizer", std::make_shared<IterationsAlone>(model_.optimizer().iterations())}});
  Logs logs;
  for (const std::string& path :
       train::checkpoints_iterator(options_.checkpoint_dir, {.timeout = options_.timeout})) {
    if (!restore(checkpoint, path)) continue;
    logs = model_.evaluate(
        data_,
        {.verbose = options_.verbose, .steps = options_.steps, .callbacks = options_.callbacks});
    internal::log_info("evaluation of '", path, "': ", logs);
    if (is_last(path)) break;
  }
  return logs;
}

// Whether it was there.
bool SidecarEvaluator::restore(const train::Checkpoint& checkpoint, const std::string& path) const {
  try {
    const internal::BundleReader bundle(internal::posix_file_system(), path);
    check_can_be_evaluated(bundle);
    const bool has_model = has_object(bundle, "model");
    checkpoint.restore(path).expect_partial();
    if (!has_model) {
      const train::LoadStatus status = train::Checkpoint(model_).read(path);
      status.expect_partial();
      if (model_.built()) status.assert_existing_objects_matched();
    }
    return true;
  } catch (const NotFoundError& error) {
    internal::log_info("checkpoint '", path, "' was not evaluated: ", error.what());
    return false;
  }
}

bool SidecarEvaluator::is_last(const std::string& path) const {
  if (!options_.max_evaluations) return false;
  const size_t dash = path.rfind('-');
  int64_t number = 0;
  const char* const end = path.data() + path.size();
  const bool has_number =
      dash != std::string::npos && std::from_chars(path.data() + dash + 1, end, number).ptr == end;
  return has_number && number >= *options_.max_evaluations;
}

}  // namespace cohort::keras::utils
