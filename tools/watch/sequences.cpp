#include "tools/watch/sequences.hpp"

#include <algorithm>

namespace kvo::tools {

void Sequences::note(const events::Batch& batch, std::int64_t block_size) {
  for (const events::Event& event : batch) {
    if (event.kind != events::EventKind::kStored) continue;
    if (event.block_size.value_or(block_size) != block_size) continue;
    std::optional<events::Key> before = event.parent;
    auto token = event.tokens.begin();
    for (const events::Key key : event.keys) {
      if (event.tokens.end() - token < block_size) break;
      const bool is_new = !places_.contains(key);
      if (!is_new || tokens_ + block_size <= kMostTokens) {
        if (is_new) tokens_ += block_size;
        places_.insert_or_assign(
            key, Place{before, {token, token + block_size}, event.lora, event.salt});
      }
      token += block_size;
      before = key;
    }
  }
}

std::optional<Sequences::Whole> Sequences::up_to(events::Key last) const {
  constexpr std::size_t kMostBlocks = 4096;
  std::vector<const Place*> places;
  Whole whole;
  for (std::optional<events::Key> key = last; key;) {
    const auto found = places_.find(*key);
    if (found == places_.end() || places.size() == kMostBlocks) return std::nullopt;
    places.push_back(&found->second);
    whole.keys.push_back(*key);
    key = found->second.before;
  }
  std::ranges::reverse(whole.keys);
  for (auto place = places.rbegin(); place != places.rend(); ++place)
    whole.tokens.insert(whole.tokens.end(), (*place)->tokens.begin(), (*place)->tokens.end());
  whole.lora = places.front()->lora;
  // Of a salted sequence vLLM announces the salt with the first block alone.
  const auto salted =
      std::ranges::find_if(places, &std::optional<std::string>::has_value, &Place::salt);
  if (salted != places.end()) whole.salt = (*salted)->salt;
  return whole;
}

}  // namespace kvo::tools
