#include "optimized/positional/member.hpp"

#include <array>

namespace kvo::optimized {
namespace {

/// Prepares and, when there is an effect, carries out.
template <class Prepare>
Status carry_out(PositionalMember& member, bool documented, Prepare&& prepare) {
  const std::array<PositionalMember*, 1> members{&member};
  const PreparedScope scope(members);
  Status outcome = prepare();
  if (takes_effect(outcome, documented)) member.commit();
  return outcome;
}

}  // namespace

Status PositionalMember::do_set_config(const positional::BackendConfig& config,
                                       std::optional<std::int64_t> member) {
  if (member) return fail(Code::kPrecondition, "target: no wrapper");
  if (configured()) return fail(Code::kPrecondition, "set_config: there is a config already");
  configure(config);
  return {};
}

Status PositionalMember::do_init(const positional::InitOptions& arguments) {
  return carry_out(*this, documented(), [&] { return prepare_init(arguments); });
}

Status PositionalMember::do_start_forward(const positional::Batch& batch) {
  return carry_out(*this, documented(), [&] { return prepare_start(batch); });
}

Status PositionalMember::do_copy_prefix(std::int64_t source, std::int64_t target,
                                        std::int32_t length) {
  return carry_out(*this, documented(), [&] { return prepare_copy(source, target, length); });
}

Status PositionalMember::do_remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) {
  return carry_out(*this, documented(), [&] { return prepare_remove(sequence, begin, end); });
}

}  // namespace kvo::optimized
