// The metrics of a training as a checkpoint has them.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "cohort/keras/metrics/metric.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::internal {

struct NamedMetric {
  std::string log_name;
  keras::metrics::Metric metric;
};

// Errors: InvalidArgument "`who` ...": the logs have this name, or any that begins like it, for
// numbers of their own ("loss", "val_accuracy").
void check_log_name(const std::string& name, const std::string& who);
// Errors: InvalidArgument "`who` ...": the logs have what begins with "val_" for numbers of the
// validation.
void check_is_of_training(const std::string& log_name, const std::string& who);

// Errors: InvalidArgument (a metric gives several numbers).
void check_is_scalar(const std::string& log_name, const Tensor& result);

// The metrics by the names under which they are reported. What a restore brought for metrics that
// the first step makes waits for them, until the sums of all are reset.
// Thread safety: that of Trackable, but for `appeared`.
class ReportedMetrics final : public train::Trackable {
 public:
  // Sets the metrics of the next save or restore. The later of two with one name gets a number.
  void set(std::vector<NamedMetric> metrics);
  // Backups once had them as "0", "1", ...; a restore of one finds those of `set` by their places.
  void set_found_by_place(bool by_place) { by_place_ = by_place; }

  // A metric was made: to be called before anything is added to it. Thread safety: any thread.
  // Errors: as Trackable::child_appeared.
  void appeared(const std::string& name, const keras::metrics::Metric& metric);
  // Sums of before are of no use any more: later metrics begin with none.
  void stop_waiting();

  std::vector<train::TrackableChild> checkpoint_children() override;
  bool awaits_children() const override { return awaits_; }

 private:
  std::vector<NamedMetric> metrics_;
  bool by_place_ = false;
  std::atomic<bool> awaits_{true};
};

}  // namespace cohort::internal
