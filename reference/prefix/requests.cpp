#include "reference/prefix/requests.hpp"

#include <utility>

namespace kvo::prefix {

// ---- What all tables of requests do ----

std::int64_t RequestTable::find(std::int64_t request) const {
  const auto found = rows_.find(request);
  return found != rows_.end() ? found->second : -1;
}

std::int64_t RequestTable::make(std::int64_t request, Text text) {
  const auto [place, is_new] = rows_.try_emplace(request, std::ssize(rows_));
  if (is_new) added_ = request;
  put(place->second, std::move(text));
  return place->second;
}

void RequestTable::set(std::int64_t row, const SetRequest& op) {
  Progress& progress = change_progress(row);
  progress.computed = op.computed.value_or(progress.computed);
  progress.status = op.status.value_or(progress.status);
  progress.in_flight = op.in_flight.value_or(progress.in_flight);
  progress.preemptions = op.preemptions.value_or(progress.preemptions);
  if (op.boundary) progress.boundary = op.boundary;
}

void RequestTable::record(std::int64_t row, std::int64_t hits) {
  if (!enable_caching_ || text(row).skip_reading) return;
  const bool preempted = progress(row).preemptions > 0;
  BlocksStatistics& sums = statistics_;
  (preempted ? sums.preempted_requests : sums.requests) += 1;
  (preempted ? sums.preempted_queries : sums.queries) += std::ssize(text(row).tokens);
  (preempted ? sums.preempted_hits : sums.hits) += hits;
}

void RequestTable::commit() noexcept {
  added_.reset();
  commit_rows();
}

void RequestTable::roll_back() noexcept {
  if (added_) rows_.erase(*std::exchange(added_, std::nullopt));
  roll_back_rows();
}

// ---- The reference ----

// PX-10 to PX-13: the keys that the tokens have and the list does not.
void Requests::add_keys(Text& text) {
  if (!enable_caching()) return;
  while (floor_of(std::ssize(text.tokens) - lookahead_, unit_) > std::ssize(text.keys)) {
    const std::int64_t unit = std::ssize(text.keys);
    const std::int64_t parent = unit > 0 ? number_of(text.keys.back()) : std::int64_t{-1};
    const auto begin = text.tokens.begin() + unit * unit_;
    Content content(parent, Tokens(begin, begin + unit_ + lookahead_), unit == 0 ? text.salt : "",
                    text.lora);
    grow_depths(keys() + 1);
    const auto number =
        contents_.try_emplace(std::move(content), std::ssize(contents_)).first->second;
    set_depth(number, unit + 1);
    text.keys.push_back(key_of(number));
  }
}

void Requests::put(std::int64_t row, Text text) {
  add_keys(text);
  if (row < texts_.size()) {
    texts_.change(row) = std::move(text);
    progress_.change(row) = {};
  } else {
    texts_.add(std::move(text));
    progress_.add({});
  }
}

void Requests::append(std::int64_t row, TokensView tokens) {
  Text& text = texts_.change(row);
  text.tokens.insert(text.tokens.end(), tokens.begin(), tokens.end());
  add_keys(text);
}

void Requests::commit_rows() noexcept {
  texts_.commit();
  progress_.commit();
}

void Requests::roll_back_rows() noexcept {
  texts_.roll_back();
  progress_.roll_back();
}

}  // namespace kvo::prefix
