// All metrics.
#pragma once

#include "cohort/keras/metrics/accuracy.h"
#include "cohort/keras/metrics/auc.h"
#include "cohort/keras/metrics/best_threshold.h"
#include "cohort/keras/metrics/confusion.h"
#include "cohort/keras/metrics/custom_metric.h"
#include "cohort/keras/metrics/errors.h"
#include "cohort/keras/metrics/f_score.h"
#include "cohort/keras/metrics/get.h"
#include "cohort/keras/metrics/iou.h"
#include "cohort/keras/metrics/mean.h"
#include "cohort/keras/metrics/mean_tensor.h"
#include "cohort/keras/metrics/metric.h"
#include "cohort/keras/metrics/prediction_metric.h"
#include "cohort/keras/metrics/r2_score.h"
