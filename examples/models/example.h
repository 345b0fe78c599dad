// What a program of this folder trains: a model, and data that it makes from a seed.
#pragma once

#include <cohort/cohort.h>

#include <cstdint>
#include <functional>
#include <string>

namespace models {

// Rows of all members belong together. An empty tuple as weights: all rows count alike.
struct Rows {
  cohort::Structure inputs;
  cohort::Structure labels;
  cohort::Structure weights = cohort::Structure();
};

// Everything that differs between the programs.
struct Example {
  std::string name;
  std::string description;
  int64_t train_rows;
  int64_t test_rows;
  int64_t epochs;
  int64_t batch;  // of all replicas
  std::function<cohort::keras::optimizers::Optimizer()> make_optimizer;
  // Makes a model, in the scope of its strategy.
  std::function<cohort::keras::ModelHandle()> make_model;
  // Makes so many rows. Other seeds give other rows of the same world.
  std::function<Rows(int64_t rows, uint64_t seed)> make_rows;
  cohort::keras::LossArgument loss;
  std::string metric;  // of compile, with the rows' weights
};

// Makes the example "densenet", "bert", "ncf", "nmt" or "transformer"; some of them have dropout.
// Errors: InvalidArgument (another name).
Example make_example(const std::string& name, double dropout);

}  // namespace models
