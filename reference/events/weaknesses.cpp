#include "reference/events/weaknesses.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reference/contract/subject/subject.hpp"
#include "reference/events/make.hpp"
#include "reference/events/operations.hpp"

namespace kvo::events {
namespace {

constexpr std::size_t kAll = kQuirkRows.size();  ///< the index of all quirks of a kind

/// An answer means the same if the reference gives it when it has the weakness, too.
class WithWeakness final : public Relation {
 public:
  WithWeakness(const CacheKind& kind, Setup setup, std::size_t quirk) {
    for (const QuirkInfo& info : kind.quirks)
      if (quirk == kAll || info.name() == kQuirkRows.at(quirk).name())
        setup.quirks.push_back(info.name());
    auto opened = make_subject(form_of(kind), "with a weakness", "for comparison", make_reference)
                      .open(setup);
    if (opened) weak_ = std::move(*opened);
  }
  [[nodiscard]] Observation settled(const Op& op, const Observation& want,
                                    Observation got) override {
    if (weak_ == nullptr) return got;
    const Observation weak = weak_->apply(op, probe_);
    return observation_difference(weak, got) ? got : want;
  }

 private:
  std::unique_ptr<Session> weak_;
  Probe probe_;
};

template <std::size_t kQuirk>
std::unique_ptr<Relation> relation(const CacheKind& kind, const Setup& setup) {
  return std::make_unique<WithWeakness>(kind, setup, kQuirk);
}

/// Names and rules live as long as the program.
struct Row {
  std::string name;
  ConventionInfo info;
};

template <std::size_t... kQuirks>
std::vector<Row> rows(std::index_sequence<kQuirks...> /*quirks*/) {
  std::vector<Row> all;
  (all.push_back({kQuirkRows.at(kQuirks).name(),
                  {.name = {},
                   .rules = kQuirkRows.at(kQuirks).rule,
                   .sentence = kQuirkRows.at(kQuirks).sentence,
                   .relation = relation<kQuirks>}}),
   ...);
  all.push_back({"declared_weaknesses",
                 {.name = {},
                  .rules = "EV-95",
                  .sentence = "has all weaknesses that are declared of the kind's original",
                  .relation = relation<kAll>}});
  for (Row& row : all) row.info.name = row.name;
  return all;
}

}  // namespace

std::span<const ConventionInfo> weaknesses_of(Form form) {
  static const std::vector<Row> kRows = rows(std::make_index_sequence<kQuirkRows.size()>());
  static const auto kInfos = [] {
    std::array<std::vector<ConventionInfo>, kForms.size()> all;
    for (const Form one : kForms) {
      auto& infos = all.at(static_cast<std::size_t>(one));
      for (const QuirkInfo& quirk : quirks_of_kind(one))
        infos.push_back(std::ranges::find(kRows, quirk.name(), &Row::name)->info);
      infos.push_back(kRows.back().info);
    }
    return all;
  }();
  return kInfos.at(static_cast<std::size_t>(form));
}

}  // namespace kvo::events
