// What the memory classes of llama.cpp ask of the rest of it: a model that is numbers alone, and a
// context that computes the two operations of their graphs. A row of K is an integer in the place
// of two floats (turned_key), so that a turn is exact at any position.
#include <cstdint>
#include <cstring>
#include <utility>

#include <ggml-backend.h>
#include <llama-context.h>
#include <llama-graph.h>
#include <llama-memory.h>
#include <llama-vocab.h>
#include <stand_in.hpp>

// ---- The model ----

struct llama_vocab::impl {};
llama_vocab::llama_vocab() {}
llama_vocab::~llama_vocab() {}

struct llama_model::impl {};
llama_model::llama_model(const llama_model_params& given) : params(given) {}
llama_model::~llama_model() {}
float llama_model::get_rope_freq_base(const llama_cparams&, int) const {
  return 1;
}
float llama_model::get_rope_freq_scale(const llama_cparams&, int) const {
  return 1;
}
ggml_tensor* llama_model::get_rope_factors(const llama_cparams&, int) const {
  return nullptr;
}

llama_pos llama_memory_seq_pos_max(llama_memory_t memory, llama_seq_id seq) {
  return memory->seq_pos_max(seq);
}

// ---- The context, which update() of a cache is given ----

namespace {

template <class T>
T* at(const ggml_tensor* tensor, std::int64_t row, std::size_t stride) {
  return reinterpret_cast<T*>(static_cast<char*>(tensor->data) + row * stride);
}

// Rows that were never written stay zero, as zero turned by any angle.
void turn(const ggml_tensor* node) {
  const ggml_tensor* keys = node->src[0];
  for (std::int64_t row = 0; row < keys->ne[2]; ++row) {
    auto* key = at<std::int64_t>(keys, row, keys->nb[2]);
    if (*key != 0) *key += *at<std::int32_t>(node->src[1], row, node->src[1]->nb[0]) * kTags;
  }
}

void set_rows(const ggml_tensor* node) {
  const ggml_tensor* from = node->src[0];
  for (std::int64_t row = 0; row < from->ne[1]; ++row) {
    const std::int64_t to = *at<std::int64_t>(node->src[1], row, node->src[1]->nb[0]);
    std::memcpy(at<char>(node, to, node->nb[1]), at<char>(from, row, from->nb[1]),
                from->ne[0] * sizeof(float));
  }
}

llm_graph_result& the_result() {
  static llm_graph_result result(64);
  return result;
}
ggml_backend_buffer_ptr the_buffer;

}  // namespace

void compute(ggml_cgraph* graph) {
  for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
    const ggml_tensor* node = ggml_graph_node(graph, i);
    if (node->op == GGML_OP_ROPE) turn(node);
    if (node->op == GGML_OP_SET_ROWS) set_rows(node);
  }
}

llm_graph_result::llm_graph_result(std::int64_t nodes) : max_nodes(nodes) {
  reset();
}
void llm_graph_result::reset() {
  inputs.clear();
  the_buffer.reset();
  ctx_compute.reset(ggml_init({std::size_t{1} << 17U, nullptr, true}));
  gf = ggml_new_graph_custom(ctx_compute.get(), static_cast<std::size_t>(max_nodes), false);
}
void llm_graph_result::set_inputs(const llama_ubatch* ubatch) {
  for (auto& input : inputs) input->set_input(ubatch);
}
llm_graph_input_i* llm_graph_result::add_input(llm_graph_input_ptr input) {
  inputs.push_back(std::move(input));
  return inputs.back().get();
}

llm_graph_result* llama_context::get_gf_res_reserve() const {
  return &the_result();
}
ggml_backend_sched_t llama_context::get_sched() const {
  return nullptr;
}
const llama_cparams& llama_context::get_cparams() const {
  static const llama_cparams none{};
  return none;
}
ggml_status llama_context::graph_compute(ggml_cgraph* graph, bool) {
  compute(graph);
  return GGML_STATUS_SUCCESS;
}
void llama_synchronize(llama_context*) {}
llama_context* the_context() {
  static std::uint64_t nothing;  // no member is used but those above
  return reinterpret_cast<llama_context*>(&nothing);
}

// ---- What ggml asks of parts that are not here: whatever else it would call is at address 0 ----

extern "C" bool ggml_backend_buffer_is_meta(ggml_backend_buffer_t) {
  return false;
}
extern "C" bool ggml_backend_buft_is_meta(ggml_backend_buffer_type_t) {
  return false;
}

// The linker calls these in the place of the scheduler's functions (--wrap).
extern "C" void __wrap_ggml_backend_sched_reset(ggml_backend_sched_t) {}
extern "C" bool __wrap_ggml_backend_sched_alloc_graph(ggml_backend_sched_t, ggml_cgraph*) {
  the_buffer.reset(ggml_backend_alloc_ctx_tensors_from_buft(the_result().get_ctx(),
                                                            ggml_backend_cpu_buffer_type()));
  return the_buffer != nullptr;
}
