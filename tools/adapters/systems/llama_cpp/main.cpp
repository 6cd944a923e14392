// The memory classes of llama.cpp, as published, for kvoracle: contract cells (docs/systems.md).
//
// Built with -fno-access-control: slots of an ubatch are read from private members, and the window
// half of a pair, which the constructor makes of a multiple of 256 cells, is replaced by one of the
// size that the case has.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <conventions.hpp>
#include <fcntl.h>
#include <ggml-backend.h>
#include <llama-batch.h>
#include <llama-io.h>
#include <llama-kv-cache-iswa.h>
#include <llama-kv-cache.h>
#include <llama-memory-recurrent.h>
#include <nlohmann/json.hpp>
#include <stand_in.hpp>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using json = nlohmann::json;

#ifdef NDEBUG
constexpr bool kDebug = false;
#else
constexpr bool kDebug = true;
#endif
constexpr std::uint32_t kHead = 2;  // elements of a row
constexpr std::int64_t kMostMaskCells = 64;

/// The cache refuses the call.
struct Refused {
  std::string code;
};
/// GGML_ASSERT, GGML_ABORT, assert.
struct Panic : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// ---- Arguments and results ----

/// A sequence that is no llama_seq_id cannot be named.
llama_seq_id sequence_in(const json& arguments, const char* member) {
  const auto number = arguments.at(member).get<std::int64_t>();
  if (number != static_cast<llama_seq_id>(number)) throw Refused{"precondition"};
  return static_cast<llama_seq_id>(number);
}
llama_seq_id seq(const json& arguments) {
  return sequence_in(arguments, "seq");
}

json table_of(const llama_kv_cells& table) {
  json cells = json::array();
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    if (table.is_empty(i)) continue;
    json seqs = json::array();
    for (int seq = 0; seq < LLAMA_MAX_SEQ; ++seq)
      if (table.seq_get_all(i).test(seq)) seqs.push_back(seq);
    cells.push_back(
        {{"cell", i}, {"pos", table.pos_get(i)}, {"shift", table.get_shift(i)}, {"seqs", seqs}});
  }
  return {{"cells", cells},
          {"used", table.get_used()},
          {"used_min", table.used_min()},
          {"used_end", table.used_max_p1()},
          {"has_shift", table.get_has_shift()}};
}

template <class Extremes>
json sequences(int count, const Extremes& of) {
  json shown = json::array();
  for (int seq = 0; seq < count; ++seq) {
    const llama_pos least = of.seq_pos_min(seq), most = of.seq_pos_max(seq);
    if (least != -1 || most != -1) shown.push_back({{"seq", seq}, {"min", least}, {"max", most}});
  }
  return shown;
}

// ---- cells.meta ----

/// A case: operations are carried out by name.
class Case {
 public:
  virtual ~Case() = default;
  json call(const std::string& name, const json& arguments) {
    const auto found = operations.find(name);
    if (found == operations.end()) return {{"unsupported", true}};
    if (!made && name != "new") throw Refused{"precondition"};
    return {{"ret", found->second(arguments)}};
  }

 protected:
  std::map<std::string, std::function<json(const json&)>> operations;
  bool made = false;
};

