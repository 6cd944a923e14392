#include "properties/runner/reuse.hpp"

#include <array>
#include <cstddef>

namespace kvo {
namespace {

constexpr std::array<std::string_view,
                     boost::mp11::mp_size<boost::describe::describe_enumerators<Missing>>::value>
    kWords{"never seen",
           "diverged",
           "other namespace",
           "evicted",
           "last block not full",
           "block goes on otherwise",
           "block of the last token",
           "not stored yet",
           "behind a gap",
           "draft heads",
           "a group lacked it",
           "not looked up",
           "not announced",
           "forgotten"};

std::string other(const std::optional<std::int64_t>& request, const std::string& word) {
  return request ? " " + word + " request " + std::to_string(*request) : "";
}

}  // namespace

std::string_view words_of(Missing why) {
  return kWords.at(static_cast<std::size_t>(why));
}

std::string MissedTokens::text() const {
  std::string text(words_of(why));
  if (why == Missing::kGroupLacked) {
    text = "group " + std::to_string(group.value_or(0)) + " lacked it";
    if (operation) text += ": evicted at op " + std::to_string(*operation) + other(request, "for");
  }
  if (why == Missing::kDiverged)
    text += " at token " + std::to_string(begin) + other(request, "from");
  if (why == Missing::kOtherNamespace) text += other(request, "than");
  if (why == Missing::kEvicted)
    text += " at op " + std::to_string(operation.value_or(0)) + other(request, "for");
  return text;
}

void Lookup::miss(const MissedTokens& more) {
  if (more.begin >= more.end) return;
  if (!missed.empty() && missed.back().same_cause(more))
    missed.back().end = more.end;
  else
    missed.push_back(more);
}

std::vector<Figure> lookup_figures(std::span<const Lookup> lookups, const std::string& name) {
  std::array<std::int64_t, kWords.size()> tokens{};
  std::int64_t all = 0;
  for (const Lookup& lookup : lookups)
    for (const MissedTokens& missed : lookup.missed) {
      tokens.at(static_cast<std::size_t>(missed.why)) += missed.end - missed.begin;
      all += missed.end - missed.begin;
    }
  const std::string total = name + "prompt tokens missed";
  std::vector<Figure> figures{{total, all}};
  for (std::size_t why = 0; why < tokens.size(); ++why)
    figures.push_back(
        {total + ": " + std::string(kWords.at(why)), tokens.at(why), Fold::kSum, total});
  return figures;
}

}  // namespace kvo
