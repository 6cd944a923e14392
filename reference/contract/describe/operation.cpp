#include "reference/contract/describe/operation.hpp"

#include "reference/contract/describe/json.hpp"

namespace kvo {

std::optional<Difference> observation_difference(const Observation& want, const Observation& got,
                                                 const Exactness& exactness) {
  if (want.error != got.error) {
    const auto shown = [](const Observation& seen) {
      return seen.error ? seen.error->text() : std::string("no error");
    };
    return Difference{"error", shown(want), shown(got)};
  }
  if (!want.returns || !got.returns) return std::nullopt;
  // What is wanted may have fewer members than the type.
  KVO_CHECK(want.returns.type().make == got.returns.type().make);
  return first_difference(want.returns.type(), want.returns.get(), got.returns.get(), exactness);
}

std::string op_text(const Op& op) {
  boost::json::object line;
  line["op"] = op.kind().name;
  line["args"] = write_record(op.arguments());
  return boost::json::serialize(line);
}

}  // namespace kvo