class Meta final : public Case {
 public:
  explicit Meta(const json& config) {
    const auto cell = [](const json& a) { return a.at("cell").get<std::uint32_t>(); };
    const auto value = [](const auto& of) { return json{{"value", of}}; };
    const auto nothing = json::object();
    auto& ops = operations;
    ops["new"] = [=](const json&) {
      table = {};
      table.resize(config.at("size"));
      copies.clear();
      made = true;
      return nothing;
    };
    ops["pos_set"] = [=](const json& a) { return table.pos_set(cell(a), a.at("pos")), nothing; };
    ops["seq_add"] = [=](const json& a) { return table.seq_add(cell(a), seq(a)), nothing; };
    ops["seq_rm"] = [=](const json& a) { return json{{"emptied", table.seq_rm(cell(a), seq(a))}}; };
    ops["seq_keep"] = [=](const json& a) {
      return json{{"emptied", table.seq_keep(cell(a), seq(a))}};
    };
    ops["rm"] = [=](const json& a) { return table.rm(cell(a)), nothing; };
    ops["pos_add"] = [=](const json& a) {
      return json{{"emptied", table.pos_add(cell(a), a.at("delta"))}};
    };
    ops["pos_div"] = [=](const json& a) { return table.pos_div(cell(a), a.at("d")), nothing; };
    ops["ext_set"] = [=](const json& a) {
      llama_kv_cell_ext extra;
      extra.x = a.at("x"), extra.y = a.at("y"), extra.tok = a.at("token");
      return table.ext_set(cell(a), extra), nothing;
    };
    ops["copy"] = [=](const json& a) {
      copies.push_back(a.contains("cells")
                           ? table.cp(a.at("cells").get<std::vector<std::uint32_t>>())
                           : table.cp(a.at("begin"), a.at("n")));
      return json{{"handle", copies.size() - 1}};
    };
    ops["paste"] = [=](const json& a) {
      const llama_kv_cells& copy = copies.at(a.at("handle"));
      if (a.contains("cells"))
        table.set(a.at("cells").get<std::vector<std::uint32_t>>(), copy);
      else
        table.set(a.at("begin").get<std::uint32_t>(), copy);
      return nothing;
    };
    ops["reread"] = [=](const json& a) { return table_of(copies.at(a.at("handle"))); };
    ops["reset"] = [=](const json&) { return table.reset(), nothing; };
    ops["reset_shift"] = [=](const json&) { return table.reset_shift(), nothing; };
    ops["resize"] = [=](const json& a) { return table.resize(a.at("n")), nothing; };
    ops["size"] = [=](const json&) { return value(table.size()); };
    ops["is_empty"] = [=](const json& a) { return value(table.is_empty(cell(a))); };
    ops["seq_count"] = [=](const json& a) { return value(table.seq_count(cell(a))); };
    ops["seq_has"] = [=](const json& a) { return value(table.seq_has(cell(a), seq(a))); };
    ops["seq_get"] = [=](const json& a) { return value(table.seq_get(cell(a))); };
    ops["pos_get"] = [=](const json& a) { return value(table.pos_get(cell(a))); };
    ops["get_shift"] = [=](const json& a) { return value(table.get_shift(cell(a))); };
    ops["pos_in"] = [=](const json& a) {
      return value(table.pos_in(cell(a), a.at("p0"), a.at("p1")));
    };
    ops["seq_pos_min"] = [=](const json& a) { return value(table.seq_pos_min(seq(a))); };
    ops["seq_pos_max"] = [=](const json& a) { return value(table.seq_pos_max(seq(a))); };
    ops["token_at_or_before"] = [=](const json& a) {
      return value(table.seq_pos_tok_le(seq(a), a.at("pos")));
    };
    ops["seq_pos_get"] = [=](const json& a) {
      json entries = json::array();
      for (const auto& [pos, at] : table.seq_pos_get(seq(a)))
        entries.push_back({{"pos", pos}, {"cell", at}});
      return json{{"entries", entries}};
    };
    ops["ext_get"] = [=](const json& a) {
      const llama_kv_cell_ext& extra = table.ext_get(cell(a));
      return json{{"x", extra.x}, {"y", extra.y}, {"token", extra.tok}};
    };
    ops["state"] = [=](const json&) {
      json shown = table_of(table);
      shown["seqs"] = sequences(LLAMA_MAX_SEQ, table);
      return shown;
    };
  }

 private:
  llama_kv_cells table;
  std::vector<llama_kv_cells> copies;
};

// ---- What the other kinds share: batches and sequences ----

