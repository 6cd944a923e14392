// A log may hold tensors of any dtype: an operation that cannot take one refuses it, on every
// subject alike and by every law.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "properties/campaign/laws.hpp"
#include "properties/campaign/random_case.hpp"
#include "properties/contracts.hpp"
#include "reference/contract/describe/json.hpp"

namespace kvo {
namespace {

namespace json = boost::json;

// The operation with its tensors in another dtype; nothing if it has none.
std::optional<Op> with_dtype(const Op& op, std::string_view dtype) {
  json::object arguments = write_record(op.arguments());
  bool any = false;
  for (auto& member : arguments) {
    json::object* tensor = member.value().if_object();
    if (tensor == nullptr || !tensor->contains("shape")) continue;
    const std::size_t cells =
        tensor->at(tensor->contains("bits") ? "bits" : "data").as_array().size();
    tensor->erase("bits");
    (*tensor)["data"] = json::array(cells, 1);
    (*tensor)["dtype"] = dtype;
    any = true;
  }
  if (!any) return std::nullopt;
  JsonFault fault;
  Record changed = read_record(arguments, *op.kind().arguments, fault);
  EXPECT_TRUE(changed) << fault.text();
  return Op(op.kind(), std::move(changed));
}

class DTypesOf : public testing::TestWithParam<const CacheKind*> {};

TEST_P(DTypesOf, ATensorThatIsNotF32IsRefusedByAllAlike) {
  const CacheKind& kind = *GetParam();
  const std::vector<const Subject*> subjects = contracts().subjects_of(kind);
  std::uint64_t refused = 0;
  std::uint64_t changed = 0;
  for (std::uint64_t index = 0; index < 12; ++index) {
    CasePlan plan =
        random_case(contracts(), *general_laws().front(), subjects, 7, index, Profile::kOriginal);
    Script script = script_until(plan, 30);
    const std::uint64_t before = changed;
    for (std::size_t at = 0; at < script.size(); ++at)
      if (auto other = with_dtype(script[at], at % 3 == 0   ? "f16"
                                              : at % 3 == 1 ? "bf16"
                                                            : "i32");
          other && at % 2 == index % 2) {
        script[at] = *other;
        ++changed;
      }
    if (changed == before) continue;  // no tensors, nothing new
    Lockstep lockstep(&contracts().reference_of(kind), subjects, plan.setup);
    for (const Op& op : script)
      refused +=
          lockstep.step(op).failed_with(Code::kPrecondition) && with_dtype(op, "f16") ? 1 : 0;
    for (const Lockstep::Participant& participant : lockstep.participants())
      EXPECT_EQ(participant.verdict.outcome, Outcome::kAgrees)
          << participant.subject->name() << ": " << participant.verdict.text();
    for (const Law* law : contracts().laws_of(kind)) {
      plan.law = law;
      for (const Subject* subject : subjects)
        EXPECT_FALSE(run_script(plan, *subject, script).failed())
            << law->name() << ": " << subject->name() << ": "
            << run_script(plan, *subject, script).text();
    }
  }
  if (changed > 0) {
    EXPECT_GT(refused, 0U);
  }
}

std::vector<const CacheKind*> generated_kinds() {
  std::vector<const CacheKind*> kinds;
  for (const CacheKind* kind : contracts().kinds())
    if (contracts().generator_of(*kind) != nullptr) kinds.push_back(kind);
  return kinds;
}

std::string kind_name(const testing::TestParamInfo<const CacheKind*>& info) {
  return std::string(info.param->contract) + "_" + std::string(info.param->cache);
}

INSTANTIATE_TEST_SUITE_P(Each, DTypesOf, testing::ValuesIn(generated_kinds()), kind_name);

}  // namespace
}  // namespace kvo
