#include "properties/views/paged_script.hpp"

#include <algorithm>
#include <utility>

#include "properties/campaign/generator.hpp"

namespace kvo::views {

Op PagedScript::step() {
  const std::int64_t cache = number();
  const Known* there = known(cache);
  if (is_long() && there != nullptr && there->seq_len >= options_.max_seq_len)
    return Op::of(Truncate{cache, draw().percent(50) ? 0 : draw().between(0, there->seq_len)});
  const std::int64_t tokens = some_tokens(cache);
  std::vector<std::int64_t> layers;
  for (std::int64_t i = 0; i < options_.num_layers; ++i) layers.push_back(i);
  if (draw().percent(30)) std::ranges::reverse(layers);
  for (const std::int64_t layer : layers) plan(append_to(cache, layer, tokens));
  while (draw().percent(is_long() ? 1 : 25)) plan(drawn_query(cache));
  if (draw().percent(is_long() ? 97 : 60))
    plan(Commit{cache, tokens});
  else
    plan(Commit{cache, draw().between(0, tokens)});
  if (!draw().percent(is_long() ? 1 : 10)) return *ScriptGenerator::next();
  return append_to(cache, layers.front(), tokens);
}

Op PagedScript::misfit() {
  const std::int64_t cache = number();
  const std::int64_t width = options_.kv_dim();
  const std::int64_t n = draw().between(0, 2);
  auto [k, v] = tagger_.pair({n, width});
  switch (draw().below(5)) {
    case 0:
      k.shape = v.shape = {n, options_.num_kv_heads, options_.head_dim};
      break;
    case 1:
      k.shape = v.shape = {n * width};
      break;
    case 2:
      k = make_tensor({n, width + 1});
      v = k;
      break;
    case 3:
      v = make_tensor({n + 1, width});
      break;
    default:
      v = make_tensor({n, width - 1});
  }
  return Op::of(Append{cache, layer(), std::move(k), std::move(v)});
}

Op PagedScript::truncate() {
  const std::int64_t cache = number();
  const Known* there = known(cache);
  const std::int64_t length = there == nullptr ? 0 : there->seq_len;
  const std::int64_t size = options_.block_size;
  std::int64_t to = draw().between(0, length);
  if (draw().percent(25)) to = std::max<std::int64_t>(0, length - draw().between(1, 2));
  if (draw().percent(25)) to = size * draw().between(0, length / size);
  if (draw().percent(10)) to = length + draw().between(0, 2 * size);
  if (draw().percent(5)) to = draw().between(-3, -1);
  return Op::of(Truncate{cache, to});
}

Op PagedScript::fork() {
  if (rarely()) return step();
  if (forks_ > 0 && draw().percent(30)) return many_forks();
  const std::int64_t from = number();
  const Known* there = known(from);
  const std::int64_t length = there == nullptr ? 0 : there->seq_len;
  const std::int64_t size = options_.block_size;
  std::int64_t tokens = draw().percent(50) ? length : draw().between(0, length);
  if (draw().percent(30)) tokens = size * draw().between(0, length / size);
  if (draw().percent(5)) tokens = draw().one_of({std::int64_t{-1}, length + 1});
  const std::int64_t made = draw().percent(80) ? std::ssize(known_) : number();
  return Op::of(Fork{std::min<std::int64_t>(made, 5), from, tokens});
}

std::optional<Op> PagedScript::cut_to_boundary(std::size_t number) {
  const std::int64_t size = options_.block_size;
  const Known* there = about(number);
  if (there == nullptr || (number == 0 && there->seq_len < size)) return std::nullopt;
  if (number == 0) return Op::of(Truncate{about_, size * draw().between(1, there->seq_len / size)});
  if (number == 1) return append_to(about_, about_layer_, size + 1);
  if (number == 2) return Op::of(ShowPacked{about_, about_layer_});
  return Op::of(ShowViews{about_, about_layer_, keep()});
}

std::optional<Op> PagedScript::pack_again(std::size_t number) {
  const Known* there = about(number);
  if (there == nullptr || (number < 2 && there->seq_len < 1)) return std::nullopt;
  if (number == 1) return Op::of(Truncate{about_, there->seq_len - 1});
  if (number == 2) return append_to(about_, about_layer_, 1);
  return Op::of(ShowPacked{about_, about_layer_});
}

std::optional<Op> PagedScript::free_the_first(std::size_t number) {
  const Known* there = about(number);
  if (there == nullptr || (number == 0 && there->seq_len < 1)) return std::nullopt;
  if (number == 0) {
    forked_ = std::ssize(known_);
    return Op::of(Fork{forked_, about_, there->seq_len});
  }
  if (number == 1) return Op::of(Free{about_});
  if (number == 2) return Op::of(New{about_});
  if (number == 3) return append_to(about_, about_layer_, options_.block_size);
  return Op::of(ShowViews{forked_, about_layer_, keep()});
}

std::optional<Op> PagedScript::hold_while_cut(std::size_t number) {
  const Known* there = about(number);
  if (there == nullptr || (number < 2 && there->seq_len < 1)) return std::nullopt;
  if (number == 0) return Op::of(ShowViews{about_, about_layer_, true});
  if (number == 1) return Op::of(Truncate{about_, there->seq_len - 1});
  if (number == 2) return append_to(about_, about_layer_, 1);
  return Op::of(Reread{std::ssize(numbered_)});
}

std::optional<Op> PagedScript::copy_into_the_last(std::size_t number) {
  const Known* there = about(number);
  const std::int64_t size = options_.block_size;
  if (there == nullptr || size < 2 || (number == 0 && there->seq_len < size)) return std::nullopt;
  const std::int64_t whole = there->seq_len - there->seq_len % size;
  const std::int64_t filler = forked_ + 1;
  switch (number) {
    case 0:
      forked_ = std::ssize(known_);
      return Op::of(Fork{forked_, about_, whole});
    case 1:
      return Op::of(FreeBlocks{});
    case 2:
      if (free_blocks_ < 1 || (free_blocks_ - 1) * size > options_.max_seq_len) return std::nullopt;
      return Op::of(New{filler});
    case 3:
      return append_to(filler, about_layer_, (free_blocks_ - 1) * size);
    case 4:
      return Op::of(Truncate{forked_, whole - 1});
    case 5:
      return append_to(forked_, about_layer_, 1);
    default:
      return Op::of(ShowViews{about_, about_layer_, keep()});
  }
}

std::optional<Op> PagedScript::pack_much(std::size_t number) {
  constexpr std::int64_t kMostCells = std::int64_t{1} << 19U;
  const Known* there = about(number);
  const std::int64_t tokens = kMostCells / options_.kv_dim() + 1;
  if (there == nullptr || !is_large()) return std::nullopt;
  if (number == 1) return Op::of(ShowPacked{about_, about_layer_});
  if (there->seq_len + tokens > options_.max_seq_len) return std::nullopt;
  return append_to(about_, about_layer_, tokens);
}

void PagedScript::saw(const New& made, const Observation& seen) {
  if (seen.error) return;
  known_[made.cache.value_or(0)] = fresh();
  if (options_.storage.type == StorageType::kF16) reach(Label::kHalves);
  const auto gpus = std::ranges::count(options_.devices, Device::kGpu, &Placement::device);
  if (gpus > 0 && gpus < options_.num_layers) reach(Label::kMixedDevices);
}

void PagedScript::saw(const Fork& fork, const Observation& seen) {
  const bool inside = fork.tokens % options_.block_size != 0;
  if (seen.failed_with(Code::kExhausted)) reach(Label::kForkFoundThePoolDry);
  if (seen.failed_with(Code::kBadPosition)) reach(Label::kForkRefused);
  if (seen.error) return;
  if (fork.tokens > 0) reach(inside ? Label::kForkedInsideABlock : Label::kForkedBetweenBlocks);
  const std::int64_t whole = fork.tokens - fork.tokens % options_.block_size;
  Known& from = *known(fork.from);
  from.shared = std::max(from.shared, whole);
  Known made = fresh();
  made.seq_len = fork.tokens;
  made.shared = whole;
  if (known_.size() > 100) reach(SizeLabel::kBeyondAHundredCaches);
  spend(static_cast<std::uint64_t>(options_.num_layers * fork.tokens / options_.block_size + 1) *
        kForkCost);
  const std::int64_t number = fork.cache.value_or(0);
  known_[number] = std::move(made);
  if (whole > 0 && options_.block_size > 1 && !follows_plan() && draw().percent(50))
    part_ways(number, fork.from, whole);
}

void PagedScript::saw(const Append& append, const Observation& seen) {
  Known* there = known(append.cache);
  if (seen.failed_with(Code::kFull)) reach(Label::kFull);
  if (seen.failed_with(Code::kBadShape)) reach(Label::kMisfit);
  if (seen.failed_with(Code::kOutOfRange)) reach(Label::kLayerOutOfRange);
  if (seen.failed_with(Code::kClosed)) reach(Label::kUsedAfterFree);
  if (seen.failed_with(Code::kExhausted)) {
    reach(Label::kPoolRanDry);
    dry_ = true;
    if (draw().percent(50)) plan(Free{number()});
  }
  if (!seen.error && append.k.elements() > 0)
    reach_stored(options_.storage, options_.head_dim, odd_rows_,
                 [&](StorageLabel label) { reach(label); });
  if (!seen.error) appended(*there, append, seen.as<Append::Returns>());
}

void PagedScript::saw(const Commit& commit, const Observation& seen) {
  if (seen.failed_with(Code::kBadPosition)) reach(Label::kCommitOfTooMuch);
  Known* there = known(commit.cache);
  if (seen.error || there->closed) return;
  const std::int64_t most = there->least_pending();
  if (most > 0)
    reach(commit.n == 0      ? Label::kCommittedNothing
          : commit.n == most ? Label::kCommittedAll
                             : Label::kCommittedInPart);
  there->seq_len += commit.n;
  for (std::int64_t& pending : there->pending)
    pending = options_.commit_keeps_rest ? pending - commit.n : 0;
  if (there->least_pending() > 0) reach(Label::kRestKept);
}

void PagedScript::saw(const ContiguousKv& asked, const Observation& seen) {
  if (seen.error) return reach(Label::kContiguousRefused);
  reach(asked.kv_len > options_.block_size ? Label::kContiguousInManyBlocks
                                           : Label::kContiguousInOneBlock);
}

void PagedScript::saw(const ShowViews& asked, const Observation& seen) {
  if (seen.error) return;
  const auto& shown = seen.as<ShowViews::Returns>();
  spend_on(shown.views);
  if (shown.views.size() > 2) reach(Label::kManyBlocks);
  if (shown.views.size() > 100) reach(SizeLabel::kBeyondAHundredBlocks);
  const Known* there = known(asked.cache);
  remember(asked.cache, asked.layer, shown.views, shown.handle);
  const std::int64_t end =
      shown.views.empty() ? 0 : shown.views.back().start + shown.views.back().length;
  if (has(asked.layer) && end < there->held(asked.layer)) reach(Label::kViewsCommittedOnly);
}

void PagedScript::saw(const ShowPacked& asked, const Observation& seen) {
  if (seen.error) return;
  const auto& shown = seen.as<ShowPacked::Returns>();
  std::uint64_t cells = 0;
  for (const auto& view : shown.views) cells += static_cast<std::uint64_t>(view.k.elements());
  spend(kShownCost * cells);
  if (shown.views.size() > 1) reach(Label::kPackedManyBlocks);
  const bool by_length = options_.packed_stride == PackedStride::kLength;
  if (by_length && !shown.views.empty() && options_.num_kv_heads > 1 &&
      shown.views.back().length < options_.block_size)
    reach(Label::kPackedByLength);
  const Known* there = known(asked.cache);
  if (has(asked.layer) && there->held(asked.layer) > 0 && shown.views.empty() &&
      options_.devices[static_cast<std::size_t>(asked.layer)].device == Device::kGpu)
    reach(Label::kNothingPackedOnAGpu);
}

void PagedScript::saw(const Reread& asked, const Observation& seen) {
  if (seen.error) return;
  const auto& shown = seen.as<Reread::Returns>();
  const Numbered& views = numbered_[static_cast<std::size_t>(asked.handle - 1)];
  spend_on(shown.views);
  if (shown.stale) return reach(Label::kEarlierViewsStale);
  if (shown.views.empty()) return;
  reach(views.rewritten ? Label::kEarlierViewsShowNewRows : Label::kEarlierViewsLive);
}

void PagedScript::saw(const Truncate& truncate, const Observation& seen) {
  Known* there = known(truncate.cache);
  if (seen.error || there->closed) return;
  if (truncate.n < 0) reach(Label::kNegativeTruncate);
  if (truncate.n > there->seq_len) reach(Label::kTruncateBeyondTheLength);
  if (std::ranges::max(there->pending) > 0) reach(Label::kTruncatedPendingTokens);
  const std::int64_t to = std::max<std::int64_t>(truncate.n, 0);
  if (to < there->seq_len) {
    reach(to % options_.block_size == 0 ? Label::kTruncatedAtABlockBoundary
                                        : Label::kTruncatedInsideABlock);
    there->seq_len = to;
    there->cut = true;
  }
  std::ranges::fill(there->pending, 0);
  constexpr std::int64_t kOneByte = 0xFF;
  if (++truncated_ > kOneByte) reach(SizeLabel::kTruncatedBeyondOneByte);
}

void PagedScript::saw(const Free& free, const Observation& seen) {
  Known* there = known(free.cache);
  if (seen.error) return;
  if (there->closed) reach(Label::kFreedTwice);
  *there = fresh();
  there->closed = true;
}

Op PagedScript::many_forks() {
  const std::int64_t from = number();
  const Known* there = known(from);
  const std::int64_t length = there == nullptr ? 0 : there->seq_len;
  const std::int64_t tokens = length - length % options_.block_size;
  const std::int64_t first = std::ssize(known_);
  for (std::int64_t i = 1; i < forks_; ++i) plan(Fork{first + i, from, tokens});
  return Op::of(Fork{first, from, tokens});
}

Op PagedScript::append_to(std::int64_t cache, std::int64_t layer, std::int64_t tokens) {
  auto [k, v] = tagger_.pair({tokens, options_.kv_dim()});
  for (Tensor* side : {&k, &v}) {
    odd_values_.put_into(side->floats());
    if (!odd_rows_) continue;
    side->shape = {tokens, options_.num_kv_heads, options_.head_dim};
    fill_oddly(draw(), *side);
    side->shape = {tokens, options_.kv_dim()};
  }
  return Op::of(Append{cache, layer, std::move(k), std::move(v), keep()});
}

Op PagedScript::contiguous_of(std::int64_t cache) {
  const Known* there = known(cache);
  const std::int64_t layer = this->layer();
  const std::int64_t held = there != nullptr && has(layer) ? there->held(layer) : 0;
  std::int64_t length = std::min(held, draw().between(0, options_.block_size));
  if (draw().percent(30)) length = draw().between(0, held);
  if (draw().percent(6)) length = draw().one_of({std::int64_t{-1}, held + 1});
  const std::int64_t width = options_.kv_dim() + (draw().percent(4) ? 1 : 0);
  return Op::of(ContiguousKv{cache, layer, length, width});
}

Op PagedScript::drawn_query(std::int64_t cache) {
  switch (draw().below(4)) {
    case 0:
      return Op::of(ShowPacked{cache, layer()});
    case 1:
      return contiguous_of(cache);
    case 2:
      return Op::of(SeqLen{cache});
    default:
      return Op::of(ShowViews{cache, layer(), keep()});
  }
}

void PagedScript::appended(Known& there, const Append& append, const Append::Returns& returns) {
  const std::int64_t tokens = append.k.shape[0];
  const std::int64_t size = options_.block_size;
  const std::int64_t end = returns.start + tokens;
  constexpr std::int64_t kThousand = 1'024;
  spend(kAppendCost * static_cast<std::uint64_t>(append.k.elements()));
  if (tokens > 16 * size) reach(SizeLabel::kSixteenBlocksInOneAppend);
  if (end > kThousand) reach(SizeLabel::kBeyondAThousandTokens);
  if (options_.kv_dim() > kThousand) reach(SizeLabel::kRowsOfAThousandCells);
  if (append.layer >= 4) reach(SizeLabel::kFiveLayers);
  if (std::ranges::find(kHeadSizes, options_.head_dim) != kHeadSizes.end() &&
      options_.num_kv_heads > 1)
    reach(SizeLabel::kHeadsOfACommonSize);
  std::int64_t& pending = there.pending[static_cast<std::size_t>(append.layer)];
  if (tokens == 0) reach(Label::kAppendOfNothing);
  if (returns.views.size() > 1) reach(Label::kAppendAcrossABorder);
  if (tokens > 0 && end % size == 0) reach(Label::kAppendUpToABorder);
  if (returns.start > there.seq_len) reach(Label::kAppendsStacked);
  if (pending > 0 && returns.start == there.seq_len)
    reach(tokens < pending ? Label::kPendingReplacedByFewer : Label::kPendingReplaced);
  if (!returns.views.empty() && returns.views.front().start < returns.start)
    reach(Label::kViewsOfWholeBlocks);
  if (tokens > 0 && std::exchange(there.cut, false)) reach(Label::kWrittenBehindATruncate);
  if (tokens > 0 && returns.start < there.shared) {
    if (returns.start % size != 0) reach(Label::kWrittenIntoASharedBlock);
    there.shared = returns.start - returns.start % size;
  }
  if (std::exchange(dry_, false)) reach(Label::kWrittenAfterAPoolThatRanDry);
  const std::int64_t cache = append.cache.value_or(0);
  if (std::exchange(last_, cache) != cache && end > size) reach(Label::kTwoCachesOnOnePool);
  for (Numbered& views : numbered_)
    if (views.cache == cache && views.layer == append.layer && views.begin < end &&
        returns.start < views.end)
      views.rewritten = true;
  pending = end - there.seq_len;
  remember(append.cache, append.layer, returns.views, returns.handle);
}

void PagedScript::part_ways(std::int64_t one, std::int64_t other, std::int64_t shared) {
  if (draw().percent(50)) std::swap(one, other);
  const std::int64_t size = options_.block_size;
  const std::int64_t block = size * draw().between(0, shared / size - 1);
  const std::int64_t layer = draw().between(0, options_.num_layers - 1);
  plan(Truncate{one, block + draw().between(1, size - 1)});
  plan(append_to(one, layer, draw().between(1, 2)));
  plan(ShowViews{one, layer});
  plan(ShowViews{other, layer});
}

void PagedScript::remember(const std::optional<std::int64_t>& cache, std::int64_t layer,
                           const std::vector<ShownView>& views,
                           const std::optional<std::int64_t>& handle) {
  if (!handle) return;
  constexpr std::int64_t kOneByte = 0xFF;
  if (*handle > kOneByte) reach(SizeLabel::kViewsBeyondOneByte);
  const std::int64_t begin = views.empty() ? 0 : views.front().start;
  const std::int64_t end = views.empty() ? 0 : views.back().start + views.back().length;
  numbered_.push_back({cache.value_or(0), layer, begin, end});
}

}  // namespace kvo::views
