#include "optimized/positional/wrapper_cache.hpp"

#include <algorithm>

#include "optimized/positional/causal_cache.hpp"
#include "optimized/positional/encoder_cache.hpp"
#include "optimized/positional/host_store.hpp"

namespace kvo::optimized {

using positional::refused;

Result<std::unique_ptr<positional::Cache>> PositionalWrapperCache::make(
    const positional::CacheOptions& options) {
  if (options.members.empty()) return refused("caches: none");
  for (const positional::MemberOptions& member : options.members)
    if (member.window < 0 || member.memory < 0) return refused("window, memory: below 0");
  return std::make_unique<PositionalWrapperCache>(options);
}

PositionalWrapperCache::PositionalWrapperCache(const positional::CacheOptions& options)
    : Cache(options.quirks) {
  for (const positional::MemberOptions& member : options.members) {
    if (member.kind == positional::MemberKind::kEncoder) {
      owned_.push_back(std::make_unique<PositionalEncoderCache>(options.backend, options.quirks));
    } else {
      owned_.push_back(std::make_unique<PositionalCausalCache>(
          member, options.backend, options.quirks,
          std::make_unique<PositionalHostStore>(member.shift)));
    }
    members_.push_back(owned_.back().get());
  }
}

std::optional<std::string> PositionalWrapperCache::broken_invariant() const {
  for (const PositionalMember* member : members_)
    if (auto broken = member->broken_invariant()) return broken;
  return std::nullopt;
}

// ---- To all members, in order (OK-80) ----

template <class Prepare>
PositionalWrapperCache::Answers PositionalWrapperCache::ask(Prepare&& prepare) {
  Answers answers;
  for (PositionalMember* member : members_) {
    answers.outcome = prepare(*member);
    ++answers.count;
    if (!answers.outcome) break;
  }
  return answers;
}

template <class Prepare>
Status PositionalWrapperCache::carry_out(Prepare&& prepare) {
  const PreparedScope scope(members_);
  Answers answers = ask(prepare);
  if (takes_effect(answers.outcome, documented()))
    for (std::size_t i = 0; i < answers.count; ++i) members_[i]->commit();
  return std::move(answers.outcome);
}

Status PositionalWrapperCache::do_set_config(const positional::BackendConfig& config,
                                             std::optional<std::int64_t> member) {
  if (member) {
    if (*member < 0 || *member >= std::ssize(members_))
      return refused("target: " + std::to_string(*member));
    return members_[static_cast<std::size_t>(*member)]->do_set_config(config, std::nullopt);
  }
  if (std::ranges::any_of(members_, &PositionalMember::configured))  // OK-88
    return refused("set_config: a member has a config already");
  for (PositionalMember* each : members_) each->configure(config);
  return {};
}

Status PositionalWrapperCache::do_init(const positional::InitOptions& arguments) {
  return carry_out([&](PositionalMember& member) { return member.prepare_init(arguments); });
}

Status PositionalWrapperCache::do_start_forward(const positional::Batch& batch) {
  const PreparedScope scope(members_);
  Answers answers = ask([&](PositionalMember& member) { return member.prepare_start(batch); });
  if (answers.outcome) {
    for (PositionalMember* member : members_) member->commit();
    type_ = 0;  // OK-82
  } else if (takes_effect(answers.outcome, documented())) {
    const std::size_t failed = answers.count - 1;
    for (std::size_t i = 0; i < failed; ++i) members_[i]->commit_unwound(batch);  // OK-83
    members_[failed]->commit();                                                   // OK-84
  }
  return std::move(answers.outcome);
}

Status PositionalWrapperCache::do_set_layer(std::int64_t layer) {
  for (PositionalMember* member : members_)
    if (Status done = member->do_set_layer(layer); !done) return done;
  return {};
}

Status PositionalWrapperCache::do_copy_prefix(std::int64_t source, std::int64_t target,
                                              std::int32_t length) {
  return carry_out(
      [&](PositionalMember& member) { return member.prepare_copy(source, target, length); });
}

Result<bool> PositionalWrapperCache::do_can_resume(std::int64_t sequence,
                                                   std::int32_t position) const {
  for (const PositionalMember* member : members_) {  // OK-85
    Result<bool> answer = member->do_can_resume(sequence, position);
    if (!answer || !*answer) return answer;
  }
  return true;
}

Status PositionalWrapperCache::do_remove(std::int64_t sequence, std::int32_t begin,
                                         std::int32_t end) {
  return carry_out(
      [&](PositionalMember& member) { return member.prepare_remove(sequence, begin, end); });
}

// ---- To the selected member (OK-81) ----

PositionalMember* PositionalWrapperCache::selected() const {
  if (type_ < 0 || type_ >= std::ssize(members_)) return nullptr;
  return members_[static_cast<std::size_t>(type_)];
}

Error PositionalWrapperCache::no_type() const {
  return refused("type: " + std::to_string(type_));
}

Status PositionalWrapperCache::do_set_layer_type(std::int64_t type) {
  // OK-82: the original takes any type and fails when it is used.
  if (documented() && (type < 0 || type >= std::ssize(members_)))
    return refused("type: " + std::to_string(type));
  type_ = type;
  return {};
}

Result<std::int64_t> PositionalWrapperCache::do_underlying_cache() const {
  if (selected() == nullptr) return no_type();
  return type_;
}

Status PositionalWrapperCache::do_put(const positional::Rows& k, const positional::Rows& v) {
  PositionalMember* member = selected();
  return member != nullptr ? member->do_put(k, v) : Status(no_type());
}

Result<positional::Shown> PositionalWrapperCache::do_get() {
  PositionalMember* member = selected();
  if (member == nullptr) return no_type();
  return member->do_get();
}

Status PositionalWrapperCache::do_set_causal(std::span<const std::int64_t> except,
                                             bool with_context) {
  PositionalMember* member = selected();
  return member != nullptr ? member->do_set_causal(except, with_context) : Status(no_type());
}

Result<bool> PositionalWrapperCache::do_encoder_cached() const {
  const PositionalMember* member = selected();
  if (member == nullptr) return no_type();
  return member->do_encoder_cached();
}

}  // namespace kvo::optimized
