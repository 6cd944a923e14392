// reference/contract/values/tensor_bytes.hpp: the bytes of a tensor, its own or borrowed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace kvo {

/// A vector of bytes that may stand for memory of somebody else until it is changed or copied: a
/// copy always owns its bytes. Who lends them keeps the memory as it is for as long.
class TensorBytes {
 public:
  using value_type = std::byte;
  using iterator = std::vector<std::byte>::iterator;
  using const_iterator = std::span<const std::byte>::iterator;

  TensorBytes() = default;
  explicit TensorBytes(std::size_t count) : own_(count) {}
  template <class Iterator>
  TensorBytes(Iterator first, Iterator last) : own_(first, last) {}
  [[nodiscard]] static TensorBytes borrowed(std::span<const std::byte> bytes) {
    TensorBytes made;
    made.borrowed_ = bytes;
    return made;
  }

  TensorBytes(const TensorBytes& other) : own_(other.begin(), other.end()) {}
  TensorBytes(TensorBytes&& other) noexcept
      : own_(std::move(other.own_)), borrowed_(std::exchange(other.borrowed_, {})) {}
  TensorBytes& operator=(const TensorBytes& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  TensorBytes& operator=(TensorBytes&& other) noexcept {
    own_ = std::move(other.own_);
    borrowed_ = std::exchange(other.borrowed_, {});
    return *this;
  }
  ~TensorBytes() = default;

  [[nodiscard]] std::span<const std::byte> view() const {
    return borrowed_.data() != nullptr ? borrowed_ : std::span<const std::byte>(own_);
  }
  [[nodiscard]] const std::byte* data() const { return view().data(); }
  [[nodiscard]] std::size_t size() const { return view().size(); }
  [[nodiscard]] bool empty() const { return view().empty(); }
  [[nodiscard]] const_iterator begin() const { return view().begin(); }
  [[nodiscard]] const_iterator end() const { return view().end(); }
  [[nodiscard]] const std::byte& operator[](std::size_t at) const { return data()[at]; }

  /// The bytes to change; what was borrowed is copied first.
  [[nodiscard]] std::vector<std::byte>& own() {
    if (borrowed_.data() != nullptr) {
      own_.assign(borrowed_.begin(), borrowed_.end());
      borrowed_ = {};
    }
    return own_;
  }
  [[nodiscard]] std::byte* data() { return own().data(); }
  [[nodiscard]] iterator begin() { return own().begin(); }
  [[nodiscard]] iterator end() { return own().end(); }
  [[nodiscard]] std::byte& operator[](std::size_t at) { return own()[at]; }
  template <class Iterator>
  void assign(Iterator first, Iterator last) {
    own_.assign(first, last);
    borrowed_ = {};
  }

  friend bool operator==(const TensorBytes& a, const TensorBytes& b) {
    return std::ranges::equal(a.view(), b.view());
  }

 private:
  std::vector<std::byte> own_;
  std::span<const std::byte> borrowed_;  // without data: none
};

}  // namespace kvo
