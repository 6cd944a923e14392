#include "tools/probe/checkpoint.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <functional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reference/contract/values/check.hpp"
#include "reference/probe/weights.hpp"
#include "traces/io/output_file.hpp"

namespace kvo::tools {
namespace {

using traces::TraceResult;

constexpr std::array<std::string_view, 4> kNamedTokens{"<unk>", "<s>", "</s>", "<sink>"};
constexpr double kNormEpsilon = 1e-6;  // llama_config_text() has it in words

// ---- files ----

// Calls `fill` with a file, puts the file in its place, and adds its size to `total`.
using FillFile = std::function<TraceResult<std::uint64_t>(traces::OutputFile& file)>;

TraceResult<void> add_file(const std::string& path, std::uint64_t& total, const FillFile& fill) {
  auto file = traces::OutputFile::open(path);
  if (!file) return file.error();
  const auto bytes = fill(*file);
  if (!bytes) return bytes.error();
  total += *bytes;
  return file->commit();
}

TraceResult<void> add_text_file(const std::string& path, std::uint64_t& total,
                                std::string_view text) {
  return add_file(path, total, [text](traces::OutputFile& file) -> TraceResult<std::uint64_t> {
    if (const auto written = file.write(text); !written) return written.error();
    return text.size();
  });
}

std::uint64_t stored_size(const probe::Tensor& tensor, StorageType type) {
  return stored_bytes({.type = type}, tensor.rows * tensor.columns);
}

// Row `row` of a tensor in a file is row `source(row)` of the tensor.
TraceResult<void> write_tensor(traces::OutputFile& file, const probe::Weights& weights,
                               const probe::Tensor& tensor, StorageType type,
                               const std::function<std::size_t(std::size_t)>& source) {
  std::vector<float> rounded(tensor.columns);
  std::string bytes(stored_bytes({.type = type}, tensor.columns), '\0');
  for (std::size_t row = 0; row < tensor.rows; ++row) {
    const std::vector<double> exact = weights.row(tensor, source(row));
    for (std::size_t i = 0; i < exact.size(); ++i) rounded[i] = probe::rounded(exact[i], type);
    encode({.type = type}, rounded, reinterpret_cast<std::byte*>(bytes.data()));  // NOLINT
    if (auto written = file.write(bytes); !written) return written;
  }
  return {};
}

// ---- hf ----

std::string safetensors_header(const std::vector<probe::Tensor>& tensors, StorageType type) {
  const std::string_view dtype = type == StorageType::kF32    ? "F32"
                                 : type == StorageType::kBf16 ? "BF16"
                                                              : "F16";
  std::string json = R"({"__metadata__":{"format":"pt"})";
  std::uint64_t begin = 0;
  for (const probe::Tensor& tensor : tensors) {
    const std::uint64_t end = begin + stored_size(tensor, type);
    const std::string shape = tensor.is_norm() ? fmt::format("{}", tensor.columns)
                                               : fmt::format("{},{}", tensor.rows, tensor.columns);
    json += fmt::format(R"(,"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        tensor.name(), dtype, shape, begin, end);
    begin = end;
  }
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');
  return json;
}

void append_number(std::string& bytes, std::uint64_t number, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(number >> (8 * i));
}

TraceResult<std::uint64_t> write_safetensors(traces::OutputFile& file,
                                             const CheckpointOptions& options) {
  const probe::Tables tables(options.shape);
  const probe::Weights weights(tables);
  const std::vector<probe::Tensor> tensors = probe::tensors_of(options.shape);
  const std::string json = safetensors_header(tensors, options.dtype);
  std::string head;
  append_number(head, json.size(), 8);
  head += json;
  if (const auto written = file.write(head); !written) return written.error();
  std::uint64_t total = head.size();
  for (const probe::Tensor& tensor : tensors) {
    const auto same_row = [](std::size_t row) { return row; };
    const auto written = write_tensor(file, weights, tensor, options.dtype, same_row);
    if (!written) return written.error();
    total += stored_size(tensor, options.dtype);
  }
  return total;
}

std::string llama_config_text(const CheckpointOptions& options) {
  const auto& window = options.shape.window;
  const std::string_view dtype = options.dtype == StorageType::kF32    ? "float32"
                                 : options.dtype == StorageType::kBf16 ? "bfloat16"
                                                                       : "float16";
  return fmt::format(R"({{
  "architectures": ["{}ForCausalLM"],
  "model_type": "{}",
  "hidden_size": {},
  "intermediate_size": {},
  "num_hidden_layers": {},
  "num_attention_heads": {},
  "num_key_value_heads": {},
  "head_dim": {},
  "vocab_size": {},
  "max_position_embeddings": {},
  "rope_theta": {:.1f},
  "rms_norm_eps": 1e-06,
  "hidden_act": "silu",
  "attention_bias": false,
  "mlp_bias": false,
  "tie_word_embeddings": false,{}
  "bos_token_id": {},
  "eos_token_id": {},
  "torch_dtype": "{}"
}}
)",
                     window ? "Mistral" : "Llama", window ? "mistral" : "llama",
                     probe::Shape::kHidden, probe::Shape::kFeedForward, probe::Shape::kLayers,
                     probe::Shape::kQueryHeads, probe::Shape::kHeads, options.shape.head_dim,
                     probe::Shape::kVocabulary, probe::Shape::kPositions, probe::Shape::kRopeTheta,
                     window ? fmt::format("\n  \"sliding_window\": {},", *window) : "",
                     probe::kBegin, probe::kEnd, dtype);
}

