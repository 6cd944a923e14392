#include "tools/commands/card.hpp"

#include <variant>

#include <fmt/format.h>

#include "cuda/device/open.hpp"
#include "tools/reports/quantities.hpp"
#include "tools/workers/process.hpp"

namespace kvo::tools {
namespace {

/// Why there is no card; empty: there is one.
struct CardFault {
  std::string text = {};
};
BOOST_DESCRIBE_STRUCT(CardFault, (), (text))

bool needs_card(const Subject& subject) {
  return subject.inside ? needs_card(*subject.inside) : subject.variant == kCardVariant;
}

}  // namespace

std::string missing_card(const std::vector<Comparison>& chosen) {
  std::vector<std::string> names;
  for (const Comparison& comparison : chosen)
    for (const Subject* subject : comparison.subjects)
      if (needs_card(*subject)) names.push_back(subject->name());
  if (names.empty()) return {};
  const auto looked = in_process<CardFault>({.memory_bytes = 0}, [] {
    const auto card = cuda::card_name();
    return CardFault{card ? "" : card.error().detail};
  });
  const auto* fault = std::get_if<CardFault>(&looked);
  if (fault == nullptr || fault->text.empty()) return {};
  return fmt::format("{}{}: {}", names.front(),
                     names.size() == 1 ? "" : fmt::format(" and {} more", names.size() - 1),
                     fault->text);
}

}  // namespace kvo::tools
