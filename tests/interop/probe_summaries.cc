#include <ATen/ops/ones.h>
#include <cohort/cohort.h>

#include <filesystem>
#include <string>
#include <vector>

#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {

Json write_summaries(const Json& request) {
  const auto writer = summary::create_file_writer(request.at("logdir").get<std::string>());
  {
    const auto scope = writer.as_default();
    for (const Json& record : request.at("summaries")) {
      const std::string kind = record.at("kind");
      const std::string name = record.at("name");
      const int64_t step = record.at("step");
      const std::string description = record.value("description", "");
      if (kind == "scalar") {
        summary::scalar(name, tensor_of(record.at("data")),
                        {.step = step, .description = description});
      } else if (kind == "histogram") {
        summary::histogram(name, tensor_of(record.at("data")),
                           {.step = step,
                            .buckets = record.value("buckets", int64_t{30}),
                            .description = description});
      } else if (kind == "image") {
        summary::image(name, tensor_of(record.at("data")),
                       {.step = step,
                        .max_outputs = record.value("max_outputs", int64_t{3}),
                        .description = description});
      } else {
        const StringTensor strings(record.at("data").at("values").get<std::vector<std::string>>(),
                                   record.at("data").at("shape").get<std::vector<int64_t>>());
        summary::text(name, strings, {.step = step, .description = description});
      }
    }
  }
  writer.close();
  return {{"path", writer.path()}};
}

Json trace_steps(const Json& request) {
  const std::string logdir = request.at("logdir");
  const auto writer = summary::create_file_writer(logdir);
  {
    const auto scope = writer.as_default(2);
    summary::trace_on({.profiler = true});
    const distribute::OneDeviceStrategy strategy("CPU:0");
    const Tensor x = at::ones({100, 100});
    for (int i = 0; i < 2; ++i) strategy.run([&] { return x.matmul(x); });
    summary::trace_export(request.at("name").get<std::string>(), {.profiler_outdir = logdir});
  }
  writer.close();
  Json paths = Json::array();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(logdir)) {
    if (entry.is_regular_file()) paths.push_back(entry.path().string());
  }
  return {{"paths", paths}};
}

}  // namespace cohort::interop
