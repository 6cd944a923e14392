#include "reference/mlx_lm/prompt_lru.hpp"

#include <algorithm>
#include <limits>

namespace kvo::mlx_lm {

PromptLru::Node* PromptLru::Node::child(std::int64_t of) {
  const auto found = std::ranges::find(children, of, &Node::token);
  return found == children.end() ? nullptr : &*found;
}

// ---- Store ----

void PromptLru::Store::drop(const Tokens& tokens) {
  std::vector<Node*> path{&root};
  for (const std::int64_t token : tokens) path.push_back(path.back()->child(token));
  nbytes -= path.back()->entry->nbytes;
  path.back()->entry.reset();
  for (std::size_t depth = tokens.size(); depth > 0; --depth) {
    if (!path[depth]->children.empty() || path[depth]->entry) break;
    std::erase_if(path[depth - 1]->children,
                  [&](const Node& node) { return node.token == tokens[depth - 1]; });
  }
}

void PromptLru::Store::leave_queue(const Tokens& tokens) {
  for (auto& queue : queues) {
    const auto found = std::ranges::find(queue, tokens);
    if (found == queue.end()) continue;
    queue.erase(found);
    return;
  }
}

// ML-71
void PromptLru::Store::evict_one() {
  std::size_t from = 0;
  while (from + 1 < kRoles &&
         (queues[from].empty() || queues[from].size() < queues[from + 1].size()))
    ++from;
  const Tokens tokens = queues[from].front();
  queues[from].erase(queues[from].begin());
  drop(tokens);
}

std::int64_t PromptLru::Store::entries() const {
  std::int64_t all = 0;
  for (const auto& queue : queues) all += std::ssize(queue);
  return all;
}

// ---- The reference ----

std::pair<PromptLru::Tokens, const PromptLru::Entry*> PromptLru::shortest_below(const Node& from) {
  std::pair<Tokens, const Entry*> best{{}, nullptr};
  std::vector<std::pair<const Node*, Tokens>> stack{{&from, {}}};
  while (!stack.empty()) {
    const auto [node, extra] = std::move(stack.back());
    stack.pop_back();
    if (best.second != nullptr && extra.size() >= best.first.size()) continue;
    if (node->entry) {
      best = {extra, &*node->entry};
      continue;
    }
    for (const Node& child : node->children) {
      Tokens longer = extra;
      longer.push_back(child.token);
      stack.emplace_back(&child, std::move(longer));
    }
  }
  return best;
}

// ML-70
Found PromptLru::fetch(const Tokens& tokens) {
  Node* node = &store_.root;
  std::int64_t common = 0;  // tokens on a stored path
  std::int64_t prefix = 0;  // of the longest entry on the way
  const Entry* shorter = nullptr;
  if (tokens.empty() && node->entry) return {node->entry->cache->copy(true)};
  for (const std::int64_t token : tokens) {
    Node* const next = node->child(token);
    if (next == nullptr) break;
    node = next;
    ++common;
    if (!node->entry) continue;
    shorter = &*node->entry;
    prefix = common;
  }
  const auto rest = [&](std::int64_t from) { return Tokens(tokens.begin() + from, tokens.end()); };
  if (prefix > 0 && prefix == std::ssize(tokens)) return {shorter->cache->copy(true)};
  if (prefix == 1 && quirks_.has(Quirk::kOneTokenPrefixIgnored)) prefix = 0;
  if (common > prefix) {
    const auto [extra, longer] = shortest_below(*node);
    if (longer != nullptr && longer->cache->is_trimmable()) {
      auto cache = longer->cache->copy(true);
      const std::int64_t stays = std::min(std::ssize(tokens) - 1, common);
      (void)cache->trim(common + std::ssize(extra) - stays);
      return {std::move(cache), rest(stays)};
    }
  }
  if (prefix > 0) return {shorter->cache->copy(true), rest(prefix)};
  return {nullptr, tokens};
}

Result<Totals> PromptLru::insert(const Tokens& tokens, std::unique_ptr<Cache> cache, Role role) {
  const auto info = cache->info();
  if (!info) return info.error();
  Store next = store_;
  Node* node = &next.root;
  std::vector<Node*> path{node};
  for (const std::int64_t token : tokens) {
    if (node->child(token) == nullptr) node->children.push_back({token});
    node = node->child(token);
    path.push_back(node);
  }
  next.nbytes += info->nbytes;
  if (node->entry) {
    next.nbytes -= node->entry->nbytes;
    next.leave_queue(tokens);
  }
  node->entry = Entry{std::move(cache), info->nbytes};
  next.queues[static_cast<std::size_t>(role)].push_back(tokens);
  if (info->trimmable) {
    for (std::size_t length = 0; length < tokens.size(); ++length) {
      if (!path[length]->entry) continue;
      next.nbytes -= path[length]->entry->nbytes;
      path[length]->entry.reset();
      next.leave_queue(Tokens(tokens.begin(), tokens.begin() + std::ptrdiff_t(length)));
    }
  }
  if (next.entries() > max_entries_) next.evict_one();
  while (max_bytes_ && next.nbytes > *max_bytes_) next.evict_one();
  std::swap(store_, next);
  return store_.totals();
}

Totals PromptLru::trim_to(std::optional<std::int64_t> entries, std::optional<std::int64_t> bytes) {
  Store next = store_;
  while (entries && next.entries() > std::max<std::int64_t>(*entries, 0)) next.evict_one();
  while (bytes && next.nbytes > std::max<std::int64_t>(*bytes, 0)) next.evict_one();
  std::swap(store_, next);
  return store_.totals();
}

}  // namespace kvo::mlx_lm
