// Whole models: loaded from a directory, used, trained and saved into another.
#include <cohort/cohort.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "optimizer_json.h"
#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {
namespace {

// A layer of the program, which test_models.py has in Python; its name is no matter of its own.
class Scale : public keras::layers::Layer {
 public:
  explicit Scale(double factor) : factor_(factor) {}
  std::optional<keras::Config> get_config() const override {
    return keras::Config().set("factor", factor_);
  }

 protected:
  void build(const std::vector<keras::Shape>&) override {
    weight_ = add_weight("weight", {}, {.initializer = "ones"});
  }
  Tensor call(const Tensor& x, const keras::CallOptions&) override {
    return x * factor_ * weight_.value();
  }

 private:
  double factor_;
  Variable weight_;
};

}  // namespace

Json use_model(const Json& request) {
  const keras::ModelHandle model = keras::models::load_model(
      request.at("path").get<std::string>(),
      {.custom_objects = {{"Scale", [](const keras::Config& config) {
                             return std::make_shared<Scale>(config.get_double("factor"));
                           }}}});
  const Structure inputs = structure_of(request.at("inputs"));
  Json outputs = Json::array();
  for (const Leaf& output : model(inputs, {.training = false}).flatten()) outputs.push_back(json_of(output.tensor()));
  Json losses = Json::array();
  Json all_logs = Json::array();
  if (request.contains("labels")) {
    const Structure labels = structure_of(request.at("labels"));
    for (int step = 0; step < request.at("steps").get<int>(); ++step) {
      const keras::Logs logs = model.train_on_batch(inputs, labels, {.reset_metrics = true});
      losses.push_back(logs["loss"]);
      Json& all = all_logs.emplace_back(Json::object());
      for (const auto& [name, value] : logs) all[name] = value;
    }
  }
  if (request.contains("save")) model.save(request.at("save").get<std::string>());
  return {{"outputs", std::move(outputs)},
          {"losses", std::move(losses)},
          {"logs", std::move(all_logs)}};
}

Json use_weights(const Json& request) {
  const keras::ModelHandle model =
      keras::models::model_from_json(request.at("json").get<std::string>());
  const Json& optimizer = request.at("optimizer");
  model.compile(
      {.optimizer = make_optimizer(optimizer.at("class"), optimizer.at("options")), .loss = "mse"});
  model.load_weights(request.at("load").get<std::string>());
  Json answer = {{"loaded", model.optimizer().iterations().value().item<int64_t>()},
                 {"losses", Json::array()}};
  for (int step = 0; step < request.at("steps").get<int>(); ++step) {
    answer["losses"].push_back(model.train_on_batch(tensor_of(request.at("inputs")),
                                                    tensor_of(request.at("labels")))["loss"]);
  }
  model.save_weights(request.at("save").get<std::string>());
  return answer;
}

Json fit_with_tensor_board(const Json& request) {
  random::set_seed(3);
  const auto images = keras::datasets::synthetic_images({.num_train = 600, .num_test = 100});
  const keras::Sequential model(
      {keras::Input({28, 28, 1}, {.name = "image"}), keras::layers::Rescaling(1.0 / 255),
       keras::layers::Conv2D(8, 3, {.activation = "relu"}), keras::layers::MaxPooling2D(),
       keras::layers::Flatten(), keras::layers::Dense(10)});
  model.compile({.optimizer = keras::optimizers::Adam({.learning_rate = 1e-3}),
                 .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"}});
  const keras::History history =
      model.fit(expand_dims(images.train.images, -1), images.train.labels,
                {.batch_size = 50,
                 .epochs = request.at("epochs").get<int64_t>(),
                 .verbose = 0,
                 .callbacks = {keras::callbacks::TensorBoard({.log_dir = request.at("log_dir"),
                                                              .histogram_freq = 1,
                                                              .write_steps_per_second = true,
                                                              .update_freq = "batch",
                                                              .profile_batch = {3, 5}})},
                 .validation_split = 0.2});
  return {{"loss", history["loss"]}, {"val_accuracy", history["val_accuracy"]}};
}

}  // namespace cohort::interop
