// What llama.cpp says of its memory, as tests of llama.cpp. Each fails at commit 0c1e57098.
//
//   test-memory-promises NAME    mask_of_window | shift_of_div | batch_without_positions
//
// In a tree of llama.cpp: copy into tests/, link with the static libraries of llama and ggml.
// batch_without_positions writes outside of an array: build it with -fsanitize=address.
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <ggml-backend.h>
#include <llama-batch.h>
#include <llama-kv-cache.h>
#include <llama-model.h>
#include <llama-vocab.h>

namespace {

int failures = 0;

void check(bool holds, const std::string& sentence) {
  std::printf("%s %s\n", holds ? "ok  " : "FAIL", sentence.c_str());
  failures += holds ? 0 : 1;
}

llama_hparams one_layer() {
  llama_hparams made{};
  made.n_layer_all = 1;
  made.n_embd = made.n_embd_head_k_full = made.n_embd_head_v_full = made.n_rot_full = 2;
  made.n_head_arr.fill(1);
  made.n_head_kv_arr.fill(1);
  return made;
}

// A model without weights.
struct test_model : llama_model {
  test_model() : llama_model(llama_model_params{}) { hparams = one_layer(); }
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

// Decodes tokens of one sequence as llama_context::decode does, but for the computation. Returns
// how many cells each token sees, or nothing if there is no slot.
std::vector<int> decode(llama_kv_cache& cache, llama_seq_id seq, std::vector<llama_pos> positions,
                        std::uint32_t n_ubatch) {
  const std::size_t n = positions.size();
  std::vector<llama_token> tokens(n, 0);
  std::vector<std::int32_t> counts(n, 1);
  std::vector<llama_seq_id*> seqs(n, &seq);
  const llama_batch batch{static_cast<std::int32_t>(n),
                          tokens.data(),
                          nullptr,
                          positions.data(),
                          counts.data(),
                          seqs.data(),
                          nullptr};
  llama_batch_ext given(n, 1, 1, static_cast<llama_seq_id>(cache.get_n_seq_max()), &cache, 1, 1);
  llama_batch_compat::init(given, batch);
  llama_batch_allocr allocator(1);
  const llama_vocab vocab;
  if (!allocator.init(given, vocab, false)) return {};
  const auto context = cache.init_batch(allocator, n_ubatch, false);
  if (context->get_status() != LLAMA_MEMORY_STATUS_SUCCESS) return {};
  std::vector<int> seen;
  do {
    context->apply();
    const auto& step = static_cast<const llama_kv_cache_context&>(*context);
    const llama_ubatch& ubatch = step.get_ubatch();
    const ggml_context_ptr graph(ggml_init({1U << 14U, nullptr, true}));
    ggml_tensor* mask =
        ggml_new_tensor_4d(graph.get(), GGML_TYPE_F32, step.get_n_kv(), ubatch.n_tokens, 1, 1);
    const ggml_backend_buffer_ptr memory(
        ggml_backend_alloc_ctx_tensors_from_buft(graph.get(), ggml_backend_cpu_buffer_type()));
    step.set_input_kq_mask(mask, &ubatch, true);
    for (std::uint32_t i = 0; i < ubatch.n_tokens; ++i) {
      int cells = 0;
      for (std::uint32_t j = 0; j < step.get_n_kv(); ++j)
        cells += static_cast<const float*>(mask->data)[i * step.get_n_kv() + j] == 0.0F ? 1 : 0;
      seen.push_back(cells);
    }
  } while (context->next());
  return seen;
}

// "the only method that should mutate the memory and the memory context is llama_memory_i::apply()"
// (llama-memory.h), and of prepare(): "remember the old state of the cells so we can restore it in
// the end" (llama-kv-cache.cpp). But the search for slots purges tokens for good: those of the
// window of an ubatch before.
void mask_of_window() {
  const test_model model;
  llama_kv_cache cache(model, model.hparams, GGML_TYPE_F32, GGML_TYPE_F32, false, false, true, 6, 2,
                       1, 4, LLAMA_SWA_TYPE_STANDARD, nullptr, nullptr, nullptr, nullptr);
  decode(cache, 1, {0}, 64);
  decode(cache, 0, {0, 1}, 64);
  cache.seq_rm(1, -1, -1);  // its cell, the first one, is free
  decode(cache, 0, {2}, 64);
  const std::vector<int> seen = decode(cache, 0, {3, 4, 5, 6}, 1);
  check(!seen.empty(), "the batch finds its slots");
  if (!seen.empty())
    check(seen.front() == 4, "with a window of 4 the token at position 3 sees 4 tokens, got " +
                                 std::to_string(seen.front()));
}

// "this array accumulates any applied shifts to the pos array since the last reset_shift() call"
// (llama-kv-cells.h). Keys are turned by that shift, so after seq_div they are at wrong positions.
void shift_of_div() {
  llama_kv_cells cells;
  cells.resize(1);
  cells.pos_set(0, 4);
  cells.seq_add(0, 0);
  cells.pos_add(0, 2);
  check(cells.get_shift(0) == 2, "4 to 6 by pos_add is a shift of 2");
  cells.reset_shift();
  cells.pos_div(0, 2);
  check(cells.get_shift(0) == -3,
        "6 to 3 by pos_div is a shift of -3, got " + std::to_string(cells.get_shift(0)));
}

// "-1 - invalid input batch", and of pos: "if set to NULL, the token position will be tracked
// automatically" (llama.h). The position of a sequence that is not there is read and written
// before the sequence is checked.
void batch_without_positions() {
  const test_model model;
  llama_kv_cache cache(model, model.hparams, GGML_TYPE_F32, GGML_TYPE_F32, false, false, true, 4, 1,
                       1, 0, LLAMA_SWA_TYPE_NONE, nullptr, nullptr, nullptr, nullptr);
  llama_token token = 0;
  std::int32_t count = 1;
  llama_seq_id seq = 1;  // of 1: only 0 is there
  llama_seq_id* seqs = &seq;
  const llama_batch batch{1, &token, nullptr, nullptr, &count, &seqs, nullptr};
  llama_batch_ext given(1, 1, 1, 1, &cache, 1, 1);
  llama_batch_compat::init(given, batch);
  llama_batch_allocr allocator(1);
  const llama_vocab vocab;
  check(!allocator.init(given, vocab, false), "a sequence that is not there is an invalid batch");
}

}  // namespace

int main(int count, char** words) {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  const std::string name = count > 1 ? words[1] : "";
  if (name.empty() || name == "mask_of_window") mask_of_window();
  if (name.empty() || name == "shift_of_div") shift_of_div();
  if (name.empty() || name == "batch_without_positions") batch_without_positions();
  return failures == 0 ? 0 : 1;
}
