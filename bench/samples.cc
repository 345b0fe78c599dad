#include "samples.h"

#include <ATen/ops/empty.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace bench {
namespace {

at::Tensor read(const std::string& path, const std::vector<int64_t>& shape, at::ScalarType dtype) {
  const at::Tensor values = at::empty(shape, dtype);
  std::ifstream file(path, std::ios::binary);
  file.read(static_cast<char*>(values.data_ptr()), static_cast<std::streamsize>(values.nbytes()));
  if (!file) throw std::runtime_error(path + " is missing or short");
  return values;
}

std::vector<int64_t> sizes_of_line(std::istream& file) {
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  std::vector<int64_t> sizes;
  for (int64_t size = 0; words >> size;) sizes.push_back(size);
  return sizes;
}

}  // namespace

Samples::Samples(const std::string& directory, const std::string& name) {
  const std::string path = directory + "/" + name;
  std::ifstream file(path + ".shape");
  std::string dtype;
  if (!(file >> dtype)) throw std::runtime_error(path + ".shape is missing");
  inputs_ = read(path + ".inputs", sizes_of_line(file), dtype == "int64" ? at::kLong : at::kFloat);
  labels_ = read(path + ".labels", sizes_of_line(file), at::kLong);
}

std::pair<at::Tensor, at::Tensor> Samples::batch(int64_t index, int64_t size) const {
  if (size < 1 || size * kInputs > inputs_.size(0)) {
    throw std::out_of_range("there are not samples enough for batches of " + std::to_string(size));
  }
  return {inputs_.narrow(0, index % kInputs * size, size),
          labels_.narrow(0, index % kLabels * size, size)};
}

}  // namespace bench