class OverSequences : public Case {
 protected:
  explicit OverSequences(const json& config) : most(config.value("n_seq_max", 1)) {
    const auto nothing = json::object();
    auto& ops = operations;
    ops["seq_rm"] = [=](const json& a) {
      return json{{"value", memory().seq_rm(seq(a), a.at("p0"), a.at("p1"))}};
    };
    ops["seq_cp"] = [=](const json& a) {
      return memory().seq_cp(sequence_in(a, "src"), sequence_in(a, "dst"), a.at("p0"), a.at("p1")),
             nothing;
    };
    ops["seq_keep"] = [=](const json& a) { return memory().seq_keep(seq(a)), nothing; };
    ops["seq_add"] = [=](const json& a) {
      return memory().seq_add(seq(a), a.at("p0"), a.at("p1"), a.at("delta")), nothing;
    };
    ops["seq_div"] = [=](const json& a) {
      return memory().seq_div(seq(a), a.at("p0"), a.at("p1"), a.at("d")), nothing;
    };
    ops["seq_pos"] = [=](const json& a) {
      return json{{"min", memory().seq_pos_min(seq(a))}, {"max", memory().seq_pos_max(seq(a))}};
    };
    ops["can_shift"] = [=](const json&) { return json{{"value", memory().get_can_shift()}}; };
    ops["clear"] = [=](const json& a) { return memory().clear(a.at("data")), nothing; };
    ops["update"] = [=](const json&) { return json{{"updated", update()}}; };
    ops["decode"] = [=](const json& a) { return decode(a); };
  }

  [[nodiscard]] virtual llama_memory_i& memory() = 0;
  /// Shows the ubatch that was placed, and computes it.
  [[nodiscard]] virtual json placed(llama_memory_context_i& context) = 0;

  /// As llama_context::memory_update.
  bool update() {
    const auto context = memory().init_update(the_context(), false);
    if (context->get_status() == LLAMA_MEMORY_STATUS_NO_UPDATE) return false;
    context->apply();
    return true;
  }

  /// Fills the allocator with the tokens of a batch, as llama_decode does. Extremes are those of
  /// `beside`, or of none.
  void read_batch(const json& a, llama_memory_i* beside) {
    const auto lists = a.at("seqs").get<std::vector<std::vector<llama_seq_id>>>();
    const bool has_positions = a.contains("pos") && !a.at("pos").is_null();
    std::vector<llama_pos> positions =
        has_positions ? a.at("pos").get<std::vector<llama_pos>>() : std::vector<llama_pos>();
    std::vector<llama_token> tokens(lists.size(), 0);
    std::vector<std::int32_t> counts;
    std::vector<llama_seq_id*> owners;
    for (const auto& list : lists) {
      counts.push_back(static_cast<std::int32_t>(list.size()));
      owners.push_back(const_cast<llama_seq_id*>(list.data()));
    }
    if (lists.empty()) throw Refused{"other:invalid_batch"};
    llama_batch batch{static_cast<std::int32_t>(lists.size()),
                      tokens.data(),
                      nullptr,
                      has_positions ? positions.data() : nullptr,
                      counts.data(),
                      owners.data(),
                      nullptr};
    // A fault of llama_batch_compat::init: the position that follows is read and written at the
    // number of the sequence before that is checked. It is named here, for nothing that follows it
    // can be judged.
    if (!has_positions)
      for (const auto& list : lists)
        if (list.front() < 0 || list.front() >= most)
          throw std::runtime_error("llama_batch_compat::init writes pos_next[" +
                                   std::to_string(list.front()) + "] of " + std::to_string(most));
    llama_batch_ext given(lists.size(), 1, 1, most, &memory(), 1, 1);
    llama_batch_compat::init(given, batch);
    given.mem = beside;
    if (!allocator.init(given, vocabulary, false)) throw Refused{"other:invalid_batch"};
  }

  json decode(const json& a) {
    const std::uint32_t n_ubatch = a.at("n_ubatch");
    causal = a.value("causal", true);
    read_batch(a, &memory());
    if (!causal && n_ubatch < allocator.get_n_tokens())
      throw Panic("non-causal attention requires n_ubatch >= n_tokens");  // llama_context::decode
    update();
    const auto context = memory().init_batch(allocator, n_ubatch, false);
    if (context->get_status() != LLAMA_MEMORY_STATUS_SUCCESS) throw Refused{"full"};
    json ubatches = json::array();
    do {
      context->apply();
      ubatches.push_back(placed(*context));
    } while (context->next());
    tags += allocator.get_n_tokens();
    return {{"ubatches", ubatches}};
  }

