// All layers.
#pragma once

#include "cohort/keras/layers/conv2d.h"
#include "cohort/keras/layers/dense.h"
#include "cohort/keras/layers/dropout.h"
#include "cohort/keras/layers/elementwise.h"
#include "cohort/keras/layers/embedding.h"
#include "cohort/keras/layers/integer_lookup.h"
#include "cohort/keras/layers/layer.h"
#include "cohort/keras/layers/layer_handle.h"
#include "cohort/keras/layers/merging.h"
#include "cohort/keras/layers/pooling1d.h"
#include "cohort/keras/layers/pooling2d.h"
#include "cohort/keras/layers/reshaping.h"
#include "cohort/keras/layers/string_lookup.h"
#include "cohort/keras/layers/symbolic.h"
