// How a variable lies on ps tasks: whole on one, or in shards of its rows.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cohort/core/structure/tensor.h"
#include "cohort/parameter_server/store/store_client.h"
#include "cohort/parameter_server/variables/shard_rows.h"

namespace cohort::internal {

// "/job:ps/replica:0/task:1/device:CPU:0": where the variables of a ps task are.
std::string device_of_ps(int ps);

struct PlacedShard {
  ShardPlace place;
  RowRange rows;                                 // of a scalar none
  std::optional<ShardKey> owner = std::nullopt;  // StoreClient::NewShard
};

// A variable's name and form, and its shards, which cover it in order.
struct ShardLayout {
  std::string name;
  std::vector<int64_t> shape;
  DType dtype = float32;
  std::vector<PlacedShard> shards;

  bool is_divided() const { return shards.size() > 1; }
  std::vector<int64_t> shard_shape(size_t index) const;
  // "name/part_2"; of a variable that is not divided its name.
  std::string shard_name(size_t index) const;
  // The part of a tensor of the variable's shape that belongs to the shard; shares its memory.
  Tensor part_of(const Tensor& whole, const PlacedShard& shard) const;

  // Adds a question for each shard, of which nothing is known.
  void add_all(std::vector<StoreClient::Known>& shards) const;
  // Adds a question for each shard that has any of the rows. Shapes: ids [n], strictly ascending.
  void add_rows(const Tensor& ids, std::vector<StoreClient::Rows>& rows) const;
  // Errors: InvalidArgument (what a ps task has for a shard is of another shape or dtype; names
  // both).
  void check_part(size_t index, const Tensor& part) const;
  // The variable's value of those of its shards. Errors: those of check_part.
  Tensor whole(std::span<const VariableStore::Value> parts) const;
  // Values, or rows of them, one after another.
  static Tensor together(std::span<const VariableStore::Value> parts);
};

}  // namespace cohort::internal
