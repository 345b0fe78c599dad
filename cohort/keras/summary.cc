#include <c10/util/accumulate.h>

#include <algorithm>
#include <array>
#include <iostream>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/model.h"

namespace cohort::keras {
namespace {

constexpr size_t kWidth = 65;
constexpr std::array<size_t, 3> kColumnEnds = {29, 55, 65};

using Row = std::array<std::string, 3>;

// Keras leaves two blanks between columns; what is too long goes on in the next line.
std::string format_row(Row row) {
  std::string text;
  while (!(row[0].empty() && row[1].empty() && row[2].empty())) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      const size_t room = kColumnEnds[i] - line.size() - (last ? 0 : 2);
      line += row[i].substr(0, room);
      row[i].erase(0, room);
      line.resize(kColumnEnds[i], ' ');
    }
    text += line + '\n';
  }
  return text;
}

// "(None, 26, 26, 32)".
std::string shape_text(const TensorSpec& spec) {
  std::string text;
  for (const int64_t size : *spec.shape()) {
    text += text.empty() ? "" : ", ";
    text += size == kUnknownDim ? "None" : internal::decimal_digits(size);
  }
  return spec.shape()->size() == 1 ? "(" + text + ",)" : "(" + text + ")";
}

std::string output_text(const layers::Layer& layer) {
  if (!layer.output_spec()) return "?";
  const std::vector<TensorSpec> leaves = layer.output_spec()->flatten();
  std::string text;
  for (const TensorSpec& leaf : leaves) text += (text.empty() ? "" : ", ") + shape_text(leaf);
  return leaves.size() == 1 ? text : "[" + text + "]";
}

struct Size {
  int64_t count = 0;
  double bytes = 0;
};

Size size_of(const std::vector<Variable>& variables) {
  Size size;
  for (const Variable& variable : variables) {
    const int64_t count = c10::multiply_integers(variable.shape());
    size.count += count;
    size.bytes +=
        static_cast<double>(count) * static_cast<double>(at::elementSize(variable.dtype()));
  }
  return size;
}

// "Total params: 320 (1.25 KB)".
std::string total_line(const char* what, const Size& size) {
  constexpr std::array<const char*, 5> kUnits = {"Byte", "KB", "MB", "GB", "TB"};
  double amount = size.bytes;
  size_t unit = 0;
  while (amount >= 1024 && unit + 1 < kUnits.size()) {
    amount /= 1024;
    ++unit;
  }
  return internal::str(what, " params: ", size.count, " (", internal::fixed_digits(amount, 2), ' ',
                       kUnits[unit], ")\n");
}

}  // namespace

void Model::summary() const { summary(std::cout); }
void Model::summary(std::ostream& out) const { out << summary_text() << std::flush; }

std::string Model::summary_text() const {
  if (!built()) {
    throw FailedPreconditionError(
        internal::str("model '", name(),
                      "' is not built yet, so its shapes are unknown; call it on a batch, or "
                      "give it a keras::Input, before summary()"));
  }
  const std::string thin(kWidth, '_');
  const std::string thick(kWidth, '=');
  std::string text = "Model: \"" + name() + "\"\n" + thin + '\n';
  text += format_row({"Layer (type)", "Output Shape", "Param #"}) + thick + '\n';
  for (size_t i = 0; i < children().size(); ++i) {
    const layers::Layer& layer = *children()[i].layer;
    if (i > 0) text += std::string(kWidth, ' ') + '\n';
    text += format_row({layer.name() + " (" + layer.class_name() + ")", output_text(layer),
                        internal::decimal_digits(layer.count_params())});
  }
  text += thick + '\n';
  text += total_line("Total", size_of(variables()));
  text += total_line("Trainable", size_of(trainable_variables()));
  text += total_line("Non-trainable", size_of(non_trainable_variables()));
  return text + thin + '\n';
}

}  // namespace cohort::keras
