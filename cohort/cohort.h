// All of Cohort's public interface: the one header that a program includes.
//
//   #include <cohort/cohort.h>
//   namespace tf = cohort;   // the guides' names: tf::data::Dataset, tf::GradientTape, ...
//
// What a test of distributed code needs besides is in <cohort/testing/...>.
#pragma once

#include "cohort/core/device.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/memory.h"
#include "cohort/core/spec.h"
#include "cohort/core/string_tensor.h"
#include "cohort/core/structure.h"
#include "cohort/core/tensor.h"
#include "cohort/data/dataset.h"
#include "cohort/data/dataset_iterator.h"
#include "cohort/data/options.h"
#include "cohort/data/state.h"
#include "cohort/distribute/context.h"
#include "cohort/distribute/distributed_dataset.h"
#include "cohort/distribute/mirrored_strategy.h"
#include "cohort/distribute/nn.h"
#include "cohort/distribute/one_device_strategy.h"
#include "cohort/distribute/replica_context.h"
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/values.h"
#include "cohort/distribute/variable.h"
#include "cohort/keras/datasets/fashion_mnist.h"
#include "cohort/keras/datasets/mnist.h"
#include "cohort/keras/datasets/synthetic_images.h"
#include "cohort/keras/keras.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/random.h"
#include "cohort/train/checkpoint.h"
#include "cohort/train/checkpoint_manager.h"
#include "cohort/train/checkpoints_iterator.h"
#include "cohort/train/safetensors.h"
#include "cohort/train/trackable.h"
#include "cohort/version.h"
