// All metrics.
#pragma once

#include "cohort/keras/metrics/accuracy.h"
#include "cohort/keras/metrics/mean.h"
#include "cohort/keras/metrics/metric.h"
