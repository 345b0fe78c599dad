#include "cohort/data/nodes/padding.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

bool same_kind(const Leaf& a, const Leaf& b) {
  if (a.is_tensor() != b.is_tensor() || a.dim() != b.dim()) return false;
  return a.is_strings() || a.tensor().scalar_type() == b.tensor().scalar_type();
}

std::string describe_leaf(const Leaf& leaf) {
  return leaf.is_tensor() ? describe(leaf.tensor()) : "string " + shape_str(leaf.sizes());
}

// The value as a scalar of `dtype`. Errors: InvalidArgument (it is another one there).
Tensor exact_scalar(const Tensor& value, DType dtype, const std::string& path) {
  if (value.dim() == 0) {
    const Tensor converted = value.to(dtype);
    if (value.scalar_type() == dtype) return converted;
    const auto before = value.to(float64).item<double>();
    const auto after = converted.to(float64).item<double>();
    if (before == after || (std::isnan(before) && std::isnan(after))) return converted;
  }
  throw InvalidArgumentError(str("padded_batch: the padding value at ", place(path), " is ",
                                 describe(value), ", of which no exact ", dtype_name(dtype),
                                 " scalar can be made; give one of the leaf's dtype"));
}

Leaf padding_for(const Leaf& leaf, const Leaf* given, const std::string& path) {
  if (leaf.is_tensor()) {
    const DType dtype = leaf.tensor().scalar_type();
    if (!given) return at::zeros({}, dtype);
    if (given->is_tensor()) return exact_scalar(given->tensor(), dtype, path);
  } else {
    if (!given) return StringTensor::scalar("");
    if (given->is_strings() && given->dim() == 0) return *given;
  }
  throw InvalidArgumentError(str("padded_batch: the padding value at ", place(path), " is ",
                                 describe_leaf(*given), ", but the leaf is ", describe_leaf(leaf)));
}

// Copies `leaf` to the front of row `row` of strings of shape `shape`.
void copy_strings(const StringTensor& leaf, const std::vector<int64_t>& shape, int64_t row,
                  std::vector<std::string>& out) {
  int64_t row_size = 1;
  for (const int64_t size : shape) row_size *= size;
  std::vector<int64_t> at(shape.size(), 0);
  for (int64_t i = 0; i < leaf.numel(); ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size(); ++d) offset = offset * shape[d] + at[d];
    out[static_cast<size_t>(row * row_size + offset)] = leaf[i];
    for (size_t d = shape.size(); d-- > 0;) {
      if (++at[d] < leaf.sizes()[d]) break;
      at[d] = 0;
    }
  }
}

Leaf pad_column(const std::vector<Leaf>& column, const std::vector<int64_t>& shape,
                const Leaf& padding) {
  std::vector<int64_t> batch_shape = shape;
  batch_shape.insert(batch_shape.begin(), static_cast<int64_t>(column.size()));
  if (column[0].is_strings()) {
    int64_t count = 1;
    for (const int64_t size : batch_shape) count *= size;
    std::vector<std::string> values(static_cast<size_t>(count),
                                    std::string(padding.strings().item()));
    for (size_t i = 0; i < column.size(); ++i) {
      copy_strings(column[i].strings(), shape, static_cast<int64_t>(i), values);
    }
    return StringTensor(values, batch_shape);
  }
  Tensor batch = at::empty(batch_shape, column[0].tensor().options());
  batch.fill_(padding.tensor());
  for (size_t i = 0; i < column.size(); ++i) {
    const Tensor& tensor = column[i].tensor();
    Tensor target = batch.select(0, static_cast<int64_t>(i));
    for (int64_t d = 0; d < tensor.dim(); ++d) target = target.narrow(d, 0, tensor.size(d));
    target.copy_(tensor);
  }
  return batch;
}

void check_number_of_shapes(const PaddedShapes& shapes, size_t leaves) {
  if (shapes.empty() || shapes.size() == leaves) return;
  throw InvalidArgumentError(str("padded_batch: there are ", shapes.size(),
                                 " padded shapes, but elements have ", leaves, " leaves"));
}

