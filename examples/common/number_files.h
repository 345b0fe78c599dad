// TFRecord files of numbers, in a folder that lives as long as the object.
#pragma once

#include <cohort/cohort.h>

#include <string>
#include <vector>

namespace examples {

class NumberFiles {
 public:
  // 0, 1, ... spread over as many files as there are counts.
  explicit NumberFiles(const std::vector<int>& counts);
  ~NumberFiles();
  NumberFiles(const NumberFiles&) = delete;
  NumberFiles& operator=(const NumberFiles&) = delete;

  // The numbers, read from the files.
  cohort::data::Dataset dataset() const;

 private:
  std::string folder_;
  std::vector<std::string> paths_;
};

}  // namespace examples
