// What run returns has a component for each replica.
// EXPECT: conversion from ‘cohort::distribute::PerReplica<at::Tensor>’ to non-scalar type | no viable conversion
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  Tensor loss =
      strategy.run([](const Tensor& x, const Tensor& y) { return x.sum(); }, batch);  // here
}