// The longest of each dimension, or as declared.
std::vector<int64_t> padded_shape(const std::vector<Leaf>& column,
                                  const std::vector<int64_t>* declared, const std::string& path,
                                  const Positions& indices) {
  std::vector<int64_t> shape(static_cast<size_t>(column[0].dim()), 0);
  if (declared && declared->size() != shape.size()) {
    throw InvalidArgumentError(
        str("padded_batch: element ", indices[0], " is ", describe_leaf(column[0]), " at ",
            place(path), ", but its padded shape ", shape_str(*declared), " has another rank"));
  }
  for (size_t i = 0; i < column.size(); ++i) {
    const std::vector<int64_t> sizes = column[i].sizes();
    for (size_t d = 0; d < shape.size(); ++d) {
      if (declared && (*declared)[d] != kUnknownDim && sizes[d] > (*declared)[d]) {
        throw InvalidArgumentError(str("padded_batch: element ", indices[static_cast<int64_t>(i)],
                                       " is ", describe_leaf(column[i]), " at ", place(path),
                                       ", which is longer than its padded shape ",
                                       shape_str(*declared)));
      }
      shape[d] = std::max(shape[d], sizes[d]);
    }
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (declared && (*declared)[d] != kUnknownDim) shape[d] = (*declared)[d];
  }
  return shape;
}

}  // namespace

std::vector<Leaf> padding_values(const Structure& element, const std::optional<Structure>& given) {
  const bool each = given && !given->is_leaf();
  if (each) {
    if (const auto difference = element.first_difference(*given)) {
      throw InvalidArgumentError(str(
          "padded_batch: padding_values is of another form than the elements, at ", *difference));
    }
  }
  const std::vector<Leaf> leaves = given ? given->flatten() : std::vector<Leaf>();
  std::vector<Leaf> values;
  element.for_each_with_path([&](const std::string& path, const Leaf& leaf) {
    // One scalar is for all leaves that can hold it: numbers and strings are seldom meant alike.
    const Leaf* value = leaves.empty() ? nullptr : &leaves[each ? values.size() : 0];
    values.push_back(padding_for(leaf, value, path));
  });
  return values;
}

void check_padding(const StructureSpec& spec, const PaddedShapes& shapes,
                   const std::optional<Structure>& padding) {
  const std::vector<TensorSpec> leaves = spec.flatten();
  check_number_of_shapes(shapes, leaves.size());
  const Structure example = spec.make_structure([](const TensorSpec& leaf) -> Leaf {
    if (leaf.is_string()) return StringTensor::scalar("");
    return at::zeros({}, leaf.dtype());
  });
  padding_values(example, padding);
  if (shapes.empty()) return;
  size_t i = 0;
  example.for_each_with_path([&](const std::string& path, const Leaf&) {
    const std::vector<int64_t>& padded = shapes[i];
    const TensorSpec& leaf = leaves[i++];
    if (!leaf.shape()) return;
    const std::vector<int64_t>& sizes = *leaf.shape();
    const auto fail = [&](const char* problem) {
      throw InvalidArgumentError(str("padded_batch: elements have ", leaf, " at ", place(path),
                                     ", ", problem, " ", shape_str(padded)));
    };
    if (sizes.size() != padded.size()) fail("but of another rank is their padded shape");
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (padded[d] == kUnknownDim || sizes[d] <= padded[d]) continue;
      fail("which is longer than their padded shape");
    }
  });
}

Structure pad_and_stack(const std::vector<Structure>& elements, const PaddedShapes& shapes,
                        const std::vector<Leaf>& padding, const Positions& indices) {
  std::vector<std::vector<Leaf>> columns(elements[0].num_leaves());
  check_number_of_shapes(shapes, columns.size());
  for (size_t i = 0; i < elements.size(); ++i) {
    const auto index = indices[static_cast<int64_t>(i)];
    if (const auto difference = elements[0].first_difference(elements[i])) {
      throw InvalidArgumentError(str("elements ", indices[0], " and ", index,
                                     " cannot be in one batch: their form differs at ",
                                     *difference));
    }
    size_t leaf = 0;
    elements[i].for_each_with_path([&](const std::string& path, const Leaf& value) {
      std::vector<Leaf>& column = columns[leaf++];
      if (!column.empty() && !same_kind(column[0], value)) {
        throw InvalidArgumentError(str(
            "elements ", indices[0], " and ", index, " cannot be in one batch: at ", place(path),
            " element ", indices[0], " is ", describe_leaf(column[0]), ", but element ", index,
            " is ", describe_leaf(value), "; padding changes neither rank nor dtype"));
      }
      column.push_back(value);
    });
  }
  std::vector<Leaf> leaves;
  elements[0].for_each_with_path([&](const std::string& path, const Leaf&) {
    const size_t i = leaves.size();
    const auto* declared = shapes.empty() ? nullptr : &shapes[i];
    leaves.push_back(
        pad_column(columns[i], padded_shape(columns[i], declared, path, indices), padding[i]));
  });
  return elements[0].pack(leaves);
}

}  // namespace cohort::internal
