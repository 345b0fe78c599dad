// Makes a tensor of strings, one after another.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/structure/string_tensor.h"

namespace cohort::internal {

// Thread safety: none.
class TextBuilder {
 public:
  // Keeps `texts` alive, so that parts of its strings can be added without a copy.
  explicit TextBuilder(StringTensor texts = {}) : memory_(std::make_shared<Memory>()) {
    memory_->texts = std::move(texts);
  }

  void add_part(std::string_view of_texts) { memory_->views.push_back(of_texts); }
  void add(std::string text) {
    memory_->views.push_back(memory_->made.emplace_back(std::move(text)));
  }
  int64_t size() const { return static_cast<int64_t>(memory_->views.size()); }

  StringTensor finish(std::vector<int64_t> shape) && {
    const std::string_view* views = memory_->views.data();
    return StringTensor::over(std::move(memory_), views, std::move(shape));
  }
  StringTensor finish() && {
    const int64_t count = size();
    return std::move(*this).finish({count});
  }

 private:
  struct Memory {
    StringTensor texts;
    std::deque<std::string> made;
    std::vector<std::string_view> views;
  };
  std::shared_ptr<Memory> memory_;
};

}  // namespace cohort::internal
