#include <cohort/train/summary/summary.h>

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

}  // namespace cohort::interop
