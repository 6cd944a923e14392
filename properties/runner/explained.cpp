#include "properties/runner/explained.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "reference/contract/describe/element.hpp"
#include "reference/contract/describe/json.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/strided_view.hpp"

namespace kvo {
namespace {

/// What baseline and subject observe of the operation at which they differ.
struct Ending {
  Op op;
  Observation want;
  Observation got;
};

/// How a described record says that rows are stored, if it does.
std::optional<StorageFormat> format_in(const Record& record) {
  if (!record) return std::nullopt;
  const boost::json::object members = write_json(record.type(), record.get()).as_object();
  StorageFormat format;
  bool found = false;
  for (const Field& field : record.type().fields) {
    const auto* const value = members.if_contains(field.name);
    if (value == nullptr) continue;
    if (&field.type->value_type() == &type_of<StorageType>()) {
      for (const Enumerator& each : type_of<StorageType>().enumerators)
        if (value->is_string() && value->as_string() == each.word)
          format.type = static_cast<StorageType>(each.value);
      found = true;
    }
    if (field.name == "group" && value->is_int64()) format.group = value->as_int64();
    if (field.name == "offset" && value->is_bool()) format.offset = value->as_bool();
  }
  return found ? std::optional(format) : std::nullopt;
}

/// The tensors of an observation, in order.
std::vector<Tensor> tensors_of(const Observation& seen) {
  std::vector<Tensor> all;
  if (seen.returns)
    for_each_tensor(
        seen.returns.type(), seen.returns.get(),
        [&](std::string_view, const Tensor& tensor, AxisNames) { all.push_back(tensor); });
  return all;
}

/// "step 0.0157", with ", offset 0" where groups have one.
std::string scale_text(const StorageFormat& format, std::span<const float> group) {
  std::vector<std::byte> bytes(stored_bytes(format, group.size()));
  encode(format, group, bytes.data());
  std::string text = "step " + float_text(load_element(DType::kF16, bytes.data()));
  if (format.offset) text += ", offset " + float_text(load_element(DType::kF16, bytes.data() + 2));
  return text;
}

/// Steps of the first group that differs, where rows are codes.
void add_steps(const std::optional<StorageFormat>& format, const Ending& ending,
               std::vector<std::string>& lines) {
  if (!format || !in_groups(format->type)) return;
  const std::vector<Tensor> want = tensors_of(ending.want);
  const std::vector<Tensor> got = tensors_of(ending.got);
  for (std::size_t i = 0; i < std::min(want.size(), got.size()); ++i) {
    if (want[i] == got[i]) continue;
    if (want[i].shape != got[i].shape || want[i].shape.empty() || want[i].dtype != DType::kF32 ||
        got[i].dtype != DType::kF32)
      return;
    const std::span<const float> wanted = want[i].floats();
    const std::span<const float> shown = got[i].floats();
    const auto first = static_cast<std::size_t>(
                           std::ranges::mismatch(std::as_bytes(wanted), std::as_bytes(shown)).in1 -
                           std::as_bytes(wanted).begin()) /
                       sizeof(float);
    const auto row = static_cast<std::size_t>(want[i].shape.back());
    const auto size = static_cast<std::size_t>(format->group);
    const std::size_t begin = first - first % row % size;
    const std::size_t count = std::min(size, row - begin % row);
    const std::string wanted_scale = scale_text(*format, wanted.subspan(begin, count));
    const std::string shown_scale = scale_text(*format, shown.subspan(begin, count));
    if (wanted_scale != shown_scale)
      lines.push_back("the wanted group of " + std::to_string(count) + " elements has " +
                      wanted_scale + "; the shown one has " + shown_scale);
    else
      lines.push_back("both groups of " + std::to_string(count) + " elements have " + wanted_scale +
                      ": their codes differ");
    return;
  }
}

}  // namespace

std::vector<std::string> explained(const CasePlan& plan, const Subject& subject,
                                   const Script& script, const Verdict& verdict) {
  if (verdict.outcome != Outcome::kMismatch || plan.baseline == nullptr ||
      verdict.op_index >= script.size())
    return {};
  auto want = plan.baseline->open(plan.setup);
  auto got = subject.open(plan.setup);
  if (!want || !got) return {};
  // An oracle may look at a whole history for each operation.
  constexpr std::size_t kMostJudged = 1'000;
  const bool judged =
      plan.history != nullptr && subject.tolerances.empty() && verdict.op_index < kMostJudged;
  const auto oracle = judged ? plan.history(*plan.kind, plan.setup) : nullptr;
  std::optional<StorageFormat> format = format_in(plan.setup.config);
  std::vector<std::string> lines;
  Probe probe;
  for (std::size_t at = 0; at <= verdict.op_index; ++at) {
    const Op& op = script[at];
    if (auto named = format_in(op.arguments())) format = named;
    const Ending step{op, (*want)->apply(op, probe), (*got)->apply(op, probe)};
    const bool last = observation_difference(step.want, step.got).has_value();
    std::vector<std::string> more;
    if (oracle && last) more = oracle->explain({script.data(), at + 1}, step.want, step.got);
    if (oracle && lines.empty())
      if (auto words = oracle->check(op, step.got))
        lines.push_back("its own history contradicts op " + std::to_string(at) + " " +
                        std::string(op.kind().name) + ": " + *words);
    lines.insert(lines.end(), more.begin(), more.end());
    if (last) add_steps(format, step, lines);
    if (last) break;
  }
  return lines;
}

}  // namespace kvo