  llama_seq_id most;
  bool causal = true;
  std::int32_t tags = 0;  // tokens of the decodes that succeeded
  llama_batch_allocr allocator{1};

 private:
  llama_vocab vocabulary;
};

// ---- cells.kv, cells.iswa ----

/// As llama_io_write_host.
class Writer final : public llama_io_write_i {
 public:
  void write(const void* from, std::size_t size) override {
    bytes.insert(bytes.end(), static_cast<const char*>(from),
                 static_cast<const char*>(from) + size);
  }
  void write_tensor(ggml_tensor* tensor, std::size_t offset, std::size_t size) override {
    bytes.resize(bytes.size() + size);
    ggml_backend_tensor_get(tensor, bytes.data() + bytes.size() - size, offset, size);
  }
  std::size_t n_bytes() override { return bytes.size(); }
  std::vector<char> bytes;
};

/// As llama_io_read_host: rows are written when all of the state has been read.
class Reader final : public llama_io_read_i {
 public:
  explicit Reader(const std::vector<char>& from) : bytes(from) {}
  void read(void* to, std::size_t size) override { std::memcpy(to, taken(size), size); }
  void read_tensor(ggml_tensor* tensor, std::size_t offset, std::size_t size) override {
    rows.push_back({tensor, taken(size), offset, size});
  }
  std::size_t n_bytes() override { return at; }
  void flush() {
    for (const Rows& each : rows)
      ggml_backend_tensor_set(each.tensor, each.from, each.offset, each.size);
  }

 private:
  struct Rows {
    ggml_tensor* tensor;
    const char* from;
    std::size_t offset, size;
  };
  const char* taken(std::size_t size) {
    if (size > bytes.size() - at) throw std::runtime_error("unexpectedly reached end of buffer");
    at += size;
    return bytes.data() + at - size;
  }
  const std::vector<char>& bytes;
  std::size_t at = 0;
  std::vector<Rows> rows;
};

llama_hparams numbers_of(const json& config, bool pair) {
  static const std::map<std::string, llama_swa_type> windows{
      {"none", LLAMA_SWA_TYPE_NONE},
      {"standard", LLAMA_SWA_TYPE_STANDARD},
      {"chunked", LLAMA_SWA_TYPE_CHUNKED},
      {"symmetric", LLAMA_SWA_TYPE_SYMMETRIC}};
  static const std::map<std::string, llama_non_causal_type> non_causal{
      {"all", LLAMA_NON_CAUSAL_TYPE_ALL},
      {"swa_only", LLAMA_NON_CAUSAL_TYPE_SWA_ONLY},
      {"swa_full", LLAMA_NON_CAUSAL_TYPE_SWA_FULL}};
  llama_hparams made{};
  made.n_layer_all = 2;
  made.n_embd = kHead;
  made.n_embd_head_k_full = made.n_embd_head_v_full = made.n_embd_head_k_swa =
      made.n_embd_head_v_swa = kHead;
  made.n_rot_full = made.n_rot_swa = kHead;
  made.n_head_arr.fill(1);
  made.n_head_kv_arr.fill(1);
  made.rope_pattern.fill(1);
  made.rope_type = LLAMA_ROPE_TYPE_NEOX;
  made.use_alibi = config.value("alibi", false);
  made.n_swa = config.value("n_swa", 0);
  made.swa_type = windows.at(config.value("swa_type", "none"));
  made.non_causal_type = non_causal.at(config.value("non_causal", "all"));
  made.is_swa_impl[1] = pair ? 1 : 0;  // layer 1 is the window half
  return made;
}

