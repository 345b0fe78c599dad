// Intersection over union of classes, as segmentation is measured: of the examples that are of a
// class or taken for it, the share that is both.
//
//   metrics::MeanIoU iou({.num_classes = 3});
//   iou.update_state(labels, predictions);
//
// Shapes, of all of them: labels and predictions of one shape after arg max, any; sample_weight
// undefined (1), or of that shape. The result, [], is the mean over those of the classes that
// occur.
// Errors of an update: InvalidArgument (other shapes; a class below 0 or not below num_classes).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/metrics/prediction_metric.h"

namespace cohort::keras::metrics {

struct MeanIoUOptions {
  int64_t num_classes = 0;  // above 0
  // Examples whose label is this class do not count.
  std::optional<int64_t> ignore_class = std::nullopt;
  // Whether labels and predictions are classes; else their arg max along `axis` is.
  bool sparse_y_true = true;
  bool sparse_y_pred = true;
  int64_t axis = -1;
  std::string name = "";  // empty: the metric's own
};

struct IoUOptions {
  int64_t num_classes = 0;                     // above 0
  std::vector<int64_t> target_class_ids = {};  // which count; one or more, each below num_classes
  std::optional<int64_t> ignore_class = std::nullopt;
  bool sparse_y_true = true;
  bool sparse_y_pred = true;
  int64_t axis = -1;
  std::string name = "";
};

// The mean intersection over union of some classes.
class COHORT_API IoU : public PredictionMetric {
 public:
  // Errors, as of all of these: InvalidArgument (an option, with its value).
  explicit IoU(const IoUOptions& options);
};

// The mean intersection over union of all classes.
class COHORT_API MeanIoU : public PredictionMetric {
 public:
  explicit MeanIoU(const MeanIoUOptions& options);
};

struct OneHotMeanIoUOptions {
  int64_t num_classes = 0;
  std::optional<int64_t> ignore_class = std::nullopt;
  bool sparse_y_pred = false;
  int64_t axis = -1;
  std::string name = "";
};

// MeanIoU of labels that are one-hot.
class COHORT_API OneHotMeanIoU : public PredictionMetric {
 public:
  explicit OneHotMeanIoU(const OneHotMeanIoUOptions& options);
};

struct OneHotIoUOptions {
  int64_t num_classes = 0;
  std::vector<int64_t> target_class_ids = {};
  std::optional<int64_t> ignore_class = std::nullopt;
  bool sparse_y_pred = false;
  int64_t axis = -1;
  std::string name = "";
};

// IoU of labels that are one-hot.
class COHORT_API OneHotIoU : public PredictionMetric {
 public:
  explicit OneHotIoU(const OneHotIoUOptions& options);
};

struct BinaryIoUOptions {
  std::vector<int64_t> target_class_ids = {0, 1};
  double threshold = 0.5;  // predictions from here on are class 1
  std::string name = "";
};

// IoU of two classes, of predictions in [0, 1].
class COHORT_API BinaryIoU : public PredictionMetric {
 public:
  explicit BinaryIoU(const BinaryIoUOptions& options = {});
};

}  // namespace cohort::keras::metrics
