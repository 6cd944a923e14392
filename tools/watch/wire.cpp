#include "tools/watch/wire.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/reports/console.hpp"

namespace kvo::tools {
namespace {

using Json = nlohmann::json;

/// What is wrong with a batch.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string kind_name(const Json& value) {
  return value.is_null() ? "nil" : std::string(value.type_name());
}

/// A value of a batch, with the words that name it.
struct WirePlace {
  const Json* value;
  std::string name;

  [[noreturn]] void wrong(const std::string& expected) const {
    throw Wrong(fmt::format("{}: {}: {}", name, kind_name(*value), expected));
  }
  [[nodiscard]] bool absent() const { return value == nullptr || value->is_null(); }
  [[nodiscard]] std::int64_t integer(std::int64_t least) const {
    if (!value->is_number_integer()) wrong("an integer is expected");
    const bool beyond =
        value->is_number_unsigned() && value->get<std::uint64_t>() > std::uint64_t{INT64_MAX};
    if (beyond || value->get<std::int64_t>() < least)
      throw Wrong(fmt::format("{}: {}: at least {}", name, value->dump(), least));
    return value->get<std::int64_t>();
  }
  [[nodiscard]] std::optional<std::string> text() const {
    if (absent()) return std::nullopt;
    if (!value->is_string()) wrong("a string is expected");
    return printable(value->get_ref<const std::string&>(), 200);
  }
  [[nodiscard]] const Json& list() const {
    if (!value->is_array()) wrong("a list is expected");
    return *value;
  }
  [[nodiscard]] WirePlace at(std::size_t index) const {
    return {&(*value)[index], fmt::format("{}[{}]", name, index)};
  }
};

events::Key key_of(const WirePlace& place, KeyNumbers& keys) {
  std::uint64_t name = 0;
  if (place.value->is_number_unsigned()) {
    name = place.value->get<std::uint64_t>();
  } else if (place.value->is_number_integer()) {
    name = static_cast<std::uint64_t>(place.value->get<std::int64_t>());
  } else if (place.value->is_binary()) {
    const auto& bytes = place.value->get_binary();
    const std::size_t first = bytes.size() - std::min<std::size_t>(bytes.size(), 8);
    for (std::size_t i = first; i < bytes.size(); ++i) name = (name << 8U) | bytes[i];
  } else {
    place.wrong("an integer or bytes are expected");
  }
  const auto number = keys.number(name);
  if (!number) throw Wrong(fmt::format("{}: more than {} keys", place.name, KeyNumbers::kMost));
  return *number;
}

events::Keys keys_of(const WirePlace& place, KeyNumbers& keys) {
  events::Keys all;
  for (std::size_t i = 0; i < place.list().size(); ++i) all.push_back(key_of(place.at(i), keys));
  return all;
}

/// A token, or a pair of them, as draft heads have.
std::int64_t token_of(const WirePlace& place) {
  constexpr std::int64_t kPairs = std::int64_t{1} << 31U;
  if (!place.value->is_array()) return place.integer(0);
  std::int64_t token = 0;
  for (std::size_t i = 0; i < place.value->size(); ++i)
    token = (token % kPairs) * kPairs + place.at(i).integer(0) % kPairs;
  return token;
}

using Names = std::span<const std::string_view>;
constexpr std::array<std::string_view, 11> kStored{
    "block_hashes", "parent_block_hash", "token_ids", "block_size",         "lora_id",   "medium",
    "lora_name",    "extra_keys",        "group_idx", "kv_cache_spec_kind", "cache_salt"};
constexpr std::array<std::string_view, 3> kRemoved{"block_hashes", "medium", "group_idx"};
/// Fields that say nothing of what is held.
constexpr std::array<std::string_view, 6> kPassedOver{"type",       "kv_cache_spec_sliding_window",
                                                      "locality",   "ownership",
                                                      "session_id", "lookahead_token_ids"};

/// The fields of an event by name.
class Fields {
 public:
  Fields(const WirePlace& event, const std::string& type, Names names,
         std::set<std::string>& unread)
      : event_(event), names_(names) {
    values_.resize(names.size(), nullptr);
    if (event.value->is_array()) {
      for (std::size_t i = 1; i < event.value->size(); ++i) {
        // Salts have a field of their own in maps alone.
        if (i <= names.size() && names[i - 1] != "cache_salt")
          values_[i - 1] = &(*event.value)[i];
        else
          unread.insert(fmt::format("{}[{}]", type, i));
      }
      return;
    }
    for (const auto& [name, value] : event.value->items()) {
      const auto known = std::ranges::find(names, name);
      if (known != names.end())
        values_[static_cast<std::size_t>(known - names.begin())] = &value;
      else if (std::ranges::find(kPassedOver, name) == kPassedOver.end())
        unread.insert(fmt::format("{}.{}", type, printable(name, 60)));
    }
  }
  [[nodiscard]] WirePlace operator[](std::string_view name) const {
    const auto index = static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin());
    return {values_.at(index), fmt::format("{}.{}", event_.name, name)};
  }
  [[nodiscard]] WirePlace required(std::string_view name) const {
    const WirePlace place = (*this)[name];
    if (place.value == nullptr) throw Wrong(place.name + ": is missing");
    return place;
  }

