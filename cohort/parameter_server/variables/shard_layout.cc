#include "cohort/parameter_server/variables/shard_layout.h"

#include <ATen/ops/cat.h>

#include "cohort/cluster/known_jobs.h"
#include "cohort/core/error.h"
#include "cohort/core/program/task_id.h"
#include "cohort/core/text.h"

namespace cohort::internal {

std::string device_of_ps(int ps) {
  return str("/job:", kPs, "/replica:0/task:", ps, "/device:CPU:0");
}

std::vector<int64_t> ShardLayout::shard_shape(size_t index) const {
  std::vector<int64_t> sizes = shape;
  if (is_divided()) sizes[0] = shards[index].rows.size();
  return sizes;
}

std::string ShardLayout::shard_name(size_t index) const {
  return is_divided() ? str(name, "/part_", index) : name;
}

Tensor ShardLayout::part_of(const Tensor& whole, const PlacedShard& shard) const {
  if (!is_divided()) return whole;
  return whole.narrow(0, shard.rows.begin, shard.rows.size());
}

void ShardLayout::add_all(std::vector<StoreClient::Known>& known) const {
  for (const PlacedShard& shard : shards) known.push_back({shard.place, -1, name});
}

void ShardLayout::add_rows(const Tensor& ids, std::vector<StoreClient::Rows>& rows) const {
  for (const ShardIds& part : split_ids(ids, shape[0], static_cast<int64_t>(shards.size()))) {
    rows.push_back({shards[part.shard].place, part.ids});
  }
}

// Another program has made it, from other data for instance.
void ShardLayout::check_part(size_t index, const Tensor& part) const {
  const std::vector<int64_t> expected = shard_shape(index);
  if (part.sizes() == at::IntArrayRef(expected) && part.scalar_type() == dtype) return;
  throw InvalidArgumentError(str("variable '", shard_name(index), "' is ", dtype_name(dtype), ' ',
                                 shape_str(expected), " in this task, but ",
                                 TaskId{kPs, shards[index].place.ps}, " has it as ", describe(part),
                                 "; make the same variables in the program of every task"));
}

Tensor ShardLayout::whole(std::span<const VariableStore::Value> parts) const {
  for (size_t i = 0; i < parts.size(); ++i) check_part(i, parts[i].tensor);
  return together(parts);
}

Tensor ShardLayout::together(std::span<const VariableStore::Value> parts) {
  if (parts.size() == 1) return parts[0].tensor;
  std::vector<Tensor> tensors;
  for (const VariableStore::Value& part : parts) tensors.push_back(part.tensor);
  return at::cat(tensors);
}

}  // namespace cohort::internal
