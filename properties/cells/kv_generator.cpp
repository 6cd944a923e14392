// Random cases for cells.kv and cells.iswa, and the generators of the contract.
#include <algorithm>
#include <memory>
#include <utility>

#include "properties/cells/kv_script.hpp"
#include "properties/contract_parts.hpp"

namespace kvo::cells {
namespace {

// Sizes before they are put into a config.
struct Sizes {
  std::int64_t cells = 8;
  std::int64_t window_cells = 8;
  std::int64_t n_seq_max = 1;
  std::int32_t window = 1;
};

Sizes draw_sizes(Draw& draw, bool unified, Scale scale) {
  Sizes sizes{.cells = draw.between(3, 10), .n_seq_max = draw.between(1, 4)};
  sizes.window = static_cast<std::int32_t>(draw.between(1, 5));
  if (draw.percent(8)) sizes.cells = draw.size(1, 33);
  if (scale == Scale::kLong) {
    sizes = {.cells = draw.between(8, 16), .n_seq_max = draw.between(1, 2), .window = 2};
  } else if (scale == Scale::kLarge) {
    constexpr std::int64_t kMostOfAll = 8'192;
    sizes.n_seq_max = draw.percent(50) ? draw.between(1, 4) : draw.edge(4, 129);
    sizes.cells = draw.edge(16, unified ? 4'097 : kMostOfAll / sizes.n_seq_max);
    sizes.window = static_cast<std::int32_t>(draw.edge(2, 257));
  }
  sizes.window_cells = std::max<std::int64_t>(1, sizes.cells - draw.between(0, 5));
  if (draw.percent(30)) sizes.window_cells = sizes.cells;
  if (scale == Scale::kLarge) sizes.window_cells = draw.edge(16, sizes.cells);
  return sizes;
}

WindowType window_type(Draw& draw) {
  return draw.one_of(
      {WindowType::kStandard, WindowType::kStandard, WindowType::kChunked, WindowType::kSymmetric});
}

template <class Config>
void draw_rest(Draw& draw, Config& config) {
  if (draw.percent(20)) config.build = draw.percent(70) ? Build::kDebug : Build::kRelease;
  if (draw.percent(10)) config.v_trans = draw.percent(50);
  if (draw.percent(12)) config.alibi = true;
  if (draw.percent(25)) config.non_causal = draw.one_of({NonCausal::kSwaOnly, NonCausal::kSwaFull});
}

KvConfig kv_config(Draw& draw, Sizes sizes, bool unified, bool& real) {
  KvConfig config{.size = sizes.cells, .n_seq_max = sizes.n_seq_max, .unified = unified};
  if (draw.percent(15)) {
    config.n_pad = draw.one_of<std::int64_t>({2, 32, 256});
    while (sizes.cells % *config.n_pad != 0) config.n_pad = *config.n_pad / 2;
  }
  if (draw.percent(45)) {
    config.swa_type = window_type(draw);
    config.n_swa = sizes.window;
  }
  draw_rest(draw, config);
  real = draw.percent(8);
  if (real) config.real = true;
  return config;
}

IswaConfig iswa_config(Draw& draw, const Sizes& sizes, bool unified, Scale scale) {
  IswaConfig config{.size = sizes.cells,
                    .size_swa = sizes.window_cells,
                    .n_seq_max = sizes.n_seq_max,
                    .unified = unified,
                    .n_swa = sizes.window,
                    .swa_type = window_type(draw)};
  if (scale == Scale::kLarge && draw.percent(20) && sizes.cells <= 1'024) {
    config.size_swa.reset();  // as LC-67 says
    config.n_ubatch = draw.between(1, 64);
    if (draw.percent(30)) config.swa_full = true;
  }
  draw_rest(draw, config);
  return config;
}

}  // namespace

KvCase draw_case(Draw& draw, bool pair, Scale scale) {
  KvCase drawn;
  const bool unified = draw.percent(60);
  const Sizes sizes = draw_sizes(draw, unified, scale);
  if (pair) {
    const IswaConfig config = iswa_config(draw, sizes, unified, scale);
    drawn.options = kv_options(config);
    drawn.config = Record::of(config);
  } else {
    const KvConfig config = kv_config(draw, sizes, unified, drawn.real);
    drawn.options = kv_options(config);
    drawn.config = Record::of(config);
  }
  for (std::int64_t seq = 0; seq < sizes.n_seq_max; ++seq)
    if (drawn.sequences.size() < 4) drawn.sequences.push_back(seq);
  if (sizes.n_seq_max > 4) drawn.sequences.back() = sizes.n_seq_max - 1;
  if (draw.percent(20)) drawn.first_position = static_cast<std::int32_t>(draw.between(1, 6));
  if (draw.percent(5)) drawn.first_position = 1'000'000'000;
  return drawn;
}

namespace {

GeneratedCase make_kv(const CaseTerms& terms, bool pair) {
  Draw draw(~terms.seed);
  KvCase drawn = draw_case(draw, pair, terms.scale);
  Setup setup{.profile = terms.profile, .config = drawn.config};
  return {std::move(setup), std::make_unique<KvScript>(terms, std::move(drawn))};
}

using States = std::vector<KvState>;

// All labels but some states.
std::vector<std::string_view> all_but(States others, const States& more) {
  others.insert(others.end(), more.begin(), more.end());
  std::vector<std::string_view> texts = label_texts_but<KvLabel>({});
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<KvState>>([&](auto one) {
    if (std::ranges::find(others, one.value) == others.end())
      texts.push_back(label_text(one.value));
  });
  return texts;
}

Generator generator(const CacheKind& kind, bool pair, const States& of_the_other) {
  using enum KvState;
  const States original_only{kAssertion,
                             kCopiedBeyondMost,
                             kUbatchTooLarge,
                             kRepeatedPosition,
                             kOverlappingSets,
                             kPurgedByARefusedBatch,
                             kHalvesOfDifferentSizesMove};
  const States documented_only{kPartCopyRefused, kSharedMoveRefused, kHalvesOfDifferentSizesStay};
  return {.kind = &kind,
          .make = [pair](const CaseTerms& terms) { return make_kv(terms, pair); },
          .original_labels = all_but(documented_only, of_the_other),
          .documented_labels = all_but(original_only, of_the_other),
          .lives_long = true};
}

}  // namespace

std::vector<Generator> kv_generators() {
  using enum KvState;
  return {generator(kv_kind(), false,
                    {kSearchedTheWindow, kWindowHalfRestored, kHalvesOfDifferentSizesMove,
                     kHalvesOfDifferentSizesStay}),
          generator(iswa_kind(), true, {kInterrupted})};
}

std::vector<Generator> generators() {
  std::vector<Generator> all{meta_generator()};
  for (Generator& one : kv_generators()) all.push_back(std::move(one));
  all.push_back(recurrent_generator());
  return all;
}

}  // namespace kvo::cells