class Kv final : public OverSequences {
 public:
  Kv(const json& config, bool pair)
      : OverSequences(config), model(numbers_of(config, pair)), pair(pair) {
    auto& ops = operations;
    ops["new"] = [=, this](const json&) { return make(config); };
    ops["find_slot"] = [=, this](const json& a) { return find_slot(a); };
    ops["state_save"] = [=, this](const json& a) {
      Writer to;
      try {
        memory().state_write(to, seq(a), flags(a));
      } catch (const std::out_of_range&) {  // state_seq_get_data answers 0 bytes
        throw Refused{"precondition"};
      }
      states.push_back(std::move(to.bytes));
      return json{{"handle", states.size() - 1}, {"bytes", states.back().size()}};
    };
    ops["state_load"] = [=, this](const json& a) {
      Reader from(states.at(a.at("handle")));
      try {
        memory().state_read(from, seq(a), flags(a));
      } catch (const Panic&) {
        throw;
      } catch (const std::exception&) {
        throw Refused{"other:restore_failed"};
      }
      from.flush();
      return json::object();
    };
    ops["rows"] = [=, this](const json&) { return each_half(rows); };
    ops["state"] = [=, this](const json&) {
      json shown = each_half([](llama_kv_cache& half) {
        json streams = json::array();
        for (std::uint32_t s = 0; s < half.get_n_stream(); ++s)
          streams.push_back(table_of(half.v_cells[s]));
        return streams;
      });
      shown["seqs"] = sequences(base().get_n_stream() > 1 ? most : LLAMA_MAX_SEQ, memory());
      return shown;
    };
  }

 private:
  [[nodiscard]] llama_memory_i& memory() override {
    return both ? static_cast<llama_memory_i&>(*both) : *single;
  }
  [[nodiscard]] llama_kv_cache& base() { return both ? *both->get_base() : *single; }
  [[nodiscard]] static llama_state_seq_flags flags(const json& a) {
    return a.value("partial", false) ? LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY : 0;
  }

  json make(const json& config) {
    const bool unified = config.value("unified", true), transposed = config.value("v_trans", false);
    const std::uint32_t size = config.at("size");
    const llama_hparams& numbers = model.hparams;
    made = false;
    states.clear();
    tags = 0;
    const auto cache = [&](std::uint32_t cells, std::uint32_t window, llama_swa_type type,
                           auto&& layers) {
      return std::make_unique<llama_kv_cache>(
          model, numbers, GGML_TYPE_F32, GGML_TYPE_F32, transposed, false, unified, cells, most,
          config.value("n_pad", 1), window, type, nullptr, layers, nullptr, nullptr);
    };
    if (pair) {
      both = std::make_unique<llama_kv_cache_iswa>(
          model, GGML_TYPE_F32, GGML_TYPE_F32, transposed, false, config.value("swa_full", false),
          unified, size, most, config.value("n_ubatch", 0), 1, nullptr, nullptr, nullptr, nullptr);
      if (config.contains("size_swa"))
        both->kv_swa = cache(config.at("size_swa"), numbers.n_swa, numbers.swa_type,
                             [](std::int32_t layer) { return layer == 1; });
    } else {
      single = cache(size, numbers.n_swa, numbers.swa_type, nullptr);
    }
    made = true;
    json shown{{"size", base().get_size()},
               {"n_stream", base().get_n_stream()},
               {"can_shift", memory().get_can_shift()}};
    if (pair) shown["size_swa"] = both->get_swa()->get_size();
    return shown;
  }

  template <class Show>
  json each_half(Show&& show) {
    json shown{{"streams", show(base())}};
    if (both) shown["streams_swa"] = show(*both->get_swa());
    return shown;
  }

  json find_slot(const json& a) {
    read_batch(a, nullptr);
    allocator.split_reset();
    const llama_ubatch ubatch = base().get_n_stream() == 1
                                    ? allocator.split_simple(allocator.get_n_tokens())
                                    : allocator.split_equal(allocator.get_n_tokens(), true, 0);
    llama_kv_cache& half = a.value("swa", false) ? *both->get_swa() : base();
    const auto slots = half.find_slot(ubatch, a.value("cont", false));
    if (slots.empty()) throw Refused{"full"};
    return {{"slots", slots.idxs[0]}};
  }

  json placed(llama_memory_context_i& context) override {
    const llama_ubatch& ubatch = context.get_ubatch();
    json shown{{"rows", ubatch.data->batch_idxs}};
    if (!both) {
      half_placed(static_cast<const llama_kv_cache_context&>(context), ubatch, {0, 1}, "", shown);
      return shown;
    }
    const auto& halves = static_cast<const llama_kv_cache_iswa_context&>(context);
    half_placed(*halves.get_base(), ubatch, {0}, "", shown);
    half_placed(*halves.get_swa(), ubatch, {1}, "_swa", shown);
    return shown;
  }

