// Faults of rows that are stored in narrow types.
#include "properties/snapshot/faults.hpp"

namespace kvo::snapshot {
namespace {

constexpr std::string_view kEncoder = "optimized/snapshot/block.cpp";
constexpr std::string_view kBlock = "optimized/snapshot/block.cpp";
constexpr std::string_view kKv = "reference/snapshot/kv_cache.hpp";
constexpr std::string_view kRing = "reference/snapshot/rotating_cache.hpp";
constexpr std::string_view kTrie = "reference/snapshot/trie.cpp";

}  // namespace

std::vector<seeding::Fault> stored_rows_faults() {
  return {
      {"snapshot.kv",
       "groups_run_on",
       "groups of codes run over the heads of a token that lie side by side",
       "B097, F11: KIVI let its quantisation groups begin where a call began",
       {{kEncoder, "encode_rows(format, dim, {token, width}, to);",
         "encode_rows(format, in_groups(format.type) ? width : dim, {token, width}, to);"}}},
      {"snapshot.rotating",
       "one_scale_a_chunk",
       "the tokens of a chunk share the scale of the first of them",
       "B097, F11: KIVI let its quantisation groups begin where a call began",
       {{kEncoder, "to += bytes;",
         "if (s > 0 && in_groups(format.type)) to[0] = *(to - bytes), to[1] = *(to - bytes + 1); "
         "to += bytes;"}}},
      {"snapshot.kv",
       "moved_by_elements",
       "of rows of codes as many bytes are moved as they have elements",
       "B021, F03: a narrow format took a path of its own in llama.cpp, which lacked a case",
       {{kBlock, "count * form.bytes()",
         "count * (form.codes ? form.batch * form.heads * std::min(form.dim, form.codes->dim)"
         " : form.bytes())",
         "std::memcpy(to.row(at), row, "}}},
      {"snapshot.rotating",
       "zero_without_sign",
       "zeros of keys lose their sign where floats are narrow",
       "B095, F11: mlxcel floored the scale of its narrow format",
       {{kRing, "k",
         R"((storage_.type != StorageType::kF32 && k.view.dtype == DType::kF32 ? [&] {
              Tensor changed = materialize(k.view);
              for (float& cell : changed.floats()) cell += 0.0F;
              return array_of(std::move(changed));
            }() : k))",
         "as_stored(storage_, "}}},
      {"snapshot.kv",
       "rounded_twice",
       "values become bf16 before they become codes",
       "B095, F11: mlxcel floored the scale of its narrow format",
       {{kKv, "v",
         R"((in_groups(storage_.type) && v.view.dtype == DType::kF32 ? [&] {
              Tensor changed = materialize(v.view);
              for (float& cell : changed.floats()) cell = f32_of_bf16(bf16_of(cell));
              return array_of(std::move(changed));
            }() : v))",
         "as_stored(storage_, k, "}}},
      {"snapshot.trie",
       "codes_count_as_f32",
       "snapshots of codes count for what their rows would take as f32",
       "B114, F13: a snapshot of Ollama's counted for the whole buffer where it kept a part",
       {{kTrie, "size_of(one)",
         R"((one != nullptr && one->content().first.codes
              ? 4 * (tokens_of(one->content().first) + tokens_of(one->content().second))
              : size_of(one)))"}}},
  };
}

}  // namespace kvo::snapshot