std::string generation_config_text() {
  return fmt::format(R"({{"bos_token_id": {}, "eos_token_id": {}, "do_sample": false}}
)",
                     probe::kBegin, probe::kEnd);
}

std::string tokenizer_config_text() {
  return fmt::format(
      R"({{"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", )"
      R"("unk_token": "<unk>", "model_max_length": {}, "clean_up_tokenization_spaces": false}}
)",
      probe::Shape::kPositions);
}

// Each character is a token; texts get the token <s> in front.
std::string tokenizer_text() {
  std::vector<std::string> added;
  for (std::size_t token = 0; token < kNamedTokens.size(); ++token)
    added.push_back(fmt::format(
        R"({{"id": {}, "content": "{}", "single_word": false, "lstrip": false, "rstrip": false, )"
        R"("normalized": false, "special": true}})",
        token, kNamedTokens[token]));
  std::vector<std::string> vocabulary;
  for (probe::Token token = 0; token < probe::Shape::kVocabulary; ++token)
    vocabulary.push_back(fmt::format("\"{}\": {}", token_text(token), token));
  return fmt::format(R"({{
"version": "1.0", "truncation": null, "padding": null,
"added_tokens": [{}],
"normalizer": null,
"pre_tokenizer": {{"type": "Split", "pattern": {{"Regex": "[\\s\\S]"}},
  "behavior": "Isolated", "invert": false}},
"post_processor": {{"type": "TemplateProcessing",
  "single": [{{"SpecialToken": {{"id": "<s>", "type_id": 0}}}},
    {{"Sequence": {{"id": "A", "type_id": 0}}}}],
  "pair": [{{"Sequence": {{"id": "A", "type_id": 0}}}},
    {{"Sequence": {{"id": "B", "type_id": 1}}}}],
  "special_tokens": {{"<s>": {{"id": "<s>", "ids": [{}], "tokens": ["<s>"]}}}}}},
"decoder": {{"type": "Fuse"}},
"model": {{"type": "WordLevel", "unk_token": "<unk>", "vocab": {{{}}}}}
}}
)",
                     fmt::join(added, ", "), probe::kBegin, fmt::join(vocabulary, ", "));
}

// ---- gguf ----

constexpr std::uint64_t kAlignment = 32;

/// The metadata of a file: named values.
class GgufMetadata {
 public:
  void add(std::string_view key, std::uint32_t value) { add_number(key, 4, value, 4); }
  void add(std::string_view key, float value) {
    add_number(key, 6, std::bit_cast<std::uint32_t>(value), 4);
  }
  void add(std::string_view key, bool value) { add_number(key, 7, value ? 1 : 0, 1); }
  void add(std::string_view key, std::string_view value) {
    add_key(key, kString);
    add_string(bytes_, value);
  }
  /// `type` is that of the elements, which `elements` holds one after another.
  void add_list(std::string_view key, std::uint32_t type, std::uint64_t count,
                std::string_view elements) {
    add_key(key, 9);
    append_number(bytes_, type, 4);
    append_number(bytes_, count, 8);
    bytes_ += elements;
  }
  static void add_string(std::string& bytes, std::string_view text) {
    append_number(bytes, text.size(), 8);
    bytes += text;
  }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