  // The graph of an ubatch, as far as a cache takes part: its mask, and its rows where the cache
  // says.
  void half_placed(const llama_kv_cache_context& half, const llama_ubatch& ubatch,
                   const std::vector<int>& layers, const std::string& suffix, json& shown) {
    const auto& slots = half.sinfos[half.i_cur];
    const auto streams = static_cast<std::int64_t>(slots.n_stream());
    const std::int64_t cells = half.get_n_kv(), tokens = ubatch.n_tokens;
    const ggml_context_ptr graph(ggml_init({std::size_t{1} << 16U, nullptr, true}));
    ggml_context* g = graph.get();
    ggml_tensor* mask = ggml_new_tensor_4d(g, GGML_TYPE_F32, cells, tokens / streams, 1, streams);
    ggml_tensor* k_cells = half.build_input_k_idxs(g, ubatch);
    ggml_tensor* v_cells = half.build_input_v_idxs(g, ubatch);
    ggml_tensor* k = ggml_new_tensor_3d(g, GGML_TYPE_F32, kHead, 1, tokens);
    ggml_tensor* v = ggml_new_tensor_3d(g, GGML_TYPE_F32, kHead, 1, tokens);
    ggml_cgraph* nodes = ggml_new_graph_custom(g, 32, false);
    for (const int layer : layers) {
      ggml_build_forward_expand(nodes, half.cpy_k(g, k, k_cells, layer));
      ggml_build_forward_expand(nodes, half.cpy_v(g, v, v_cells, layer));
    }
    const ggml_backend_buffer_ptr memory(
        ggml_backend_alloc_ctx_tensors_from_buft(g, ggml_backend_cpu_buffer_type()));
    half.set_input_kq_mask(mask, &ubatch, causal);
    half.set_input_k_idxs(k_cells, &ubatch);
    half.set_input_v_idxs(v_cells, &ubatch);
    for (std::int64_t i = 0; i < tokens; ++i) {
      const std::int32_t tag = tags + ubatch.data->batch_idxs[i] + 1;
      const std::int64_t key = turned_key(tag, ubatch.pos[i]);
      const std::int32_t value[]{tag, ~tag};
      std::memcpy(static_cast<char*>(k->data) + i * k->nb[2], &key, sizeof(key));
      std::memcpy(static_cast<char*>(v->data) + i * v->nb[2], value, sizeof(value));
    }
    compute(nodes);

    json cells_of_tokens = json::array();
    for (const auto& of_stream : slots.idxs)
      for (const std::uint32_t cell : of_stream) cells_of_tokens.push_back(cell);
    shown["slots" + suffix] = cells_of_tokens;
    shown["n_kv" + suffix] = cells;
    const auto* entries = static_cast<const float*>(mask->data);
    json shown_mask = json::array();
    for (std::int64_t i = 0; i < tokens; ++i) {
      json row = json::array();
      for (std::int64_t j = 0; j < cells; ++j) {
        const float entry = entries[i * cells + j];
        const bool visible = std::isfinite(entry);
        if (cells <= kMostMaskCells)
          shown_mask.push_back(visible ? json(entry) : json(std::isnan(entry) ? "nan" : "-inf"));
        else if (visible)
          row.push_back(j);
      }
      if (cells > kMostMaskCells) shown_mask.push_back(row);
    }
    if (cells <= kMostMaskCells)
      shown["mask" + suffix] = {{"shape", {tokens, cells}}, {"data", shown_mask}};
    else
      shown["visible" + suffix] = shown_mask;
  }

