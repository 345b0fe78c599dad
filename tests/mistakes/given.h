// What the programs of this folder begin with: see mistakes.py.
#pragma once

#include <ATen/ops/ones.h>
#include <cohort/cohort.h>

#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tf = cohort;
using tf::Structure;
using tf::Tensor;
using tf::data::Dataset;
using tf::distribute::DistributedDataset;
using tf::distribute::MirroredStrategy;
using tf::distribute::PerReplica;
using tf::distribute::ReduceOp;
using tf::distribute::ReplicaContext;
