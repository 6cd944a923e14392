// reference/generation/subjects.hpp: the kinds of contract `generation`, and who keeps it.
#pragma once

#include <string>
#include <vector>

#include "reference/contract/subject/subject.hpp"
#include "reference/sampling/sampler.hpp"

namespace kvo::generation {

[[nodiscard]] const CacheKind& contiguous_kind();
[[nodiscard]] const CacheKind& paged_kind();
[[nodiscard]] const CacheKind& tensor_kind();
[[nodiscard]] const CacheKind& speculative_kind();
[[nodiscard]] const CacheKind& adaptive_kind();

/// The caches that generators have inside, one for each way in which a config may ask for one
/// (ZF-76). `contiguous` may be of any kind that can stand in its place.
struct InnerSubjects {
  Subject contiguous;  ///< of provider.contiguous, or of another kind, which then takes no more
                       ///< positions than the generator's
  Subject paged;       ///< of provider.paged
  Subject tensor;      ///< of provider.tensor
};
/// The references of contract `provider`.
[[nodiscard]] InnerSubjects reference_caches();

/// A subject of `kind`, one of the first three, over such caches.
[[nodiscard]] Subject make_generator_subject(const CacheKind& kind, const std::string& variant,
                                             const std::string& doc,
                                             const sampling::MakeSampler& make_sampler,
                                             const InnerSubjects& inner);
[[nodiscard]] Subject make_speculative_subject(const std::string& variant, const std::string& doc,
                                               const sampling::MakeSampler& make_sampler,
                                               const InnerSubjects& inner);

[[nodiscard]] Subject make_tracker_subject(const std::string& variant, const std::string& doc);

/// One subject a kind, in the order in which kinds are listed.
[[nodiscard]] std::vector<Subject> references();

}  // namespace kvo::generation