  /// Tags and positions of the rows, one stream after another; all layers must hold the same.
  static json rows(llama_kv_cache& half) {
    json streams = json::array();
    const std::uint32_t size = half.get_size(), count = half.get_n_stream();
    const bool transposed = half.v_trans;
    for (std::uint32_t s = 0; s < count; ++s) {
      json k = json::array(), rot = json::array(), v = json::array();
      for (std::uint32_t cell = 0; cell < size; ++cell) {
        struct Row {
          std::int64_t key;
          std::int32_t value[2];
        };
        Row want{};
        for (std::size_t at = 0; at < half.layers.size(); ++at) {
          const auto& layer = half.layers[at];
          Row got;
          std::memcpy(&got.key,
                      static_cast<char*>(layer.k_stream[s]->data) + cell * sizeof(got.key),
                      sizeof(got.key));
          for (std::uint32_t j = 0; j < kHead; ++j)
            std::memcpy(&got.value[j],
                        static_cast<char*>(layer.v_stream[s]->data) +
                            (transposed ? j * size + cell : cell * kHead + j) * sizeof(float),
                        sizeof(float));
          if (got.value[1] != (got.value[0] == 0 ? 0 : ~got.value[0]))
            throw std::runtime_error("a value row of two tokens");
          if (at > 0 && std::memcmp(&want, &got, sizeof(got)) != 0)
            throw std::runtime_error("layers differ");
          want = got;
        }
        k.push_back(tag_of(want.key)), rot.push_back(position_of(want.key));
        v.push_back(want.value[0]);
      }
      streams.push_back({{"k", k}, {"rot", rot}, {"v", v}});
    }
    return streams;
  }

  Model model;
  bool pair;
  std::unique_ptr<llama_kv_cache> single;
  std::unique_ptr<llama_kv_cache_iswa> both;
  std::vector<std::vector<char>> states;
};

// ---- cells.recurrent ----

llama_hparams states_of() {
  llama_hparams made{};
  made.n_layer_all = 1;
  made.ssm_d_conv = 2;
  made.ssm_d_inner = made.ssm_d_state = 1;
  return made;
}

class Recurrent final : public OverSequences {
 public:
  explicit Recurrent(const json& config) : OverSequences(config), model(states_of()) {
    operations["new"] = [=, this](const json&) {
      states =
          std::make_unique<llama_memory_recurrent>(model, GGML_TYPE_F32, GGML_TYPE_F32, false, most,
                                                   most, config.value("n_rs_seq", 0), nullptr);
      made = true;
      return json{{"can_shift", states->get_can_shift()}};
    };
    operations["state"] = [=, this](const json&) {
      json cells = json::array();
      for (std::size_t i = 0; i < states->cells.size(); ++i) {
        const auto& cell = states->cells[i];
        cells.push_back({{"cell", i},
                         {"pos", cell.pos},
                         {"seqs", cell.seq_id},
                         {"src", cell.src},
                         {"tail", cell.tail}});
      }
      return json{{"cells", cells},
                  {"head", states->head},
                  {"used", states->used},
                  {"rollback", states->rs_idx},
                  {"seqs", sequences(LLAMA_MAX_SEQ, *states)}};
    };
  }

 private:
  [[nodiscard]] llama_memory_i& memory() override { return *states; }
  json placed(llama_memory_context_i& context) override {
    const auto& step = static_cast<const llama_memory_recurrent_context&>(context);
    json copy = json::array();
    for (std::uint32_t i = 0; i < step.get_n_rs(); ++i)
      copy.push_back(step.s_copy(static_cast<int>(i)));
    return {{"rows", step.get_ubatch().data->batch_idxs},
            {"head", step.get_head()},
            {"n", step.get_n_rs()},
            {"zero", step.get_rs_z()},
            {"copy", copy}};
  }

  Model model;
  std::unique_ptr<llama_memory_recurrent> states;
};

// ---- The protocol (docs/adapters.md) ----

std::unique_ptr<Case> opened(const std::string& kind, const json& config) {
  if (kind == "cells.meta") return std::make_unique<Meta>(config);
  if (kind == "cells.recurrent") return std::make_unique<Recurrent>(config);
  return std::make_unique<Kv>(config, kind == "cells.iswa");
}

