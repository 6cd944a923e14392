#include "reference/positional/wrapper_cache.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "reference/contract/values/mark.hpp"

namespace kvo::positional {
namespace {

/// What the member of that number answers (OK-81, OK-82).
template <class Members, class Operation>
auto selected(Members& members, std::int64_t type, Operation&& operation)
    -> decltype(operation(std::get<CausalCache>(members.front()))) {
  if (type < 0 || type >= std::ssize(members)) return refused("type: " + std::to_string(type));
  return std::visit(operation, members[static_cast<std::size_t>(type)]);
}

}  // namespace

Result<std::unique_ptr<Cache>> WrapperCache::make(const CacheOptions& options) {
  if (options.members.empty()) return refused("caches: none");
  for (const MemberOptions& member : options.members)
    if (member.window < 0 || member.memory < 0) return refused("window, memory: below 0");
  return std::make_unique<WrapperCache>(options);
}

WrapperCache::WrapperCache(const CacheOptions& options) : Cache(options.quirks) {
  for (const MemberOptions& member : options.members) {
    if (member.kind == MemberKind::kEncoder) {
      members_.emplace_back(EncoderCache(options));
    } else {
      members_.emplace_back(CausalCache(options, member));
    }
  }
}

// ---- To all members, in order (OK-80) ----

template <class Operation>
Status WrapperCache::each(std::optional<Quirk> keeps, Operation&& operation) {
  Members members = members_;
  Status done;
  for (std::size_t i = 0; done && i < members.size(); ++i) done = std::visit(operation, members[i]);
  const bool kept = !done && !failed_with(done, Code::kPrecondition) && keeps && has(*keeps);
  if (done || kept) std::swap(members_, members);
  return done;
}

Status WrapperCache::do_set_config(const BackendConfig& config,
                                   std::optional<std::int64_t> member) {
  const auto configure = [&](auto& cache) { return cache.do_set_config(config, std::nullopt); };
  if (member) return selected(members_, *member, configure);
  return each(std::nullopt, configure);  // OK-88
}

Status WrapperCache::do_init(const InitOptions& arguments) {
  return each(std::nullopt, [&](auto& cache) { return cache.do_init(arguments); });
}

Status WrapperCache::do_set_layer(std::int64_t layer) {
  for (Member& member : members_)
    (void)std::visit([&](auto& cache) { return cache.do_set_layer(layer); }, member);
  return {};
}

Status WrapperCache::do_start_forward(const Batch& batch) {
  Members members = members_;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto start = [&](auto& cache) { return cache.do_start_forward(batch); };
    Status done = std::visit(start, members[i]);
    if (done) continue;
    for (std::size_t j = 0; j < i; ++j)  // OK-83
      for (std::size_t k = 0; k < batch.positions.size(); ++k) {
        const auto unwind = [&](auto& cache) {
          return cache.do_remove(batch.sequences[k], batch.positions[k], kMaxPosition);
        };
        (void)std::visit(unwind, members[j]);
      }
    const bool full = failed_with(done, Code::kFull);
    if (full && i > 0) KVO_MARK("positional.wrapper", "wrapper unwound");
    if (full && has(Quirk::kStartHalfUnwound)) std::swap(members_, members);  // OK-84
    return done;
  }
  std::swap(members_, members);
  selected_ = 0;  // OK-82
  return {};
}

Status WrapperCache::do_copy_prefix(std::int64_t source, std::int64_t target, std::int32_t length) {
  return each(std::nullopt,  // OK-87
              [&](auto& cache) { return cache.do_copy_prefix(source, target, length); });
}

Result<bool> WrapperCache::do_can_resume(std::int64_t sequence, std::int32_t position) const {
  const auto ask = [&](const auto& cache) { return cache.do_can_resume(sequence, position); };
  for (const Member& member : members_) {  // OK-85
    auto answer = std::visit(ask, member);
    if (!answer || !*answer) return answer;
  }
  return true;
}

Status WrapperCache::do_remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) {
  return each(Quirk::kRemovalHalfDone,  // OK-86
              [&](auto& cache) { return cache.do_remove(sequence, begin, end); });
}

// ---- To the selected member (OK-81) ----

Status WrapperCache::do_set_layer_type(std::int64_t type) {
  if (!has(Quirk::kBadTypeAccepted) && (type < 0 || type >= std::ssize(members_)))  // OK-82
    return refused("type: " + std::to_string(type));
  selected_ = type;
  return {};
}

Result<std::int64_t> WrapperCache::do_underlying_cache() const {
  return selected(members_, selected_,
                  [&](const auto&) -> Result<std::int64_t> { return selected_; });
}

Status WrapperCache::do_put(const Rows& k, const Rows& v) {
  return selected(members_, selected_, [&](auto& cache) { return cache.do_put(k, v); });
}

Result<Shown> WrapperCache::do_get() {
  return selected(members_, selected_, [](auto& cache) { return cache.do_get(); });
}

Status WrapperCache::do_set_causal(std::span<const std::int64_t> except, bool with_context) {
  return selected(members_, selected_,
                  [&](auto& cache) { return cache.do_set_causal(except, with_context); });
}

Result<bool> WrapperCache::do_encoder_cached() const {
  return selected(members_, selected_, [](const auto& cache) { return cache.do_encoder_cached(); });
}

}  // namespace kvo::positional
