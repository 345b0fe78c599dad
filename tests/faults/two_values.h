// What the tests of damaged and foreign checkpoints restore into, in a directory on the disk.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "cohort/train/checkpoint.h"
#include "cohort/train/objects/testing_objects.h"

namespace cohort::faults {

// Two objects that are always saved with one value: a mix of two checkpoints would show.
struct TwoValues {
  explicit TwoValues(float value) { set(value); }

  void set(float value) {
    a->values.assign(2, value);
    b->values.assign(3, value);
  }
  bool all(float value) const {
    return a->values == std::vector<float>(2, value) && b->values == std::vector<float>(3, value);
  }

  std::shared_ptr<train::Numbers> a = train::numbers({});
  std::shared_ptr<train::Numbers> b = train::numbers({});
  train::Checkpoint checkpoint{{"a", a}, {"b", b}};
};

// Removed with what is in it.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string name = testing::TempDir() + "checkpoint_faults.XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~ScratchDirectory() { std::filesystem::remove_all(path_); }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  std::string path(const std::string& name = "") const { return path_ + "/" + name; }
  std::string content(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void set_content(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }

 private:
  std::string path_;
};

}  // namespace cohort::faults