 private:
  const WirePlace& event_;
  Names names_;
  std::vector<const Json*> values_;
};

/// What keys of blocks have beside tokens and the adapter's name: vLLM's salt, images, embeddings.
std::optional<std::string> namespace_of(const WirePlace& extra_keys,
                                        const std::optional<std::string>& lora) {
  if (extra_keys.absent() || !extra_keys.value->is_array()) return std::nullopt;
  Json others = Json::array();
  for (const Json& block : *extra_keys.value)
    for (const Json& key : block.is_array() ? block : Json::array())
      if (!lora || key != *lora) others.push_back(key);
  if (others.empty()) return std::nullopt;
  const bool is_salt = others.size() == 1 && others.front().is_string();
  return printable(is_salt ? others.front().get<std::string>() : others.dump(), 200);
}

events::Event stored_event(const Fields& fields, KeyNumbers& keys) {
  events::Event event{.kind = events::EventKind::kStored};
  event.keys = keys_of(fields.required("block_hashes"), keys);
  if (const WirePlace parent = fields["parent_block_hash"]; !parent.absent())
    event.parent = key_of(parent, keys);
  const WirePlace tokens = fields.required("token_ids");
  for (std::size_t i = 0; i < tokens.list().size(); ++i)
    event.tokens.push_back(token_of(tokens.at(i)));
  event.block_size = fields.required("block_size").integer(1);
  event.medium = fields["medium"].text();
  event.lora = fields["lora_name"].text();
  if (const WirePlace lora = fields["lora_id"]; !event.lora && !lora.absent())
    event.lora = fmt::format("id {}", lora.integer(INT64_MIN));
  event.salt = fields["cache_salt"].text();
  if (!event.salt) event.salt = namespace_of(fields["extra_keys"], event.lora);
  if (const WirePlace group = fields["group_idx"]; !group.absent()) event.group = group.integer(0);
  event.spec = fields["kv_cache_spec_kind"].text();
  return event;
}

events::Event event_of(const WirePlace& place, KeyNumbers& keys, WireBatch& batch) {
  const Json& value = *place.value;
  const bool map = value.is_object();
  if (!map && (!value.is_array() || value.empty())) place.wrong("a map or an array is expected");
  const WirePlace tag =
      map ? WirePlace{value.contains("type") ? &value["type"] : nullptr, place.name + ".type"}
          : place.at(0);
  const std::optional<std::string> type = tag.value != nullptr ? tag.text() : std::nullopt;
  if (!type) throw Wrong(tag.name + ": is missing");
  batch.maps = batch.maps || map;
  if (*type == "BlockStored")
    return stored_event(Fields(place, *type, kStored, batch.unread), keys);
  if (*type == "BlockRemoved") {
    const Fields fields(place, *type, kRemoved, batch.unread);
    events::Event event{.kind = events::EventKind::kRemoved};
    event.keys = keys_of(fields.required("block_hashes"), keys);
    event.medium = fields["medium"].text();
    if (const WirePlace group = fields["group_idx"]; !group.absent())
      event.group = group.integer(0);
    return event;
  }
  if (*type == "AllBlocksCleared") return {.kind = events::EventKind::kCleared};
  throw Wrong(fmt::format("{}: '{}': BlockStored, BlockRemoved and AllBlocksCleared are known",
                          tag.name, *type));
}

}  // namespace

std::optional<events::Key> KeyNumbers::number(std::uint64_t name) {
  if (const auto found = numbers_.find(name); found != numbers_.end()) return found->second;
  if (numbers_.size() >= kMost) return std::nullopt;
  const auto next = static_cast<events::Key>(numbers_.size());
  numbers_.emplace(name, next);
  return next;
}

std::variant<WireBatch, std::string> decoded(std::string_view payload, KeyNumbers& keys) try {
  const Json value = Json::from_msgpack(payload.begin(), payload.end());
  const WirePlace all{&value, "batch"};
  if (all.list().size() < 2) throw Wrong("batch: has no events");
  if (!value[0].is_number()) WirePlace{&value[0], "batch[0]"}.wrong("a time is expected");
  WireBatch batch;
  if (value.size() > 2 && !value[2].is_null())
    batch.rank = WirePlace{&value[2], "batch[2]"}.integer(0);
  if (value.size() > 3) batch.unread.insert("batch[3]");
  const WirePlace events{&value[1], "events"};
  for (std::size_t i = 0; i < events.list().size(); ++i)
    batch.events.push_back(event_of(events.at(i), keys, batch));
  if (batch.rank > events::kMostNumbers) throw Wrong("batch[2]: more than 1048576");
  return batch;
} catch (const Json::exception& error) {
  return std::string("no msgpack: ") + error.what();
} catch (const Wrong& wrong) {
  return std::string(wrong.what());
}

std::optional<std::int64_t> batch_number(std::string_view frame) {
  if (frame.size() != sizeof(std::int64_t)) return std::nullopt;
  std::uint64_t number = 0;
  for (const char byte : frame) number = (number << 8U) | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(number);
}

std::string number_frame(std::int64_t number) {
  std::string frame(sizeof number, '\0');
  for (std::size_t i = 0; i < frame.size(); ++i)
    frame[frame.size() - 1 - i] = static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i));
  return frame;
}

}  // namespace kvo::tools
