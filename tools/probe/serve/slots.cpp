#include "tools/probe/serve/slots.hpp"

#include <algorithm>
#include <utility>

namespace kvo::tools {

Result<Begun> SlotCache::begin(const ProbeTokens& prompt, const RowSharing& sharing) {
  std::size_t source = 0;
  std::size_t common = 0;
  if (sharing.shares && sharing.salt.empty())
    for (std::size_t i = 0; i < slots_.size(); ++i)
      if (const std::size_t same = common_prefix(prompt, slots_[i].text); same > common) {
        common = same;
        source = i;
      }
  common = std::min(common, prompt.size() - 1);
  if (common < kLeastReused) common = 0;

  // A text that goes on where the request does stays in its slot; any other one is copied.
  const bool stays = common > 0 && !slots_[source].busy && 2 * common >= slots_[source].text.size();
  std::size_t target = source;
  if (!stays) target = oldest_idle(common > 0 ? source : kSequences, false);
  if (target == kSequences) target = source;  // no other slot is idle
  Slot& slot = slots_.at(target);
  slot.busy = true;
  slot.used = ++begun_;
  Status done;
  if (target != source || common == 0) {
    slot.text.clear();
    done = cut(static_cast<std::int64_t>(target), 0);
  }
  if (done && common > 0) common = reuse(source, target, common);
  slot.text.clear();
  if (!done) {
    slot.busy = false;
    return done.error();
  }
  Begun begun{.sequence = static_cast<std::int64_t>(target), .reused = common};
  if (common == 0 && moves() && prompt.size() > 1 && probe::is_sink(prompt.front()))
    begun.padding = kPadding;
  return begun;
}

std::size_t SlotCache::reuse(std::size_t source, std::size_t target, std::size_t rows) {
  const auto sequence = static_cast<std::int64_t>(target);
  if (source == target) {
    if (cut(sequence, rows)) return rows;
  } else {
    const bool was_busy = std::exchange(slots_[source].busy, true);  // it must not be dropped
    const Status done =
        with_space([&] { return copy(static_cast<std::int64_t>(source), sequence, rows); });
    slots_[source].busy = was_busy;
    slots_[source].used = begun_;
    if (done) return rows;
  }
  (void)cut(sequence, 0);
  return 0;
}

Status SlotCache::prompt_read(const Begun& begun, const ProbeTokens& prompt) {
  if (begun.padding > 0)
    if (Status done = close_gap(begun.sequence, begun.padding); !done) return done;
  slots_.at(static_cast<std::size_t>(begun.sequence)).text = prompt;
  return {};
}

void SlotCache::end(std::int64_t sequence, const ProbeTokens& text) {
  Slot& slot = slots_.at(static_cast<std::size_t>(sequence));
  slot.busy = false;
  slot.text = text;
  if (text.empty()) (void)cut(sequence, 0);
}

std::size_t SlotCache::oldest_idle(std::size_t other, bool with_text) const {
  std::size_t oldest = kSequences;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (i == other || slots_[i].busy || (with_text && slots_[i].text.empty())) continue;
    if (oldest == kSequences || slots_[i].used < slots_[oldest].used) oldest = i;
  }
  return oldest;
}

bool SlotCache::drop_oldest() {
  const std::size_t slot = oldest_idle(kSequences, true);
  if (slot == kSequences) return false;
  slots_[slot].text.clear();
  (void)cut(static_cast<std::int64_t>(slot), 0);
  return true;
}

}  // namespace kvo::tools
