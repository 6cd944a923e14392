// A model without weights, and the context of a cache's own graphs.
#pragma once

#include <cstdint>
#include <memory>

#include <llama-graph.h>
#include <llama-model.h>

/// A model of `layers` layers with one head of two elements: layers from `first_window` on have a
/// window.
class Model final : public llama_model {
 public:
  explicit Model(const llama_hparams& numbers) : llama_model(llama_model_params{}) {
    hparams = numbers;
  }

  void load_stats(llama_model_loader&) override {}
  void load_hparams(llama_model_loader&) override {}
  void load_vocab(llama_model_loader&) override {}
  bool load_tensors(llama_model_loader&) override { return true; }
  void load_arch_hparams(llama_model_loader&) override {}
  void load_arch_tensors(llama_model_loader&) override {}
  std::unique_ptr<llm_graph_context> build_arch_graph(const llm_graph_params&) const override {
    return nullptr;
  }
};

/// A row of K: the tag of its token in the low bits, and the position that it is turned to. @{
constexpr std::int64_t kTags = std::int64_t{1} << 24U;
[[nodiscard]] inline std::int64_t turned_key(std::int64_t tag, std::int64_t position) {
  return position * kTags + tag;
}
[[nodiscard]] inline std::int64_t tag_of(std::int64_t key) {
  return key & (kTags - 1);
}
[[nodiscard]] inline std::int64_t position_of(std::int64_t key) {
  return (key - tag_of(key)) / kTags;
}
/// @}

/// The context that updates of caches are given.
[[nodiscard]] llama_context* the_context();
/// Carries out SET_ROWS and ROPE.
void compute(ggml_cgraph* graph);
