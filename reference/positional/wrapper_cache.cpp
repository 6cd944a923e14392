#include "reference/positional/wrapper_cache.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace kvo::positional {
namespace {

Error refused(std::string detail) {
  return fail(Code::kPrecondition, std::move(detail));
}

}  // namespace

Result<std::unique_ptr<Cache>> WrapperCache::make(const CacheSetup& setup) {
  if (setup.members.empty()) return refused("caches: none");
  for (const MemberSetup& member : setup.members)
    if (member.window < 0 || member.memory < 0) return refused("window, memory: below 0");
  return std::make_unique<WrapperCache>(setup);
}

WrapperCache::WrapperCache(const CacheSetup& setup) : Cache(setup.profile, setup.quirks) {
  for (const MemberSetup& member : setup.members) {
    if (member.flavour == Flavour::kEncoder) {
      members_.emplace_back(EncoderCache(setup));
    } else {
      members_.emplace_back(CausalCache(setup, member));
    }
  }
}

// ---- To all members, in order (OK-80). Where one refuses, copies are what changed. ----

Status WrapperCache::do_set_config(const BackendConfig& config,
                                   std::optional<std::int64_t> member) {
  if (member && (*member < 0 || *member >= std::ssize(members_)))
    return refused("target: " + std::to_string(*member));
  auto configured = members_;
  for (std::int64_t i = 0; i < std::ssize(members_); ++i) {
    if (member && *member != i) continue;
    Status done = std::visit([&](auto& cache) { return cache.do_set_config(config, std::nullopt); },
                             configured[static_cast<std::size_t>(i)]);
    if (!done) return done;  // OK-88
  }
  members_ = std::move(configured);
  return {};
}

Status WrapperCache::do_init(const InitArguments& arguments) {
  auto sized = members_;
  for (Member& member : sized) {
    Status done = std::visit([&](auto& cache) { return cache.do_init(arguments); }, member);
    if (!done) return done;
  }
  members_ = std::move(sized);
  return {};
}

Status WrapperCache::do_set_layer(std::int64_t layer) {
  for (Member& member : members_)
    if (Status done = std::visit([&](auto& cache) { return cache.do_set_layer(layer); }, member);
        !done)
      return done;
  return {};
}

void WrapperCache::unwind(MemberChange& change, const Batch& batch) {
  if (auto* causal = std::get_if<CausalCache::Change>(&change)) CausalCache::unwind(*causal, batch);
  if (auto* encoder = std::get_if<EncoderCache::Change>(&change))
    EncoderCache::unwind(*encoder, batch);
}

WrapperCache::Changes WrapperCache::started(const Batch& batch) const {
  Changes changes = asked([&](const auto& cache) { return cache.started(batch); });
  if (changes.outcome) return changes;
  for (std::size_t i = 0; i + 1 < changes.members.size(); ++i)  // OK-83
    unwind(changes.members[i], batch);
  if (changes.kept_by) changes.kept_by = Quirk::kStartHalfUnwound;
  return changes;
}

Status WrapperCache::do_start_forward(const Batch& batch) {
  Status done = settle(started(batch));
  if (done) selected_ = 0;  // OK-82
  return done;
}

Status WrapperCache::do_copy_prefix(std::int64_t source, std::int64_t target, std::int32_t length) {
  return settle(asked([&](const auto& cache) { return cache.copied(source, target, length); }));
}

Result<bool> WrapperCache::do_can_resume(std::int64_t sequence, std::int32_t position) const {
  for (const Member& member : members_) {  // OK-85
    auto answer = std::visit(
        [&](const auto& cache) { return cache.do_can_resume(sequence, position); }, member);
    if (!answer || !*answer) return answer;
  }
  return true;
}

WrapperCache::Changes WrapperCache::removed(std::int64_t sequence, std::int32_t begin,
                                            std::int32_t end) const {
  Changes changes = asked([&](const auto& cache) { return cache.removed(sequence, begin, end); });
  if (!changes.outcome && changes.kept_by) changes.kept_by = Quirk::kRemovalHalfDone;  // OK-86
  return changes;
}

Status WrapperCache::do_remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) {
  return settle(removed(sequence, begin, end));
}

Status WrapperCache::settle(Changes changes) {
  Status outcome = changes.outcome;
  if (outcome || (changes.kept_by && has(*changes.kept_by))) {
    for (std::size_t i = 0; i < changes.members.size(); ++i)
      std::visit(
          [&](auto& cache) {
            using Change = typename std::remove_cvref_t<decltype(cache)>::Change;
            cache.commit(std::move(std::get<Change>(changes.members[i])));
          },
          members_[i]);
  }
  return outcome;
}

// ---- To the selected member (OK-81). ----

bool WrapperCache::selected_exists() const {
  return selected_ >= 0 && selected_ < std::ssize(members_);
}

Status WrapperCache::do_set_layer_type(std::int64_t type) {
  if (!has(Quirk::kBadTypeAccepted) && (type < 0 || type >= std::ssize(members_)))  // OK-82
    return refused("type: " + std::to_string(type));
  selected_ = type;
  return {};
}

Result<std::int64_t> WrapperCache::do_underlying_cache() const {
  if (!selected_exists()) return refused("type: " + std::to_string(selected_));
  return selected_;
}

Status WrapperCache::do_put(const Rows& k, const Rows& v) {
  if (!selected_exists()) return refused("type: " + std::to_string(selected_));
  return std::visit([&](auto& cache) { return cache.do_put(k, v); },
                    members_[static_cast<std::size_t>(selected_)]);
}

Result<Shown> WrapperCache::do_get() {
  if (!selected_exists()) return refused("type: " + std::to_string(selected_));
  return std::visit([](auto& cache) { return cache.do_get(); },
                    members_[static_cast<std::size_t>(selected_)]);
}

Status WrapperCache::do_set_causal(std::span<const std::int64_t> except, bool with_context) {
  if (!selected_exists()) return refused("type: " + std::to_string(selected_));
  auto* causal = std::get_if<CausalCache>(&members_[static_cast<std::size_t>(selected_)]);
  if (causal == nullptr) return refused("set_causal of an encoder");
  return causal->do_set_causal(except, with_context);
}

Result<bool> WrapperCache::do_encoder_cached() const {
  if (!selected_exists()) return refused("type: " + std::to_string(selected_));
  const auto* encoder = std::get_if<EncoderCache>(&members_[static_cast<std::size_t>(selected_)]);
  if (encoder == nullptr) return refused("encoder_cached of a causal cache");
  return encoder->do_encoder_cached();
}

}  // namespace kvo::positional