/// Whether the operation may end the process after it has changed something: by an assertion
/// (LC-66 in one half of a pair; in a debug build also LC-41, LC-80, paste of LC-23), or by a
/// division by 0.
bool may_abort(const std::string& name, const json& arguments) {
  if (name == "seq_cp" || arguments.value("d", 1) == 0) return true;
  if (!kDebug) return false;
  const auto below = [](const json& position) { return position < 0; };
  if (name == "decode" && arguments.contains("pos") && !arguments.at("pos").is_null())
    return std::any_of(arguments.at("pos").begin(), arguments.at("pos").end(), below);
  return name == "paste" || name == "state_load";
}

/// Whether it does, tried in a copy of this process.
bool aborts(Case& of, const std::string& name, const json& arguments) {
  const pid_t copy = fork();
  if (copy == 0) {
    try {
      (void)of.call(name, arguments);
    } catch (const Panic&) {
      std::_Exit(1);
    } catch (const std::out_of_range&) {
      std::_Exit(1);
    } catch (const Refused&) {
    } catch (const std::exception&) {
    }
    std::_Exit(0);
  }
  int status = 0;
  waitpid(copy, &status, 0);
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGABRT || WTERMSIG(status) == SIGFPE;
  return WEXITSTATUS(status) == 1;
}

json answered(Case& of, const json& asked) {
  try {
    const std::string name = asked.at("op");
    const json& arguments = asked.at("args");
    if (may_abort(name, arguments) && aborts(of, name, arguments))
      return {{"ret", {{"panic", "the process ends"}}}};
    return of.call(name, arguments);
  } catch (const Refused& refused) {
    return {{"ret", {{"error", refused.code}}}};
  } catch (const Panic& panic) {
    return {{"ret", {{"panic", panic.what()}}}};
  } catch (const std::out_of_range& uncaught) {  // of a bitset (LC-24)
    return {{"ret", {{"panic", uncaught.what()}}}};
  } catch (const std::exception& fault) {
    return {{"threw", fault.what()}};
  }
}

json greeting(const std::string& version) {
  json kinds = json::array();
  const auto add = [&](const char* kind, const conventions::Rows& rows) {
    kinds.push_back({{"kind", kind}, {"conventions", rows}});
  };
  add("cells.meta", conventions::of_meta());
  add("cells.kv", conventions::of_kv());
  add("cells.iswa", conventions::of_pair());
  add("cells.recurrent", conventions::of_recurrent());
  return {{"protocol", 1},
          {"system", "llama.cpp"},
          {"version", version},
          {"kinds", kinds},
          {"batches", true}};
}

json answer(std::map<std::int64_t, std::unique_ptr<Case>>& cases, const json& asked,
            const std::string& version) {
  if (asked.contains("hello")) return {{"hello", greeting(version)}};
  if (asked.contains("open")) {
    const json& open = asked.at("open");
    if (open.at("config").value("build", "release") != (kDebug ? "debug" : "release"))
      return {{"error", "not_supported"}, {"detail", "the other build"}};
    if (open.at("config").value("real", false))
      return {{"error", "not_supported"}, {"detail", "real"}};
    cases[open.at("case")] = opened(open.at("kind"), open.at("config"));
    return json::object();
  }
  if (asked.contains("close")) return cases.erase(asked.at("close")), json::object();
  Case& of = *cases.at(asked.at("case"));
  if (!asked.contains("batch")) return answered(of, asked);
  json all = json::array();
  for (const json& each : asked.at("batch")) all.push_back(answered(of, each));
  return {{"batch", all}};
}

}  // namespace

extern "C" void fail_assertion(const char* expression) {
  throw Panic(expression);
}

int main(int count, char** words) {
  const int out = dup(1);
  dup2(2, 1);
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  ggml_set_abort_callback([](const char* message) { throw Panic(message); });
  std::map<std::int64_t, std::unique_ptr<Case>> cases;
  std::string line;
  while (std::getline(std::cin, line)) {
    const json asked = json::parse(line);
    json given;
    try {
      given = answer(cases, asked, count > 1 ? words[1] : "unknown");
    } catch (const std::exception& fault) {
      given = {{"fault", fault.what()}};
    }
    given["id"] = asked.at("id");
    std::string text = given.dump() + "\n";
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t written = write(out, text.data() + at, text.size() - at);
      if (written <= 0) return 1;
      at += static_cast<std::size_t>(written);
    }
  }
}
