// reference/events/tree.hpp: kinds `radix` and `crtc`: a tree of runs with the engines that cover
// them (EV-50 to EV-57).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "reference/events/contents.hpp"

namespace kvo::events {

class TreeFollower final : public Follower {
 public:
  TreeFollower(Form form, const Config& config, QuirkSet<Quirk> quirks);

  [[nodiscard]] Status apply(const Engine& engine, const Event& event) override;
  void leave(std::int64_t worker, std::optional<std::int64_t> rank) override;
  [[nodiscard]] Matches query(const Prompt& prompt) override;
  [[nodiscard]] Result<std::int64_t> size() const override;
  [[nodiscard]] Result<std::int64_t> handover() override;

  /// Leading blocks of each engine that holds at least the first, and the key of the last of them.
  struct Depth {
    std::int64_t blocks = 0;
    Key last = 0;
  };
  [[nodiscard]] std::map<Engine, Depth> depths(const Prompt& prompt);

 private:
  struct Block {
    ContentId content;
    Key key;
    friend bool operator==(const Block&, const Block&) = default;
  };
  using Run = std::vector<Block>;
  struct Node;
  using NodePtr = std::shared_ptr<Node>;
  /// The root has an empty edge. Lookups hold nodes that have left the tree, too.
  struct Node {
    Run edge = {};
    std::map<Key, std::size_t> places = {};    ///< of each key in the edge; the last one
    std::map<Engine, std::size_t> cover = {};  ///< how many blocks of the edge, at least one
    std::map<ContentId, NodePtr> children = {};
    std::weak_ptr<Node> parent = {};
    bool inner = false;  ///< whether it ever had a child

    void append(const Block& block) {
      places[block.key] = edge.size();
      edge.push_back(block);
    }
    [[nodiscard]] std::optional<std::size_t> place(Key key) const {
      const auto found = places.find(key);
      return found != places.end() ? std::optional(found->second) : std::nullopt;
    }
    [[nodiscard]] std::size_t covered(const Engine& engine) const {
      const auto found = cover.find(engine);
      return found != cover.end() ? found->second : 0;
    }
    [[nodiscard]] bool is_full(const Engine& engine) const {
      return covered(engine) == edge.size();
    }
    [[nodiscard]] std::size_t full() const {
      std::size_t count = 0;
      for (const auto& [engine, blocks] : cover) count += blocks == edge.size() ? 1 : 0;
      return count;
    }
    /// Whether some engine covers a part of the edge.
    [[nodiscard]] bool is_partial() const { return full() != cover.size(); }
  };
  using Lookup = std::map<Key, NodePtr>;

  [[nodiscard]] Status stored(const Engine& engine, std::optional<Key> parent, const Run& run);
  [[nodiscard]] Status store_below(const Engine& engine, NodePtr node, const Run& run,
                                   std::optional<Key> last);
  void add_child(const Engine& engine, const NodePtr& node, const Run& run, std::size_t from);
  void extend(const Engine& engine, const NodePtr& node, const Run& run, std::size_t from);
  void raise(const Engine& engine, Node& node, std::size_t blocks);
  [[nodiscard]] Status split(const NodePtr& node, std::size_t at);
  void note(const Engine& engine, const Run& run, std::size_t from, std::size_t to,
            const NodePtr& node);
  [[nodiscard]] Status removed(const Engine& engine, const Keys& keys);
  void prune(const NodePtr& node);
  void clear(const Engine& engine);
  static void take_off(std::int64_t worker, std::optional<std::int64_t> rank, const NodePtr& node);
  [[nodiscard]] static NodePtr joined(const Node& node);
  [[nodiscard]] Status unknown_parent() const;

  Form form_;
  Config config_;
  QuirkSet<Quirk> quirks_;
  Contents contents_;
  Groups groups_;
  NodePtr root_ = std::make_shared<Node>();
  std::map<Engine, Lookup> lookups_;
  std::map<std::pair<Engine, Key>, std::int64_t> copies_;  ///< without kOneRemovalEnds
};

}  // namespace kvo::events
