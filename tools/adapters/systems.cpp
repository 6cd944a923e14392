#include "tools/adapters/systems.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

namespace kvo::tools {
namespace {

constexpr std::array kSystems{
    System{"vllm", "vllm", "KVCacheManager"},
    System{"sglang", "sglang", "RadixCache and its allocators"},
    System{"transformers", "transformers", "its Cache classes"},
    System{"mlx-lm", "mlx_lm", "its cache classes"},
};

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::span<const System> systems() {
  return kSystems;
}

const System* find_system(std::string_view name) {
  const auto* found = std::ranges::find(kSystems, name, &System::name);
  return found == kSystems.end() ? nullptr : found;
}

std::string path_of_program() {
  std::error_code failed;
  return std::filesystem::read_symlink("/proc/self/exe", failed).string();
}

std::string python_of_systems() {
  const auto beside = std::filesystem::path(path_of_program()).parent_path() / "python3";
  std::error_code failed;
  return std::filesystem::exists(beside, failed) ? beside.string() : "python3";
}

std::string command_of(const System& system) {
  return fmt::format("{} -m kvoracle.systems.{}", quoted(python_of_systems()), system.module);
}

}  // namespace kvo::tools
