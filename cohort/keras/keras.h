// All of Keras.
#pragma once

#include "cohort/keras/activations.h"
#include "cohort/keras/backend.h"
#include "cohort/keras/callbacks/callbacks.h"
#include "cohort/keras/functional.h"
#include "cohort/keras/initializers.h"
#include "cohort/keras/layers/layers.h"
#include "cohort/keras/losses/losses.h"
#include "cohort/keras/metrics/metrics.h"
#include "cohort/keras/model.h"
#include "cohort/keras/optimizers/optimizers.h"
#include "cohort/keras/regularizers.h"
#include "cohort/keras/sequential.h"
#include "cohort/keras/torch_model.h"
#include "cohort/keras/utils.h"
#include "cohort/keras/zip.h"
