// The values of a checkpoint's nodes for the objects that are being restored.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/objects/object_graph.h"
#include "cohort/train/objects/remote_values.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::internal {

// Collects what objects want; reads it; hands it over. Thread safety: none.
class NodeSource final : public train::RestoreSource {
 public:
  // `late`: the whole checkpoint was verified before. `files`: the bundle's.
  NodeSource(FileSystem& files, const BundleReader& bundle, bool late)
      : files_(files), bundle_(bundle), late_(late) {}

  // Whose values are asked for from here on.
  void set_node(const ObjectGraph::Node& node) { node_ = &node; }

  // Whether there is such a value. Errors: DataLoss (the index lacks it).
  bool has(std::string_view attribute, at::IntArrayRef shape, DType dtype) const;
  std::optional<std::vector<int64_t>> shape(std::string_view attribute) const override;
  bool late() const override { return late_; }
  void read(std::string_view attribute, at::IntArrayRef shape, DType dtype, Take take) override;
  void read_slice(std::string_view attribute, at::IntArrayRef full_shape,
                  const train::TensorSlice& slice, DType dtype, Take take) override;
  void read_remote(std::string_view attribute, at::IntArrayRef full_shape,
                   const std::optional<train::TensorSlice>& slice,
                   const std::shared_ptr<const train::RemotePart>& part, Take take) override;
  StringTensor read_strings(std::string_view attribute) override;
  void on_commit(std::function<void()> action) override { actions_.push_back(std::move(action)); }

  // Reads what was asked for and, unless it is late, verifies all the rest. Errors: DataLoss, those
  // of RemoteKeeper::read.
  void fill();
  // Hands everything over, in the order in which it was asked for.
  void commit();
  // Lets the processes of `keeper` read these; their parts change when this commits. false: it
  // cannot be that they find the checkpoint, or some process does not. Errors: those of
  // RemoteKeeper::read.
  bool read_by(train::RemoteKeeper& keeper, const std::vector<train::RemoteRead>& wanted);
  // The keys of what was asked for.
  const std::set<std::string, std::less<>>& keys() const { return keys_; }

 private:
  struct Remote {
    train::RemoteRead read;
    Take take;
  };

  const ObjectGraph::Attribute* find(std::string_view attribute) const;
  const BundleEntry& entry_of(const ObjectGraph::Attribute& attribute) const;
  void read_elsewhere();
  bool send_by(train::RemoteKeeper& keeper, const std::vector<train::RemoteRead>& wanted);
  Tensor value_of(const train::RemoteRead& wanted) const;
  void read_here(Remote remote);
  void read_slice_of(const std::string& key, const train::TensorSlice& slice, DType dtype,
                     Take take);
  void read_whole(const std::string& key, at::IntArrayRef shape, DType dtype, Take take);
  const std::string& key_of(std::string_view attribute);
  const std::string& checked_key(std::string_view attribute, at::IntArrayRef shape, DType dtype);

  FileSystem& files_;
  const BundleReader& bundle_;
  const bool late_;
  const ObjectGraph::Node* node_ = nullptr;
  std::vector<std::function<void()>> actions_;
  std::map<std::string, Tensor, std::less<>> wanted_;
  std::vector<Remote> remote_;
  std::set<std::string, std::less<>> verified_elsewhere_;  // keys
  std::set<std::string, std::less<>> keys_;
};

// Errors: DataLoss (of booleans, a byte that is neither 0 nor 1: who reads that has undefined
// behaviour).
void check_booleans(const BundleReader& bundle, std::string_view key, const Tensor& value);

}  // namespace cohort::internal
