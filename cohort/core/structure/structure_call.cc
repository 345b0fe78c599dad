#include "cohort/core/structure/structure_call.h"

#include <ATen/ops/empty.h>
#include <c10/core/ScalarType.h>

#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/tree_form.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

// Dtypes and shapes; undefined tensors have none.
std::string contents(const Structure& value) {
  bool defined = true;
  value.for_each(
      [&](const Leaf& leaf) { defined &= leaf.is_strings() || leaf.tensor().defined(); });
  return defined ? str(StructureSpec::of(value)) : str(value);
}

// "tuple(x["image"], x["label"])", with at most three members written out.
std::string as_tuple(const Structure::Dict& members) {
  std::string text;
  for (size_t i = 0; i < members.size() && i < 3; ++i) {
    text += str(i == 0 ? "" : ", ", "x[\"", members[i].first, "\"]");
  }
  return str("tuple(", text, members.size() > 3 ? ", ...)" : ")");
}

// Members of a dict stand in the order in which somebody wrote them, which may differ from the
// order of the parameters: if they were taken by their place, a label could become an image.
[[noreturn]] void refuse_dict(const Structure& dict, const std::string& taker,
                              const CallSite& site) {
  throw InvalidArgumentError(str(
      taker, " by position, but ", site.input, " is ", describe_form(dict), ": ", contents(dict),
      "; members of a dict are taken by name: write a function of one Structure, "
      "[](const Structure& x), and take what it needs by key, or give a tuple instead, such as "
      "that of a map with [](const Structure& x) { return ",
      as_tuple(dict.items()), "; }"));
}

}  // namespace

void check_member_count(const Structure& input, size_t count, const CallSite& site) {
  if (input.is_tuple() && input.size() == count) return;
  if (input.is_dict()) {
    refuse_dict(input, str(site.function, " takes ", count, " ", site.argument, "s"), site);
  }
  throw InvalidArgumentError(
      str(site.function, " takes ", count, " ", site.argument, "s, but ", site.input, " is ",
          input.is_leaf() ? "one leaf" : describe_form(input), ": ", contents(input),
          "; take as many arguments as it has members, or one Structure"));
}

const Structure& sole_value(const Structure& input) {
  return input.is_tuple() && input.size() == 1 ? input[0] : input;
}

void check_parameter_members(const Structure& value, size_t count, size_t index,
                             const CallSite& site) {
  if (value.is_tuple() && value.size() == count) return;
  if (value.is_dict()) {
    refuse_dict(value,
                str("argument ", index, " of ", site.function, " has ", count, " members, taken"),
                site);
  }
  throw InvalidArgumentError(str(
      "argument ", index, " of ", site.function, " has ", count, " members, but ", site.input,
      " has ", value.is_leaf() ? "one leaf" : describe_form(value), " there: ", contents(value)));
}

const Tensor& tensor_value(const Structure& value, size_t index, const CallSite& site) {
  if (holds_leaf(value) && value.leaf().is_tensor()) return value.tensor();
  throw InvalidArgumentError(str("argument ", index, " of ", site.function,
                                 " is a number or Tensor, but ", site.input, " has ",
                                 contents(value),
                                 " there; take a Structure or StringTensor, or as many arguments "
                                 "as the tuple has members"));
}

const StringTensor& strings_value(const Structure& value, size_t index, const CallSite& site) {
  if (holds_leaf(value) && value.leaf().is_strings()) return value.strings();
  throw InvalidArgumentError(str("argument ", index, " of ", site.function,
                                 " is a string or StringTensor, but ", site.input, " has ",
                                 contents(value), " there"));
}

Tensor number_value(const Structure& value, DType dtype, size_t index, const CallSite& site) {
  const Tensor& tensor = tensor_value(value, index, site);
  if (tensor.numel() != 1 || tensor.dim() != 0 || !widens(tensor.scalar_type(), dtype)) {
    throw_wrong_scalar(index, dtype_name(dtype), describe(tensor), site);
  }
  return contiguous_elements(tensor.to(c10::TensorOptions().dtype(dtype).device(c10::kCPU)));
}

std::string_view string_value(const Structure& value, size_t index, const CallSite& site) {
  const StringTensor& strings = strings_value(value, index, site);
  if (strings.dim() != 0) {
    throw_wrong_scalar(index, "string", "strings of shape " + shape_str(strings.sizes()), site);
  }
  return strings.item();
}

bool widens(DType from, DType to) { return c10::promoteTypes(from, to) == to; }

void throw_wrong_scalar(size_t index, const std::string& type, const std::string& found,
                        const CallSite& site) {
  throw InvalidArgumentError(str("argument ", index, " of ", site.function, " is a ", type,
                                 ", but ", site.input, " has ", found,
                                 " there; declare the parameter as what ", site.input, " has"));
}

Tensor scalar_tensor(DType dtype) { return at::empty({}, dtype); }

}  // namespace cohort::internal