  static constexpr std::uint32_t kInt32 = 5;
  static constexpr std::uint32_t kFloat32 = 6;
  static constexpr std::uint32_t kString = 8;

 private:
  void add_key(std::string_view key, std::uint32_t type) {
    ++count_;
    add_string(bytes_, key);
    append_number(bytes_, type, 4);
  }
  void add_number(std::string_view key, std::uint32_t type, std::uint64_t number, int size) {
    add_key(key, type);
    append_number(bytes_, number, size);
  }

  std::uint64_t count_ = 0;
  std::string bytes_;
};

// SentencePiece without merges: each character is a token.
void add_gguf_tokens(GgufMetadata& metadata) {
  enum : std::uint32_t { kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6 };
  std::string texts;
  std::string scores;
  std::string types;
  for (probe::Token token = 0; token < probe::Shape::kVocabulary; ++token) {
    const bool is_byte = token >= probe::kFirstByte && token < probe::kFirstValue;
    const bool is_value = token >= probe::kFirstValue && token < probe::kFirstPad;
    GgufMetadata::add_string(texts, token_text(token));
    append_number(scores, std::bit_cast<std::uint32_t>(is_value ? -1.0F : 0.0F), 4);
    append_number(types,
                  token == 0 ? kUnknown
                  : is_byte  ? kByte
                  : is_value ? kNormal
                             : kControl,
                  4);
  }
  const std::uint64_t count = probe::Shape::kVocabulary;
  metadata.add("tokenizer.ggml.model", std::string_view("llama"));
  metadata.add_list("tokenizer.ggml.tokens", GgufMetadata::kString, count, texts);
  metadata.add_list("tokenizer.ggml.scores", GgufMetadata::kFloat32, count, scores);
  metadata.add_list("tokenizer.ggml.token_type", GgufMetadata::kInt32, count, types);
  metadata.add("tokenizer.ggml.bos_token_id", probe::kBegin);
  metadata.add("tokenizer.ggml.eos_token_id", probe::kEnd);
  metadata.add("tokenizer.ggml.unknown_token_id", std::uint32_t{0});
  metadata.add("tokenizer.ggml.add_bos_token", true);
  metadata.add("tokenizer.ggml.add_eos_token", false);
  metadata.add("tokenizer.ggml.add_space_prefix", false);
}

GgufMetadata gguf_metadata(const CheckpointOptions& options) {
  const auto head_dim = static_cast<std::uint32_t>(options.shape.head_dim);
  const auto number = [](std::size_t value) { return static_cast<std::uint32_t>(value); };
  GgufMetadata metadata;
  metadata.add("general.architecture", std::string_view("llama"));
  metadata.add("general.name", std::string_view("kvoracle probe"));
  metadata.add("general.file_type", std::uint32_t{options.dtype == StorageType::kF32 ? 0U : 1U});
  metadata.add("llama.context_length", number(probe::Shape::kPositions));
  metadata.add("llama.embedding_length", number(probe::Shape::kHidden));
  metadata.add("llama.block_count", number(probe::Shape::kLayers));
  metadata.add("llama.feed_forward_length", number(probe::Shape::kFeedForward));
  metadata.add("llama.attention.head_count", number(probe::Shape::kQueryHeads));
  metadata.add("llama.attention.head_count_kv", number(probe::Shape::kHeads));
  metadata.add("llama.attention.key_length", head_dim);
  metadata.add("llama.attention.value_length", head_dim);
  metadata.add("llama.attention.layer_norm_rms_epsilon", static_cast<float>(kNormEpsilon));
  metadata.add("llama.rope.dimension_count", head_dim);
  metadata.add("llama.rope.freq_base", static_cast<float>(probe::Shape::kRopeTheta));
  metadata.add("llama.vocab_size", number(probe::Shape::kVocabulary));
  add_gguf_tokens(metadata);
  return metadata;
}

std::string gguf_name(const probe::Tensor& tensor) {
  constexpr std::array<std::string_view, 12> kNames{
      "token_embd", "attn_norm", "attn_q", "attn_k",   "attn_v",      "attn_output",
      "ffn_norm",   "ffn_gate",  "ffn_up", "ffn_down", "output_norm", "output"};
  const std::string_view name = kNames[static_cast<std::size_t>(tensor.kind)];
  const bool of_layer =
      tensor.kind != probe::Kind::kEmbedding && tensor.kind < probe::Kind::kLastNorm;
  return of_layer ? fmt::format("blk.{}.{}.weight", tensor.layer, name)
                  : fmt::format("{}.weight", name);
}

