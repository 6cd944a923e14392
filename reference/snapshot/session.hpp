// reference/snapshot/session.hpp: what sessions of the contract share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "reference/snapshot/operations.hpp"

namespace kvo::snapshot {

/// A content as operations show it.
[[nodiscard]] Contents shown(const Content& content);
/// Keys and values, or conv and delta, as operations show them; null where there is no buffer.
[[nodiscard]] Nullable<std::vector<Nullable<Tensor>>> shown(const std::optional<State>& state);
/// A cache of all tokens. Errors  as can_store.
[[nodiscard]] Result<std::unique_ptr<Cache>> make_kv(const MakeCaches& make,
                                                     const StorageFormat& storage,
                                                     QuirkSet<Quirk> quirks);
/// A ring. Errors  as can_store; kOutOfRange: a window of no token, but for kAnyWindow.
[[nodiscard]] Result<std::unique_ptr<Cache>> make_ring(const MakeCaches& make, std::int64_t window,
                                                       const StorageFormat& storage,
                                                       QuirkSet<Quirk> quirks);

}  // namespace kvo::snapshot
