// One path or several, in whatever form a call has them:
//
//   data::TFRecordDataset("a.tfrecord");
//   data::TFRecordDataset({"a.tfrecord", "b.tfrecord"});
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/structure/string_tensor.h"
#include "cohort/core/structure/structure.h"

namespace cohort::data {

// A value type.
class Paths {
 public:
  Paths(const char* path) : paths_({path}) {}
  Paths(std::string path) : paths_({std::move(path)}) {}
  Paths(std::vector<std::string> paths) : paths_(std::move(paths)) {}
  Paths(std::initializer_list<std::string> paths) : paths_(paths) {}
  Paths(const StringTensor& paths) : paths_(paths.to_vector()) {}
  // An element that is a leaf of strings, as a function on elements gets it.
  Paths(const Structure& paths) : Paths(paths.strings()) {}

  const std::vector<std::string>& list() const { return paths_; }

 private:
  std::vector<std::string> paths_;
};

}  // namespace cohort::data