StorageType gguf_type(const probe::Tensor& tensor, StorageType dtype) {
  return tensor.is_norm() ? StorageType::kF32 : dtype;
}

// All of the file before the tensors.
std::string gguf_head(const std::vector<probe::Tensor>& tensors, const CheckpointOptions& options) {
  const GgufMetadata metadata = gguf_metadata(options);
  std::string head = "GGUF";
  append_number(head, 3, 4);
  append_number(head, tensors.size(), 8);
  append_number(head, metadata.count(), 8);
  head += metadata.bytes();
  std::uint64_t offset = 0;
  for (const probe::Tensor& tensor : tensors) {
    const StorageType type = gguf_type(tensor, options.dtype);
    GgufMetadata::add_string(head, gguf_name(tensor));
    append_number(head, tensor.is_norm() ? 1 : 2, 4);
    append_number(head, tensor.columns, 8);  // ggml's order: the fastest axis first
    if (!tensor.is_norm()) append_number(head, tensor.rows, 8);
    append_number(head, type == StorageType::kF32 ? 0 : 1, 4);
    append_number(head, offset, 8);
    offset += stored_size(tensor, type);
    KVO_CHECK(offset % kAlignment == 0);
  }
  head.resize((head.size() + kAlignment - 1) / kAlignment * kAlignment, '\0');
  return head;
}

TraceResult<std::uint64_t> write_gguf(traces::OutputFile& file, const CheckpointOptions& options) {
  const probe::Tables tables(options.shape);
  const probe::Weights weights(tables);
  const std::vector<probe::Tensor> tensors = probe::tensors_of(options.shape);
  const std::size_t dim = options.shape.head_dim;
  const std::string head = gguf_head(tensors, options);
  if (const auto written = file.write(head); !written) return written.error();
  std::uint64_t total = head.size();
  for (const probe::Tensor& tensor : tensors) {
    const bool in_pairs = tensor.kind == probe::Kind::kQuery || tensor.kind == probe::Kind::kKey;
    const auto source = [in_pairs, dim](std::size_t row) {
      const std::size_t in_head = row % dim;
      return in_pairs ? row - in_head + in_head % 2 * (dim / 2) + in_head / 2 : row;
    };
    const StorageType type = gguf_type(tensor, options.dtype);
    const auto written = write_tensor(file, weights, tensor, type, source);
    if (!written) return written.error();
    total += stored_size(tensor, type);
  }
  return total;
}

}  // namespace

std::string token_text(probe::Token token) {
  if (token < kNamedTokens.size()) return std::string(kNamedTokens[token]);
  if (token < probe::kFirstByte) return fmt::format("<r{}>", token);
  if (token < probe::kFirstValue) return fmt::format("<0x{:02X}>", token - probe::kFirstByte);
  if (token >= probe::kFirstPad) return fmt::format("<pad{}>", token);
  const std::uint32_t character = 0x4E00 + token - probe::kFirstValue;  // 3 bytes of UTF-8
  return {static_cast<char>(0xE0U | character >> 12U),
          static_cast<char>(0x80U | (character >> 6U & 0x3FU)),
          static_cast<char>(0x80U | (character & 0x3FU))};
}

TraceResult<std::uint64_t> write_checkpoint(const std::string& folder,
                                            const CheckpointOptions& options) {
  std::uint64_t total = 0;
  const auto add = [&](const char* name, auto&& write) {
    return add_file(folder + "/" + name, total,
                    [&](traces::OutputFile& file) { return write(file, options); });
  };
  if (options.format == ModelFormat::kGguf) {
    KVO_CHECK(options.dtype != StorageType::kBf16 && !options.shape.window);
    if (const auto added = add("probe.gguf", write_gguf); !added) return added.error();
    return total;
  }
  if (const auto added = add("model.safetensors", write_safetensors); !added) return added.error();
  for (const auto& [name, text] : {std::pair{"tokenizer.json", tokenizer_text()},
                                   {"tokenizer_config.json", tokenizer_config_text()},
                                   {"generation_config.json", generation_config_text()},
                                   {"config.json", llama_config_text(options)}})
    if (const auto added = add_text_file(folder + "/" + name, total, text); !added)
      return added.error();
  return total;
}

}  // namespace kvo::tools
