#include "cohort/keras/layers/lookup/index_lookup.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "cohort/core/profiler/tracing.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/preprocessing/adapt.h"

namespace cohort::internal {
namespace {

using keras::layers::AdaptOptions;

// Tokens as a checkpoint holds them.
std::vector<std::string> texts_of(const std::vector<std::string_view>& tokens) {
  return {tokens.begin(), tokens.end()};
}
std::vector<std::string> texts_of(const std::vector<int64_t>& tokens) {
  std::vector<std::string> texts;
  for (const int64_t token : tokens) texts.push_back(str(token));
  return texts;
}

template <class Key>
Tokens<Key> tokens_of_texts(const StringTensor& texts, const std::string& what) {
  Tokens<Key> tokens;
  tokens.source = TokenSource::kLearned;
  if constexpr (std::is_same_v<Key, std::string_view>) {
    tokens.keys.assign(texts.data(), texts.data() + texts.numel());
    tokens.memory = std::make_shared<const StringTensor>(texts);
  } else {
    for (int64_t i = 0; i < texts.numel(); ++i) {
      if (const auto key = parse_number<int64_t>(texts[i])) {
        tokens.keys.push_back(*key);
        continue;
      }
      throw InvalidArgumentError(
          str(what, " takes integers, but the checkpoint has ", quoted(texts[i])));
    }
  }
  return tokens;
}

template <class Key>
StringTensor saved_tokens(const TokenTable<Key>& table) {
  return StringTensor(texts_of(table.tokens()));
}

// Each row is a document.
int64_t num_rows(const Leaf& data) { return data.dim() < 2 ? 1 : data.sizes()[0]; }

}  // namespace

template <class Key>
IndexLookup<Key>::IndexLookup(IndexLookupOptions<Key> options)
    : Layer(options.class_name, {.name = options.name, .autocast = false}),
      special_(options.special),
      max_tokens_(options.max_tokens),
      mode_(output_mode_of(options.output_mode, where())),
      pad_to_max_tokens_(options.pad_to_max_tokens),
      output_dtype_(output_dtype_of(mode_, options.dtype, where())),
      static_vocabulary_(!std::holds_alternative<std::monostate>(options.vocabulary)),
      state_(!static_vocabulary_, mode_ == OutputMode::kTfIdf,
             {.keys_are_text = !std::is_same_v<Key, int64_t>,
              .vocabulary = [this]() -> std::optional<StringTensor> {
                if (table_ == nullptr) return std::nullopt;
                return saved_tokens(*table_);
              },
              .prepare_vocabulary = [this](const StringTensor& texts) -> std::function<void()> {
                auto tokens = tokens_of_texts<Key>(texts, where());
                auto table = std::make_shared<const Table>(special_, std::move(tokens), where());
                check_size(special_.token_start() + table->size());
                return [this, table] { table_ = table; };
              },
              .idf_weights = [this] { return idf_weights_; },
              .set_idf_weights = [this](const Tensor& weights) { idf_weights_ = weights; }}) {
  special_.mask_has_index = mode_ == OutputMode::kInt;
  check(options);
  if (mode_ == OutputMode::kTfIdf) idf_weights_ = at::zeros({special_.token_start()});
  if (static_vocabulary_) set_vocabulary(options.vocabulary, options.idf_weights);
}

template <class Key>
void IndexLookup<Key>::check(const IndexLookupOptions<Key>& options) const {
  const auto fail = [this](const auto&... parts) {
    throw InvalidArgumentError(str(where(), ": ", parts...));
  };
  if (max_tokens_ && *max_tokens_ <= 1) {
    fail("max_tokens is ", *max_tokens_, "; it counts special tokens too and must be above 1");
  }
  if (pad_to_max_tokens_ && !max_tokens_) fail("pad_to_max_tokens needs max_tokens");
  constexpr int64_t kMostIndices = std::numeric_limits<int32_t>::max();
  if (special_.num_oov_indices < 0 || special_.num_oov_indices > kMostIndices) {
    fail("num_oov_indices is ", special_.num_oov_indices, ", not 0 to ", kMostIndices);
  }
  if (special_.invert && mode_ != OutputMode::kInt) {
    fail("output_mode must be 'int' where invert is true, but is ", quoted(options.output_mode));
  }
  if (!options.idf_weights.empty() && !static_vocabulary_) {
    fail("idf_weights were given without the vocabulary that they are of");
  }
  if (mode_ != OutputMode::kInt && !at::isFloatingType(output_dtype_)) {
    fail("with output_mode ", quoted(options.output_mode), " the dtype is a floating one, not ",
         dtype_name(output_dtype_));
  }
}

template <class Key>
std::string IndexLookup<Key>::where() const {
  return str("layer '", name(), "'");
}

template <class Key>
std::vector<train::TrackableChild> IndexLookup<Key>::checkpoint_children() {
  return state_.children();
}

template <class Key>
std::optional<keras::Config> IndexLookup<Key>::get_config() const {
  return layer_config(*this, [this](FieldWriter& field) {
    field("dtype", output_dtype_);
    field("invert", special_.invert);
    field("max_tokens", max_tokens_);
    field("num_oov_indices", special_.num_oov_indices);
    field("oov_token", special_.oov);
    field("mask_token", special_.mask);
    field("output_mode", output_mode_name(mode_));
    field.always("sparse", false);
    field("pad_to_max_tokens", pad_to_max_tokens_);
    field.always("vocabulary", nullptr);
    field.always("idf_weights", nullptr);
    field.without_effect("vocabulary_size", vocabulary_size());
    if constexpr (std::is_same_v<Key, int64_t>) {
      field.always("vocabulary_dtype", "int64");
    } else {
      field.always("encoding", "utf-8");
    }
    if (!static_vocabulary_) return;
    const bool with_special = mode_ == OutputMode::kTfIdf && special_.num_oov_indices == 1;
    const std::vector<Token> tokens = get_vocabulary(with_special);
    field("vocabulary", tokens);
    if (mode_ != OutputMode::kTfIdf) return;
    const int64_t first = with_special ? 0 : special_.token_start();
    field("idf_weights", idf_weights_.slice(0, first, first + static_cast<int64_t>(tokens.size())));
  });
}

// ---- calls --------------------------------------------------------------------------------------

template <class Key>
Structure IndexLookup<Key>::call(const Structure& inputs, const keras::CallOptions&) {
  if (!special_.invert) {
    return encode_inputs(inputs, encoding(), where(),
                         [this](const Leaf& leaf) { return find(leaf); });
  }
  if (!inputs.is_leaf()) {
    throw InvalidArgumentError(str(where(), " takes one leaf, but got ", inputs));
  }
  const Leaf tokens = invert(inputs.leaf());
  if (tokens.is_strings()) return tokens;
  return tokens.tensor().to(inputs.tensor().device());
}

template <class Key>
Tensor IndexLookup<Key>::find(const Leaf& input) const {
  const Keys<Key> keys = keys_of<Key>(input, where());
  Tensor indices = at::empty(input.sizes(), int64);
  if (is_tracing()) return indices.zero_();
  table().find(keys.data, keys.count, indices.data_ptr<int64_t>());
  return indices;
}

template <class Key>
Leaf IndexLookup<Key>::invert(const Leaf& input) const {
  if (!input.is_tensor() || !at::isIntegralType(input.tensor().scalar_type(), false)) {
    throw InvalidArgumentError(
        str(where(), " inverts integers, but got ", internal::describe_leaves(Structure(input))));
  }
  const Tensor indices =
      input.tensor().detach().to(c10::TensorOptions().dtype(int64).device(c10::kCPU)).contiguous();
  std::shared_ptr<const Table> table = table_;
  if (is_tracing()) table = std::make_shared<const Table>(special_, Tokens<Key>(), where());
  if (table == nullptr) this->table();
  return Table::tokens_at(table, indices);
}

template <class Key>
Encoding IndexLookup<Key>::encoding() const {
  if (mode_ == OutputMode::kInt) return {.mode = mode_, .dtype = output_dtype_};
  if (!pad_to_max_tokens_) table();
  const Encoding encoding{mode_, pad_to_max_tokens_ ? *max_tokens_ : vocabulary_size(),
                          output_dtype_, idf_weights_};
  if (mode_ == OutputMode::kTfIdf && idf_weights_.numel() != encoding.depth) {
    throw FailedPreconditionError(str(where(), " has ", idf_weights_.numel(), " idf_weights for ",
                                      encoding.depth,
                                      " tokens; restore them together with their vocabulary"));
  }
  return encoding;
}

template <class Key>
const TokenTable<Key>& IndexLookup<Key>::table() const {
  if (table_ != nullptr) return *table_;
  throw FailedPreconditionError(
      str(where(),
          " has no vocabulary yet: give it one (.vocabulary, set_vocabulary), or let it "
          "adapt to data, before it is called"));
}

// ---- the vocabulary -----------------------------------------------------------------------------

template <class Key>
int64_t IndexLookup<Key>::vocabulary_size() const {
  return special_.token_start() + (table_ == nullptr ? 0 : table_->size());
}

template <class Key>
std::vector<typename IndexLookup<Key>::Token> IndexLookup<Key>::get_vocabulary(
    bool include_special_tokens) const {
  std::vector<Token> vocabulary;
  if (include_special_tokens) vocabulary = special_.all();
  if (table_ == nullptr) return vocabulary;
  const std::vector<Key> tokens = table_->tokens();
  vocabulary.insert(vocabulary.end(), tokens.begin(), tokens.end());
  return vocabulary;
}

template <class Key>
void IndexLookup<Key>::set_vocabulary(const VocabularySource& source,
                                      const std::vector<double>& idf_weights) {
  const auto fail = [this](const auto&... parts) {
    throw InvalidArgumentError(str(where(), ": ", parts...));
  };
  const auto* file = std::get_if<VocabularyFile>(&source);
  if (std::holds_alternative<std::monostate>(source)) fail("set_vocabulary got no vocabulary");
  if (mode_ == OutputMode::kTfIdf) {
    if (file != nullptr) fail("output_mode 'tf_idf' takes no vocabulary from a file");
    if (idf_weights.empty()) fail("output_mode 'tf_idf' needs idf_weights for its vocabulary");
  } else if (!idf_weights.empty()) {
    fail("idf_weights are for output_mode 'tf_idf' only");
  }
  Tokens<Key> tokens = read_vocabulary<Key>(source, where());
  const size_t given = tokens.size();
  if (given == 0) {
    fail("the vocabulary", file == nullptr ? "" : " file " + quoted(file->path), " is empty");
  }
  if (mode_ == OutputMode::kTfIdf && idf_weights.size() != given) {
    fail("there are ", idf_weights.size(), " idf_weights for ", given, " tokens");
  }
  auto table = std::make_shared<const Table>(special_, std::move(tokens), where());
  Tensor weights;
  if (mode_ == OutputMode::kTfIdf)
    weights = given_weights(idf_weights, table->had_special_tokens());
  install(std::move(table), std::move(weights));
}

template <class Key>
void IndexLookup<Key>::install(std::shared_ptr<const Table> table, Tensor idf_weights) {
  check_size(special_.token_start() + table->size());
  table_ = std::move(table);
  if (mode_ == OutputMode::kTfIdf) idf_weights_ = std::move(idf_weights);
}

template <class Key>
void IndexLookup<Key>::check_size(int64_t size) const {
  if (max_tokens_ && size > *max_tokens_) {
    throw InvalidArgumentError(str(where(), ": the vocabulary has ", size,
                                   " tokens with the special ones, but max_tokens is ",
                                   *max_tokens_));
  }
  if (mode_ == OutputMode::kInt || pad_to_max_tokens_ || table_ == nullptr) return;
  if (size != vocabulary_size()) {
    throw FailedPreconditionError(str(where(), ": its outputs have ", vocabulary_size(),
                                      " columns, one a token, so that a "
                                      "new vocabulary of ",
                                      size,
                                      " tokens does not fit; max_tokens with "
                                      "pad_to_max_tokens keeps their number"));
  }
}

namespace {

// [front... , weights, zeros] of `depth` or as many as there are.
Tensor padded(const std::vector<double>& weights, int64_t front, double front_value,
              std::optional<int64_t> depth) {
  std::vector<double> all(static_cast<size_t>(front), front_value);
  all.insert(all.end(), weights.begin(), weights.end());
  if (depth && static_cast<size_t>(*depth) > all.size()) all.resize(static_cast<size_t>(*depth));
  return at::tensor(all, at::dtype(at::kDouble)).to(float32);
}

double mean(const std::vector<double>& values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

// Nothing is known of special tokens: they weigh as much as the others on average.
template <class Key>
Tensor IndexLookup<Key>::given_weights(const std::vector<double>& weights,
                                       bool with_special_tokens) const {
  const int64_t front = with_special_tokens ? 0 : special_.token_start();
  return padded(weights, front, front == 0 ? 0 : mean(weights),
                pad_to_max_tokens_ ? max_tokens_ : std::nullopt);
}

// ---- learning -----------------------------------------------------------------------------------

template <class Key>
void IndexLookup<Key>::count(TokenCounter<Key>& counter, const Leaf& data) const {
  const Keys<Key> keys = keys_of<Key>(data, str(where(), ": adapt"));
  const int64_t rows = num_rows(data);
  if (rows == 0) return;
  const int64_t per_row = keys.count / rows;
  for (int64_t row = 0; row < rows; ++row) {
    counter.add_document(keys.data + row * per_row, per_row);
  }
}

template <class Key>
template <class Data>
void IndexLookup<Key>::learn(const Data& data, const AdaptOptions& options) {
  if (static_vocabulary_) {
    throw FailedPreconditionError(
        str(where(), " was made with a vocabulary and cannot adapt; leave .vocabulary out"));
  }
  TokenCounter<Key> counter;
  read_to_adapt(data, options, where(), [&](const Leaf& leaf) { count(counter, leaf); });
  finish_adapt(counter);
}

template <class Key>
void IndexLookup<Key>::adapt(const data::Dataset& dataset, const AdaptOptions& options) {
  learn(dataset, options);
}

template <class Key>
void IndexLookup<Key>::adapt(const Leaf& data, const AdaptOptions& options) {
  learn(data, options);
}

template <class Key>
void IndexLookup<Key>::finish_adapt(const TokenCounter<Key>& counter) {
  if (counter.num_documents() == 0) {
    throw InvalidArgumentError(str(where(), ": adapt got no data"));
  }
  std::vector<Key> special = {Key(special_.oov)};
  if (special_.mask) special.push_back(Key(*special_.mask));
  const int64_t room = max_tokens_ ? std::max<int64_t>(0, *max_tokens_ - special_.token_start())
                                   : std::numeric_limits<int64_t>::max();
  auto counted = counter.most_frequent(room, special);
  Tensor weights;
  if (mode_ == OutputMode::kTfIdf) {
    weights = learned_weights(counted.documents, counter.num_documents());
  }
  install(std::make_shared<const Table>(special_, std::move(counted.tokens), where()),
          std::move(weights));
}

template <class Key>
Tensor IndexLookup<Key>::learned_weights(const std::vector<int64_t>& documents,
                                         int64_t num_documents) const {
  std::vector<double> weights;
  for (const int64_t with_token : documents) {
    weights.push_back(
        std::log1p(static_cast<double>(num_documents) / static_cast<double>(1 + with_token)));
  }
  return padded(weights, special_.token_start(), mean(weights),
                pad_to_max_tokens_ ? max_tokens_ : std::nullopt);
}

template class IndexLookup<std::string_view>;
template class IndexLookup<int64_t>;

}  // namespace cohort::internal
