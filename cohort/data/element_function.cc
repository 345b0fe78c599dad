#include "cohort/data/element_function.h"

#include <ATen/ops/empty.h>

#include <span>

#include "cohort/core/structure/contiguous_elements.h"

namespace cohort::internal {
namespace {

// Arguments of a ScalarFunction, found in an element (rank 0) or a block (rank 1).
class ArgumentColumns {
 public:
  ArgumentColumns(const std::vector<ScalarType>& types, const Structure& value, int64_t rank)
      : rank_(rank) {
    tensors_.reserve(types.size());
    if (types.size() == 1) {
      add(types[0], sole_value(value), 0);
    } else {
      check_member_count(value, types.size(), kElementSite);
      for (size_t i = 0; i < types.size(); ++i) add(types[i], value[i], i);
    }
  }
  const ScalarInput* inputs() const { return inputs_.data(); }

 private:
  void add(const ScalarType& type, const Structure& value, size_t argument) {
    if (type.is_string) {
      const StringTensor& strings = strings_value(value, argument, kElementSite);
      if (strings.dim() != rank_) fail(type, value, argument);
      inputs_.push_back({.strings = &strings});
      return;
    }
    const Tensor& tensor = tensor_value(value, argument, kElementSite);
    if (tensor.dim() != rank_ || !widens(tensor.scalar_type(), type.dtype)) {
      fail(type, value, argument);
    }
    tensors_.push_back(
        contiguous_elements(tensor.to(c10::TensorOptions().dtype(type.dtype).device(c10::kCPU))));
    inputs_.push_back({.numbers = tensors_.back().data_ptr()});
  }
  [[noreturn]] void fail(const ScalarType& type, const Structure& value, size_t argument) const {
    std::vector<int64_t> shape = value.leaf().sizes();
    shape.erase(shape.begin(), shape.begin() + std::min<int64_t>(rank_, value.leaf().dim()));
    throw_wrong_scalar(
        argument, type.is_string ? "string" : dtype_name(type.dtype),
        str(value.leaf().is_strings() ? "string" : dtype_name(value.tensor().scalar_type()), " ",
            shape_str(shape)),
        kElementSite);
  }

  int64_t rank_;
  std::vector<Tensor> tensors_;  // keeps converted ones alive
  std::vector<ScalarInput> inputs_;
};

Structure run(const ScalarFunction& function, const Structure& value,
              const std::vector<int64_t>& shape, int64_t n, int64_t& row) {
  const ArgumentColumns arguments(function.arguments, value, static_cast<int64_t>(shape.size()));
  const size_t count = function.results.size();
  std::vector<Tensor> numbers(count);
  std::vector<std::vector<std::string>> strings(count);
  std::vector<ScalarOutput> outputs(count);
  for (size_t i = 0; i < count; ++i) {
    if (function.results[i].is_string) {
      strings[i].reserve(static_cast<size_t>(n));
      outputs[i].strings = &strings[i];
    } else {
      numbers[i] = at::empty(shape, function.results[i].dtype);
      outputs[i].numbers = numbers[i].data_ptr();
    }
  }
  function.loop(arguments.inputs(), outputs.data(), n, row);
  auto result = [&](size_t i) -> Structure {
    if (function.results[i].is_string) return StringTensor(strings[i], shape);
    return std::move(numbers[i]);
  };
  if (!function.returns_tuple) return result(0);
  std::vector<Structure> members;
  for (size_t i = 0; i < count; ++i) members.push_back(result(i));
  return Structure::make_tuple(std::move(members));
}

// The rows of what will be argument 0.
int64_t rows_of(const Structure& block, size_t arity) {
  const Structure& first = arity == 1 ? sole_value(block) : block.is_leaf() ? block : block[0];
  if (!first.is_leaf() || first.leaf().dim() == 0) return 0;  // which the arguments will refuse
  return first.leaf().sizes()[0];
}

}  // namespace

std::function<Structure(const random::Generator&, const Structure&)> with_own_generator(
    StructureFunction<random::Generator> call) {
  return [call = std::move(call)](const random::Generator& generator, const Structure& element) {
    random::Generator mine = generator;  // a handle: functions may ask for Generator&
    return call(mine, element);
  };
}

Structure ScalarFunction::apply(const Structure& element, int64_t& row) const {
  return run(*this, element, {}, 1, row);
}

Structure ScalarFunction::apply_block(const Structure& block, int64_t& row) const {
  if (arguments.size() > 1) check_member_count(block, arguments.size(), kElementSite);
  const int64_t rows = rows_of(block, arguments.size());
  return run(*this, block, {rows}, rows, row);
}

StructureSpec ScalarFunction::result_spec() const {
  auto spec = [](const ScalarType& type) -> StructureSpec {
    const std::vector<int64_t> scalar;
    return type.is_string ? TensorSpec::strings(scalar) : TensorSpec(scalar, type.dtype);
  };
  if (!returns_tuple) return spec(results[0]);
  std::vector<StructureSpec> members;
  for (const ScalarType& type : results) members.push_back(spec(type));
  return StructureSpec::make_tuple(std::move(members));
}

}  // namespace cohort::internal
