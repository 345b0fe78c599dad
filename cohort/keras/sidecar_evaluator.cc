#include "cohort/keras/sidecar_evaluator.h"

#include <charconv>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/logging.h"
#include "cohort/core/text.h"
#include "cohort/keras/optimizers/optimizer.h"
#include "cohort/train/bundle_reader.h"
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
  const train::Checkpoint checkpoint({{"model", model_}, {"optimizer", model_.optimizer()}});
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
    const bool has_model =
        has_object(internal::BundleReader(internal::posix_file_system(), path), "model");
    checkpoint.restore(path).expect_partial();
    if (!has_model) model_.load_weights(path);
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
