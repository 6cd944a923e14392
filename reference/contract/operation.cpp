#include "reference/contract/operation.hpp"

namespace kvo {

namespace json = boost::json;

std::optional<Difference> observation_difference(const OpKind& kind, const Observation& want,
                                                 const Observation& got) {
  if (want.error != got.error) {
    const auto shown = [](const Observation& seen) {
      return seen.error ? seen.error->text() : std::string("no error");
    };
    return Difference{"error", shown(want), shown(got)};
  }
  if (!want.returns || !got.returns) return std::nullopt;
  return kind.difference(want.returns.get(), got.returns.get());
}

json::object write_observation(const OpKind& kind, const Observation& seen) {
  json::object out = seen.returns ? kind.write_returns(seen.returns.get()) : json::object();
  if (!seen.error) return out;
  if (seen.error->code == Code::kPrecondition) {
    out["panic"] = seen.error->detail;
    return out;
  }
  out["error"] = seen.error->code_text();
  if (!seen.error->detail.empty()) out["detail"] = seen.error->detail;
  return out;
}

std::optional<Observation> read_observation(const OpKind& kind, const json::value& in,
                                            JsonFault& fault) {
  if (!in.is_object()) {
    detail::fault_at(fault, in, "is not an object");
    return std::nullopt;
  }
  json::object values = in.get_object();
  Observation seen;
  if (values.contains("panic")) {
    seen.error = fail(Code::kPrecondition);
    return seen;
  }
  if (const json::value* code = values.if_contains("error")) {
    if (!code->is_string()) {
      detail::fault_at(fault, *code, "is no error code");
      detail::fault_inside(fault, "error");
      return std::nullopt;
    }
    seen.error = error_of_code(code->get_string());
    for (const char* word : {"error", "detail", "stage"}) values.erase(word);
    if (values.empty()) return seen;
  }
  seen.returns = kind.read_returns(values, fault);
  if (!seen.returns) return std::nullopt;
  return seen;
}

std::string op_text(const Op& op) {
  json::object line;
  line["op"] = op.kind().name;
  line["args"] = op.kind().write_arguments(op.arguments());
  return json::serialize(line);
}

}  // namespace kvo
