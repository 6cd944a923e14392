// optimized/provider/contiguous_arena_cache.hpp: `provider.contiguous`, fast on a CPU.
#pragma once

#include <memory>
#include <vector>

#include "optimized/memory/arena.hpp"
#include "optimized/provider/contiguous_control.hpp"
#include "reference/contract/values/stored_rows.hpp"

namespace kvo::optimized {

/// The memory of a layer, and what it holds.
struct ContiguousArenaLayer {
  Buffer k;  ///< [batch][max_seq_len][dim]; without storage until pinned
  Buffer v;
  std::int64_t cursor = 0;
  std::int64_t batch = 0;
  std::int64_t dim = 0;
  std::size_t cells = 0;                    ///< of a buffer
  std::shared_ptr<StoredRows> k_rows = {};  ///< what shows the buffer; null for f32
  std::shared_ptr<StoredRows> v_rows = {};

  [[nodiscard]] bool exists() const { return k.storage != nullptr; }
};

/// The buffers of all layers lie in one arena that is never cleared (a query shows written cells
/// only), and a batch row is copied as one run. Rows that are no f32 lie there in their own bytes.
class ContiguousArenaCache final
    : public ContiguousControl<ContiguousArenaCache, ContiguousArenaLayer> {
 public:
  /// Errors  as provider::MakeContiguous says.
  static Result<std::unique_ptr<provider::Contiguous>> make(
      const provider::ContiguousOptions& options, QuirkSet<provider::Quirk> quirks);

  ContiguousArenaCache(const provider::ContiguousOptions& options, QuirkSet<provider::Quirk> quirks)
      : ContiguousControl(options, quirks), storage_(options.storage) {}

  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 private:
  friend ContiguousControl;
  using Layer = ContiguousArenaLayer;

  [[nodiscard]] Status put(Layer& to, const Rows& rows, std::int64_t cells, bool full);
  void stored(std::int64_t layer) const;
  [[nodiscard]] KvPair shown(const Layer& from);
  [[nodiscard]] bool is_narrow() const { return storage_.type != StorageType::kF32; }
  /// Arena cells that elements take, in rows of `dim`.
  [[nodiscard]] std::size_t cells_for(std::int64_t elements, std::int64_t dim) const;
  /// Stores rows that are no f32 behind the cursor.
  void store_narrow(const Layer& to, const provider::Rows& rows);
  /// Such rows, gathered as they are stored.
  [[nodiscard]] provider::KvPair gather_narrow(const Layer& from);
  /// Shows a buffer that holds such rows, in so many bytes.
  [[nodiscard]] std::shared_ptr<StoredRows> shown(const Buffer& buffer, std::size_t bytes,
                                                  std::int64_t dim) const;
  /// Makes the buffers of a layer, of `cells` each, and pins K's batch and dim.
  void pin(Layer& layer, const Tensor& k, std::size_t cells);

  Arena arena_{.written = Written::kBitByBit};
  ResultSides results_;
  StorageFormat storage_;
};

}  // namespace kvo::optimized
